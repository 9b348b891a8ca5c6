"""The loops of a mapping as the sparse analysis sees them (spec/sparse.md 2.3 and 3.1).

For one tensor, the loops of a level that bypasses it belong to the next outer level that keeps it, so that the nest
falls into *segments*: the loops between a level's tile and the tile of the next inner level that keeps the tensor. A
segment starts one level above the inner one and ends at its owner. Loops stay in the space of ranks: a level has a
spatial block (X and Y factors of a rank as one loop) inside a temporal one, and only positions tell their order.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import stack
from ..program import Mapping, Program
from .density.base import Box
from .tiling import Tiles


class Nest(eqx.Module):
    """**Attributes:**

    - `keep`; `starts`: a segment starts at the level, which holds at level 0 and above a level that keeps the tensor.
    - `relevant`: the rank moves the tensor.
    - `spatial`, `temporal`: bounds; `spatial_position`, `temporal_position`: place in the block, innermost 0.
    - `fans_out`: the hardware has several children below the level, so that its loops have a spatial block.
    """

    keep: Bool[Array, "level tensor *#lane"]
    starts: Bool[Array, "level tensor *#lane"]
    relevant: Bool[Array, "tensor rank *#lane"]
    spatial: Float[Array, "level rank *#lane"]
    temporal: Float[Array, "level rank *#lane"]
    spatial_position: Float[Array, "level rank *#lane"]
    temporal_position: Float[Array, "level rank *#lane"]
    fans_out: Bool[Array, "level *#lane"]


def positions(order: Array, dtype: Any) -> Array:
    """The place of each rank in orders [level, position]."""
    ranks = order.shape[1]
    index = jnp.arange(ranks, dtype=order.dtype).reshape((1, 1, ranks) + (1,) * (order.ndim - 2))
    place = jnp.arange(ranks, dtype=dtype).reshape((1, ranks, 1) + (1,) * (order.ndim - 2))
    return jnp.sum((order[:, :, None] == index).astype(dtype) * place, axis=1)


def _spatial_positions(mapping: Mapping, dtype: Any) -> Array:
    """Places in the spatial block: loops along Y lie outside those along X, whatever the order says."""
    place = positions(mapping.spatial_order, dtype)
    along_x = mapping.spatial_x > 1.0
    along_y = (mapping.spatial_y > 1.0) & ~along_x
    key = place + place.shape[1] * along_y.astype(dtype)
    outermost_x = jnp.max(jnp.where(along_x, place, -1.0), axis=1)
    mixed = jnp.any(along_y & (place < outermost_x[:, None]), axis=1)
    sorted_place = jnp.sum((key[:, :, None] > key[:, None]).astype(dtype), axis=2)
    return jnp.where(mixed[:, None], sorted_place, place)


def sparse_nest(program: Program, mapping: Mapping, tiles: Tiles) -> Nest:
    keep = mapping.keep > 0.0
    spatial = tiles.fan
    place = _spatial_positions(mapping, spatial.dtype)
    instances = program.mesh_x * program.mesh_y
    fans_out = stack([program.compute_mesh_x * program.compute_mesh_y, *instances[:-1]]) > instances
    if program.structure.sparse is not None and not program.structure.sparse.fans_out:
        # constants, from which the compiler removes all that concerns spatial loops
        lanes = (1,) * (spatial.ndim - 2)
        spatial, fans_out = jnp.ones((*spatial.shape[:2], *lanes), spatial.dtype), jnp.zeros_like(fans_out)
        place = jnp.zeros_like(spatial)
    return Nest(
        keep=keep,
        starts=stack([jnp.ones_like(keep[0]), *keep[:-1]]),
        relevant=jnp.any(program.projection_extent > 0.0, axis=1),
        spatial=spatial,
        temporal=mapping.temporal,
        spatial_position=place,
        temporal_position=positions(mapping.temporal_order, tiles.fan.dtype),
        fans_out=fans_out,
    )


def outward(
    nest: Nest, values: Any, combine: Callable[[Any, Any], Any], start: Callable[[Any], Any] | None = None
) -> Any:
    """Accumulates `values` [level, tensor, ...] over each segment, from its start to every level of it. At a start the
    accumulation is `start(values)`, by default the values themselves."""
    results: list[Any] = []
    for s in range(nest.keep.shape[0]):
        own = jax.tree.map(lambda leaf, s=s: leaf[s], values)
        first = own if start is None else start(own)
        if s == 0:
            results.append(first)
            continue
        carried = combine(results[-1], own)
        results.append(jax.tree.map(lambda a, b, s=s: jnp.where(_over(nest.starts[s], a), a, b), first, carried))
    return jax.tree.map(lambda *levels: stack(levels), *results)


def from_owner(nest: Nest, values: Any) -> Any:
    """`values` [level, tensor, ...] of the owner of each level's segment: the nearest level at or above that keeps the
    tensor (of the outermost level where there is none)."""
    results = [jax.tree.map(lambda leaf: leaf[-1], values)]
    for s in reversed(range(nest.keep.shape[0] - 1)):
        results.insert(0, _replaced(nest.keep[s], values, s, results[0]))
    return jax.tree.map(lambda *levels: stack(levels), *results)


def of_child(nest: Nest, values: Any, default: Any) -> Any:
    """`values` of the nearest inner level that keeps the tensor; `default` [tensor, ...] where there is none."""
    results = [default]
    for s in range(nest.keep.shape[0] - 1):
        results.append(_replaced(nest.keep[s], values, s, results[-1]))
    return jax.tree.map(lambda *levels: stack(levels), *results)


def of_parent(nest: Nest, values: Any, default: Any) -> Any:
    """`values` of the nearest outer level that keeps the tensor; `default` [tensor, ...] where there is none."""
    return of_outer(nest.keep, values, default)


def of_outer(mask: Array, values: Any, default: Any) -> Any:
    """`values` of the nearest outer level where `mask` [level, tensor] holds; `default` [tensor, ...] elsewhere."""
    results = [default]
    for s in reversed(range(1, mask.shape[0])):
        results.insert(0, _replaced(mask[s], values, s, results[0]))
    return jax.tree.map(lambda *levels: stack(levels), *results)


def _replaced(mask: Array, values: Any, level: int, otherwise: Any) -> Any:
    """`values[level]` where `mask` [tensor] holds."""
    return jax.tree.map(lambda leaf, other: jnp.where(_over(mask, other), leaf[level], other), values, otherwise)


def _over(mask: Array, like: Array) -> Array:
    """`mask` [tensor, lanes] against [tensor, ..., lanes]."""
    extra = like.ndim - mask.ndim
    return mask.reshape(mask.shape[:1] + (1,) * extra + mask.shape[1:])


def footprint(program: Program, boxes: Array) -> Array:
    """Extents [..., tensor, axis] of boxes [..., tensor, rank] of the iteration space, tensor by tensor."""
    projection = program.projection_extent
    lead = boxes.ndim - projection.ndim + 1
    projection = projection.reshape((1,) * lead + projection.shape)
    axis = lead + 2
    return 1.0 + jnp.sum(projection * jnp.expand_dims(boxes - 1.0, axis - 1), axis=axis)


def box_of(program: Program, boxes: Array) -> Box:
    """The footprints of boxes [..., tensor, rank] as tiles."""
    extent = footprint(program, boxes)
    axis = boxes.ndim - program.projection_extent.ndim + 2
    words = jnp.prod(extent, axis=axis)
    sparse = program.structure.sparse
    if sparse is None:
        return Box(words)
    height = width = sides = None
    if sparse.band >= 0:
        height, width = (jax.lax.index_in_dim(extent, i, axis, keepdims=False) for i in (0, 1))
    if sparse.boxes is not None:
        sides = tuple(
            jax.lax.index_in_dim(boxes, rank, axis, keepdims=False) + 0.0 * words for rank in range(boxes.shape[axis])
        )
    return Box(words, height, width, sides)
