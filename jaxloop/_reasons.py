"""In words, why a mapping is not valid."""

from typing import TYPE_CHECKING, Any

from .status import FormatViolation, Status, Violation

if TYPE_CHECKING:
    from .result import Context, Evaluation


def number(value: Any) -> int | float:
    """A count as an int where it is one, so that JSON shows `12`, not `12.0`."""
    number = float(value)
    return int(number) if number.is_integer() else number


def _violation_text(evaluation: "Evaluation", context: "Context", row: int) -> str:
    """The reference's words for what is wrong with level `row - 1` (0: the compute units)."""
    code, s = Violation(int(evaluation.violation[row])), row - 1
    program, storage = context.program, row > 0
    name = context.names.levels[s] if storage else context.names.compute
    mesh_x = float(program.mesh_x[s] if storage else program.compute_mesh_x)
    mesh_y = float(program.mesh_y[s] if storage else program.compute_mesh_y)
    used_x = float(evaluation.instances_x[s] if storage else evaluation.compute_x)
    used_y = float(evaluation.instances_y[s] if storage else evaluation.compute_y)
    what = "mapped" if storage else "mapped max Arithmetic"
    if code == Violation.CAPACITY:
        stored = evaluation.stored_words[s] * context.mapping.keep[s]
        tiles = ", ".join(f"{t} {number(w)}" for t, w in zip(context.names.tensors, stored, strict=True) if w > 0)
        used, capacity = stored.sum(), evaluation.capacity_words[s]
        text = f"mapped tile size {number(used)} exceeds buffer capacity {number(capacity)} (words: {tiles})"
    elif code == Violation.METADATA_CAPACITY:
        bits = evaluation.metadata_bits[s]
        tiles = ", ".join(f"{t} {number(b)}" for t, b in zip(context.names.tensors, bits, strict=True) if b > 0)
        used, capacity = number(bits.sum()), number(evaluation.capacity_bits[s])
        text = f"mapped metadata tile size {used} exceeds metadata buffer capacity {capacity} (bits: {tiles})"
    elif code == Violation.UTILIZATION:
        least = float(evaluation.capacity_words[s] * program.min_utilization[s])
        used = (evaluation.stored_words[s] * context.mapping.keep[s]).sum()
        text = f"mapped tile size {number(used)} is less than constrained minimum utilization {number(least)}"
    elif code == Violation.INSTANCES:
        used = evaluation.instances[s].max() if storage else evaluation.compute_x * evaluation.compute_y
        text = f"{what} instances {number(used)} exceeds hardware instances {number(mesh_x * mesh_y)}"
    elif code == Violation.MESH_X:
        text = f"{what} X expansion {number(used_x)} exceeds hardware instances {number(mesh_x)}"
    else:
        text = f"{what} Y expansion {number(used_y)} exceeds hardware instances {number(mesh_y)}"
    if code in (Violation.INSTANCES, Violation.MESH_X, Violation.MESH_Y):
        text += f" (X {number(used_x)} of {number(mesh_x)}, Y {number(used_y)} of {number(mesh_y)}; "
        text += "the first `split` loops of a spatial directive go to X)"
    return f"couldn't map level {name}: {text}"


FORMAT_TEXTS = {
    FormatViolation.NO_DECOMPRESSION: "decompression needed but not supported",
    FormatViolation.NO_COMPRESSION: "compression needed but not supported",
    FormatViolation.RUNTIME_PARTITION: "more compression ranks than the next outer level has: runtime partition is not "
    "supported",
    FormatViolation.MISALIGNED: "pretiling does not align with the ranks of the next inner level",
    FormatViolation.TOO_FEW_RANKS: "more compression ranks needed than supported in hardware",
    FormatViolation.COMPRESSED_INSIDE: "compressed, but not at the next outer level",
}


CONVERSIONS = (FormatViolation.NO_DECOMPRESSION, FormatViolation.NO_COMPRESSION, FormatViolation.RUNTIME_PARTITION)
"""Tested before all else, tensor by tensor from the outermost level inward; the others are level by level."""


def _format_texts(evaluation: "Evaluation", context: "Context") -> tuple[list[str], list[str], list[str]]:
    """What is wrong with representations: between neighbors, with the ranks, and what the reference aborts on last."""
    names = context.names
    found: list[tuple[int, int, FormatViolation]] = [
        (s, t, FormatViolation(int(evaluation.format_violation[s, t])))
        for s in range(len(names.levels))
        for t in range(len(names.tensors))
    ]

    def text(s: int, t: int, violation: FormatViolation) -> str:
        detail = _rank_detail(context, s, t) if violation == FormatViolation.TOO_FEW_RANKS else ""
        what = f"{FORMAT_TEXTS[violation]}. dataspace name: {names.tensors[t]}{detail}"
        return f"couldn't map level {names.levels[s]}: {what}"

    between = sorted((v for v in found if v[2] in CONVERSIONS), key=lambda entry: (entry[1], -entry[0]))
    of_ranks = [v for v in found if v[2] in (FormatViolation.MISALIGNED, FormatViolation.TOO_FEW_RANKS)]
    last = [v for v in found if v[2] == FormatViolation.COMPRESSED_INSIDE]
    return [text(*v) for v in between], [text(*v) for v in of_ranks], [text(*v) for v in last]


def _fan_out_texts(evaluation: "Evaluation", context: "Context") -> list[str]:
    """Of the levels with more instances than their parents have room for, the compute units first, in the reference's
    words."""
    program, names = context.program, (context.names.compute, *context.names.levels)
    texts = []
    for axis, used, compute, meshes, mesh in (
        ("X", evaluation.instances_x, evaluation.compute_x, program.mesh_x, program.compute_mesh_x),
        ("Y", evaluation.instances_y, evaluation.compute_y, program.mesh_y, program.compute_mesh_y),
    ):
        required, existing = [float(compute), *used], [float(mesh), *meshes]
        for s in range(len(names) - 1):
            children = existing[s] // existing[s + 1]
            if required[s] > children * required[s + 1]:
                needed = f"{required[s] / required[s + 1]:g}"
                text = f"Required fanout{axis} {needed} does not meet hardware constraint {children:g}"
                texts.append((s, f"couldn't map level {names[s]}: {text}"))
    return [text for _, text in sorted(texts)]


def _rank_detail(context: "Context", s: int, t: int) -> str:
    """The format ranks of a tensor at a level, and the loops that they should cover (spec/sparse.md 2.3)."""
    mapping, sparse, names = context.mapping, context.program.sparse, context.names
    assert sparse is not None
    given = int((sparse.rank_format[s, t] > 0).sum())
    child = next((level for level in range(s - 1, -1, -1) if mapping.keep[level, t]), -1)
    moves = (context.program.projection_extent[t] > 0).any(axis=0)
    loops = []
    for level in range(s, child, -1):
        for kind, order, bounds in (
            ("", mapping.temporal_order, mapping.temporal),
            ("spatial ", mapping.spatial_order, mapping.spatial_x * mapping.spatial_y),
        ):
            loops += [
                f"{kind}{names.ranks[r]} of {number(bounds[level, r])} at {names.levels[level]}"
                for r in order[level][::-1]
                if moves[r] and bounds[level, r] > 1
            ]
    below = f", and the tiles of {names.levels[child]}" if child >= 0 else ""
    flattens = sparse.has_groups is not None and (sparse.has_groups[s, t] > 0).any()
    how = ", with what they flatten," if flattens else ""
    return f" ({given} format ranks{how} cannot hold the loops {', '.join(loops) or 'inside'}{below}: give more)"


def _source_texts(context: "Context") -> list[str]:
    """Targets of gating and skipping that no level at or above the directive's keeps."""
    sparse, keep, found = context.program.sparse, context.mapping.keep, []
    assert sparse is not None
    for kind, level, targets in zip(sparse.saf_kind, sparse.saf_level, sparse.saf_target, strict=True):
        for target in targets:
            if kind > 0 and target >= 0 and not keep[level:, target].any():
                name, tensor = context.names.levels[level], context.names.tensors[target]
                found.append(f"couldn't map level {name}: does not have a source storage. dataspace name: {tensor}")
    return found


def reasons(evaluation: "Evaluation", context: "Context") -> list[str]:
    status, names = Status(int(evaluation.status)), context.names
    reasons = []
    if Status.NOT_COVERING in status:
        factors = context.mapping.temporal * context.mapping.spatial_x * context.mapping.spatial_y
        reasons += [
            f"product of all factors of rank {r} is {number(p)}, its size is {number(size)}"
            for r, p, size in zip(names.ranks, factors.prod(0), context.program.rank_sizes, strict=True)
            if p != size
        ]
    if Status.NOT_STORED in status:
        stored = context.mapping.keep.max(0)
        lost = [t for t, kept in zip(names.tensors, stored, strict=True) if not kept]
        reasons.append(f"tensor {', '.join(lost)} is bypassed at every storage level")
    between, of_ranks, last = _format_texts(evaluation, context)
    reasons += between + of_ranks
    if Status.NO_SOURCE in status:
        reasons += _source_texts(context)
    if Status.OVER_FAN_OUT in status:
        reasons += _fan_out_texts(evaluation, context)
    if Status.MIXED_SAFS in status:
        reasons.append("one level does both spatial skipping and gating or skipping of the same tensor")
    if Status.UNEVEN_FIBERS in status:
        reasons.append("spatial skipping along a sliding window: children share parts of the tensor")
    reasons += last
    rows = range(len(names.levels) + 1)
    reasons += [_violation_text(evaluation, context, r) for r in rows if evaluation.violation[r] != Violation.NONE]
    if Status.NEGATIVE_READS in status:
        reasons.append("an output's partition exceeds its accesses: no count of reads exists")
    if Status.UNCOUNTED_LINKS in status:
        reasons.append(
            "which children share or hand over words could not be enumerated (a fan-out wider than 4096 children, or "
            "too many kinds of groups): switch links off with no_link_transfer or conventions with link_transfers=False"
        )
    return reasons
