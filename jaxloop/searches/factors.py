"""Perfect factorizations of one rank over the tiling levels, in the reference's order (spec/inputs.md 5.2)."""

import math
from collections.abc import Sequence

import numpy as np

MOST_CHOICES = 4_000_000
"""Factorizations of one rank that are listed."""


class TooManyChoices(ValueError):
    """A rank has more factorizations than are listed."""


def divisors(number: int) -> list[int]:
    """1, n, 2, n/2, ...: pairs with ascending first member, none twice."""
    found: list[int] = []
    for low in range(1, math.isqrt(number) + 1):
        if number % low == 0:
            found += [low] if low * low == number else [low, number // low]
    return found


def factorizations(
    size: int, fixed: Sequence[int | None], most: Sequence[int | None], least: Sequence[int | None]
) -> np.ndarray:
    """All products of `size` over the slots, [choice, slot]: the outermost free slot varies slowest, the innermost free
    slot takes the quotient.

    **Arguments:**

    - `fixed`, `most`, `least`: per slot, the one factor, the largest and the smallest that it may have.

    **Raises:** `TooManyChoices` above `MOST_CHOICES`.
    """
    given = math.prod(factor for factor in fixed if factor is not None)
    free = [slot for slot, factor in enumerate(fixed) if factor is None]
    if size % given or (not free and given != size):
        return np.ones((0, len(fixed)), np.int64)
    rows = np.ones((1, len(fixed)), np.int64)
    for slot, factor in enumerate(fixed):
        rows[:, slot] = factor or 1
    rest = np.array([size // given], np.int64)
    for slot in reversed(free[1:]):
        lists = {value: np.array(divisors(value), np.int64) for value in np.unique(rest).tolist()}
        counts = np.array([len(lists[value]) for value in rest.tolist()], np.int64)
        if counts.sum() > MOST_CHOICES:
            raise TooManyChoices(f"more than {MOST_CHOICES:,} factorizations of {size} over {len(free)} loops")
        rows, rest = np.repeat(rows, counts, axis=0), np.repeat(rest, counts)
        rows[:, slot] = np.concatenate([lists[value] for value in rest[np.cumsum(counts) - 1].tolist()])
        rest = rest // rows[:, slot]
        allowed = _within(rows[:, slot], most[slot], least[slot])
        rows, rest = rows[allowed], rest[allowed]
        if not len(rows):
            return rows
    if free:
        rows[:, free[0]] = rest
    allowed = np.ones(len(rows), bool)
    for slot in range(len(fixed)):
        allowed &= _within(rows[:, slot], most[slot], least[slot])
    return rows[allowed]


def _within(values: np.ndarray, most: int | None, least: int | None) -> np.ndarray:
    return (values <= (most if most is not None else values)) & (values >= (least if least is not None else 1))
