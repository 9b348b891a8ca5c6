"""Exact counting and indexing of the distinct nests of a space.

Nests differ in the factors, in the order of the loops of bound above 1 and in which of them go along X. How many orders
and splits a slot has depends on how many ranks loop there, so that the nests of a factorization are counted by those
numbers alone: `_weights[l]` holds, for every state of the numbers after the first `l` ranks, how many ways there are to
go on. An index is taken apart rank by rank: a block of the ways of each set of slots in which the rank can loop, in it
the choice among the factorizations with this set; what is left numbers the splits and the orders.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .pieces import Pieces, bounded, compacted, keys_of
from .slots import Slot

MOST_STATES = 4_000_000
"""States of the numbers of loops that are held at once."""
WORD = 2**62
"""Below this, numbers are held in machine words, else as Python integers."""


class TooManyStates(ValueError):
    """The space is too large to be counted."""


@dataclass(frozen=True)
class _Axis:
    """One number of the state: how many of `ranks` loop in `slot`."""

    slot: int
    ranks: frozenset[int]


@dataclass(frozen=True)
class _Layer:
    """One rank. Its choices in the order of their patterns (which axes they raise), and per pattern the steps
    [pattern, axis], the first of its choices and how many there are."""

    rank: int
    choices: np.ndarray
    place_of: np.ndarray
    pattern_of: np.ndarray
    steps: np.ndarray
    starts: np.ndarray
    counts: np.ndarray


class PrunedOrder:
    """The nests without repetition.

    **Attributes:** `size`, their number.

    **Raises:** `TooManyStates` where the numbers of loops have too many combinations.
    """

    def __init__(self, slots: tuple[Slot, ...], tables: tuple[np.ndarray, ...]):
        self._slots, self._tables = slots, tables
        self._loops = [bounded(tables, t) for t in range(len(slots))]
        self._axes, self._slot_axes = _axes_of(slots, self._loops)
        self._slot_weights = [self._weigh(t) for t in range(len(slots))]
        layers = [self._layer(rank) for rank in range(len(tables))]
        self._layers = sorted(layers, key=lambda layer: -len(layer.counts))
        self._shapes = self._layer_shapes()
        self._weights = self._count()
        self.size = int(self._weights[0].reshape(-1)[0])

    def unrank(self, numbers: np.ndarray) -> Pieces:
        """The nests with these numbers, [lane]."""
        rest, lanes = numbers, len(numbers)
        states = np.zeros(lanes, np.int64)
        strides = _strides(self._shapes[-1])
        choices: list[np.ndarray] = [np.empty(0, np.int64)] * len(self._tables)
        for index, layer in enumerate(self._layers):
            rows, row = _distinct(states, self._shapes[-1])
            ways, before = self._blocks(index, rows)
            pattern = _last_at_most(before, row, rest)
            unit = ways[row, pattern]
            within = rest - before[row, pattern]
            offset = within // unit
            rest = within - offset * unit
            rest = _in_words(rest, ways)
            choices[layer.rank] = layer.choices[layer.starts[pattern] + offset.astype(np.int64)]
            states = states + (layer.steps @ strides)[pattern]
        return self._place(choices, rest)

    def rank(self, pieces: Pieces) -> np.ndarray:
        """The numbers of nests, which are taken to be in the space."""
        number = self._number_of_places(pieces)
        states = np.zeros(len(pieces.choices[0]), np.int64)
        strides, before_all = _strides(self._shapes[-1]), []
        for index, layer in enumerate(self._layers):
            rows, row = _distinct(states, self._shapes[-1])
            ways, before = self._blocks(index, rows)
            choice = pieces.choices[layer.rank]
            pattern = layer.pattern_of[choice]
            offset = layer.place_of[choice] - layer.starts[pattern]
            if before.dtype == object:
                offset = offset.astype(object)
            before_all.append(before[row, pattern] + offset * ways[row, pattern])
            states = states + (layer.steps @ strides)[pattern]
        for part in reversed(before_all):
            number = number + part
        return number

    def _weigh(self, t: int) -> np.ndarray:
        """Orders times splits of a slot by its axes' numbers."""
        slot, axes = self._slots[t], [self._axes[a] for a in self._slot_axes[t]]
        shape = [len(axis.ranks) + 1 for axis in axes]
        weights = np.ones(shape, object)
        for numbers in np.ndindex(*shape):
            on = [np.array(False)] * len(self._tables)
            for number, axis in zip(numbers, axes, strict=True):
                for rank in sorted(axis.ranks)[:number]:
                    on[rank] = np.array(True)
            orders = math.factorial(sum(bool(on[rank]) for rank in slot.free))
            weights[numbers] = orders * int(slot.split_range(on)[1])
        return weights

    def _layer(self, rank: int) -> _Layer:
        bits = np.zeros(len(self._tables[rank]), np.int64)
        for a, axis in enumerate(self._axes):
            if rank in axis.ranks:
                bits |= self._loops[axis.slot][rank].astype(np.int64) << a
        patterns, pattern_of, counts = np.unique(bits, return_inverse=True, return_counts=True)
        choices = np.argsort(pattern_of, kind="stable")
        place_of = np.empty_like(choices)
        place_of[choices] = np.arange(len(choices))
        steps = (patterns[:, None] >> np.arange(len(self._axes))) & 1
        return _Layer(rank, choices, place_of, pattern_of, steps, np.cumsum(counts) - counts, counts)

    def _layer_shapes(self) -> list[tuple[int, ...]]:
        """States after each number of ranks."""
        done: set[int] = set()
        shapes = [(1,) * len(self._axes)]
        for layer in self._layers:
            done.add(layer.rank)
            shapes.append(tuple(len(axis.ranks & done) + 1 for axis in self._axes))
        if math.prod(shapes[-2]) > MOST_STATES:
            raise TooManyStates(
                f"the loops of {len(self._layers)} ranks over {len(self._axes)} tiling levels with free orders combine"
                f" in {math.prod(shapes[-2]):,} ways, more than the {MOST_STATES:,} that can be counted"
            )
        return shapes

    def _count(self) -> list[np.ndarray]:
        """Ways to go on from the states of all layers but the last, whose weights are products over the slots."""
        weights: list[np.ndarray] = []
        for index in reversed(range(len(self._layers))):
            layer, shape = self._layers[index], self._shapes[index]
            total = np.zeros(shape, object)
            for step, count in zip(layer.steps.tolist(), layer.counts.tolist(), strict=True):
                window = tuple(slice(s, s + n) for s, n in zip(step, shape, strict=True))
                following = weights[-1][window] if weights else self._final(window)
                total = total + following.astype(object) * count
            weights.append(total.astype(np.int64) if total.max() < WORD else total)
        return weights[::-1]

    def _final(self, window: tuple[slice, ...]) -> np.ndarray:
        """Orders times splits of all slots, over a window of the last states."""
        total = np.ones((1,) * len(self._axes), object)
        for axes, weights in zip(self._slot_axes, self._slot_weights, strict=True):
            part = np.asarray(weights[tuple(window[a] for a in axes)], object)
            total = total * part.reshape([part.shape[axes.index(a)] if a in axes else 1 for a in range(len(window))])
        return total

    def _blocks(self, index: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For states before a rank: ways to go on after each of its patterns, and how many numbers lie before the
        pattern's, both [state, pattern]."""
        layer = self._layers[index]
        after = np.stack(np.unravel_index(rows, self._shapes[-1]), -1)[:, None, :] + layer.steps
        if index + 1 < len(self._weights):
            weights, shape = self._weights[index + 1], self._shapes[index + 1]
            ways = weights.reshape(-1)[after @ _strides(shape)]
        else:
            ways = np.ones(after.shape[:2], object)
            for axes, weights in zip(self._slot_axes, self._slot_weights, strict=True):
                ways = ways * weights[tuple(after[..., a] for a in axes)]
        if self._weights[index].dtype != object:
            ways = ways.astype(np.int64)
        blocks = ways.astype(self._weights[index].dtype) * layer.counts
        return ways, np.cumsum(blocks, axis=1) - blocks

    def _place(self, choices: list[np.ndarray], rest: np.ndarray) -> Pieces:
        """Splits and orders out of what is left of the numbers."""
        positions, splits, loops = [], [], []
        for t, slot in enumerate(self._slots):
            on = [mask[choice] for mask, choice in zip(self._loops[t], choices, strict=True)]
            loops.append(on)
            least, count = slot.split_range(on)
            digit, rest = _digit(rest, count, slot.has_free_split or slot.split is not None)
            splits.append(digit + least)
        for slot, on in zip(self._slots, loops, strict=True):
            places: dict[int, np.ndarray] = {}
            seen = np.zeros(len(rest), np.int16)
            for place, rank in enumerate(slot.free):
                digit, rest = _digit(rest, np.where(on[rank], seen + 1, 1).astype(np.int64), place > 0)
                digit = digit.astype(np.int16)
                for other in slot.free[:place]:
                    places[other] = places[other] + (on[rank] & (places[other] >= digit))
                places[rank] = digit
                seen = seen + on[rank]
            positions.append(compacted(keys_of(slot, places, len(choices), len(rest)), on))
        return Pieces(choices, positions, splits)

    def _number_of_places(self, pieces: Pieces) -> np.ndarray:
        """The inverse of `_place`."""
        lanes = len(pieces.choices[0])
        digits: list[tuple[np.ndarray, np.ndarray]] = []
        loops = [[m[c] for m, c in zip(masks, pieces.choices, strict=True)] for masks in self._loops]
        for slot, on, split in zip(self._slots, loops, pieces.split, strict=True):
            least, count = slot.split_range(on)
            digits.append((split - least, count))
        for slot, on, positions in zip(self._slots, loops, pieces.positions, strict=True):
            seen = np.zeros(lanes, np.int64)
            for place, rank in enumerate(slot.free):
                below = np.zeros(lanes, np.int64)
                for other in slot.free[:place]:
                    below += on[rank] & on[other] & (positions[other] < positions[rank])
                digits.append((below, np.where(on[rank], seen + 1, 1)))
                seen = seen + on[rank]
        kind = object if math.prod(int(weights.max()) for weights in self._slot_weights) >= WORD else np.int64
        number = np.zeros(lanes, kind)
        for digit, radix in reversed(digits):
            number = number * radix.astype(kind) + digit.astype(kind)
        return number


def _axes_of(slots: tuple[Slot, ...], loops: list[list[np.ndarray]]) -> tuple[list[_Axis], list[list[int]]]:
    """The numbers of the state, and which belong to each slot: those that its orders and splits depend on."""
    axes: list[_Axis] = []
    by_slot: list[list[int]] = []
    for t, slot in enumerate(slots):
        own = [group & {r for r, mask in enumerate(loops[t]) if mask.any()} for group in _groups(slot)]
        by_slot.append(list(range(len(axes), len(axes) + sum(bool(group) for group in own))))
        axes += [_Axis(t, group) for group in own if group]
    return axes or [_Axis(0, frozenset())], by_slot


def _groups(slot: Slot) -> Iterator[frozenset[int]]:
    pinned = frozenset((*slot.inner, *slot.outer))
    if slot.has_free_split and len(slot.free) <= 1:
        yield pinned | frozenset(slot.free)
    elif slot.has_free_split:
        yield frozenset(slot.free)
        yield pinned
    elif len(slot.free) > 1 or slot.split is not None:
        yield frozenset(slot.free)


def _digit(rest: np.ndarray, radix: np.ndarray, is_open: bool) -> tuple[np.ndarray, np.ndarray]:
    if not is_open:
        return np.zeros(len(rest), np.int64), rest
    quotient = rest // radix
    return (rest - quotient * radix).astype(np.int64), quotient


def _in_words(rest: np.ndarray, ways: np.ndarray) -> np.ndarray:
    return rest.astype(np.int64) if ways.dtype != object and rest.dtype == object else rest


def _strides(shape: tuple[int, ...]) -> np.ndarray:
    return np.array([math.prod(shape[a + 1 :]) for a in range(len(shape))], np.int64)


def _distinct(states: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The distinct states, and for each lane which of them it has."""
    if math.prod(shape) > max(4 * len(states), 1024):
        rows, row = np.unique(states, return_inverse=True)
        return rows, row
    found = np.zeros(math.prod(shape), bool)
    found[states] = True
    return np.flatnonzero(found), (np.cumsum(found) - 1)[states]


def _last_at_most(before: np.ndarray, row: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Per lane, the last column of its row of the ascending `before` that is not above `rest`."""
    columns = before.shape[1]
    found = np.zeros(len(rest), np.int64)
    step = 1 << max(columns - 1, 0).bit_length() >> 1
    while step:
        candidate = found + step
        inside = np.minimum(candidate, columns - 1)
        found = np.where((candidate < columns) & (before[row, inside] <= rest).astype(bool), candidate, found)
        step >>= 1
    return found
