"""Factorizations, bypass bits and thresholds under the constraints."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import Diagnostics, Place
from ..spec.constraints import FactorConstraint, KeepConstraint, LoopKind, Relation
from ..spec.design import Design
from .clashes import Clashes, named
from .factors import TooManyChoices, factorizations
from .slots import Slot


@dataclass(frozen=True, slots=True)
class _FanOut:
    """The bound that the hardware puts on spatial factors, as if it were a constraint."""

    level: str
    value: int
    place: Place = Place()

    def __str__(self) -> str:
        return f'the {self.value} children of "{self.level}"'


_Bounds = dict[Relation, list[Any]]


def factor_tables(
    design: Design, slots: tuple[Slot, ...], prune: bool, clashes: Clashes, report: Diagnostics
) -> tuple[np.ndarray, ...]:
    """Per rank, its factorizations [choice, slot]. With `prune` those are left out whose spatial factors exceed the
    fan-out on either axis."""
    given = _usable_factors(design, slots, clashes, report)
    tables: list[np.ndarray] = []
    for rank, size in design.einsum.size_of.items():
        bounds = _bounds_of(rank, design, slots, given)
        fixed, most, least = ([_value(item) for item in bounds[relation]] for relation in Relation)
        tables.append(np.ones((0, len(slots)), np.int64))
        if not _check_products(rank, size, bounds[Relation.EQUAL], clashes):
            continue
        fan_outs = [_fan_out(slot, design) for slot in slots]
        narrowed = [_least(value, _value(fan_out)) for value, fan_out in zip(most, fan_outs, strict=True)]
        try:
            tables[-1] = factorizations(size, fixed, narrowed, least)
            if not len(tables[-1]):
                _tell_why_empty(rank, size, bounds, fan_outs, clashes)
            elif not prune:
                tables[-1] = factorizations(size, fixed, most, least)
        except TooManyChoices as error:
            report.error(Place("", 0, "mapspace_constraints"), str(error), f"constrain the factors of {rank}")
    return tuple(tables)


def _usable_factors(
    design: Design, slots: tuple[Slot, ...], clashes: Clashes, report: Diagnostics
) -> dict[tuple[str, LoopKind, str | None, Relation], FactorConstraint]:
    """Those of loops that exist, and of values that the rank's size allows."""
    sizes = design.einsum.size_of
    levels = [level.name for level in design.architecture.levels]
    there = {(levels[slot.level], slot.kind) for slot in slots}
    usable: list[FactorConstraint] = []
    for item in design.constraints.factors:
        if (item.level, item.kind) not in there:
            if item.value > 1 and item.relation is not Relation.AT_MOST:
                clashes.add(f"{named(item)} needs a fan-out, and the level has none", (item,), "target another level")
        elif item.relation is Relation.EQUAL and item.rank is not None and item.value > sizes[item.rank]:
            report.warn(item.place, f"{item} is not used: it exceeds the size {sizes[item.rank]} of {item.rank}")
        else:
            usable.append(item)
    return clashes.unique(usable, lambda c: (c.level, c.kind, c.rank, c.relation), lambda c: c.value)


def _bounds_of(
    rank: str,
    design: Design,
    slots: tuple[Slot, ...],
    given: dict[tuple[str, LoopKind, str | None, Relation], FactorConstraint],
) -> _Bounds:
    """What the constraints say about the rank's loop in each slot. Defaults hold where the slot lists nothing of it."""
    bounds: _Bounds = {relation: [] for relation in Relation}
    for slot in slots:
        level = design.architecture.levels[slot.level].name
        own = {relation: given.get((level, slot.kind, rank, relation)) for relation in Relation}
        if all(item is None for item in own.values()):
            own = {relation: given.get((level, slot.kind, None, relation)) for relation in Relation}
        for relation, item in own.items():
            bounds[relation].append(item)
    return bounds


def _check_products(rank: str, size: int, fixed: list[Any], clashes: Clashes) -> bool:
    pinned = [item for item in fixed if item is not None]
    product = math.prod(item.value for item in pinned)
    names = ", ".join(named(item) for item in pinned)
    if size % product:
        what = "does not divide" if len(pinned) == 1 else f"have the product {product}, which does not divide"
        clashes.add(f"{names}: {what} the size {size} of {rank}", pinned, "choose factors whose product divides it")
        return False
    if len(pinned) == len(fixed) and product != size:
        message = f"all factors of {rank} are given and multiply to {product}, not to its size {size}: {names}"
        clashes.add(message, pinned, "leave one of them out")
        return False
    return True


def _tell_why_empty(rank: str, size: int, bounds: _Bounds, fan_outs: list[Any], clashes: Clashes) -> None:
    items = [item for relation in Relation for item in bounds[relation] if item is not None]
    items += [fan_out for fan_out in fan_outs if fan_out is not None and fan_out.value < size]
    names = ", ".join(named(item) for item in items)
    clashes.add(f"no factors of {rank} multiply to its size {size} under {names}", items, "relax one of them")


def _fan_out(slot: Slot, design: Design) -> _FanOut | None:
    """A loop runs along one axis, so that the longer one bounds it."""
    if not slot.is_spatial or not slot.is_bounded:
        return None
    return _FanOut(design.architecture.levels[slot.level].name, max(slot.fanout))


def _value(item: Any) -> int | None:
    return item.value if item is not None else None


def _least(first: int | None, second: int | None) -> int | None:
    return min((value for value in (first, second) if value is not None), default=None)


def keep_bits(design: Design, clashes: Clashes) -> tuple[np.ndarray, tuple[tuple[int, int], ...]]:
    """What is stored where, [level, tensor], 1 where free, and the free pairs of a level and a tensor: tensor by
    tensor, innermost level first. The outermost level keeps everything unless it is constrained."""
    levels = [level.name for level in design.architecture.levels]
    tensors = [tensor.name for tensor in design.einsum.tensors]
    given = clashes.unique(design.constraints.keeps, lambda c: (c.level, c.tensor), lambda c: c.keep)
    keeps = np.ones((len(levels), len(tensors)))
    free: list[tuple[int, int]] = []
    for t, tensor in enumerate(tensors):
        own: list[KeepConstraint | None] = [given.get((level, tensor)) for level in levels]
        for s, item in enumerate(own):
            if item is not None:
                keeps[s, t] = item.keep
            elif s < len(levels) - 1:
                free.append((s, t))
        if not keeps[:, t].any():
            items = [item for item in own if item is not None]
            names = ", ".join(named(item) for item in items)
            clashes.add(f'the tensor "{tensor}" is stored nowhere: {names}', items, "keep it at one level")
    return keeps, tuple(free)
