"""The children of one instance as digits of its spatial loops, and where their tiles lie (spec/dense.md 4.5, 4.6)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import floor_div, stack
from ..program import Mapping, Program
from .tiling import Tiles


class FanOut(eqx.Module):
    """Children are numbered by the spatial loops of their level, X loops first, innermost fastest.

    **Attributes:**

    - `bounds`: of each digit; `radix`: product of the bounds inside it.
    - `step_key`: keys of the offset by which one step of a digit moves a tile.
    - `used`, `used_x`: children in use, in total and along X.
    - `width`, `height`: the grid on which neighbours are found: the physical one, or the mapped one if larger.
    """

    bounds: Float[Array, "level digit *#lane"]
    radix: Float[Array, "level digit *#lane"]
    step_key: Float[Array, "level digit tensor key *#lane"]
    used: Float[Array, "level *#lane"]
    used_x: Float[Array, "level *#lane"]
    width: Float[Array, "level *#lane"]
    height: Float[Array, "level *#lane"]

    @property
    def mixes_rows(self) -> Bool[Array, "level *#lane"]:
        """The mapped grid is narrower than the physical one in which neighbours are found, so that numbers mix rows."""
        return (self.height > 1.0) & (self.used > self.width) & (self.used_x < self.width)


def fan_outs(program: Program, mapping: Mapping, tiles: Tiles) -> FanOut:
    structure = program.structure
    index = jnp.arange(structure.ranks, dtype=mapping.spatial_order.dtype)
    index = index.reshape((1, 1, structure.ranks) + (1,) * (mapping.spatial_order.ndim - 2))
    chosen = (mapping.spatial_order[:, :, None] == index).astype(mapping.spatial_x.dtype)
    along_x = jnp.sum(chosen * mapping.spatial_x[:, None], axis=2)
    along_y = jnp.sum(chosen * mapping.spatial_y[:, None], axis=2)
    step = chosen * tiles.below[:, None]
    step_x = jnp.sum(step[:, :, None, None] * program.motion_key[None, None], axis=4)
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
        step_key=jnp.concatenate(jnp.broadcast_arrays(step_x, step_x * along_x[:, :, None, None]), axis=1),
        used=inside,
        used_x=used_x,
        width=jnp.maximum(floor_div(inner_x, program.mesh_x), used_x),
        height=jnp.maximum(floor_div(inner_y, program.mesh_y), jnp.prod(along_y, axis=1)),
    )


def neighbour_differences(program: Program, fan: FanOut) -> tuple[Array, Array]:
    """Keys of the offsets between neighbouring children [difference, level, tensor, key] (up to sign), and which of
    them occur [difference, level].

    The next child in number differs in one digit, all digits inside it wrapping around; the next along Y likewise,
    counted over the Y digits alone, on a mapped grid as wide as the physical one (else see `FanOut.mixes_rows`).
    """
    ranks, active = program.structure.ranks, fan.bounds > 1.0
    wrap = fan.step_key * (fan.bounds - 1.0)[:, :, None, None]
    differences, occurs = [], []
    for first in (0, ranks):
        inside = jnp.zeros_like(wrap[:, 0])
        for digit in range(first, 2 * ranks):
            differences.append(fan.step_key[:, digit] - inside)
            occurs.append(active[:, digit])
            inside = inside + wrap[:, digit]
    return stack(differences), stack(occurs)
