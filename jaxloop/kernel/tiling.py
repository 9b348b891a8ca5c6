"""Tiles: the boxes of the iteration space that levels hold, and their footprints (spec/dense.md sections 1 and 3)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._math import floor_div, stack
from ..program import Mapping, Program


class Tiles(eqx.Module):
    """Boxes and footprints per level.

    **Attributes:**

    - `below`: iterations per rank inside all loops of the level (box B of the spec); `fanned`: the same times the
      level's spatial loops (box P).
    - `fan`: spatial iterations per rank.
    - `child_extent`, `fanned_extent`: extents of the footprints of these boxes along each tensor axis.
    - `child_words`, `fanned_words`, `tile_words`: their sizes; `tile_words` is what the level holds (box T).
    """

    below: Float[Array, "level rank *#lane"]
    fanned: Float[Array, "level rank *#lane"]
    fan: Float[Array, "level rank *#lane"]
    child_extent: Float[Array, "level tensor axis *#lane"]
    fanned_extent: Float[Array, "level tensor axis *#lane"]
    child_words: Float[Array, "level tensor *#lane"]
    fanned_words: Float[Array, "level tensor *#lane"]
    tile_words: Float[Array, "level tensor *#lane"]


def tile_boxes(program: Program, mapping: Mapping) -> Tiles:
    levels = program.structure.levels
    fan = mapping.spatial_x * mapping.spatial_y
    below, fanned = [], []
    box = jnp.ones_like(fan[0] * mapping.temporal[0])
    for s in range(levels):
        below.append(box)
        fanned.append(box * fan[s])
        box = fanned[s] * mapping.temporal[s]
    boxes = stack([*below, *fanned, box])
    # extent = 1 + sum over ranks of |coefficient| * (size - 1): the bounding box, holes of strides included
    extent = 1.0 + jnp.sum(program.projection_extent[None] * (boxes - 1.0)[:, None, None], axis=3)
    words = jnp.prod(extent, axis=2)
    return Tiles(
        below=boxes[:levels],
        fanned=boxes[levels : 2 * levels],
        fan=fan,
        child_extent=extent[:levels],
        fanned_extent=extent[levels : 2 * levels],
        child_words=words[:levels],
        fanned_words=words[levels : 2 * levels],
        tile_words=jnp.concatenate([words[1:levels], words[2 * levels :]]),
    )


def effective_size(program: Program, size: Array) -> Array:
    """What multiple buffering leaves of sizes (spec/dense.md 7.2); unlimited ones stay so."""
    limited = jnp.isfinite(size)
    share = floor_div if program.structure.conventions.integer_counts else jnp.divide
    return jnp.where(limited, share(jnp.where(limited, size, 0.0), program.multiple_buffering), jnp.inf)
