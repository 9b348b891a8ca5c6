"""Traffic records: words sent by a parent, by multicast factor (spec/dense.md sections 4.4 to 4.6).

A record says: `accesses` words leave one instance of the parent in `scatter` groups, each word reaching `multicast`
children at once. Records lie in ascending order of (multicast, scatter), as the reference sums them.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..program import Mapping, Program
from .fanout import FanOut, neighbour_differences
from .multicast import Multicast
from .temporal import Reuse, net_motions, order_loops
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
    accesses = delivered[None] * groups
    factor = jnp.broadcast_to(multicast.factors, accesses.shape)
    scatter = jnp.broadcast_to(groups, accesses.shape)
    return Records(factor, scatter, accesses, jnp.zeros_like(delivered), multicast.fanout)


def links_possible(
    program: Program, mapping: Mapping, tiles: Tiles, reuse: Reuse, multicast: Multicast, fan: FanOut
) -> Bool[Array, "*#lane"]:
    """Whether the enumeration of children might change anything: a necessary condition of section 4.6.

    Tensors without sliding windows can only be handed over where they do not move at all, which needs tiles that are
    not reused. An axis that one rank moves never moves back: once the innermost active loop moves it beyond the
    fan-out, no later motion matches a neighbour. For the rest, each loop's motion is compared with the offsets of
    neighbours. Irregular tensors have no closed form of their groups, links or not.
    """
    structure = program.structure
    if structure.irregular:
        return jnp.any(multicast.fanout > 1.0, axis=0)
    possible = (multicast.fanout[:, None] > 1.0) & (mapping.no_link_transfer == 0.0)
    possible = possible & (reuse.first_advances[:, None] > 0.0)
    rests = jnp.all(reuse.first_motion == 0.0, axis=2)
    # children that are served separately may still hold the same words
    shares = (multicast.groups < multicast.fanout[:, None]) | (mapping.no_multicast > 0.0)
    found = jnp.any(possible & ~reuse.reuses & rests & shares, axis=(0, 1))
    if structure.sliding:
        found = found | _windows_may_link(program, tiles, reuse, fan, possible)
    return found


def _windows_may_link(program: Program, tiles: Tiles, reuse: Reuse, fan: FanOut, possible: Array) -> Array:
    """Tensors with sliding windows: motions against the offsets of neighbours, in keys up to sign."""
    structure, loops = program.structure, reuse.loops

    spans = tiles.fanned_extent - tiles.child_extent
    stays = jnp.all((jnp.abs(reuse.first_motion) <= spans) | (program.window_axis[None] > 0.0), axis=2)
    partial = (reuse.step_words > 0.0) & (after_partial(program, reuse) > 0.0)
    delivers = ~reuse.reuses | (reuse.step_words == reuse.whole_words) | partial
    allowed = jnp.any((possible & stays & delivers)[:, :, None] & (program.window[None] > 0.0), axis=1)
    differences, occurs = neighbour_differences(program, fan)
    offsets = jnp.abs(jnp.sum(differences[:, :, :, None] * program.window[None, None, :, :, None], axis=2))
    motion = jnp.sum(loops.motion[:, :, :, None] * program.window[None, None, :, :, None], axis=2)
    before = jnp.sum(loops.motion_before[:, :, None] * program.window[None, :, :, None], axis=1)
    found = jnp.any(allowed & fan.mixes_rows[:, None], axis=(0, 1))
    for s in range(structure.levels):
        moved = jnp.abs(motion[s:] + before[s][None, None])[None]
        matches = jnp.all(moved == offsets[:, s][:, None, None], axis=4) & occurs[:, s][:, None, None, None]
        advancing = (loops.advances[s:] > 0.0)[:, :, None] & allowed[s][None, None]
        found = found | jnp.any(matches & advancing[None], axis=(0, 1, 2, 3))
    return found


def link_candidates(
    program: Program,
    mapping: Mapping,
    tiles: Tiles,
    reuse: Reuse,
    multicast: Multicast,
    fan: FanOut,
) -> tuple[Array, Array]:
    """Which loops might move tiles onto what a neighbour already holds: bool [level, outer level, position, tensor],
    and the keys of their motions. A necessary condition of section 4.6; arrays without lanes."""
    loops, levels = reuse.loops, jnp.arange(program.structure.levels)
    full = reuse.step_words == reuse.whole_words
    partial = (reuse.step_words > 0.0) & (after_partial(program, reuse) > 0.0)
    possible = (multicast.fanout[:, None] > 1.0) & (mapping.no_link_transfer == 0.0)
    if not program.structure.conventions.link_transfers:
        possible = jnp.zeros_like(possible)
    keys = loops.motion[None] + loops.motion_before[:, None, None]
    as_first = jnp.all(keys == reuse.first_key[:, None, None], axis=4)
    linkable = (~reuse.reuses | full)[:, None, None] | (partial[:, None, None] & as_first)
    outer = (levels[None] >= levels[:, None])[:, :, None, None]
    advancing = (loops.advances > 0.0)[None, :, :, None] & outer
    differences, occurs = neighbour_differences(program, fan)
    offset = differences[:, :, None, None]
    matches = jnp.all((keys[None] == offset) | (keys[None] == -offset), axis=5) & occurs[:, :, None, None, None]
    near = jnp.any(matches, axis=0) | (fan.mixes_rows[:, None, None, None] & _within(program, mapping, tiles))
    return advancing & linkable & possible[:, None, None] & near, keys


def _within(program: Program, mapping: Mapping, tiles: Tiles) -> Array:
    """Whether a motion stays inside the span of the fan-out's offsets: bool [level, outer level, position, tensor]."""
    bounds, step = order_loops(program, mapping, tiles)
    shift = jnp.sum(step[:, :, None, None] * program.projection[None, None], axis=4)
    motion, before = net_motions(program, bounds, shift)
    spans = tiles.fanned_extent - tiles.child_extent
    return jnp.all(jnp.abs(motion[None] + before[:, None, None]) <= spans[:, None, None], axis=4)


def after_partial(program: Program, reuse: Reuse) -> Array:
    """Advances of the innermost loop that follow a partial delivery (4.4). In the reference every repetition of that
    loop counts like its first, which follows a whole tile unless an outer loop moved alike; as the loops really run,
    all but the first follow a partial one."""
    starts, advances = reuse.first_starts[:, None], reuse.first_advances[:, None]
    if program.structure.conventions.second_index_motion:
        return advances / starts * reuse.same_motion_advances
    return advances - (starts - reuse.same_motion_advances)
