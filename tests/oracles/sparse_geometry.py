"""Loops and tiles of a mapping as the sparse analysis sees them (spec/sparse.md sections 2.3 and 3.1)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from jaxloop.spec.design import Design
from jaxloop.spec.einsum import Tensor

from .sparse_density import Tile

Box = Mapping[str, int]
"""Size of a box of the operation space per rank; ranks that are absent have size 1."""


@dataclass(frozen=True)
class Step:
    """One loop of a level, bound 1 included, with the box of everything up to and including it."""

    rank: str
    bound: int
    is_spatial: bool
    box: Box


def tile_of(tensor: Tensor, box: Box) -> Tile:
    """Extents of the box's footprint along the tensor's axes."""
    return tuple(
        1 + sum(abs(term.coefficient) * (box.get(term.rank, 1) - 1) for term in axis.terms) for axis in tensor.axes
    )


def size_of(tensor: Tensor, box: Box) -> int:
    return math.prod(tile_of(tensor, box))


def product(loops: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The box of some loops."""
    box: dict[str, int] = {}
    for rank, bound in loops:
        box[rank] = box.get(rank, 1) * bound
    return box


class Geometry:
    """`nest[level]` holds the level's loops, innermost first: spatial ones if the hardware fans out below the level,
    then temporal ones."""

    def __init__(self, design: Design):
        assert design.nest is not None
        self.design = design
        self.tensors = {tensor.name: tensor for tensor in design.einsum.tensors}
        self.depth = len(design.nest.levels)
        self.nest: list[list[Step]] = []
        box: dict[str, int] = {}
        for level, directives in enumerate(design.nest.levels):
            steps = []
            spatial = (*directives.spatial_x, *directives.spatial_y)
            fans_out = math.prod(design.architecture.fanout(level)) > 1
            for loop in (*(spatial if fans_out else ()), *directives.temporal):
                box = {**box, loop.rank: box.get(loop.rank, 1) * loop.bound}
                steps.append(Step(loop.rank, loop.bound, len(steps) < fans_out * len(spatial), box))
            self.nest.append(steps)

    def keeps(self, tensor: str, level: int) -> bool:
        assert self.design.nest is not None
        return tensor in self.design.nest.levels[level].keep

    def child(self, tensor: str, level: int) -> int | None:
        return next((s for s in range(level - 1, -1, -1) if self.keeps(tensor, s)), None)

    def parent(self, tensor: str, level: int) -> int | None:
        return next((s for s in range(level + 1, self.depth) if self.keeps(tensor, s)), None)

    def tile(self, tensor: str, level: int) -> Tile:
        """The tile that a level holds if it keeps the tensor."""
        return tile_of(self.tensors[tensor], self.nest[level][-1].box)

    def shape(self, tensor: str, level: int) -> int:
        """Its elements, 0 where the tensor is bypassed."""
        return math.prod(self.tile(tensor, level)) if self.keeps(tensor, level) else 0

    def fanouts(self, level: int) -> tuple[int, int]:
        """Instances in use along X and Y of a storage level, -1 for the compute units."""
        assert self.design.nest is not None
        outer = self.design.nest.levels[level + 1 :]
        return (
            math.prod(loop.bound for nest in outer for loop in nest.spatial_x),
            math.prod(loop.bound for nest in outer for loop in nest.spatial_y),
        )

    @cached_property
    def whole(self) -> Box:
        return self.nest[-1][-1].box
