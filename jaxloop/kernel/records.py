"""Traffic records: words sent by a parent, by multicast factor (spec/dense.md sections 4.4 to 4.6).

A record says: `accesses` words leave one instance of the parent in `scatter` groups, each word reaching `multicast`
children at once. Records lie in ascending order of (multicast, scatter), as the reference sums them.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..program import Program
from .fanout import FanOut, neighbour_has
from .multicast import Multicast
from .temporal import Reuse
from .tiling import Tiles


class Records(eqx.Module):
    """All per instance of the parent level, over the whole execution; empty records have 0 accesses.

    **Attributes:**

    - `multicast`, `scatter`, `accesses`: the records; `links`: words that travel between neighbours instead.
    - `fanout`: children in use.
    """

    multicast: Float[Array, "record level tensor *#lane"]
    scatter: Float[Array, "record level tensor *#lane"]
    accesses: Float[Array, "record level tensor *#lane"]
    links: Float[Array, "level tensor *#lane"]
    fanout: Float[Array, "level *#lane"]


def closed_form_records(multicast: Multicast, delivered: Array) -> Records:
    """Records without links: every group of children receives the same number of words."""
    groups = multicast.groups_by_multiple
    multiple = jnp.arange(1, groups.shape[0] + 1, dtype=groups.dtype)
    factor = multicast.repeats[None] * multiple.reshape((-1,) + (1,) * (groups.ndim - 1))
    accesses = delivered[None] * groups
    factor = jnp.broadcast_to(factor, accesses.shape)
    scatter = jnp.broadcast_to(groups, accesses.shape)
    return Records(factor, scatter, accesses, jnp.zeros_like(delivered), multicast.fanout)


def link_candidates(
    program: Program, tiles: Tiles, reuse: Reuse, multicast: Multicast, fan: FanOut, no_link: Array
) -> tuple[Array, Array]:
    """Which loops might move tiles onto what a neighbour already holds: bool [level, outer level, position, tensor],
    and the keys of their motions.

    A necessary condition of section 4.6: some words are delivered when the loop advances, its motion lies within the
    span of the fan-out's offsets, and some child has a neighbour at that offset.
    """
    loops, levels = reuse.loops, jnp.arange(program.structure.levels)
    full = reuse.step_words == reuse.whole_words
    sliding = (reuse.step_words > 0.0) & (after_partial(program, reuse) > 0.0)
    spans = tiles.fanned_extent - tiles.child_extent
    possible = (multicast.fanout[:, None] > 1.0) & (no_link == 0.0)
    motion = loops.motion[None] + loops.motion_before[:, None, None]
    within = jnp.all(jnp.abs(motion) <= spans[:, None, None], axis=4)
    key = jnp.sum(motion * fan.key_weight[:, None, None], axis=4)
    first_key = jnp.sum(reuse.first_motion * fan.key_weight, axis=2)
    linkable = (~reuse.reuses | full)[:, None, None] | (sliding[:, None, None] & (key == first_key[:, None, None]))
    outer = levels[None] >= levels[:, None]
    outer = outer.reshape(outer.shape + (1,) * (within.ndim - 2))
    advancing = (loops.advances > 0.0)[None, :, :, None] & outer
    candidates = advancing & within & linkable & possible[:, None, None]
    return candidates & neighbour_has(program, fan, key), key


def after_partial(program: Program, reuse: Reuse) -> Array:
    """Advances of the innermost loop that follow a partial delivery (4.4). In the reference every repetition of that
    loop counts like its first, which follows a whole tile unless an outer loop moved alike; as the loops really run,
    all but the first follow a partial one."""
    starts, advances = reuse.first_starts[:, None], reuse.first_advances[:, None]
    if program.structure.conventions.second_index_motion:
        return advances / starts * reuse.same_motion_advances
    return advances - (starts - reuse.same_motion_advances)
