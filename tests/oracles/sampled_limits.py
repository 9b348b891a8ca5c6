"""Where the statistical model is known not to count what happens, from the design alone (`test_sampled` measures how
far off it is there)."""

import numpy as np

from jaxloop.spec.density import Distribution

from .exactness import exactness
from .loopnest import FlatLoop
from .sampled import Condition, Simulation
from .sampled_walk import COMPUTE, Walk


def limits(simulation: Simulation) -> list[str]:
    """Reasons why the model's counts may differ from `Simulation.run`'s; empty where they must agree."""
    design, walk = simulation.design, simulation.walk
    found = []
    assert design.nest is not None
    if not exactness(design.einsum, design.nest, second_index=False):
        found.append("a window comes back over itself: the dense traffic is not the least possible")
    banded = [name for name in walk.tensors if _is_banded(simulation, name)]
    found += [
        f"{name}: a band cut by tiles with gaps or a width that does not divide their height"
        for name in banded
        if _cuts_badly(simulation, name)
    ]
    if sum(not walk.tensors[name].is_output for name in banded) > 1:
        found.append("two banded operands: where one is nonzero tells where the other is")
    for condition in simulation.conditions:
        where = f"{condition.target} at level {condition.level}: "
        found += [where + reason for reason in _leader_limits(walk, condition)]
        for outer in simulation.conditions:
            if outer is not condition and outer.target == condition.target and outer.level >= condition.level:
                found += [where + reason for reason in _nesting_limits(outer, condition)]
        if walk.tensors[condition.target].is_output and any(leader in banded for leader in condition.leaders):
            found.append(where + "the band's edge meets the first update of an output, which needs no read")
    for name in walk.tensors:
        kept = [level for level in range(walk.depth) if walk.keeps(name, level)]
        known = [level in simulation.layouts[name] for level in kept]
        if any(known) and known.index(True) > 1:
            found.append(f"{name}: empty tiles of a level without a format are delivered further inward")
        for level, layout in simulation.layouts[name].items():
            child = walk.child(name, level)
            if (
                child != COMPUTE
                and not layout.is_compressed
                and len(layout.ranks) > 2
                and len(walk.offsets(name, child)) > 1
            ):
                found.append(
                    f"{name} at level {level}: fibers of an uncompressed format seem as large as the tiles inside"
                )
    return found


def _nesting_limits(outer: Condition, inner: Condition) -> list[str]:
    if outer.level == inner.level:
        return ["several directives, of which the model takes the one that removes most"]
    if not set(outer.leaders) <= set(inner.leaders):
        return ["a directive further out removes accesses that the model takes for removed by this one"]
    return []


def _is_banded(simulation: Simulation, tensor: str) -> bool:
    density = simulation.design.densities.get(tensor)
    return density is not None and density.distribution is Distribution.BANDED


def _cuts_badly(simulation: Simulation, tensor: str) -> bool:
    """The model looks at few rows of tiles; they stand for all only if the width of a tile divides its height. And it
    takes every leader tile for a whole rectangle."""
    walk, known = simulation.walk, simulation.layouts[tensor]
    width = walk.shape(tensor)[1]
    regions = [walk.offsets(tensor, level) for level in range(walk.depth) if walk.keeps(tensor, level)]
    for layout in known.values():
        inner = 1
        for fiber in layout.fibers:
            inner *= fiber
            regions.append(layout.offsets[:inner])
    for condition in simulation.conditions:
        if tensor in condition.leaders:
            uses = simulation.given[condition.level, condition.target].of_iteration == 0
            regions.append(walk.used[tensor][uses])
    for region in regions:
        height, across = np.ptp(np.stack(np.divmod(region, width)), axis=1) + 1
        if height % across or len(np.unique(region)) < height * across:
            return True
    return False


def _leader_limits(walk: Walk, condition: Condition) -> list[str]:
    child, level = walk.child(condition.target, condition.level), condition.level

    def moves(loop: FlatLoop, tensor: str) -> bool:
        return walk.step_of(tensor, loop) > 0

    def target_moves(loop: FlatLoop) -> bool:
        return moves(loop, condition.target)

    loops = [loop for loop in walk.loops if loop.bound > 1]
    between = [loop for loop in loops if child < loop.level <= level]
    temporal = [loop for loop in between if not loop.spatial]
    found = []
    if child == COMPUTE:
        return found
    beyond = [loop for loop in loops if loop.level > level and not loop.spatial]
    if not any(map(target_moves, temporal)) and beyond and not target_moves(beyond[0]):
        found.append("the tile stays put while loops beyond its level advance")
    return found
