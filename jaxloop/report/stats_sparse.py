"""The blocks of a stats file in the layout of sparse designs (spec/sparse.md section 5, spec/inputs.md 8.4)."""

from collections.abc import Iterable

import numpy as np

from ..program import Action, Conversion, Fate
from ..result import Context, Evaluation
from ..spec.density import Distribution
from .sparse import READS, WRITES, accessed_bits, rank_formats, timed_words, used_instances
from .stats_format import count, fixed, heading, line, optional, ratio
from .stats_levels import energy_rows, loops, title

_ACTIONS = {Action.READ: "reads", Action.FILL: "fills", Action.UPDATE: "updates"}
_FATES = {Fate.ACTUAL: "Actual", Fate.GATED: "Gated", Fate.SKIPPED: "Skipped"}
_SPARSE_PRICES = {
    "Vector metadata read energy": "metadata_read",
    "Vector metadata write energy": "metadata_fill",
    "(De)compression energy": "decompression",
}
"""Label -> operation (`Context.provenance`)."""

_WIDTH = 59


def compute_block(evaluation: Evaluation, context: Context) -> list[str]:
    """The lines about the compute units."""
    program = context.program
    instances = program.compute_mesh_x * program.compute_mesh_y
    mesh = f"{count(instances)} ({count(program.compute_mesh_x)}*{count(program.compute_mesh_y)})"
    specs = [
        ("Word bits", str(context.design.architecture.compute.word_bits), ""),
        ("Instances", mesh, ""),
        ("Compute energy", fixed(program.compute_energy), "pJ"),
    ]
    stats = [
        ("Utilized instances (max)", count(evaluation.compute_x * evaluation.compute_y), ""),
        ("Utilized instances (average)", count(evaluation.compute_instances), ""),
        ("Cycles", count(evaluation.compute_cycles), ""),
        ("Algorithmic Computes (total)", count(evaluation.computes), ""),
        *((f"{name} Computes (total)", count(evaluation.computes_by_fate[fate]), "") for fate, name in _FATES.items()),
        ("Energy (total)", fixed(evaluation.compute_energy_pj), "pJ"),
        ("Area (total)", fixed(program.compute_area * instances), "um^2"),
    ]
    return [
        *title(0, context.names.compute),
        *heading("SPECS", 1),
        *(line(*row, width=21, indent=1) for row in specs),
        "",
        *heading("STATS", 1),
        *(line(*row, width=28, indent=1) for row in stats),
        "",
        "",
    ]


def storage_block(evaluation: Evaluation, context: Context, s: int) -> list[str]:
    """The lines about storage level `s`, counted from the innermost."""
    return [
        *title(s + 1, context.names.levels[s]),
        *heading("SPECS", 1),
        *(line(*row, width=28, indent=2) for row in _specs(context, s)),
        "",
        *heading("MAPPING", 1),
        "    Loop nest:",
        *(f"      {'  ' * depth}{loop}" for depth, loop in enumerate(loops(context, s))),
        "",
        *heading("STATS", 1),
        line("Cycles", count(evaluation.level_cycles[s]), width=20, indent=1),
        line("Bandwidth throttling", fixed(evaluation.slowdown[s]), width=20, indent=1),
        *(text for t in context.tensors_at(s) for text in _tensor_lines(evaluation, context, s, t)),
        "",
    ]


def _specs(context: Context, s: int) -> list[tuple[str, str, str]]:
    program, storage = context.program, context.design.architecture.levels[s]
    mesh_x, mesh_y = program.mesh_x[s], program.mesh_y[s]
    size = float(program.size[s])
    limited = bool(np.isfinite(size))
    width = storage.metadata.width if program.sparse is None else program.sparse.metadata_width[s]
    depth = storage.metadata.depth
    bandwidths = {
        "Shared bandwidth": program.shared_bandwidth[s],
        "Read bandwidth": program.read_bandwidth[s],
        "Write bandwidth": program.write_bandwidth[s],
    }
    return [
        ("Technology", storage.technology, ""),
        ("Data storage size", count(size) if limited else "-", ""),
        ("Data word bits", count(program.word_bits[s]), ""),
        ("Data block size", count(program.block_size[s]), ""),
        ("Metadata storage width(bits)", count(width), ""),
        ("Metadata storage depth", optional(str(depth), depth > 0), ""),
        ("Cluster size", count(program.cluster_size[s]), ""),
        ("Instances", f"{count(mesh_x * mesh_y)} ({count(mesh_x)}*{count(mesh_y)})", ""),
        *((label, optional(fixed(limit), bool(np.isfinite(limit))), "") for label, limit in bandwidths.items()),
        ("Multiple buffering", fixed(program.multiple_buffering[s]), ""),
        ("Effective data storage size", count(np.floor(size / program.multiple_buffering[s])) if limited else "-", ""),
        ("Min utilization", fixed(program.min_utilization[s]), ""),
        *((label, fixed(price), "pJ") for label, price in _prices(context, s).items()),
        ("Area", fixed(program.area[s]), "um^2"),
    ]


def _prices(context: Context, s: int) -> dict[str, float]:
    """Energy per vector access, and per word whose representation changes."""
    program = context.program
    prices = {
        "Vector read energy": program.action_energy[Action.READ, s, 0],
        "Vector write energy": program.action_energy[Action.FILL, s, 0],
    }
    if program.sparse is None:
        return prices | {label: _listed_price(context, s, operation) for label, operation in _SPARSE_PRICES.items()}
    metadata = program.sparse.metadata_energy[Fate.ACTUAL, :, s, 0]
    conversion = program.sparse.conversion_energy[Conversion.DECOMPRESSION, s, 0]
    return prices | dict(zip(_SPARSE_PRICES, (metadata[Action.READ], metadata[Action.FILL], conversion), strict=True))


def _listed_price(context: Context, s: int, operation: str) -> float:
    """What the energy table says of an operation of which the design has none: its sparse optimizations are empty."""
    level, table = context.names.levels[s], context.design.energy_table
    entry = context.provenance.get((level, operation), "").removeprefix("ERT entry ")
    return table.components.get(level, {}).get(entry, 0.0) if table else 0.0


def _tensor_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    return [
        f"    {context.names.tensors[t]}:",
        *_lines(_tile_rows(evaluation, context, s, t)),
        *_format_lines(evaluation, context, s, t),
        *_lines(_instance_rows(evaluation, context, s, t)),
        *_lines(_access_rows(evaluation, s, t)),
        *_metadata_lines(evaluation, context, s, t),
        *_lines(_rest_rows(evaluation, s, t)),
        *_lines(energy_rows(evaluation, context, s, t)),
        *_bandwidth_lines(evaluation, context, s, t),
    ]


def _lines(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    return [line(*row, width=_WIDTH, indent=2) for row in rows]


def _distribution(context: Context, t: int) -> str:
    density = context.design.densities.get(context.names.tensors[t])
    if density is None:
        return "fixed-structured"
    name = density.distribution.value.replace("_", "-")
    return f"{name}-{density.band_width}" if density.distribution == Distribution.BANDED else name


def _tile_rows(evaluation: Evaluation, context: Context, s: int, t: int) -> list[tuple[str, str, str]]:
    return [
        ("Partition size", count(evaluation.partition_size[s, t]), ""),
        ("Tile density distribution", _distribution(context, t), ""),
        ("Data tile shape", count(evaluation.tile_words[s, t]), ""),
        ("Max utilized data storage capacity", count(evaluation.stored_words[s, t]), ""),
    ]


def _format_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    formats = rank_formats(context, s, t)
    label = "Max utilized Repr format storage capacity"
    if not formats:
        return _lines([("Representation format", "none", ""), (label, "0", "")])
    # the reference ends each name with a blank
    names = "".join(f"{rank_format.value.lower()} " for rank_format in reversed(formats))
    units = np.ceil(np.asarray(evaluation.stored_units)[s, t, : len(formats)])
    return [*_lines([("Representation format", names, "")]), *_by_rank(label, units, ", ")]


def _by_rank(label: str, units: np.ndarray, comma: str) -> list[str]:
    """Metadata and payload of each rank, outermost first."""
    ranks = [
        f"            Rank {rank} (metadata, payload): ({count(units[rank, 0])}{comma}{count(units[rank, 1])})"
        for rank in reversed(range(len(units)))
    ]
    return [f"        {label:<{_WIDTH}} ", *ranks]


def _instance_rows(evaluation: Evaluation, context: Context, s: int, t: int) -> list[tuple[str, str, str]]:
    return [
        ("Utilized instances (max)", count(used_instances(evaluation, context)[s, t]), ""),
        ("Utilized instances (average)", fixed(evaluation.instances[s, t]), ""),
        ("Utilized clusters (max)", count(evaluation.clusters[s, t]), ""),
    ]


def _access_rows(evaluation: Evaluation, s: int, t: int) -> Iterable[tuple[str, str, str]]:
    for action, name in _ACTIONS.items():
        yield f"Algorithmic scalar {name} (per-instance)", count(getattr(evaluation, name)[s, t]), ""
        for fate, prefix in _FATES.items():
            words = evaluation.accesses[fate, action, s, t]
            yield f"{prefix} scalar {name} (per-instance)", count(words), ""


def _metadata_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> Iterable[str]:
    ranks = len(rank_formats(context, s, t))
    if not ranks:
        return
    bits = accessed_bits(evaluation, context)[:, :, s, t]
    for action, name in _ACTIONS.items():
        for fate, prefix in _FATES.items():
            label = f"{prefix} scalar format {name} (per-instance)"
            units = np.asarray(evaluation.metadata_accesses)[fate, action, s, t, :ranks]
            yield from _by_rank(label, units, ",  ") if bits[fate, action] > 0 else _lines([(label, "0", "")])


def _rest_rows(evaluation: Evaluation, s: int, t: int) -> list[tuple[str, str, str]]:
    return [
        ("Temporal reductions (per-instance)", count(evaluation.temporal_reductions[s, t]), ""),
        ("Address generations (per-cluster)", count(evaluation.address_generations[s, t]), ""),
    ]


def _bandwidth_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> Iterable[str]:
    """Words per cycle at the speed that the level sustains, and how much of them is metadata (5.6)."""
    reads, writes = timed_words(evaluation, context, READS), timed_words(evaluation, context, WRITES)
    both = timed_words(evaluation, context, [*READS, *WRITES])
    kinds = (
        ("Shared", both, reads.evened + writes.evened),
        ("Read", reads, reads.evened),
        ("Write", writes, writes.evened),
    )
    for kind, words, evened in kinds:
        per_instance = evaluation.slowdown[s] * ratio(evened[s, t], evaluation.compute_cycles)
        total = per_instance * used_instances(evaluation, context)[s, t]
        moved = words.data[s, t] + words.metadata[s, t]
        share = 100.0 * words.data[s, t] / moved if moved > 0 else 100.0
        yield from _lines([(f"Average {kind} Bandwidth (per-instance)", fixed(per_instance), "words/cycle")])
        yield f"            Breakdown (Data, Format): ({fixed(share)}%, {fixed(100.0 - share)}%)"
        yield from _lines([(f"{kind} Bandwidth (total)", fixed(total), "words/cycle")])
