"""The children of one instance as digits of its spatial loops, and where their tiles lie (spec/dense.md 4.5, 4.6)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import floor_div, stack
from ..program import Mapping, Program
from .tiling import Tiles


class FanOut(eqx.Module):
    """Children are numbered by the spatial loops of their level, X loops first, innermost fastest.

    Offsets of tiles are vectors over a tensor's axes; a *key* is one number per offset, distinct for all differences of
    offsets that can occur, so that vectors are compared as numbers.

    **Attributes:**

    - `bounds`: of each digit; `radix`: product of the bounds inside it.
    - `step_key`: key of the offset by which one step of a digit moves a tile; `key_weight`: key per axis.
    - `used`, `used_x`: children in use, in total and along X.
    - `width`, `height`: the grid on which neighbours are found: the physical one, or the mapped one if larger.
    """

    bounds: Float[Array, "level digit *#lane"]
    radix: Float[Array, "level digit *#lane"]
    step_key: Float[Array, "level digit tensor *#lane"]
    key_weight: Float[Array, "level tensor axis *#lane"]
    used: Float[Array, "level *#lane"]
    used_x: Float[Array, "level *#lane"]
    width: Float[Array, "level *#lane"]
    height: Float[Array, "level *#lane"]


def fan_outs(program: Program, mapping: Mapping, tiles: Tiles) -> FanOut:
    structure = program.structure
    spans = tiles.fanned_extent - tiles.child_extent
    # two differences of offsets differ by at most 4 spans along an axis
    radix, weight = jnp.ones_like(spans[:, :, 0]), []
    for axis in range(structure.axes):
        weight.append(radix)
        radix = radix * (4.0 * spans[:, :, axis] + 1.0)
    key_weight = jnp.moveaxis(stack(weight), 0, 2)

    index = jnp.arange(structure.ranks).reshape((1, 1, structure.ranks) + (1,) * (mapping.spatial_order.ndim - 2))
    chosen = (mapping.spatial_order[:, :, None] == index).astype(mapping.spatial_x.dtype)
    along_x = jnp.sum(chosen * mapping.spatial_x[:, None], axis=2)
    along_y = jnp.sum(chosen * mapping.spatial_y[:, None], axis=2)
    projection = jnp.moveaxis(program.projection, 2, 0)
    rank_key = jnp.sum(key_weight[:, None] * projection[None], axis=3) * tiles.below[:, :, None]
    step_x = jnp.sum(chosen[:, :, :, None] * rank_key[:, None], axis=2)
    bounds = jnp.concatenate(jnp.broadcast_arrays(along_x, along_y), axis=1)
    inside, digits = jnp.ones_like(bounds[:, 0]), []
    for digit in range(2 * structure.ranks):
        digits.append(inside)
        inside = inside * bounds[:, digit]
    used_x = jnp.prod(along_x, axis=1)
    inner_x = stack([program.compute_mesh_x, *program.mesh_x[:-1]])
    inner_y = stack([program.compute_mesh_y, *program.mesh_y[:-1]])
    return FanOut(
        bounds=bounds,
        radix=jnp.moveaxis(stack(digits), 0, 1),
        step_key=jnp.concatenate(jnp.broadcast_arrays(step_x, step_x * along_x[:, :, None]), axis=1),
        key_weight=key_weight,
        used=inside,
        used_x=used_x,
        width=jnp.maximum(floor_div(inner_x, program.mesh_x), used_x),
        height=jnp.maximum(floor_div(inner_y, program.mesh_y), jnp.prod(along_y, axis=1)),
    )


def neighbour_has(program: Program, fan: FanOut, motion_key: Array) -> Bool[Array, "level ..."]:
    """Whether some child has a neighbour whose tile is offset by the motion: [level, outer, position, tensor].

    The next child in number differs in one digit, all digits inside it wrapping around; the next along Y likewise,
    counted over the Y digits alone, if the mapped grid is as wide as the physical one. On a narrower grid the numbers
    mix rows: any motion may then match.
    """
    ranks = program.structure.ranks
    active = fan.bounds > 1.0
    wrap = fan.step_key * (fan.bounds - 1.0)[:, :, None]
    found = jnp.zeros_like(motion_key, dtype=bool)
    for first in (0, ranks):
        inside = jnp.zeros_like(wrap[:, 0])
        for digit in range(first, 2 * ranks):
            difference = (fan.step_key[:, digit] - inside)[:, None, None]
            matches = (motion_key == difference) | (motion_key == -difference)
            found = found | (matches & active[:, digit][:, None, None, None])
            inside = inside + wrap[:, digit]
    mixes_rows = (fan.height > 1.0) & (fan.used > fan.width) & (fan.used_x < fan.width)
    return found | mixes_rows[:, None, None, None]
