"""The space as the reference counts it, repetitions included, in the order of its exhaustive search (spec/inputs.md
5.2)."""

import math

import numpy as np

from .pieces import Pieces, bounded, compacted, keys_of, ranked
from .slots import Slot, count_of


class FullOrder:
    """Numbers of (factorizations, permutations, splits), the splits varying fastest.

    **Attributes:** `factorizations`, `permutations`, `splits`: the sizes; `size`: their product.
    """

    def __init__(self, slots: tuple[Slot, ...], tables: tuple[np.ndarray, ...]):
        self._slots, self._tables = slots, tables
        self._loops = [bounded(tables, t) for t in range(len(slots))]
        self.factorizations = math.prod(len(table) for table in tables)
        self.permutations = math.prod(math.factorial(len(slot.free)) for slot in slots)
        self.splits = math.prod(self._split_count(slot) for slot in slots)
        self.size = self.factorizations * self.permutations * self.splits

    def unrank(self, numbers: np.ndarray) -> Pieces:
        """The nests with these numbers, [lane]."""
        rest, raw_splits = numbers, []
        for slot in self._slots:
            split, rest = _take(rest, self._split_count(slot))
            raw_splits.append(split if slot.split is None else split + slot.split)
        places = []
        for slot in self._slots:
            order, rest = _take(rest, math.factorial(len(slot.free)))
            places.append(_free_places(order, slot.free))
        choices = []
        for table in self._tables:
            choice, rest = _take(rest, len(table))
            choices.append(choice)
        positions, splits = [], []
        for t, slot in enumerate(self._slots):
            on = [mask[choice] for mask, choice in zip(self._loops[t], choices, strict=True)]
            keys = keys_of(slot, places[t], len(choices), len(numbers))
            positions.append(compacted(keys, on))
            along_x = [mask & (place < raw_splits[t]) for mask, place in zip(on, ranked(keys), strict=True)]
            splits.append(count_of(along_x) if slot.is_spatial else np.zeros(len(numbers), np.int64))
        return Pieces(choices, positions, splits)

    def _split_count(self, slot: Slot) -> int:
        return len(self._tables) + 1 if slot.is_spatial and slot.split is None else 1


def _take(rest: np.ndarray, radix: int) -> tuple[np.ndarray, np.ndarray]:
    if radix == 1:
        return np.zeros(len(rest), np.int64), rest
    return (rest % radix).astype(np.int64), rest // radix


def _free_places(order: np.ndarray, free: tuple[int, ...]) -> dict[int, np.ndarray]:
    """The lexicographic permutation of this number: each digit takes one of the ranks that are left."""
    lanes = len(order)
    left = np.tile(np.array(free, np.int64), (lanes, 1))
    place_of = np.zeros((lanes, max(free, default=-1) + 1), np.int64)
    for place in range(len(free)):
        radix = math.factorial(len(free) - 1 - place)
        digit, order = order // radix, order % radix
        taken = np.take_along_axis(left, digit[:, None], 1)
        np.put_along_axis(place_of, taken, place, 1)
        left = left[np.arange(left.shape[1]) != digit[:, None]].reshape(lanes, left.shape[1] - 1)
    return {rank: place_of[:, rank] for rank in free}
