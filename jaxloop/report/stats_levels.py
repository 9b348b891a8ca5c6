"""The blocks of the compute units and of the storage levels in a stats file (spec/dense.md sections 7, 8 and 13.1)."""

import numpy as np

from ..program import Action, Fate
from ..result import Context, Evaluation
from .stats_format import count, fixed, heading, line, optional, ratio


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
        ("Utilized instances", count(evaluation.compute_instances), ""),
        ("Computes (total)", count(evaluation.computes), ""),
        ("Cycles", count(evaluation.compute_cycles), ""),
        ("Energy (total)", fixed(evaluation.compute_energy_pj), "pJ"),
        ("Area (total)", fixed(program.compute_area * instances), "um^2"),
    ]
    return [
        *title(0, context.names.compute),
        *heading("SPECS", 1),
        *(line(*row, width=21, indent=1) for row in specs),
        "",
        *heading("STATS", 1),
        *(line(*row, width=23, indent=1) for row in stats),
        "",
    ]


def storage_block(evaluation: Evaluation, context: Context, s: int) -> list[str]:
    """The lines about storage level `s`, counted from the innermost."""
    nest = loops(context, s)
    return [
        *title(s + 1, context.names.levels[s]),
        *heading("SPECS", 1),
        *(line(*row, width=20, indent=2) for row in _specs(context, s)),
        "",
        *heading("MAPPING", 1),
        "    Loop nest:",
        *(f"      {'  ' * depth}{loop}" for depth, loop in enumerate(nest)),
        "",
        *heading("STATS", 1),
        line("Cycles", count(evaluation.level_cycles[s]), width=20, indent=1),
        line("Bandwidth throttling", fixed(evaluation.slowdown[s]), width=20, indent=1),
        *(text for t in context.tensors_at(s) for text in _tensor_lines(evaluation, context, s, t)),
        "",
    ]


def title(index: int, name: str) -> list[str]:
    """The lines that name a level; 0 stands for the compute units."""
    return [*heading(f"Level {index}"), f"=== {name} ===", ""]


def _specs(context: Context, s: int) -> list[tuple[str, str, str]]:
    program, storage = context.program, context.design.architecture.levels[s]
    mesh_x, mesh_y = program.mesh_x[s], program.mesh_y[s]
    size = float(program.size[s])
    effective = np.floor(size / program.multiple_buffering[s])
    bandwidths = {
        "Shared bandwidth": program.shared_bandwidth[s],
        "Read bandwidth": program.read_bandwidth[s],
        "Write bandwidth": program.write_bandwidth[s],
    }
    limited = bool(np.isfinite(size))
    return [
        ("Technology", storage.technology, ""),
        ("Size", count(size) if limited else "-", ""),
        ("Word bits", count(program.word_bits[s]), ""),
        ("Block size", count(program.block_size[s]), ""),
        ("Cluster size", count(program.cluster_size[s]), ""),
        ("Instances", f"{count(mesh_x * mesh_y)} ({count(mesh_x)}*{count(mesh_y)})", ""),
        *((label, optional(fixed(limit), bool(np.isfinite(limit))), "") for label, limit in bandwidths.items()),
        ("Multiple buffering", fixed(program.multiple_buffering[s]), ""),
        ("Effective size", count(effective) if limited else "-", ""),
        ("Min utilization", fixed(program.min_utilization[s]), ""),
        ("Vector access energy", fixed(_vector_access_energy(context, s)), "pJ"),
        ("Area", fixed(program.area[s]), "um^2"),
    ]


def _vector_access_energy(context: Context, s: int) -> float:
    """The dearest action of the level's table entry, whatever it is, per cluster (section 11); without an entry all
    data actions cost the same."""
    storage, table = context.design.architecture.levels[s], context.design.energy_table
    actions = table.components.get(storage.name) if table else None
    table_wins = context.program.structure.conventions.table_over_attributes or storage.vector_access_energy is None
    if actions and table_wins:
        return max(actions.values()) / float(context.program.cluster_size[s])
    return float(context.program.action_energy[Action.READ, s, 0])


def loops(context: Context, s: int) -> list[str]:
    """The loops of level `s` that iterate, outermost first: temporal, then spatial along Y, then along X."""
    mapping, ranks = context.mapping, context.names.ranks
    kinds = (
        (mapping.temporal[s], mapping.temporal_order[s], ""),
        (mapping.spatial_y[s], mapping.spatial_order[s], " (Spatial-Y)"),
        (mapping.spatial_x[s], mapping.spatial_order[s], " (Spatial-X)"),
    )
    return [
        f"for {ranks[rank]} in [0:{count(bounds[rank])}){suffix}"
        for bounds, order, suffix in kinds
        for rank in reversed(order)
        if bounds[rank] != 1
    ]


def _tensor_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    rows = _count_rows(evaluation, s, t) + energy_rows(evaluation, context, s, t) + _bandwidth_rows(evaluation, s, t)
    return [f"    {context.names.tensors[t]}:", *(line(*row, width=40, indent=2) for row in rows)]


def _count_rows(evaluation: Evaluation, s: int, t: int) -> list[tuple[str, str, str]]:
    values = {
        "Partition size": evaluation.partition_size,
        "Utilized capacity": evaluation.tile_words,
        "Utilized instances (max)": evaluation.instances,
        "Utilized clusters (max)": evaluation.clusters,
        "Scalar reads (per-instance)": evaluation.reads,
        "Scalar updates (per-instance)": evaluation.updates,
        "Scalar fills (per-instance)": evaluation.fills,
        "Temporal reductions (per-instance)": evaluation.temporal_reductions,
        "Address generations (per-cluster)": evaluation.address_generations,
    }
    return [(label, count(value[s, t]), "") for label, value in values.items()]


def energy_rows(evaluation: Evaluation, context: Context, s: int, t: int) -> list[tuple[str, str, str]]:
    """The lines about the energy of a tensor at a level, in both layouts."""
    total = evaluation.energy_pj_by_tensor[s, t]
    instances = evaluation.instances[s, t]
    per_instance = total / instances if instances else 0.0
    accesses = evaluation.accesses[Fate.ACTUAL, :, s, t].sum()
    per_cluster = evaluation.address_generations[s, t] * context.program.address_energy[s]
    values = {
        "Energy (per-scalar-access)": ratio(per_instance, accesses),
        "Energy (per-instance)": per_instance,
        "Energy (total)": total,
        # The reference charges a temporal reduction with its adder, whose public energy is 0 (section 7.3).
        "Temporal Reduction Energy (per-instance)": 0.0,
        "Temporal Reduction Energy (total)": 0.0,
        "Address Generation Energy (per-cluster)": per_cluster,
        "Address Generation Energy (total)": evaluation.address_energy_pj[s, t],
    }
    return [(label, fixed(value), "pJ") for label, value in values.items()]


def _bandwidth_rows(evaluation: Evaluation, s: int, t: int) -> list[tuple[str, str, str]]:
    """Words per cycle at the speed that the level sustains (section 7.4)."""
    speed, cycles = evaluation.slowdown[s], evaluation.compute_cycles
    reads = evaluation.reads[s, t] / cycles
    writes = (evaluation.fills[s, t] + evaluation.updates[s, t]) / cycles
    rows = []
    for kind, words in (("Shared", reads + writes), ("Read", reads), ("Write", writes)):
        per_instance = speed * words
        total = per_instance * evaluation.instances[s, t]
        rows.append((f"{kind} Bandwidth (per-instance)", fixed(per_instance), "words/cycle"))
        rows.append((f"{kind} Bandwidth (total)", fixed(total), "words/cycle"))
    return rows
