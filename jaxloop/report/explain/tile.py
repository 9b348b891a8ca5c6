"""What a level holds of a tensor: tile, distribution of nonzeros, occupancy, representation."""

import numpy as np

from ...program import DENSITY_KINDS
from ...result import Context, Evaluation
from ...spec.density import Distribution
from ...spec.einsum import Axis
from ..sparse import compacted, mapped_instances, may_overbook, outer_level, rank_formats, sparse_program
from ..stats_levels import loops
from .text import aligned, amount, chance, number, section

_DISTRIBUTIONS = {
    Distribution.FIXED_STRUCTURED: "fixed-structured: the same share of nonzeros in every tile",
    Distribution.HYPERGEOMETRIC: "hypergeometric: nonzeros placed uniformly at random",
    Distribution.BANDED: "banded: nonzeros near the diagonal",
    Distribution.REAL_DATA: "real data: counted over the tiles of a mask",
}
_KINDS = {code: distribution for distribution, code in DENSITY_KINDS.items()}


def tile_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    """The tile, and in a sparse design its nonzeros and its representation."""
    axes = context.design.einsum.tensors[t].axes
    inside = _box(context, s)
    extents = " x ".join(f"{_axis_name(axis)} {_extent(context, t, a, inside)}" for a, axis in enumerate(axes))
    whole = _words(context, t, np.asarray(context.program.rank_sizes))
    words = evaluation.tile_words[s, t]
    shape = f"{extents}: " if extents else ""
    nest = ", ".join(loops(context, s)) or "none that iterates"
    lines = section(
        "Tile",
        "tile",
        [
            f"{shape}{amount(words, 'word')}, of {number(whole)} in the whole tensor",
            f"loops of the level, outermost first: {nest}",
            f"instances that the mapping uses: {number(mapped_instances(context)[s])}",
        ],
    )
    if context.program.sparse is None:
        return lines
    return [
        *lines,
        *section("Nonzeros", "density", _density(evaluation, context, t, whole)),
        *section("Occupancy", "occupancy", _occupancy(evaluation, context, s, t)),
        *_format(evaluation, context, s, t),
    ]


def _axis_name(axis: Axis) -> str:
    """`M`, or `2*P+R` of a convolution's input."""
    terms = [term.rank if term.coefficient == 1 else f"{term.coefficient}*{term.rank}" for term in axis.terms]
    return "+".join(terms)


def _box(context: Context, s: int) -> np.ndarray:
    """Iterations of each rank at level `s` and inside it."""
    mapping = context.mapping
    bounds = np.asarray(mapping.temporal) * np.asarray(mapping.spatial_x) * np.asarray(mapping.spatial_y)
    return bounds[: s + 1].prod(0)


def _extent(context: Context, t: int, axis: int, box: np.ndarray) -> str:
    projection = np.asarray(context.program.projection_extent)[t, axis]
    return number(1.0 + (projection * (box - 1.0)).sum())


def tile_size(context: Context, s: int, t: int) -> float:
    """Words of a tensor that the loops of a level and inside it touch, whether or not it is kept there."""
    return _words(context, t, _box(context, s))


def _words(context: Context, t: int, box: np.ndarray) -> float:
    projection = np.asarray(context.program.projection_extent)[t]
    return float((1.0 + (projection * (box - 1.0)).sum(1)).prod())


def _density(evaluation: Evaluation, context: Context, t: int, whole: float) -> list[str]:
    sparse = sparse_program(context)
    distribution = _KINDS[int(sparse.density_kind[t])]
    share = operand_density(evaluation, context, t)
    if distribution == Distribution.REAL_DATA:
        parameter = f"density {chance(share)}"
    elif distribution == Distribution.BANDED:
        parameter = f"half width {number(sparse.band_width[t])}"
    else:
        parameter = f"density {chance(sparse.density[t])}"
    return [
        f"{_DISTRIBUTIONS[distribution]}; {parameter}",
        f"nonzeros in the whole tensor: {number(round(share * whole, 6))} of {amount(whole, 'word')}",
    ]


def operand_density(evaluation: Evaluation, context: Context, t: int) -> float:
    """Share of nonzeros among all words of a tensor: at the outermost level that keeps it, nothing is known of them."""
    kept = [s for s in range(len(context.names.levels)) if context.mapping.keep[s, t]]
    return float(evaluation.expected_density[kept[-1], t]) if kept else 0.0


def _occupancy(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    names, q = context.names, outer_level(context, s, t)
    empty, tensor = float(evaluation.tile_empty[s, t]), names.tensors[t]
    if s == 0 and t in compacted(context):
        lines = [
            f"averages are over all tiles, for position skipping compacts {tensor}; of metadata over those that arrive"
        ]
    elif q is None:
        lines = [f"P(empty) does not matter: no level further out keeps {tensor}"]
    elif not rank_formats(context, q, t):
        lines = [f"P(empty) does not matter: {names.levels[q]} has no metadata of {tensor}, so empty tiles arrive too"]
    else:
        lines = [
            f"P(empty) = {chance(empty)}: {names.levels[q]} has metadata of {tensor}, so empty tiles do not arrive"
        ]
    mapped, average = mapped_instances(context)[s], evaluation.instances[s, t]
    if np.isclose(average, mapped * (1.0 - empty)):
        busy = f"{number(mapped)} x (1 - {chance(empty)}) = {number(average)}"
    else:
        busy = f"{number(average)} of {number(mapped)}, for spatial skipping leaves some out,"
    lines.append(f"instances with a tile: {busy} on average")
    words, density = evaluation.expected_words[s, t], evaluation.expected_density[s, t]
    given = ", given that the tile is not empty" if empty > 0 else ""
    stored, most = evaluation.stored_words[s, t], "planned for" if may_overbook(context, s) else "stored at most"
    return [
        *lines,
        f"expected nonzeros: {number(words)} of {amount(evaluation.tile_words[s, t], 'word')}, "
        f"density {chance(density)}{given}",
        f"{most}: {amount(stored, 'word')}, {amount(evaluation.metadata_bits[s, t], 'bit')} of metadata",
    ]


def _format(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    formats = rank_formats(context, s, t)
    if not formats:
        return section("Representation", "format", ["uncompressed, without metadata"])
    sparse = sparse_program(context)
    rows: list[tuple[str, ...]] = [("rank", "format", "fiber", "word bits", "expected units", "units at most")]
    for rank in reversed(range(len(formats))):
        bits = sparse.metadata_bits[s, t, rank], sparse.payload_bits[s, t, rank]
        expected, most = evaluation.metadata_units[s, t, rank], np.ceil(evaluation.stored_units[s, t, rank])
        fiber = number(evaluation.fiber_length[s, t, rank])
        rows.append((str(rank), formats[rank].value, fiber, *(_pair(pair) for pair in (bits, expected, most))))
    direction = "inner-to-outer" if sparse.inner_to_outer[s, t] else "outer-to-inner"
    lines = [f"loops are dealt to ranks {direction}; pairs are (metadata, payload), outermost rank first"]
    return section("Representation", "format", [*lines, *aligned(rows, left=(1,))])


def _pair(pair: object) -> str:
    metadata, payload = np.asarray(pair)
    return f"({number(metadata)}, {number(payload)})"
