"""Spatial skipping: children of a fan-out whose part of a condition tensor is empty are left out, and others take their
place (spec/sparse.md 3.5).

A fan-out may then be mapped wider than the hardware is. Two things shrink it for a tensor: its own zeros, where the
level that hands the tensor out holds metadata of it, and those of the condition of a directive of the level, whether or
not that level stores the target.

Where the text leaves a choice: expansions are integers (`x * remaining // bound`, without the noise of a quotient in
between); the share of busy children is that of the nearest fan-out, going outward, with one of its own.
"""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import floor_div, stack
from ..program import SAF_KINDS, Mapping, Program, SparseProgram
from ..spec.sparse import ActionKind
from .density import Densities
from .nest import Nest, box_of, from_owner
from .rank_loops import FormatRanks
from .safs import Safs
from .tiling import Tiles
from .traffic import Traffic


class SpatialSkipping(eqx.Module):
    """What is left of the fan-outs.

    **Attributes:**

    - `present`: the level leaves out children for the tensor by a directive; `chance`: that it leaves out one.
    - `share`: of a level's instances in the mapping, those busy on average; `instances_x`, `instances_y`: those that
      must exist. `compute_share`, `compute_x`, `compute_y`: of the compute units, for the tensor that needs most.
    - `used_x`, `used_y`: instances that must exist for the tensor that needs most.
    - `over_fan_out`: more children of a level must exist than the hardware has.
    - `mixed`: the level also gates or skips accesses to the tensor (the reference aborts).
    - `uneven`: elements of a fiber do not fill it, so that their number is undefined (the reference aborts).
    """

    present: Bool[Array, "level tensor *#lane"]
    chance: Float[Array, "level tensor *#lane"]
    share: Float[Array, "level tensor *#lane"]
    instances_x: Float[Array, "level tensor *#lane"]
    instances_y: Float[Array, "level tensor *#lane"]
    compute_share: Float[Array, "*#lane"]
    compute_x: Float[Array, "*#lane"]
    compute_y: Float[Array, "*#lane"]
    used_x: Float[Array, "level *#lane"]
    used_y: Float[Array, "level *#lane"]
    over_fan_out: Bool[Array, "*#lane"]
    mixed: Bool[Array, "*#lane"]
    uneven: Bool[Array, "*#lane"]

    def joined(self, safs: Safs) -> Safs:
        """All that removes accesses further in."""
        chances = (jnp.where(self.present, self.chance, own) for own in (safs.chance, safs.operation_chance))
        chance, of_operations = chances
        return replace(safs, present=safs.present | self.present, chance=chance, operation_chance=of_operations)


class _Shrunk(eqx.Module):
    """Fan-outs as the zeros of one tensor shrink them. Meanwhile a *view* stands before the axis of that tensor: as the
    tensor itself is handed out, or as the condition of a target.

    **Attributes:** `filled`: chance that a child has something to do; `remaining_x`, `remaining_y`: children left, at
    most, of `bound_x`, `bound_y` in loops that move the tensor; `uneven`.
    """

    filled: Float[Array, "level tensor *#lane"]
    remaining_x: Float[Array, "level tensor *#lane"]
    remaining_y: Float[Array, "level tensor *#lane"]
    bound_x: Float[Array, "level tensor *#lane"]
    bound_y: Float[Array, "level tensor *#lane"]
    uneven: Bool[Array, "level tensor *#lane"]


def spatial_skipping(
    program: Program,
    sparse: SparseProgram,
    mapping: Mapping,
    nest: Nest,
    ranks: FormatRanks,
    tiles: Tiles,
    traffic: Traffic,
    densities: Densities,
    safs: Safs,
) -> SpatialSkipping:
    """The fan-outs of a program with directives. **Arguments:** `densities`: of its tensors; `safs`: gating and
    skipping."""
    present, leads = _directives(program, sparse)
    shrunk = _shrunk(program, mapping, nest, ranks, tiles, densities)
    own, condition = _view(shrunk, 0), _of_condition(_view(shrunk, slice(1, None)), leads)
    all_x = stack([traffic.compute_x, *traffic.instances_x[:-1]])
    all_y = stack([traffic.compute_y, *traffic.instances_y[:-1]])
    along_x = _expansions(program, all_x, (own.remaining_x, own.bound_x), (condition.remaining_x, condition.bound_x))
    along_y = _expansions(program, all_y, (own.remaining_y, own.bound_y), (condition.remaining_y, condition.bound_y))
    busy = _busy(program, present, own, condition)
    # over the tensors; padding has none
    share, required_x, required_y = (
        jnp.max(jnp.where(program.is_tensor[None] > 0.0, values, 0.0), axis=1) for values in (busy, along_x, along_y)
    )

    def of_levels(of_children: Array) -> Array:
        """Of the levels themselves; there is one outermost instance."""
        return jnp.concatenate([of_children[1:], jnp.ones_like(of_children[:1])])

    return SpatialSkipping(
        present=present,
        chance=jnp.where(present, 1.0 - condition.filled, 0.0),
        share=of_levels(busy),
        instances_x=of_levels(along_x),
        instances_y=of_levels(along_y),
        compute_share=share[0],
        compute_x=required_x[0],
        compute_y=required_y[0],
        used_x=of_levels(required_x),
        used_y=of_levels(required_y),
        over_fan_out=_over_fan_out(program, required_x, required_y),
        mixed=jnp.any(present & safs.present, axis=(0, 1)),
        uneven=jnp.any(own.uneven | condition.uneven, axis=(0, 1)),
    )


def _directives(program: Program, sparse: SparseProgram) -> tuple[Array, Array]:
    """Whether a level has a directive for a target [level, target], and with which conditions [level, target,
    condition]."""
    is_spatial = sparse.saf_kind == SAF_KINDS[ActionKind.SPATIAL_SKIPPING]
    levels, tensors = program.structure.levels, program.structure.tensors
    at_level = jnp.stack([is_spatial & (sparse.saf_level == level) for level in range(levels)])  # [level, group]
    of_target = jnp.stack([sparse.saf_target == tensor for tensor in range(tensors)])  # [target, group, option]
    where = at_level[:, None, :, None] & of_target[None]
    leads = where[:, :, :, :, None] & (sparse.saf_leaders > 0.0)[None, None]
    return jnp.any(where, axis=(2, 3)), jnp.any(leads, axis=(2, 3))


def _staying(nest: Nest) -> Array:
    """Temporal loops around a fan-out that leave the target's tiles in its children where they are, as a box [level,
    target, rank]: 1 where no inner level keeps the target."""
    moves = nest.relevant[None] & (nest.temporal > 1.0)[:, None]
    first = jnp.min(jnp.where(moves, nest.temporal_position[:, None], jnp.inf), axis=2)[:, :, None]
    inside = jnp.where(nest.temporal_position[:, None] < first, nest.temporal[:, None], 1.0)
    ends = jnp.isfinite(first) | nest.keep[:, :, None]
    boxes = [inside[-1]]
    for level in reversed(range(nest.keep.shape[0] - 1)):
        boxes.insert(0, inside[level] * jnp.where(ends[level], 1.0, boxes[0]))
    kept_inside, found = [], jnp.zeros_like(nest.keep[0])
    for level in range(nest.keep.shape[0]):
        kept_inside.append(found)
        found = found | nest.keep[level]
    return jnp.where(stack(kept_inside)[:, :, None], stack(boxes), 1.0)


def _shrunk(
    program: Program, mapping: Mapping, nest: Nest, ranks: FormatRanks, tiles: Tiles, densities: Densities
) -> _Shrunk:
    """View 0 is that of the tensor itself, the others are those of the targets."""
    fans_out, relevant = nest.fans_out[:, None], nest.relevant
    bounds_x, bounds_y = (jnp.where(fans_out, side, 1.0) for side in (mapping.spatial_x, mapping.spatial_y))
    bounds = bounds_x * bounds_y
    place = nest.spatial_position
    inside = place[:, None] < place[:, :, None]
    below = tiles.below[:, None] * jnp.where(inside, bounds[:, None], 1.0)  # [level, loop, rank]
    # [loop, target, condition]: only a loop that moves both hands the target's tiles out with the condition's
    together = jnp.moveaxis(relevant[:, None] & relevant[None], 2, 0)
    staying = jnp.where(together[None, :, :, :, None], _staying(nest)[:, None, :, None], 1.0)
    staying = jnp.concatenate([jnp.ones_like(staying[:, :, :1]), staying], axis=2)
    boxes = below[:, :, None, None] * staying  # [level, loop, view, tensor, rank]

    own_rank = jnp.eye(program.structure.ranks, dtype=bool)
    own_rank = own_rank.reshape((1, *own_rank.shape) + (1,) * (place.ndim - 2))

    def grown(side: Array) -> Array:
        return jnp.where(own_rank, side[:, :, None], 1.0)[:, :, None, None]

    elements = (boxes, boxes * grown(bounds_x), boxes * grown(bounds_x) * grown(bounds_y))
    has_metadata = from_owner(nest, ranks.has_metadata)[:, None]
    moved = jnp.swapaxes(relevant, 0, 1)[None] & (bounds > 1.0)[:, :, None]  # [level, loop, tensor]
    first = jnp.min(jnp.where(moved, place[:, :, None], jnp.inf), axis=1)
    is_first = (moved & (place[:, :, None] == first[:, None]))[:, :, None, :, None]
    first_box = jnp.sum(jnp.where(is_first, boxes, 0.0), axis=1)
    none = ~jnp.isfinite(first)[:, None]
    empty = densities.prob_empty(box_of(program, jnp.where(none[:, :, :, None], 1.0, first_box)))

    leaves = {"filled": jnp.where(has_metadata & ~none, 1.0 - empty, 1.0), "uneven": jnp.zeros_like(empty, dtype=bool)}
    for axis, side, element, fiber in (("x", bounds_x, *elements[:2]), ("y", bounds_y, *elements[1:])):
        counted = has_metadata[:, None] & (jnp.swapaxes(relevant, 0, 1)[None] & (side > 1.0)[:, :, None])[:, :, None]
        element, fiber = box_of(program, element), box_of(program, fiber)
        remaining = densities.most_nonempty(fiber, element)
        leaves[f"remaining_{axis}"] = jnp.prod(jnp.where(counted, remaining, 1.0), axis=1)
        leaves[f"bound_{axis}"] = jnp.prod(jnp.where(counted, side[:, :, None, None] + 0.0 * remaining, 1.0), axis=1)
        if program.structure.conventions.integer_counts:
            whole = floor_div(fiber.words, element.words) * element.words
            leaves["uneven"] = leaves["uneven"] | jnp.any(counted & (whole != fiber.words), axis=1)
    return _Shrunk(**leaves)


def _view(shrunk: _Shrunk, views: int | slice) -> _Shrunk:
    names = _Shrunk.__dataclass_fields__
    return _Shrunk(**{name: getattr(shrunk, name)[:, views] for name in names})


def _of_condition(shrunk: _Shrunk, leads: Array) -> _Shrunk:
    """What the condition of each target leaves [level, target]."""
    names = ("filled", "remaining_x", "remaining_y", "bound_x", "bound_y")
    chosen = {name: jnp.prod(jnp.where(leads, getattr(shrunk, name), 1.0), axis=2) for name in names}
    return _Shrunk(**chosen, uneven=jnp.any(leads & shrunk.uneven, axis=2))


def _expansions(program: Program, everything: Array, own: tuple[Array, Array], condition: tuple[Array, Array]) -> Array:
    """Of `everything` in the mapping, the children of each level along one axis that must exist [level, tensor]. `own`,
    `condition`: how many remain of how many; a level's expansion contains those of all levels further out."""
    share = floor_div if program.structure.conventions.integer_counts else jnp.divide
    remaining, bound = jnp.ones_like(own[0][0]), jnp.ones_like(own[1][0])
    found = []
    for level in reversed(range(program.structure.levels)):
        remaining, bound = remaining * own[0][level], bound * own[1][level]
        children = share(everything[level] * remaining, bound)
        for outer in reversed(range(level, program.structure.levels)):
            children = share(children * condition[0][outer], condition[1][outer])
        found.insert(0, children)
    return stack(found)


def _busy(program: Program, present: Array, own: _Shrunk, condition: _Shrunk) -> Array:
    """Share of each level's children that are busy on average [level, tensor]. With `spatial_shares_alone` a directive
    that does not shrink an expansion says nothing of the levels further in."""
    carried, found = jnp.ones_like(own.filled[0]), []
    for level in reversed(range(program.structure.levels)):
        carried = jnp.where(own.filled[level] == 1.0, carried, own.filled[level])
        found.insert(0, jnp.where(present[level], condition.filled[level], carried))
        passes = present[level]
        if program.structure.conventions.spatial_shares_alone:
            shrinks_x = condition.remaining_x[level] != condition.bound_x[level]
            passes = passes & (shrinks_x | (condition.remaining_y[level] != condition.bound_y[level]))
        carried = jnp.where(passes, condition.filled[level], carried)
    return stack(found)


def _over_fan_out(program: Program, along_x: Array, along_y: Array) -> Array:
    """More children per instance of some level than there are along X or along Y."""
    result = jnp.zeros_like(along_x[0], dtype=bool)
    meshes = (program.compute_mesh_x, program.mesh_x), (program.compute_mesh_y, program.mesh_y)
    for required, (compute, mesh) in zip((along_x, along_y), meshes, strict=True):
        children = floor_div(stack([compute, *mesh[:-1]]), mesh)
        outer = jnp.concatenate([required[1:], jnp.ones_like(required[:1])])
        result = result | jnp.any(required > children * outer, axis=0)
    return result
