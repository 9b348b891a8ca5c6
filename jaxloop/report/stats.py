"""A stats file as the reference program writes it, for scripts that parse one (spec/dense.md 10 and 13.1)."""

from typing import Any

import numpy as np

from ..program import Fate
from ..result import Context, Evaluation
from . import stats_levels, stats_sparse
from .energy import level_energy_pj, network_energy_pj
from .stats_format import count, fixed, heading, line, ratio
from .stats_networks import network_block, network_order


def stats_text(evaluation: Evaluation) -> str:
    """The evaluation of one valid mapping with the labels, order and number formats of Timeloop's `*.stats.txt`.

    One difference is deliberate: `Area` in the summary is the area of the design, where the public reference program
    prints 0.00.

    **Raises:** `ValueError` for a batch, or for a mapping that is not valid: the file could not say so.
    """
    context = evaluation.context
    if context is None:
        raise ValueError("a stats file describes one evaluation: evaluate the one mapping of interest")
    if not evaluation.valid:
        raise ValueError("a stats file describes a valid mapping: " + "; ".join(evaluation.reasons))
    blocks = stats_sparse if context.design.sparse.is_present else stats_levels
    lines = heading("Buffer and Arithmetic Levels") + blocks.compute_block(evaluation, context)
    for s in range(len(context.names.levels)):
        lines += blocks.storage_block(evaluation, context, s)
    lines += heading("Networks")
    for index, s in enumerate(network_order(context)):
        lines += network_block(evaluation, context, index, s)
    lines += ["", *_intensity(evaluation, context), "", "", *_summary(evaluation, context), ""]
    lines += [*_energy_per_compute(evaluation, context), "", ""]
    return "\n".join(lines)


def _operations(evaluation: Evaluation, context: Context) -> tuple[float, float]:
    """Elementwise and reduction operations: the first product of each output word is not added to anything."""
    computes = float(evaluation.computes_by_fate[Fate.ACTUAL])
    if not context.program.structure.conventions.first_read_elision:
        return computes, computes
    outputs = float(_footprints(evaluation)[np.asarray(context.program.is_output) > 0].sum())
    return computes, max(computes - outputs, 0.0)


def _footprints(evaluation: Evaluation) -> np.ndarray:
    """Words of each tensor at the outermost level that holds it, as they are stored there: [tensor]."""
    tiles = np.asarray(evaluation.tile_words)
    outermost = tiles.shape[0] - 1 - (tiles[::-1] > 0).argmax(0)
    return np.asarray(evaluation.stored_words)[outermost, np.arange(tiles.shape[1])]


def _ops_per_byte(operations: float, word_bits: float, words: float) -> str:
    return fixed(ratio(np.float32(operations), word_bits * words // 8))


def _intensity(evaluation: Evaluation, context: Context) -> list[str]:
    elementwise, reduction = _operations(evaluation, context)
    operations, word_bits = elementwise + reduction, context.program.word_bits
    traffic = float(_footprints(evaluation).sum())
    rows = [
        ("Total elementwise ops", count(elementwise)),
        ("Total reduction ops", count(reduction)),
        ("Total ops", count(operations)),
        ("Total memory accesses required", count(traffic)),
        ("Optimal Op per Byte", _ops_per_byte(operations, float(word_bits[-1]), traffic)),
    ]
    lines = [*heading("Operational Intensity Stats"), *(line(*row, width=39, indent=1) for row in rows), ""]
    per_tensor = evaluation.instances * (evaluation.reads + evaluation.updates + evaluation.fills)
    for name, bits, accesses in zip(context.names.levels, word_bits, np.trunc(per_tensor).sum(1), strict=True):
        lines.append(f"=== {name} ===")
        if accesses > 0:
            lines.append(line("Total scalar accesses", count(accesses), width=39, indent=1))
            lines.append(line("Op per Byte", _ops_per_byte(operations, float(bits), accesses), width=39, indent=1))
    return lines


def _summary(evaluation: Evaluation, context: Context) -> list[str]:
    operations = np.float32(sum(_operations(evaluation, context)))
    return [
        *heading("Summary Stats"),
        f"GFLOPs (@1GHz): {fixed(ratio(operations, evaluation.cycles))}",
        f"Utilization: {fixed(evaluation.utilization)}",
        f"Cycles: {count(evaluation.cycles)}",
        f"Energy: {fixed(evaluation.energy_pj / 1e6)} uJ",
        f"EDP(J*cycle): {float(evaluation.edp):.2e}",
        f"Area: {fixed(evaluation.area_um2 / 1e6)} mm^2",
    ]


def _energy_per_compute(evaluation: Evaluation, context: Context) -> list[str]:
    """Per operation that the workload asks for, and in the layout of sparse designs also per one that takes place."""
    if not context.design.sparse.is_present:
        return _per_compute(evaluation, context, "Computes", "pJ/Compute", evaluation.computes)
    actual = evaluation.computes_by_fate[Fate.ACTUAL]
    algorithmic = "Algorithmic Computes", "pJ/Algorithmic-Compute"
    return [
        *_per_compute(evaluation, context, *algorithmic, evaluation.computes),
        "",
        *_per_compute(evaluation, context, "Actual Computes", "pJ/Compute", actual),
    ]


def _per_compute(evaluation: Evaluation, context: Context, label: str, unit: str, computes: Any) -> list[str]:
    names = context.names
    energies = [(names.compute, float(evaluation.compute_energy_pj))]
    energies += zip(names.levels, level_energy_pj(evaluation), strict=True)
    networks = network_energy_pj(evaluation)
    energies += [(names.networks[s], networks[s]) for s in network_order(context)]
    width = max(len(name) for name, _ in energies) + 1
    rows = [*energies, ("Total", float(evaluation.energy_pj))]
    return [
        f"{label} = {count(computes)}",
        unit,
        *(f"    {name:<{width}}= {fixed(ratio(energy, computes))}" for name, energy in rows),
    ]
