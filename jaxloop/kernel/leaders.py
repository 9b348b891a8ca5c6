"""Leader tiles: the part of a condition tensor that is swept while one block of the target stays put (spec/sparse.md
3.1 and 3.2).

For every level and target there is one *target loop*, the innermost one above the next inner level that moves the
target. The leader tile covers what lies below it, and loops further out that leave the target where it is.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import ceil, exact_divide, floor, stack
from ..program import Program, SparseProgram
from .nest import Nest, footprint, outward
from .tiling import Tiles


class Leaders(eqx.Module):
    """Per level, target and condition tensor.

    **Attributes:**

    - `box`: the leader tile as a box of the iteration space.
    - `ineffective`: the condition never holds for a whole block of the target.
    """

    box: Float[Array, "level tensor tensor rank *#lane"]
    ineffective: Bool[Array, "level tensor tensor *#lane"]


class _Target(eqx.Module):
    """The target loop of each segment and what lies around it, accumulated up to each level.

    **Attributes:**

    - `rank`: its rank, as a mask; `is_spatial`; `box`: what lies at and below it.
    - `condition`: bounds that the conditions see, below the segment left out.
    - `bounds`, `listed`: products over the loops that are co-iterated if they move the condition, and whether there is
      one; `last`: index of the last loop of each rank among those that the conditions see, -1 where there is none;
      `first`: of the first.
    """

    rank: Bool[Array, "level tensor rank *#lane"]
    is_spatial: Bool[Array, "level tensor *#lane"]
    box: Float[Array, "level tensor rank *#lane"]
    condition: Float[Array, "level tensor rank *#lane"]
    bounds: Float[Array, "level tensor rank *#lane"]
    listed: Bool[Array, "level tensor rank *#lane"]
    first: Float[Array, "level tensor rank *#lane"]
    last: Float[Array, "level tensor rank *#lane"]


class _Search(eqx.Module):
    """Positions of the first loops of each block that move the tensor (inf: none), and what was found further in."""

    spatial: Float[Array, "level tensor *#lane"]
    temporal: Float[Array, "level tensor *#lane"]
    found: Bool[Array, "level tensor *#lane"]
    found_temporal: Bool[Array, "level tensor *#lane"]


def _search(nest: Nest, sparse: SparseProgram) -> _Search:
    """At level 0 the spatial block decides alone: its innermost loop that moves the tensor, at the latest its last; if
    there is none, one operation lies below each access."""
    moves = nest.relevant[None]

    def first(bounds: Array, position: Array) -> Array:
        return jnp.min(jnp.where(moves & (bounds[:, None] > 1.0), position[:, None], jnp.inf), axis=2)

    spatial, temporal = first(nest.spatial, nest.spatial_position), first(nest.temporal, nest.temporal_position)
    last_place = sparse.rank_count - 1.0
    fans_out = nest.fans_out[0]
    at_compute = jnp.where(fans_out, jnp.minimum(spatial[0], last_place), jnp.inf)
    spatial = stack([at_compute, *spatial[1:]])
    any_spatial, any_temporal = jnp.isfinite(spatial), jnp.isfinite(temporal)
    always = jnp.ones_like(any_spatial[0])
    here = (stack([always, *(any_spatial | any_temporal)[1:]]), stack([always, *any_temporal[1:]]))
    through = outward(nest, here, lambda carried, own: (carried[0] | own[0], carried[1] | own[1]))
    # what was found strictly further in; a walk that starts at level 0 stops there
    found, found_temporal = (
        stack([start, *(flag[:-1] & ~nest.starts[1:])])
        for start, flag in zip((~fans_out & always, always), through, strict=True)
    )
    return _Search(spatial, temporal, found, found_temporal)


def _levels(nest: Nest, tiles: Tiles, search: _Search) -> tuple[_Target, Array]:
    """Each level's own share of `_Target`, and whether the target loop lies in it."""
    levels, ranks = nest.temporal.shape[:2]
    at_spatial = ~search.found & jnp.isfinite(search.spatial)
    at_temporal = ~search.found & ~at_spatial & jnp.isfinite(search.temporal)
    at_spatial_, at_temporal_ = at_spatial[:, :, None], at_temporal[:, :, None]
    spatial_place, temporal_place = nest.spatial_position[:, None], nest.temporal_position[:, None]
    spatial_target, temporal_target = search.spatial[:, :, None], search.temporal[:, :, None]
    relevant = nest.relevant[None]
    spatial, temporal = nest.spatial[:, None], nest.temporal[:, None]

    is_target = (at_spatial_ & (spatial_place == spatial_target)) | (at_temporal_ & (temporal_place == temporal_target))
    box = jnp.where(
        at_spatial_,
        tiles.below[:, None] * jnp.where(spatial_place <= spatial_target, spatial, 1.0),
        tiles.fanned[:, None] * jnp.where(temporal_place <= temporal_target, temporal, 1.0),
    )
    # temporal loops count up to the first one that moves the target, which counts only as the target loop itself
    seen = (
        (temporal_place <= temporal_target)
        & ~search.found_temporal[:, :, None]
        & (~relevant | (temporal == 1.0) | at_temporal_)
    )
    spatial_above = search.found[:, :, None] | (at_spatial_ & (spatial_place >= spatial_target))
    spatial_listed = spatial_above & ((spatial > 1.0) | is_target)
    temporal_above = seen & (temporal > 1.0) & ~relevant & (search.found[:, :, None] | at_spatial_)
    start = jnp.arange(levels, dtype=spatial.dtype).reshape((levels, 1, 1) + (1,) * (spatial.ndim - 3)) * (2 * ranks)
    places = (start + spatial_place, start + ranks + temporal_place)
    own = _Target(
        rank=is_target,
        is_spatial=at_spatial,
        box=box,
        condition=spatial * jnp.where(seen, temporal, 1.0),
        bounds=jnp.where(spatial_above, spatial, 1.0) * jnp.where(is_target & at_temporal_, temporal, 1.0),
        listed=spatial_listed | is_target,
        first=jnp.where(spatial_listed, places[0], jnp.inf),
        last=jnp.maximum(jnp.where(spatial_listed, places[0], -1.0), jnp.where(temporal_above, places[1], -1.0)),
    )
    return own, at_spatial | at_temporal


def _join(carried: tuple[_Target, Array], own: tuple[_Target, Array]) -> tuple[_Target, Array]:
    (inner, found), (outer, here) = carried, own
    at_rank = here[:, None]
    return (
        _Target(
            rank=jnp.where(at_rank, outer.rank, inner.rank),
            is_spatial=jnp.where(here, outer.is_spatial, inner.is_spatial),
            box=jnp.where(at_rank, outer.box, inner.box),
            condition=inner.condition * outer.condition,
            bounds=inner.bounds * outer.bounds,
            listed=inner.listed | outer.listed,
            first=jnp.minimum(inner.first, outer.first),
            last=jnp.maximum(inner.last, outer.last),
        ),
        found | here,
    )


def leader_tiles(program: Program, sparse: SparseProgram, nest: Nest, tiles: Tiles) -> Leaders:
    search = _search(nest, sparse)
    target, found = outward(nest, _levels(nest, tiles, search), _join)
    at_compute = outward(nest, nest.starts & _first_level(nest), lambda carried, own: carried)
    scalar = at_compute & ~nest.fans_out[0][None, None]

    # where no loop of the segment moves the target, its last loop stands for it
    last = nest.temporal_position == sparse.rank_count - 1.0
    innermost = nest.temporal_position[0] == 0.0
    lost = (~found & ~scalar)[:, :, None]
    rank = jnp.where(lost, last[:, None], jnp.where(scalar[:, :, None], innermost[None, None], target.rank))
    whole = tiles.fanned * nest.temporal
    box = jnp.where(lost, whole[:, None], jnp.where(scalar[:, :, None], 1.0, target.box))
    below = outward(nest, jnp.broadcast_to(tiles.below[:, None], box.shape), lambda carried, own: carried)
    condition = target.condition * below
    conventions = program.structure.conventions
    if not conventions.merged_scalar_leaders:
        condition = jnp.where(scalar[:, :, None], 1.0, condition)
    listed = jnp.where(scalar[:, :, None], False, target.listed | rank)

    together = (nest.relevant[:, None] & nest.relevant[None])[None]  # [1, target, condition, rank]
    shared = together & listed[:, :, None]
    bounds = jnp.where(shared, target.bounds[:, :, None], 1.0)
    first = jnp.min(jnp.where(together, target.first[:, :, None], jnp.inf), axis=3)
    final = jnp.max(jnp.where(nest.relevant[None, None], target.last[:, :, None], -1.0), axis=3)
    ineffective = target.is_spatial[:, :, None] & (final > first) & conventions.dropped_conditions

    swept = jnp.prod(footprint(program, box), axis=2)
    blocks = jnp.prod(bounds, axis=3)
    scale = ceil(exact_divide(program.block_size[:, None, None], exact_divide(swept[:, :, None], blocks)))
    shrunk = _shrink(program, condition, shared, bounds, scale)
    boxes, scale = shrunk
    grown = jnp.where(rank[:, :, None] & (scale > 1.0)[:, :, :, None], floor(boxes * scale[:, :, :, None]), boxes)
    return Leaders(box=grown, ineffective=ineffective)


def _first_level(nest: Nest) -> Array:
    """True at level 0."""
    levels = nest.keep.shape[0]
    return (jnp.arange(levels) == 0).reshape((levels,) + (1,) * (nest.keep.ndim - 1))


def _shrink(program: Program, condition: Array, shared: Array, bounds: Array, scale: Array) -> tuple[Array, Array]:
    """Divides the co-iterated bounds out of the box, rank by rank, less those that one block of the target spans; the
    scale that is left."""
    boxes = jnp.broadcast_to(condition[:, :, None], jnp.broadcast_shapes(condition[:, :, None].shape, bounds.shape))
    if not program.structure.conventions.sequential_leader_scale:
        return ceil(exact_divide(boxes, bounds)), scale
    sides = []
    for rank in range(program.structure.ranks):
        side, bound, is_shared = boxes[:, :, :, rank], bounds[:, :, :, rank], shared[:, :, :, rank]
        sides.append(jnp.where(is_shared, ceil(exact_divide(side, exact_divide(bound, scale))), side))
        scale = jnp.where(is_shared, exact_divide(scale, bound), scale)
    return jnp.stack(jnp.broadcast_arrays(*sides), axis=3), scale
