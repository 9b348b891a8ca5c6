"""Traffic records: words sent by a parent, by multicast factor (spec/dense.md sections 4.4 to 4.6).

A record says: `accesses` words leave one instance of the parent in `scatter` groups, each word reaching `multicast`
children at once. Records lie in ascending order of (multicast, scatter), as the reference sums them.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..program import Program
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


def link_candidates(program: Program, tiles: Tiles, reuse: Reuse, multicast: Multicast, no_link: Array) -> Array:
    """Which loops might move tiles onto what a neighbour already holds: bool [level, outer level, position, tensor].

    A necessary condition of section 4.6: some words are delivered when the loop advances, its motion lies within the span
    of the fan-out's offsets, and a zero motion finds two children with equal offsets.
    """
    loops = reuse.loops
    full = reuse.step_words == reuse.whole_words
    sliding = (reuse.step_words > 0.0) & (reuse.same_motion_advances > 0.0)
    spans = tiles.fanned_extent - tiles.child_extent
    # without a closed form of the groups, any two children may share
    shares = (multicast.groups < multicast.fanout[:, None]) | program.structure.irregular
    possible = (multicast.fanout[:, None] > 1.0) & (no_link == 0.0)
    rows = []
    for s in range(program.structure.levels):
        motion = loops.motion + loops.motion_before[s][None, None]
        within = jnp.all(jnp.abs(motion) <= spans[s][None, None], axis=3)
        moves = jnp.any(motion != 0.0, axis=3)
        as_first = jnp.all(motion == reuse.first_motion[s][None, None], axis=3)
        whole_tile = (~reuse.reuses[s] | full[s])[None, None]
        linkable = whole_tile | (sliding[s][None, None] & as_first)
        outer = (jnp.arange(program.structure.levels) >= s).reshape((-1,) + (1,) * (within.ndim - 1))
        advancing = (loops.advances > 0.0)[:, :, None] & outer
        rows.append(advancing & within & linkable & (moves | shares[s][None, None]) & possible[s][None, None])
    return jnp.stack(jnp.broadcast_arrays(*rows))
