"""Small designs for map spaces."""

from typing import Any

from jaxloop.spec.architecture import Architecture, Compute, Storage
from jaxloop.spec.constraints import Constraints, FactorConstraint, LoopKind, Relation
from jaxloop.spec.design import Design
from jaxloop.spec.einsum import Axis, Einsum, Tensor, Term

TEMPORAL, SPATIAL = LoopKind.TEMPORAL, LoopKind.SPATIAL


def design_of(
    sizes: dict[str, int], meshes: list[tuple[int, int]], tensors: tuple[str, ...] = ("A", "Z"), **constraints: Any
) -> Design:
    """A design with one tensor axis per rank. `meshes` are those of the compute units and of the levels L0, L1, ...;
    `constraints` the fields of `Constraints`."""
    axes = tuple(Axis((Term(rank),)) for rank in sizes)
    einsum = Einsum(
        "small", tuple(sizes), tuple(sizes.values()), tuple(Tensor(t, axes, t == tensors[-1]) for t in tensors)
    )
    (x, y), *levels = meshes
    storages = tuple(Storage(f"L{i}", mesh_x=mx, mesh_y=my) for i, (mx, my) in enumerate(levels))
    return Design(
        einsum, Architecture(Compute("Mac", mesh_x=x, mesh_y=y), storages), constraints=Constraints(**constraints)
    )


def factor(level: str, kind: LoopKind, rank: str | None, relation: str, value: int) -> FactorConstraint:
    return FactorConstraint(level, kind, rank, Relation(relation), value)
