"""Which loops each format rank covers (spec/sparse.md 2.3 and 2.4).

The loops of a segment are dealt to the ranks of its owner one by one, from the outermost loop and rank inward or from
the innermost outward. A rank that flattens takes a run of loops. If the owner compresses the tensor and an inner level
keeps tiles of it, these stay whole: their ranks are taken over and only the others are dealt (pretiling).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import stack
from ..program import RANK_FORMATS, Program, SparseProgram
from ..spec.sparse import COMPRESSED
from .deal import Dealt, Slots, deal, deal_flattened
from .density.base import Box
from .nest import Nest, box_of, footprint, from_owner, of_child, outward
from .tiling import Tiles


class FormatRanks(eqx.Module):
    """Representations of all levels and tensors, ranks innermost first.

    **Attributes:**

    - `count`: format ranks, 0 without metadata; `exists`: mask of the ranks.
    - `has_metadata`, `compressed`.
    - `fibers`: fibers of each rank, empty ones included; `fiber`: elements of each; `anchor`: the rank that counts
      even if its fibers have one element.
    - `tile`: of one fiber of each rank; `below`: of one element of it, which is the tile of the next inner rank.
    - `child_count`: ranks of the next inner level that keeps the tensor (0 without metadata); `has_child`.
    - `too_few`: more loops than ranks; `misaligned`: the ranks taken over do not fit.
    """

    count: Float[Array, "level tensor *#lane"]
    exists: Bool[Array, "level tensor format_rank *#lane"]
    has_metadata: Bool[Array, "level tensor *#lane"]
    compressed: Bool[Array, "level tensor *#lane"]
    fibers: Float[Array, "level tensor format_rank *#lane"]
    fiber: Float[Array, "level tensor format_rank *#lane"]
    anchor: Bool[Array, "level tensor format_rank *#lane"]
    tile: Box
    below: Box
    child_count: Float[Array, "level tensor *#lane"]
    has_child: Bool[Array, "level tensor *#lane"]
    too_few: Bool[Array, "level tensor *#lane"]
    misaligned: Bool[Array, "level tensor *#lane"]


class Loops(eqx.Module):
    """Bounds as the representation sees them: with `scale`, the innermost loop of a rank also covers what lies below
    the segment."""

    spatial: Float[Array, "level tensor rank *#lane"]
    temporal: Float[Array, "level tensor rank *#lane"]
    spatial_tile: Box
    temporal_tile: Box
    innermost_tile: Box


def _loops(program: Program, nest: Nest, tiles: Tiles, pretiled: Array) -> Loops:
    """`pretiled` [level, tensor] of the segment's owner."""
    whole = (nest.starts & ~pretiled)[:, :, None]
    scale = jnp.where(whole, tiles.below[:, None], 1.0)
    spatial_block = nest.fans_out[:, None, None]
    spatial = nest.spatial[:, None] * jnp.where(spatial_block, scale, 1.0)
    temporal = nest.temporal[:, None] * jnp.where(spatial_block, 1.0, scale)

    def tiles_of(base: Array, bounds: Array, position: Array) -> Box:
        """The tile of everything up to each loop, [level, rank, tensor]."""
        inside = position[:, None] <= position[:, :, None]
        boxes = base[:, None] * jnp.where(inside, bounds[:, None], 1.0)
        shape = (*boxes.shape[:2], program.structure.tensors, *boxes.shape[2:])
        return box_of(program, jnp.broadcast_to(boxes[:, :, None], shape))

    def first_of(position: Array, tile: Box) -> Box:
        """The tile of the innermost loop of the block that moves the tensor, of one iteration or not."""
        place = jnp.where(nest.relevant[None], position[:, None], jnp.inf)
        is_first = nest.relevant[None] & (place == jnp.min(place, axis=2)[:, :, None])
        return jax.tree.map(lambda leaf: jnp.sum(jnp.where(is_first, jnp.swapaxes(leaf, 1, 2), 0.0), axis=2), tile)

    spatial_tile = tiles_of(tiles.below, nest.spatial, nest.spatial_position)
    temporal_tile = tiles_of(tiles.fanned, nest.temporal, nest.temporal_position)
    first_spatial = first_of(nest.spatial_position, spatial_tile)
    first_temporal = first_of(nest.temporal_position, temporal_tile)
    innermost = jax.tree.map(lambda a, b: jnp.where(nest.fans_out[:, None], a, b), first_spatial, first_temporal)
    of_spatial, of_temporal = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 1, 2), (spatial_tile, temporal_tile))
    return Loops(spatial, temporal, of_spatial, of_temporal, outward(nest, innermost, lambda carried, own: carried))


def format_ranks(program: Program, sparse: SparseProgram, nest: Nest, tiles: Tiles) -> FormatRanks:
    """Deals the loops of every segment to the ranks of its owner."""
    structure = program.structure
    assert structure.sparse is not None
    formats = sparse.rank_format
    ranks, dtype = formats.shape[2], tiles.below.dtype
    index = jnp.arange(ranks, dtype=dtype).reshape((1, 1, ranks) + (1,) * (formats.ndim - 3))
    codes = [RANK_FORMATS[rank_format] for rank_format in COMPRESSED]
    count = jnp.sum((formats > 0).astype(dtype), axis=2) * nest.keep
    has_metadata = count > 0.0
    compressed = nest.keep & jnp.any(jnp.isin(formats, jnp.array(codes, formats.dtype)), axis=2)
    slots = jnp.maximum(count, 1.0)  # a tensor without metadata has one rank that flattens everything
    none = jnp.zeros_like(count[0])
    child_slots = of_child(nest, slots, none)
    has_child = child_slots > 0.0
    pretiled = compressed & has_child & (of_child(nest, tiles.tile_words, none) > 1.0)
    first_rank = jnp.where(pretiled, child_slots, 0.0)

    of_segment = from_owner(nest, Slots(slots, first_rank, sparse.inner_to_outer))
    loops = _loops(program, nest, tiles, from_owner(nest, pretiled))
    active = [nest.relevant[None] & (bounds > 1.0) for bounds in (loops.spatial, loops.temporal)]
    dealt = (
        deal_flattened(sparse, nest, of_segment, *active)
        if structure.sparse.flattening
        else deal(nest, of_segment, *active)
    )
    recorded, fiber, real = _recorded(program, nest, loops, dealt, index)
    if structure.conventions.recorded_dummy_tiles:
        recorded, real = _with_dummies(sparse, loops, recorded, real, index), jnp.ones_like(real)
    exists = index < count[:, :, None]
    fiber, tile, misaligned = _pretile(nest, sparse, tiles, fiber, (recorded, real), first_rank, count, index)
    fiber = jnp.where(exists, fiber, 1.0)
    scalar = jax.tree.map(lambda leaf: jnp.ones_like(leaf[:, :, :1]), tile)
    anchor_rank = jnp.where(sparse.inner_to_outer > 0.0, 0.0, count - 1.0)
    return FormatRanks(
        count=count,
        exists=exists,
        has_metadata=has_metadata,
        compressed=compressed,
        fibers=_fibers(fiber),
        fiber=fiber,
        anchor=index == anchor_rank[:, :, None],
        tile=tile,
        below=jax.tree.map(lambda one, leaf: jnp.concatenate([one, leaf[:, :, :-1]], axis=2), scalar, tile),
        child_count=of_child(nest, count, none),
        has_child=has_child,
        too_few=has_metadata & dealt.overflow,
        misaligned=pretiled & misaligned,
    )


def _fibers(fiber: Array) -> Array:
    """Products of the fiber lengths of all outer ranks."""
    numbers = [jnp.ones_like(fiber[:, :, 0])]
    for rank in reversed(range(1, fiber.shape[2])):
        numbers.insert(0, numbers[0] * fiber[:, :, rank])
    return jnp.moveaxis(stack(numbers), 0, 2)


def _recorded(
    program: Program, nest: Nest, loops: Loops, dealt: Dealt, index: Array
) -> tuple[Box, Array, Bool[Array, "..."]]:
    """Per level and its own ranks: the tile recorded for the rank, the elements of its fibers, and whether loops were
    dealt to it."""
    spatial, temporal = (place[:, :, None] == index[:, :, :, None] for place in (dealt.spatial, dealt.temporal))
    bounds = jnp.where(spatial, loops.spatial[:, :, None], 1.0) * jnp.where(temporal, loops.temporal[:, :, None], 1.0)
    first = [spatial & dealt.spatial_first[:, :, None], temporal & dealt.temporal_first[:, :, None]]

    def of_first(spatial_leaf: Array, temporal_leaf: Array) -> Array:
        found = jnp.where(first[0], spatial_leaf[:, :, None], 0.0) + jnp.where(first[1], temporal_leaf[:, :, None], 0.0)
        return jnp.sum(found, axis=3)

    words = jax.tree.map(of_first, loops.spatial_tile, loops.temporal_tile)
    box, tile = outward(nest, (bounds, words), lambda a, b: (a[0] * b[0], jax.tree.map(jnp.add, a[1], b[1])))
    fiber = jnp.prod(footprint(program, jnp.swapaxes(box, 1, 2)), axis=3)  # [level, format_rank, tensor]
    return tile, jnp.swapaxes(fiber, 1, 2), tile.words > 0.0


def _with_dummies(sparse: SparseProgram, loops: Loops, recorded: Box, real: Array, index: Array) -> Box:
    """Tiles of ranks without loops as the reference records them: that of the segment's innermost loop, or one element
    for a rank that was passed over from the inside."""
    outermost = jnp.max(jnp.where(real, index, -1.0), axis=2)[:, :, None]
    skipped = (sparse.inner_to_outer[:, :, None] > 0.0) & (index < outermost)
    return jax.tree.map(
        lambda leaf, innermost: jnp.where(real, leaf, jnp.where(skipped, 1.0, innermost[:, :, None])),
        recorded,
        loops.innermost_tile,
    )


def _passed_through(tile: Box, real: Array) -> Box:
    """The true tile of a rank without loops: that of the next inner rank. `real`, leaves: [tensor, format_rank]."""

    def fill(leaf: Array) -> Array:
        inner, filled = jnp.ones_like(leaf[:, 0]), []
        for rank in range(leaf.shape[1]):
            inner = jnp.where(real[:, rank], leaf[:, rank], inner)
            filled.append(inner)
        return jnp.moveaxis(stack(filled), 0, 1)

    return jax.tree.map(fill, tile)


def _pretile(
    nest: Nest,
    sparse: SparseProgram,
    tiles: Tiles,
    fiber: Array,
    recorded: tuple[Box, Array],
    first_rank: Array,
    count: Array,
    index: Array,
) -> tuple[Array, Box, Array]:
    """Takes the child's ranks over where `first_rank` is above 0, level by level outward. `recorded`: the tile of each
    rank, and whether it has one."""
    codes = jnp.array([RANK_FORMATS[f] for f in COMPRESSED], jnp.int32)
    no_format = jnp.zeros_like(sparse.rank_format[0] + nest.keep[0][:, None])
    one = jax.tree.map(lambda leaf: jnp.ones_like(leaf[0]), recorded[0])
    inner = (jnp.ones_like(fiber[0]), one, no_format, jnp.zeros_like(count[0]))
    results, misaligned = [], []
    for s in range(fiber.shape[0]):
        taken = index[0] < first_rank[s][:, None]
        tile = jax.tree.map(lambda leaf, old, s=s, taken=taken: jnp.where(taken, old, leaf[s]), recorded[0], inner[1])
        tile = _passed_through(tile, taken | recorded[1][s])
        elements = jnp.where(taken, inner[0], fiber[s])
        results.append((elements, tile))
        compressed = jnp.any(jnp.isin(inner[2], codes), axis=1)
        differs = jnp.any((index[0] < inner[3][:, None]) & (inner[2] != sparse.rank_format[s]), axis=1)
        misaligned.append((first_rank[s] > jnp.maximum(count[s], 1.0)) | (compressed & differs))
        # without metadata the child's single rank covers its whole tile
        plain = (count[s] == 0.0)[:, None] & (index[0] == 0.0)
        held = (jnp.where(plain, tiles.tile_words[s][:, None], elements), tile, sparse.rank_format[s], count[s])
        inner = jax.tree.map(
            lambda new, old, s=s: jnp.where(
                nest.keep[s] if new.ndim == count[s].ndim else nest.keep[s][:, None], new, old
            ),
            held,
            inner,
        )
    fibers, tiles_of_ranks = jax.tree.map(lambda *levels: stack(levels), *results)
    return fibers, tiles_of_ranks, stack(misaligned)
