"""Spatial skipping: children of a fan-out that would hold an empty tile are left out (spec/sparse.md 3.5).

A spatial directive of a level concerns the children of that level, whether or not the level stores the target. Where
the text leaves a choice, what is done here is said in the docstrings.
"""

import math
from dataclasses import dataclass, field

from jaxloop.spec.sparse import ActionKind, ActionOptimization

from .sparse_density import DensityModel
from .sparse_errors import Refusal, Undefined
from .sparse_format import Held
from .sparse_geometry import Box, Geometry, tile_of
from .sparse_saf import source_level

Key = tuple[int, str]
"""Storage level and tensor."""


@dataclass
class Shrunk:
    """What one tensor leaves of a fan-out: the chance that a child has something to do, and how many children remain
    along X and Y of how many."""

    filled: float = 1.0
    along_x: tuple[int, int] = (1, 1)
    along_y: tuple[int, int] = (1, 1)

    @property
    def shrinks(self) -> bool:
        return any(remaining != bound for remaining, bound in (self.along_x, self.along_y))


@dataclass
class Spatial:
    """By level and tensor.

    - `chances`: that a child of the level is left out, where a directive says so.
    - `expansions`, `shares`: of the *children* of a level, those along X and Y that must exist, and the share of all of
      them that is busy on average.
    """

    chances: dict[Key, float] = field(default_factory=dict)
    expansions: dict[Key, tuple[int, int]] = field(default_factory=dict)
    shares: dict[Key, float] = field(default_factory=dict)

    def required(self, geometry: Geometry, level: int) -> tuple[int, int]:
        """Children of a level along X and Y, of the tensor that needs most."""
        along = [self.expansions[level, tensor] for tensor in geometry.tensors]
        return max(x for x, _ in along), max(y for _, y in along)


def _extension(geometry: Geometry, level: int, target: str) -> dict[str, int]:
    """Temporal loops around the fan-out that leave the target's tile in the child where it is."""
    box: dict[str, int] = {}
    for s in range(level, geometry.depth):
        for step in geometry.nest[s]:
            if step.is_spatial or step.bound == 1:
                continue
            if step.rank in geometry.tensors[target].ranks:
                return box
            box[step.rank] = box.get(step.rank, 1) * step.bound
        if geometry.keeps(target, s):
            break
    return box


def _times(box: Box, other: Box) -> dict[str, int]:
    return {rank: box.get(rank, 1) * other.get(rank, 1) for rank in {*box, *other}}


def _shrink(
    geometry: Geometry, held: dict[Key, Held], model: DensityModel, level: int, tensor: str, target: str | None
) -> Shrunk:
    """The fan-out of `level` as the zeros of `tensor` shrink it, for itself or for a `target`."""
    assert geometry.design.nest is not None
    owner = next((s for s in range(level, geometry.depth) if geometry.keeps(tensor, s)), None)
    shrunk = Shrunk()
    if owner is None or not held[owner, tensor].has_metadata:
        return shrunk
    shape, is_first = geometry.tensors[tensor], True
    below: Box = geometry.nest[level - 1][-1].box if level else {}
    for index, step in enumerate(geometry.nest[level]):
        element, below = below, step.box
        if not step.is_spatial or step.bound == 1 or step.rank not in shape.ranks:
            continue
        stays = target and geometry.child(target, level) is not None
        if target and stays and step.rank in geometry.tensors[target].ranks:
            element = _times(element, _extension(geometry, level, target))
        if is_first:
            shrunk.filled, is_first = 1.0 - model.empty(tile_of(shape, element)), False
        fiber = _times(element, {step.rank: step.bound})
        remaining = most_nonempty(model, tile_of(shape, fiber), tile_of(shape, element))
        axis = "along_x" if index < len(geometry.design.nest.levels[level].spatial_x) else "along_y"
        so_far, bounds = getattr(shrunk, axis)
        setattr(shrunk, axis, (so_far * remaining, bounds * step.bound))
    return shrunk


def most_nonempty(model: DensityModel, fiber: tuple[int, ...], element: tuple[int, ...]) -> int:
    """Elements of a fiber that may hold a nonzero, at most (1.3)."""
    elements, rest = divmod(math.prod(fiber), math.prod(element))
    if rest:
        raise Undefined("a fiber is no multiple of its elements: the reference aborts")
    return min(elements, model.maximum(fiber))


def spatial_skipping(
    geometry: Geometry,
    models: dict[str, DensityModel],
    held: dict[Key, Held],
    actions: list[tuple[int, ActionOptimization]],
) -> Spatial | None:
    """None without a directive. **Raises:** `Refusal`; `Undefined` where the reference aborts or looks at the first
    condition only."""
    directives: dict[Key, str] = {}
    for level, group in actions:
        if group.kind is ActionKind.SPATIAL_SKIPPING:
            option = group.options[0]
            condition, *others = option.condition_on
            if others or (level, option.target) in directives:
                raise Undefined("several conditions of one spatial directive")
            source_level(geometry, option.target, level)
            directives[level, option.target] = condition
    if not directives:
        return None
    spatial = Spatial()
    for tensor in geometry.tensors:
        _propagate(geometry, models, held, tensor, directives, spatial)
    _check_fan_outs(geometry, spatial)
    return spatial


def _propagate(
    geometry: Geometry,
    models: dict[str, DensityModel],
    held: dict[Key, Held],
    tensor: str,
    directives: dict[Key, str],
    spatial: Spatial,
) -> None:
    """From the outermost level inward: expansions shrink with every fan-out, first by the tensor's own zeros and then,
    rounded down each time, by those of its conditions. The share of busy children is that of the nearest fan-out with
    one of its own. A directive's share only reaches further in if it shrinks the expansion."""
    carried, by_condition = 1.0, []
    own_x = own_y = (1, 1)
    for level in reversed(range(geometry.depth)):
        own = _shrink(geometry, held, models[tensor], level, tensor, None)
        own_x, own_y = ((a * c, b * d) for (a, b), (c, d) in ((own_x, own.along_x), (own_y, own.along_y)))
        here = carried if own.filled == 1.0 else own.filled
        carried = here
        if (level, tensor) in directives:
            condition = directives[level, tensor]
            other = _shrink(geometry, held, models[condition], level, condition, tensor)
            by_condition.append(other)
            spatial.chances[level, tensor] = 1.0 - other.filled
            here, carried = other.filled, other.filled if other.shrinks else carried
        along_x, along_y = geometry.fanouts(level - 1)
        along_x, along_y = along_x * own_x[0] // own_x[1], along_y * own_y[0] // own_y[1]
        for other in by_condition:
            along_x = along_x * other.along_x[0] // other.along_x[1]
            along_y = along_y * other.along_y[0] // other.along_y[1]
        spatial.expansions[level, tensor] = along_x, along_y
        spatial.shares[level, tensor] = here


def _check_fan_outs(geometry: Geometry, spatial: Spatial) -> None:
    """From the compute units outward."""
    architecture = geometry.design.architecture
    names = [architecture.compute.name, *(level.name for level in architecture.levels)]
    for level in range(geometry.depth):
        required_x, required_y = spatial.required(geometry, level)
        is_outermost = level == geometry.depth - 1
        outer_x, outer_y = (1, 1) if is_outermost else spatial.required(geometry, level + 1)
        fan_x, fan_y = architecture.fanout(level)
        for axis, required, outer, fan in (("X", required_x, outer_x, fan_x), ("Y", required_y, outer_y, fan_y)):
            if required > fan * outer:
                text = f"Required fanout{axis} {required / outer:g} does not meet hardware constraint {fan}"
                raise Refusal(names[level], text)
