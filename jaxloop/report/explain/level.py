"""A level as a whole: what it holds, how long it takes, what its tensors spend."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...result import Context, Evaluation
from ..sparse import READS, WRITES, may_overbook, timed_words
from .text import aligned, number, picojoules, section


def level_lines(evaluation: Evaluation, context: Context, s: int) -> list[str]:
    """The level's own sections."""
    return [
        f"{context.names.levels[s]}: all tensors of the level",
        *section("Capacity", "capacity", _capacity(evaluation, context, s)),
        *section("Time", "time", _time(evaluation, context, s)),
        *section("Energy", "energy", _energy(evaluation, context, s)),
    ]


def _capacity(evaluation: Evaluation, context: Context, s: int) -> Iterator[str]:
    words = np.asarray(evaluation.stored_words[s] * context.mapping.keep[s])
    what = "planned for" if may_overbook(context, s) else "at most"
    yield f"{what} {_sum(context, words, 'words', evaluation.capacity_words[s])}"
    if evaluation.metadata_bits[s].any():
        bits = np.asarray(evaluation.metadata_bits[s])
        yield f"{what} {_sum(context, bits, 'bits of metadata', evaluation.capacity_bits[s])}"


def _sum(context: Context, parts: np.ndarray, unit: str, capacity: Any) -> str:
    terms = " + ".join(
        f"{name} {number(part)}" for name, part in zip(context.names.tensors, parts, strict=True) if part
    )
    limit = f"of {number(capacity)}" if np.isfinite(capacity) else "unlimited"
    return f"{terms or 'nothing'} = {number(parts.sum())} {unit}, {limit}"


def _time(evaluation: Evaluation, context: Context, s: int) -> Iterator[str]:
    program, cycles = context.program, float(evaluation.compute_cycles)
    reads, writes = (timed_words(evaluation, context, a).evened[s].sum() for a in (READS, WRITES))
    kinds = (
        ("read", reads, program.read_bandwidth[s]),
        ("written", writes, program.write_bandwidth[s]),
        ("both", reads + writes, program.shared_bandwidth[s]),
    )
    rows = [
        (
            what,
            f"{number(words)} words",
            f"/ {number(cycles)} cycles =",
            number(words / max(cycles, 1.0)),
            _limit(limit),
        )
        for what, words, limit in kinds
    ]
    yield "actual and gated accesses of an instance, metadata in whole words:"
    yield from aligned(rows, left=(0, 4))
    slowdown, result = number(evaluation.slowdown[s]), number(evaluation.level_cycles[s])
    yield f"share of full speed {slowdown}: {number(cycles)} compute cycles / {slowdown} = {result} cycles"


def _limit(bandwidth: float) -> str:
    return f"words per cycle, bandwidth {number(bandwidth)}" if np.isfinite(bandwidth) else "words per cycle, unlimited"


def _energy(evaluation: Evaluation, context: Context, s: int) -> list[str]:
    kept = [t for t in range(len(context.names.tensors)) if context.mapping.keep[s, t]]
    rows = [(context.names.tensors[t], picojoules(evaluation.energy_pj_by_tensor[s, t]), "pJ") for t in kept]
    addresses = float(evaluation.address_energy_pj[s].sum())
    if addresses > 0:
        rows.append(("addresses", picojoules(addresses), "pJ"))
    total = float(evaluation.energy_pj_by_tensor[s].sum()) + addresses
    return aligned([*rows, ("all", picojoules(total), "pJ")])
