"""The workload: an iteration space and the tensors that it reads and writes (spec/dense.md section 1)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One summand of a tensor coordinate: `coefficient * rank`. `name` is the coefficient's name in the problem shape
    (a stride, a dilation), empty when the coefficient is a literal 1. Coefficients may be negative."""

    rank: str
    coefficient: int = 1
    name: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """One coordinate of a tensor, a sum of terms: `[R*dilation + P*stride]` of a convolution's input."""

    terms: tuple[Term, ...]

    @property
    def ranks(self) -> tuple[str, ...]:
        """The ranks that move this coordinate, each once; one whose terms cancel does not."""
        net: dict[str, int] = {}
        for term in self.terms:
            net[term.rank] = net.get(term.rank, 0) + term.coefficient
        return tuple(rank for rank, coefficient in net.items() if coefficient != 0)


@dataclass(frozen=True, slots=True)
class Tensor:
    name: str
    axes: tuple[Axis, ...]
    is_output: bool = False

    def extents(self, size_of: Mapping[str, int]) -> tuple[int, ...]:
        """Elements along each axis where the ranks have these sizes."""
        return tuple(1 + sum(abs(t.coefficient) * (size_of[t.rank] - 1) for t in axis.terms) for axis in self.axes)

    @property
    def ranks(self) -> tuple[str, ...]:
        """The ranks that this tensor depends on (the relevant ranks)."""
        return tuple(dict.fromkeys(r for axis in self.axes for r in axis.ranks))


@dataclass(frozen=True, slots=True)
class Einsum:
    """Ranks with their sizes, in the order of the problem shape, and the tensors."""

    name: str
    ranks: tuple[str, ...]
    sizes: tuple[int, ...]
    tensors: tuple[Tensor, ...]

    @property
    def size_of(self) -> dict[str, int]:
        return dict(zip(self.ranks, self.sizes, strict=True))

    @property
    def computes(self) -> int:
        """Points of the iteration space."""
        total = 1
        for size in self.sizes:
            total *= size
        return total
