"""Members of a map space as choices, places of loops and splits: between an index and arrays."""

from dataclasses import dataclass

import numpy as np

from .slots import Slot

UNIT = 3
"""Blocks of places: pinned innermost 0, free 1, pinned outermost 2, loops of bound 1 behind all others."""


@dataclass(frozen=True)
class Pieces:
    """A batch of loop nests.

    **Attributes:**

    - `choices`: [rank][lane], which of the rank's factorizations.
    - `positions`: [slot][rank][lane], the place of the rank's loop among those of bound above 1, innermost 0; loops of
      bound 1 follow in the order of the ranks.
    - `split`: [slot][lane], how many of the loops of bound above 1 go along X; 0 in temporal slots.
    """

    choices: list[np.ndarray]
    positions: list[list[np.ndarray]]
    split: list[np.ndarray]


def bounded(tables: tuple[np.ndarray, ...], slot: int) -> list[np.ndarray]:
    """Per rank and choice, whether the loop in the slot has a bound above 1."""
    return [table[:, slot] > 1 for table in tables]


def ranked(keys: list[np.ndarray]) -> list[np.ndarray]:
    """The place of each of the distinct keys in ascending order, per lane."""
    places = [np.zeros(key.shape, np.int16) for key in keys]
    for i, first in enumerate(keys):
        for j in range(i + 1, len(keys)):
            is_later = first > keys[j]
            places[i] += is_later
            places[j] += ~is_later
    return places


def compacted(keys: list[np.ndarray], is_bounded: list[np.ndarray]) -> list[np.ndarray]:
    """Places with the loops of bound 1 moved behind all others. Keys are below `UNIT` times their number."""
    count = len(keys)
    return ranked(
        [
            np.where(on, key, np.int16(UNIT * count + r))
            for r, (key, on) in enumerate(zip(keys, is_bounded, strict=True))
        ]
    )


def keys_of(slot: Slot, free_places: dict[int, np.ndarray], ranks: int, lanes: int) -> list[np.ndarray]:
    """Sort keys of the ranks in a slot: pinned ones by their place, free ones by `free_places`."""
    keys: list[np.ndarray] = [np.empty(0, np.int16)] * ranks
    for block, pinned in ((0, slot.inner), (2, slot.outer)):
        for place, rank in enumerate(pinned):
            keys[rank] = np.full(lanes, block * ranks + place, np.int16)
    for rank, places in free_places.items():
        keys[rank] = (places + ranks).astype(np.int16)
    return keys
