"""Dealing the loops of a segment to the format ranks of its owner (spec/sparse.md 2.4)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import stack
from ..program import SparseProgram
from .nest import Nest, from_owner, outward


class Dealt(eqx.Module):
    """Which rank each loop was dealt to (negative: none), and whether it was the first of its rank: its tile is the one
    recorded for the rank. `overflow`: loops were left over."""

    spatial: Float[Array, "level tensor rank *#lane"]
    temporal: Float[Array, "level tensor rank *#lane"]
    spatial_first: Bool[Array, "level tensor rank *#lane"]
    temporal_first: Bool[Array, "level tensor rank *#lane"]
    overflow: Bool[Array, "level tensor *#lane"]


class Slots(eqx.Module):
    """What the owners of the segments offer, per level: ranks, the first one that is dealt, and the direction."""

    count: Float[Array, "level tensor *#lane"]
    first_rank: Float[Array, "level tensor *#lane"]
    inner_to_outer: Float[Array, "level tensor *#lane"]


def deal(nest: Nest, slots: Slots, spatial: Array, temporal: Array) -> Dealt:
    """One loop per rank. `spatial`, `temporal` [level, tensor, rank]: loops of more than one iteration that move the
    tensor."""
    dtype = slots.count.dtype

    def inside(active: Array, position: Array) -> Array:
        """Active loops of the block at or inside each loop."""
        not_above = position[:, None, None] <= position[:, None, :, None]
        return jnp.sum((active[:, :, None] & not_above).astype(dtype), axis=3)

    in_spatial, in_temporal = (jnp.sum(active.astype(dtype), axis=2) for active in (spatial, temporal))
    through = outward(nest, in_spatial + in_temporal, jnp.add)
    before = through - in_spatial - in_temporal
    total = from_owner(nest, through)
    first = jnp.where(slots.inner_to_outer > 0.0, slots.first_rank, slots.count - total)

    def rank_of(before: Array, active: Array, position: Array) -> Array:
        return jnp.where(active, (first + before)[:, :, None] + inside(active, position) - 1.0, -1.0)

    return Dealt(
        spatial=rank_of(before, spatial, nest.spatial_position),
        temporal=rank_of(before + in_spatial, temporal, nest.temporal_position),
        spatial_first=spatial,
        temporal_first=temporal,
        overflow=total > slots.count - slots.first_rank,
    )


class _Offer(eqx.Module):
    """The owners' ranks, per level. `allows`: the format rank may take a loop of the rank; `merges`: then also
    these."""

    slots: Slots
    allows: Bool[Array, "level tensor format_rank rank *#lane"]
    merges: Float[Array, "level tensor format_rank rank rank *#lane"]


class _Walk(eqx.Module):
    """Where a walk over loops stands: the current format rank, the ranks that it still absorbs, and how many format
    ranks have loops."""

    rank: Float[Array, "tensor *#lane"]
    absorbs: Float[Array, "tensor rank *#lane"]
    opened: Float[Array, "tensor *#lane"]


class _Loop(eqx.Module):
    """One loop: its level, its rank as a mask, for which tensors it counts and begins a segment."""

    level: Array
    rank: Float[Array, "rank *#lane"]
    active: Bool[Array, "tensor *#lane"]
    begins: Bool[Array, "tensor *#lane"]


class _Taken(eqx.Module):
    """What became of a loop: its format rank, or the number of format ranks opened so far if the walk goes inward;
    whether it opened one; format ranks passed over for it; whether there was none."""

    place: Float[Array, "tensor *#lane"]
    first: Bool[Array, "tensor *#lane"]
    skipped: Float[Array, "tensor *#lane"]
    failed: Bool[Array, "tensor *#lane"]


def deal_flattened(sparse: SparseProgram, nest: Nest, slots: Slots, spatial: Array, temporal: Array) -> Dealt:
    """Runs of loops per rank, where ranks list what they flatten. Arguments as for `deal`."""
    assert sparse.merges is not None and sparse.has_groups is not None
    ranks = sparse.merges.shape[3]
    own = jnp.stack([sparse.merges[:, :, :, d, d] for d in range(ranks)], axis=3) > 0.0
    allows, merges = from_owner(nest, (own | (sparse.has_groups[:, :, :, None] == 0.0), sparse.merges))
    offer = _Offer(slots, allows, merges)
    outer = _walk(nest, offer, spatial, temporal, inward=True)
    inner = _walk(nest, offer, spatial, temporal, inward=False)
    backwards = slots.inner_to_outer[:, :, None] > 0.0
    skipped = from_owner(nest, outward(nest, jnp.sum(sum(taken.skipped for taken in outer), axis=2), jnp.add))
    # from the outermost inward, ranks that are passed over end up outside all others (quirk Q9)
    offset = (slots.count - skipped)[:, :, None]
    rank = [jnp.where(backwards, i.place, offset - o.place) for i, o in zip(inner, outer, strict=True)]
    first = [jnp.where(backwards, i.first, o.first) for i, o in zip(inner, outer, strict=True)]
    failed = [jnp.where(backwards, i.failed, o.failed) for i, o in zip(inner, outer, strict=True)]
    return Dealt(
        spatial=jnp.where(spatial, rank[0], -1.0),
        temporal=jnp.where(temporal, rank[1], -1.0),
        spatial_first=spatial & first[0],
        temporal_first=temporal & first[1],
        overflow=from_owner(nest, outward(nest, jnp.any(failed[0] | failed[1], axis=2), jnp.logical_or)),
    )


def _walk(nest: Nest, offer: _Offer, spatial: Array, temporal: Array, inward: bool) -> tuple[_Taken, _Taken]:
    """Walks over all loops in order; what became of the spatial and of the temporal ones, [level, tensor, rank]."""
    levels, ranks = nest.temporal.shape[:2]
    dtype = nest.temporal.dtype
    place = jnp.arange(ranks, dtype=dtype).reshape((1, ranks, 1) + (1,) * (nest.temporal.ndim - 2))
    at = stack([nest.spatial_position[:, None] == place, nest.temporal_position[:, None] == place])
    active = jnp.any(at[:, :, :, None] & stack([spatial, temporal])[:, :, None], axis=4)
    begins = jnp.zeros_like(active)
    begins = begins.at[1, :, -1].set(nest.keep) if inward else begins.at[0, :, 0].set(nest.starts)

    def in_sequence(leaf: Array) -> Array:
        """[block, level, position, ...] -> [loop, ...], innermost first."""
        return jnp.moveaxis(leaf, 0, 1).reshape((-1, *leaf.shape[3:]))

    loops = _Loop(
        level=jnp.repeat(jnp.arange(levels), 2 * ranks),
        rank=in_sequence(at.astype(dtype)),
        active=in_sequence(active),
        begins=in_sequence(begins),
    )
    none = jnp.zeros_like(offer.slots.count[0] + loops.active[0])
    start = _Walk(none, jnp.zeros_like(none[:, None] + loops.rank[0][None]), none)
    taken = jax.lax.scan(lambda walk, loop: _take(offer, walk, loop, inward), start, loops, reverse=inward)[1]

    def by_rank(leaf: Array) -> tuple[Array, Array]:
        placed = jnp.moveaxis(leaf.reshape((levels, 2, ranks, *leaf.shape[1:])), 1, 0)
        found = jnp.where(at[:, :, :, None], placed[:, :, :, :, None], jnp.zeros_like(leaf[:1, :1]))
        summed = jnp.any(found, axis=2) if leaf.dtype == bool else jnp.sum(found, axis=2)
        return summed[0], summed[1]

    leaves = {name: by_rank(getattr(taken, name)) for name in taken.__dataclass_fields__}
    spatial_taken, temporal_taken = (_Taken(**{n: pair[block] for n, pair in leaves.items()}) for block in (0, 1))
    return spatial_taken, temporal_taken


def _take(offer: _Offer, walk: _Walk, loop: _Loop, inward: bool) -> tuple[_Walk, _Taken]:
    """The current format rank absorbs the loop, or the next one that may take it does."""
    slots, allows, merges = jax.tree.map(
        lambda leaf: jax.lax.dynamic_index_in_dim(leaf, loop.level, keepdims=False),
        (offer.slots, offer.allows, offer.merges),
    )
    ranks = allows.shape[1]
    index = jnp.arange(ranks, dtype=walk.rank.dtype).reshape((1, ranks) + (1,) * (walk.rank.ndim - 1))
    rank = jnp.where(loop.begins, slots.count if inward else slots.first_rank - 1.0, walk.rank)
    absorbs = jnp.where(loop.begins[:, None], 0.0, walk.absorbs)
    opened = jnp.where(loop.begins, 0.0, walk.opened)
    opens = loop.active & (jnp.sum(absorbs * loop.rank[None], axis=1) == 0.0)

    beyond = (index < rank[:, None]) if inward else (index > rank[:, None])
    allowed = jnp.any(allows & (loop.rank[None, None] > 0.0), axis=2)
    fits = allowed & beyond & (index >= slots.first_rank[:, None]) & (index < slots.count[:, None])
    nearest = (
        jnp.max(jnp.where(fits, index, -1.0), axis=1) if inward else jnp.min(jnp.where(fits, index, ranks), axis=1)
    )
    failed = opens & ~jnp.any(fits, axis=1)
    opens = opens & ~failed
    chosen = jnp.where(opens, nearest, rank)
    of_rank = merges * (index == chosen[:, None])[:, :, None, None] * loop.rank[None, None, :, None]
    opened = opened + opens
    moved = _Walk(chosen, jnp.where(opens[:, None], jnp.sum(of_rank, axis=(1, 2)), absorbs), opened)
    skipped = jnp.where(opens, jnp.abs(chosen - rank) - 1.0, 0.0)
    return moved, _Taken(opened if inward else chosen, opens, skipped, failed)
