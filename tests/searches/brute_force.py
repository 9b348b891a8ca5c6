"""The mappings of a small space, one by one: an independent reading of spec/inputs.md sections 4 and 5.2."""

import itertools
from collections.abc import Iterator
from math import prod
from typing import Any

from jaxloop.spec.constraints import LoopKind, Relation
from jaxloop.spec.design import Design
from jaxloop.spec.mapping import LoopNest

Tiling = tuple[int, LoopKind]


def tilings(design: Design) -> list[Tiling]:
    """Pairs of a level and a kind, innermost first."""
    found: list[Tiling] = []
    for s in range(len(design.architecture.levels)):
        if design.architecture.fanout(s) != (1, 1):
            found.append((s, LoopKind.SPATIAL))
        found.append((s, LoopKind.TEMPORAL))
    return found


def is_unordered(design: Design, tiling: Tiling) -> bool:
    """The order of the loops is not looked at."""
    s, kind = tiling
    name = design.architecture.levels[s].name
    if kind is LoopKind.TEMPORAL:
        return tilings(design)[0] == tiling
    is_pinned = any((c.level, c.kind) == (name, kind) for c in design.constraints.orders)
    return min(design.architecture.fanout(s)) == 1 and not is_pinned


def nests(design: Design) -> set[Any]:
    """All distinct nests, as `key_of` tells them apart."""
    slots, ranks = tilings(design), design.einsum.ranks
    per_rank = [list(_factors(design, rank, slots)) for rank in ranks]
    orders = [list(_orders(design, tiling)) for tiling in slots]
    splits = [list(_splits(design, tiling)) for tiling in slots]
    found: set[Any] = set()
    for rows in itertools.product(*per_rank):
        parts = [
            {
                _loops(tiling, order, split, dict(zip(ranks, (row[t] for row in rows), strict=True)))
                for order in orders[t]
                for split in splits[t]
            }
            for t, tiling in enumerate(slots)
        ]
        parts = [{p for p in part if _fits(design, slots[t], p)} for t, part in enumerate(parts)]
        found.update(itertools.product(*parts))
    return {(loops, keeps) for loops in found for keeps in _keeps(design)}


def key_of(design: Design, nest: LoopNest) -> Any:
    """What tells nests apart: loops of bound above 1 in their order, and what is stored."""
    parts: list[Any] = []
    for s, kind in tilings(design):
        level = nest.levels[s]
        if kind is LoopKind.TEMPORAL:
            loops = [(loop.rank, loop.bound) for loop in level.temporal if loop.bound > 1]
            parts.append(tuple(sorted(loops)) if is_unordered(design, (s, kind)) else tuple(loops))
        else:
            x, y = (
                tuple((loop.rank, loop.bound) for loop in part if loop.bound > 1)
                for part in (level.spatial_x, level.spatial_y)
            )
            parts.append((x, y))
    return tuple(parts), tuple(level.keep for level in nest.levels)


def _loops(tiling: Tiling, order: tuple[str, ...], split: int, bounds: dict[str, int]) -> Any:
    x, y = (tuple((r, bounds[r]) for r in part if bounds[r] > 1) for part in (order[:split], order[split:]))
    if tiling[1] is LoopKind.SPATIAL:
        return x, y
    return x + y


def _fits(design: Design, tiling: Tiling, loops: Any) -> bool:
    """No loop is put where no mapping of the space has one: along an axis without children, unless the user's split
    says so; nor is one longer than the longer axis."""
    s, kind = tiling
    if kind is LoopKind.TEMPORAL:
        return True
    fanout = design.architecture.fanout(s)
    if any(bound > max(fanout) for part in loops for _, bound in part):
        return False
    is_split = any(c.level == design.architecture.levels[s].name for c in design.constraints.splits)
    return is_split or all(children > 1 or not part for children, part in zip(fanout, loops, strict=True))


def _factors(design: Design, rank: str, slots: list[Tiling]) -> Iterator[tuple[int, ...]]:
    size = design.einsum.size_of[rank]
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    for row in itertools.product(divisors, repeat=len(slots)):
        if prod(row) == size and all(_allowed(design, rank, t, f) for t, f in zip(slots, row, strict=True)):
            yield row


def _allowed(design: Design, rank: str, tiling: Tiling, factor: int) -> bool:
    name = design.architecture.levels[tiling[0]].name
    here = [c for c in design.constraints.factors if (c.level, c.kind) == (name, tiling[1])]
    here = [
        c for c in here if c.relation is not Relation.EQUAL or c.rank != rank or c.value <= design.einsum.size_of[rank]
    ]
    own = [c for c in here if c.rank == rank] or [c for c in here if c.rank is None]
    holds = {
        Relation.EQUAL: lambda value: factor == value,
        Relation.AT_MOST: lambda value: factor <= value,
        Relation.AT_LEAST: lambda value: factor >= value,
    }
    return all(holds[c.relation](c.value) for c in own)


def _orders(design: Design, tiling: Tiling) -> Iterator[tuple[str, ...]]:
    ranks = design.einsum.ranks
    name = design.architecture.levels[tiling[0]].name
    pinned = next((c for c in design.constraints.orders if (c.level, c.kind) == (name, tiling[1])), None)
    if is_unordered(design, tiling):
        yield tuple(sorted(ranks)) if tiling[1] is LoopKind.TEMPORAL else ranks
        return
    for order in itertools.permutations(ranks):
        if pinned is None:
            yield order
        elif order[: len(pinned.inner)] == pinned.inner and order[len(ranks) - len(pinned.outer) :] == pinned.outer:
            yield order


def _splits(design: Design, tiling: Tiling) -> Iterator[int]:
    if tiling[1] is LoopKind.TEMPORAL:
        yield 0
        return
    name = design.architecture.levels[tiling[0]].name
    pinned = next((c for c in design.constraints.splits if c.level == name), None)
    yield from range(len(design.einsum.ranks) + 1) if pinned is None else (pinned.split,)


def _keeps(design: Design) -> Iterator[tuple[tuple[str, ...], ...]]:
    levels = [level.name for level in design.architecture.levels]
    tensors = [tensor.name for tensor in design.einsum.tensors]
    for bits in itertools.product((False, True), repeat=len(levels) * len(tensors)):
        kept = dict(zip(itertools.product(levels, tensors), bits, strict=True))
        pinned = {(c.level, c.tensor): c.keep for c in design.constraints.keeps}
        wanted = {(levels[-1], tensor): True for tensor in tensors} | pinned
        if all(kept[place] == keep for place, keep in wanted.items()):
            yield tuple(tuple(t for t in tensors if kept[level, t]) for level in levels)
