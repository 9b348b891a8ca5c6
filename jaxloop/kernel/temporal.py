"""Temporal reuse: how many words a child receives over the whole execution (spec/dense.md sections 4.1 to 4.4).

The loops above a child form one list, innermost first. When the innermost active loop advances, only the words that
enter the tile are delivered (a sliding window); when an outer loop advances, the whole tile is, unless the tile
happens to move by the same vector. All of it has a closed form in the loop bounds and the shift vectors.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import stack
from ..program import Mapping, Program
from .tiling import Tiles


class Loops(eqx.Module):
    """Temporal loops in their order; the position axis runs innermost first within a level.

    **Attributes:**

    - `advances`: how often each loop is the one that advances (`W` of the spec; 0 for loops of bound 1).
    - `motion`: keys of the net motion of a tile when the loop advances, counted from the start of level 0 (`v - sum of
      v`).
    - `motion_before`: keys of the sum of shift vectors over all loops inside each level: `motion + motion_before[s]` is
      the motion `c` of connection s.
    - `steps`: product of all bounds of the loops at and above each level.
    """

    advances: Float[Array, "level position *#lane"]
    motion: Float[Array, "level position tensor key *#lane"]
    motion_before: Float[Array, "level tensor key *#lane"]
    steps: Float[Array, "level *#lane"]


class Reuse(eqx.Module):
    """Delivery to one child of each level.

    **Attributes:**

    - `loops`: the ordered loops.
    - `delivered`: words per child over the whole execution.
    - `first_motion`, `first_key`, `first_starts`, `first_advances`: shift vector, its keys, starts (product of the
      bounds outside) and advances of the innermost active loop.
    - `step_words`: words when that loop advances; `whole_words`: words of a whole tile.
    - `same_motion_advances`: advances of outer loops that move the tile like the innermost one (`E` of the spec).
    - `reuses`: False where no tile is ever reused: below level 0, and under `no_temporal_reuse`.
    """

    loops: Loops
    delivered: Float[Array, "level tensor *#lane"]
    first_motion: Float[Array, "level tensor axis *#lane"]
    first_key: Float[Array, "level tensor key *#lane"]
    first_starts: Float[Array, "level *#lane"]
    first_advances: Float[Array, "level *#lane"]
    step_words: Float[Array, "level tensor *#lane"]
    whole_words: Float[Array, "level tensor *#lane"]
    same_motion_advances: Float[Array, "level tensor *#lane"]
    reuses: Bool[Array, "level tensor *#lane"]


def order_loops(program: Program, mapping: Mapping, tiles: Tiles) -> tuple[Array, Array]:
    """Bounds [level, position], and steps [level, position, rank] of the temporal loops in order: how far each loop
    moves along its rank, 0 along all others. A temporal loop steps by all that lies inside it, the spatial loops of
    its own level included."""
    ranks = program.structure.ranks
    index = jnp.arange(ranks, dtype=mapping.temporal_order.dtype)
    index = index.reshape((1, 1, ranks) + (1,) * (mapping.temporal_order.ndim - 2))
    chosen = (mapping.temporal_order[:, :, None] == index).astype(mapping.temporal.dtype)
    return jnp.sum(chosen * mapping.temporal[:, None], axis=2), chosen * tiles.fanned[:, None]


def net_motions(program: Program, bounds: Array, shift: Array) -> tuple[Array, Array]:
    """`motion` and `motion_before` of `Loops`, for `shift` [level, position, tensor, key or axis]."""
    structure = program.structure
    taken = (bounds > 1.0).astype(bounds.dtype) if structure.conventions.second_index_motion else bounds - 1.0
    carried = shift * taken[:, :, None, None]
    within, total = [], jnp.zeros_like(carried[:, 0])
    for position in range(structure.ranks):
        within.append(total)
        total = total + carried[:, position]
    before, inside = [], jnp.zeros_like(total[0])
    for s in range(structure.levels):
        before.append(inside)
        inside = inside + total[s]
    motion_before = stack(before)
    return shift - jnp.moveaxis(stack(within), 0, 1) - motion_before[:, None], motion_before


def _repetitions(program: Program, bounds: Array) -> tuple[Array, Array]:
    """How often each loop is started (product of all bounds outside it) [level, position], and `Loops.steps`."""
    within, repeats = [], jnp.ones_like(bounds[:, 0])
    for position in reversed(range(program.structure.ranks)):
        within.insert(0, repeats)
        repeats = repeats * bounds[:, position]
    outside, steps, above = [], [], jnp.ones_like(repeats[0])
    for s in reversed(range(program.structure.levels)):
        outside.insert(0, above)
        above = above * repeats[s]
        steps.insert(0, above)
    return jnp.moveaxis(stack(within), 0, 1) * stack(outside)[:, None], stack(steps)


def _first_active(program: Program, bounds: Array, values: Array, default: Array) -> Array:
    """Per level, the row of `values` [level, position, item] of the innermost loop of bound > 1 at or above that level;
    `default` [item] where all loops have bound 1."""
    structure, active = program.structure, bounds > 1.0
    found = jnp.broadcast_to(default[None], values[:, 0].shape)
    for position in reversed(range(structure.ranks)):
        found = jnp.where(active[:, position][:, None], values[:, position], found)
    any_active = jnp.any(active, axis=1)
    beyond, first = found[0] * 0.0 + default, []
    for s in reversed(range(structure.levels)):
        beyond = jnp.where(any_active[s][None], found[s], beyond)
        first.insert(0, beyond)
    return stack(first)


def temporal_reuse(program: Program, mapping: Mapping, tiles: Tiles) -> Reuse:
    bounds, step = order_loops(program, mapping, tiles)
    key = jnp.sum(step[:, :, None, None] * program.motion_key[None, None], axis=4)
    motion, motion_before = net_motions(program, bounds, key)
    starts, steps = _repetitions(program, bounds)
    advances = (bounds - 1.0) * starts
    counts = jnp.concatenate(jnp.broadcast_arrays(starts[:, :, None], advances[:, :, None]), axis=2)
    items = jnp.concatenate([step, jnp.broadcast_to(counts, counts.shape[:3] + step.shape[3:])], axis=2)
    first = _first_active(program, bounds, items, jnp.zeros_like(items[0, 0]).at[program.structure.ranks].set(1.0))
    first_step, first_starts, first_advances = first[:, :-2], first[:, -2], first[:, -1]
    first_motion = jnp.sum(first_step[:, None, None] * program.projection[None], axis=3)
    first_key = jnp.sum(first_step[:, None, None] * program.motion_key[None], axis=3)

    whole = tiles.child_words
    entering = whole - jnp.prod(jnp.maximum(tiles.child_extent - jnp.abs(first_motion), 0.0), axis=2)
    same = []
    for s in range(program.structure.levels):
        matches = jnp.all(motion[s:] == (first_key[s] - motion_before[s])[None, None], axis=3)
        moved = jnp.sum(jnp.where(matches, advances[s:, :, None], 0.0), axis=(0, 1))
        same.append(moved - first_advances[s][None])  # the innermost loop matches itself
    same_motion = stack(same)

    stops = mapping.no_temporal_reuse
    reuses = jnp.concatenate([jnp.zeros_like(stops[:1]), 1.0 - stops[:-1]]) > 0.0
    delivered = whole * (first_starts[:, None] - same_motion) + entering * (first_advances[:, None] + same_motion)
    return Reuse(
        loops=Loops(advances=advances, motion=motion, motion_before=motion_before, steps=steps),
        delivered=jnp.where(reuses, delivered, whole * steps[:, None]),
        first_motion=first_motion,
        first_key=first_key,
        first_starts=first_starts,
        first_advances=first_advances,
        step_words=entering,
        whole_words=whole,
        same_motion_advances=same_motion,
        reuses=reuses,
    )
