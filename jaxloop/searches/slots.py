"""Tiling levels with what their constraints leave free (spec/inputs.md sections 3.1, 4 and 5.2)."""

from dataclasses import dataclass

import numpy as np

from .._errors import Diagnostics
from ..spec.constraints import LoopKind, OrderConstraint, SplitConstraint
from ..spec.design import Design
from ..spec.sparse import ActionKind
from .clashes import Clashes

_INNERMOST = "as in the reference, the innermost loops have the order of the ranks"


@dataclass(frozen=True, slots=True)
class Slot:
    """One tiling level: the temporal or the spatial loops of a storage level. Ranks are given by their index.

    **Attributes:**

    - `level`: index of the storage level. `kind`: temporal or spatial.
    - `inner`, `outer`: ranks whose loops are pinned innermost and outermost, innermost first; `free`: those in between,
      in any order.
    - `is_ordered`: whether the order is looked at. It is not in the innermost tiling level if that is temporal, nor in
      a spatial one with children along one axis only and no permutation of the user's: there all ranks are `inner`.
    - `split`: how many loops of the complete permutation, those of bound 1 included, go along X; None where free.
    - `fanout`: children along X and Y. `is_bounded`: the bounds along X and Y must not exceed them (not checked with
      spatial skipping, where fewer children are used).
    """

    level: int
    kind: LoopKind
    inner: tuple[int, ...]
    free: tuple[int, ...]
    outer: tuple[int, ...]
    is_ordered: bool
    split: int | None
    fanout: tuple[int, int]
    is_bounded: bool

    @property
    def is_spatial(self) -> bool:
        return self.kind is LoopKind.SPATIAL

    @property
    def axis(self) -> str:
        """Where loops of bound above 1 can go: `X`, `Y`, or `XY` for either."""
        if not self.is_bounded or min(self.fanout) > 1:
            return "XY"
        return "X" if self.fanout[0] > 1 else "Y"

    @property
    def has_free_split(self) -> bool:
        return self.is_spatial and self.split is None and self.axis == "XY"

    @property
    def pinned_to_x(self) -> frozenset[int]:
        """Ranks outside `free` that a pinned split puts along X."""
        assert self.split is not None
        beyond = max(0, self.split - len(self.inner) - len(self.free))
        return frozenset((*self.inner[: self.split], *self.outer[:beyond]))

    @property
    def free_to_x(self) -> int:
        """How many of the free ranks a pinned split puts along X."""
        assert self.split is not None
        return min(max(self.split - len(self.inner), 0), len(self.free))

    def split_range(self, loops: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """How few loops can go along X, and how many distinct splits there are, per lane. `loops`: per rank, whether
        its loop has a bound above 1."""
        total = count_of(loops)
        if not self.is_spatial:
            return np.zeros_like(total), np.ones_like(total)
        if self.split is None:
            least = total if self.axis == "X" else np.zeros_like(total)
            return least, total + 1 if self.has_free_split else np.ones_like(total)
        free = count_of([loops[rank] for rank in self.free], total)
        pinned = count_of([loops[rank] for rank in self.pinned_to_x], total)
        least = np.maximum(0, free - (len(self.free) - self.free_to_x))
        return pinned + least, np.minimum(self.free_to_x, free) - least + 1


def count_of(masks: list[np.ndarray], like: np.ndarray | None = None) -> np.ndarray:
    """How many of the masks hold, per lane; `like` has the lanes where there may be no masks."""
    total = np.zeros(np.shape(masks[0] if like is None else like), np.int64)
    for mask in masks:
        total = total + mask
    return total


def build_slots(design: Design, clashes: Clashes, report: Diagnostics) -> tuple[Slot, ...]:
    """All tiling levels, innermost first. Constraints without effect are reported as warnings."""
    architecture, ranks = design.architecture, design.einsum.ranks
    constraints = design.constraints
    orders = clashes.unique(constraints.orders, lambda c: (c.level, c.kind), lambda c: (c.inner, c.outer))
    splits = clashes.unique(constraints.splits, lambda c: c.level, lambda c: c.split)
    is_bounded = not any(
        action.kind is ActionKind.SPATIAL_SKIPPING for target in design.sparse.targets for action in target.actions
    )
    slots: list[Slot] = []
    for index, level in enumerate(architecture.levels):
        fanout = architecture.fanout(index)
        for kind in (LoopKind.SPATIAL, LoopKind.TEMPORAL):
            order = orders.get((level.name, kind))
            split = splits.get(level.name) if kind is LoopKind.SPATIAL else None
            if kind is LoopKind.SPATIAL and fanout == (1, 1):
                _warn_of_no_fanout(order, split, report)
                continue
            is_first = not slots and kind is LoopKind.TEMPORAL
            is_flat = kind is LoopKind.SPATIAL and min(fanout) == 1
            is_ordered = not is_first and (not is_flat or order is not None)
            if is_first and order is not None:
                report.warn(order.place, f"{order} has no effect: {_INNERMOST}")
            inner, free, outer = _pattern(order if is_ordered else None, ranks, is_ordered)
            pinned = min(split.split, len(ranks)) if split is not None else None
            slots.append(Slot(index, kind, inner, free, outer, is_ordered, pinned, fanout, is_bounded))
    return tuple(slots)


def _pattern(
    order: OrderConstraint | None, ranks: tuple[str, ...], is_ordered: bool
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    everything = tuple(range(len(ranks)))
    if not is_ordered:
        return everything, (), ()
    if order is None:
        return (), everything, ()
    inner, outer = (tuple(ranks.index(rank) for rank in names) for names in (order.inner, order.outer))
    return inner, tuple(rank for rank in everything if rank not in (*inner, *outer)), outer


def _warn_of_no_fanout(order: OrderConstraint | None, split: SplitConstraint | None, report: Diagnostics) -> None:
    for constraint in (order, split):
        if constraint is not None:
            report.warn(constraint.place, f"{constraint} has no effect: the level has no fan-out")
