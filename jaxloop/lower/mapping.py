"""LoopNest -> `Mapping`: factors, orders and masks as padded arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import Diagnostics, Place
from ..conventions import Conventions
from ..program import Mapping, Structure
from ..spec.design import Design
from ..spec.einsum import Einsum
from ..spec.mapping import LevelNest, Loop, LoopNest
from ..spec.sparse import ActionKind

MASKS = ("keep", "no_temporal_reuse", "no_link_transfer", "no_multicast", "stream")
"""Leaves of `Mapping` over levels and tensors; the others are over levels and ranks."""


def lower_mapping(nest: LoopNest, einsum: Einsum, structure: Structure) -> Mapping:
    """A mapping as numpy arrays without lanes, padded to `structure`.

    **Raises:** `SpecError` for imperfect factors, which the closed form does not cover.
    """
    _refuse_imperfect(nest)
    ranks = {rank: i for i, rank in enumerate(einsum.ranks)}
    tensors = [t.name for t in einsum.tensors]
    shape = (structure.levels, structure.ranks)
    temporal, spatial_x, spatial_y = np.ones(shape), np.ones(shape), np.ones(shape)
    temporal_order = np.tile(np.arange(structure.ranks, dtype=np.int32), (structure.levels, 1))
    spatial_order = temporal_order.copy()
    masks = {name: np.zeros((structure.levels, structure.tensors)) for name in MASKS}
    for s, level in enumerate(nest.levels):
        for loops, factors in (
            (level.temporal, temporal),
            (level.spatial_x, spatial_x),
            (level.spatial_y, spatial_y),
        ):
            for loop in loops:
                factors[s, ranks[loop.rank]] = loop.bound
        temporal_order[s] = _order(level.temporal, ranks, structure.ranks)
        spatial_order[s] = _order((*level.spatial_x, *level.spatial_y), ranks, structure.ranks)
        for name, mask in masks.items():
            mask[s, : len(tensors)] = [tensor in getattr(level, name) for tensor in tensors]
    leaves: dict[str, Any] = {
        "temporal": temporal,
        "spatial_x": spatial_x,
        "spatial_y": spatial_y,
        "temporal_order": temporal_order,
        "spatial_order": spatial_order,
        **masks,
    }
    return Mapping(**leaves)


def check_mapping(mapping: Mapping, own: Structure) -> None:
    """**Raises:** `ValueError` where a leaf's last two axes are not those of the design, a batch is empty, or an order
    is no permutation of the ranks."""
    for name in mapping.__dataclass_fields__:
        leaf = np.asarray(getattr(mapping, name))
        column, columns = ("tensor", own.tensors) if name in MASKS else ("rank", own.ranks)
        wanted = (own.levels, columns)
        if leaf.shape[-2:] != wanted:
            raise ValueError(
                f"mappings.{name} has shape {leaf.shape}: its last axes must be [level, {column}] = {wanted}"
            )
        if leaf.size == 0:
            raise ValueError(f"mappings.{name} has shape {leaf.shape}: a batch needs at least one mapping")
        if name.endswith("_order"):
            found = np.bitwise_or.reduce(np.left_shift(1, np.clip(leaf, 0, 62)), axis=-1)
            if leaf.min() < 0 or (found != (1 << own.ranks) - 1).any():
                raise ValueError(f"mappings.{name} holds a row that is no permutation of 0 to {own.ranks - 1}")


def check_nest(nest: Mapping | LoopNest, design: Design, conventions: Conventions, report: Diagnostics) -> None:
    """What a design cannot do with a mapping, or with any of a batch: errors for what is not modeled, a warning where
    the conventions do not count what passes through a level."""
    outputs = {tensor.name for tensor in design.einsum.tensors if tensor.is_output}
    formats = {found.tensor for target in design.sparse.targets for found in target.formats}
    for level, tensor in _places(nest, design, "stream"):
        place = Place("", 0, f"mapping, level {level}")
        if not conventions.streams:
            report.warn(
                place,
                f'tensor "{tensor}" passes through level "{level}": not counted, as in the public program',
                "evaluate with conventions that count it, such as MICRO22",
            )
        elif tensor in outputs or tensor in formats:
            what = "an output" if tensor in outputs else "a tensor with a representation format"
            message = f'`stream` of "{tensor}" through level "{level}": {what} is not modeled there'
            report.error(place, message, "keep or bypass it")
    compacts = any(g.kind is ActionKind.POSITION_SKIPPING for target in design.sparse.targets for g in target.actions)
    innermost = design.architecture.levels[0].name
    for tensor in (tensor for level, tensor in _places(nest, design, "keep") if level == innermost):
        if compacts and tensor in outputs:
            message = f'position skipping at level "{innermost}" beside output "{tensor}" is not modeled'
            report.error(Place("", 0, f"mapping, level {innermost}"), message, f'bypass "{tensor}" there')


def _places(nest: Mapping | LoopNest, design: Design, mask: str) -> list[tuple[str, str]]:
    """Pairs of a level and a tensor in one of the `MASKS`, in any mapping of a batch."""
    if isinstance(nest, LoopNest):
        return [(level.level, tensor) for level in nest.levels for tensor in getattr(level, mask)]
    holds = np.asarray(getattr(nest, mask)) > 0.0
    if mask == "stream":
        holds = holds & (np.asarray(nest.keep) == 0.0)
    found = np.argwhere(holds.any(axis=tuple(range(holds.ndim - 2))))
    levels, tensors = design.architecture.levels, design.einsum.tensors
    return [(levels[s].name, tensors[t].name) for s, t in found]


def pad_mapping(nest: Mapping, structure: Structure, own: Structure) -> Mapping:
    """A mapping of the design's own sizes in the arrays of its size class."""
    more_levels, more_ranks = structure.levels - own.levels, structure.ranks - own.ranks

    def factors(leaf: Any) -> Any:
        return np.pad(np.asarray(leaf, float), ((0, more_levels), (0, more_ranks)), constant_values=1.0)

    def order(leaf: Any) -> Any:
        rows = np.tile(np.arange(structure.ranks, dtype=np.int32), (structure.levels, 1))
        rows[: own.levels, : own.ranks] = leaf
        return rows

    def mask(leaf: Any) -> Any:
        return np.pad(np.asarray(leaf, float), ((0, more_levels), (0, structure.tensors - own.tensors)))

    return Mapping(
        **{n: factors(getattr(nest, n)) for n in ("temporal", "spatial_x", "spatial_y")},
        **{n: order(getattr(nest, n)) for n in ("temporal_order", "spatial_order")},
        **{n: mask(getattr(nest, n)) for n in MASKS},
    )


def _order(loops: Sequence[Loop], ranks: dict[str, int], count: int) -> np.ndarray:
    """The ranks of `loops` innermost first, then those without a loop."""
    listed = list(dict.fromkeys(ranks[loop.rank] for loop in loops))
    return np.array(listed + [r for r in range(count) if r not in listed], np.int32)


def _refuse_imperfect(nest: LoopNest) -> None:
    report = Diagnostics()
    for level in nest.levels:
        for loop in _loops(level):
            if not loop.is_perfect:
                report.error(
                    loop.place,
                    f"imperfect factor {loop.rank}={loop.bound},{loop.residual} is not modeled yet ({level.level})",
                    "use factors whose product is the rank's size",
                )
    report.raise_if_errors()


def _loops(level: LevelNest) -> tuple[Loop, ...]:
    return (*level.temporal, *level.spatial_x, *level.spatial_y)
