"""Members of a space as rows of integers, and small changes of them: what the population and the polish work on."""

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np

from ..program import Mapping
from .arrays import codes_of
from .space import MapSpace

JUMPS = 0.1
"""Share of changes of a rank's factors that are no small steps."""


@dataclass(frozen=True, eq=False)
class Genes:
    """A row holds the choice of each rank's factorization, the permutation of the ranks of each slot, the split of each
    slot and the bits. Different rows may be the same mapping.

    **Attributes:** `space`.
    """

    space: MapSpace

    def __getstate__(self) -> dict[str, MapSpace]:
        """Checkpoints do not hold what follows from the space."""
        return {"space": self.space}

    @property
    def _sizes(self) -> tuple[int, int, int, int]:
        freedom = self.space.freedom
        return len(freedom.ranks), len(freedom.slots), len(freedom.slots), len(freedom.bits)

    @property
    def length(self) -> int:
        ranks, slots, splits, bits = self._sizes
        return ranks + slots * ranks + splits + bits

    def parts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Views: choices [row, rank], orders [row, slot, rank], splits [row, slot], bits [row, bit]."""
        ranks, slots, _, bits = self._sizes
        ends = np.cumsum([ranks, slots * ranks, slots])
        choices, orders, splits, kept = np.split(rows, ends, axis=1)
        return choices, orders.reshape((len(rows), slots, ranks)), splits, kept[:, :bits]

    def mapping(self, rows: np.ndarray) -> Mapping:
        choices, orders, splits, kept = self.parts(rows)
        return self.space.assemble(choices, orders, splits, kept)

    def random(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Rows whose every part is uniform: not the same as uniform mappings."""
        ranks, slots, _, bits = self._sizes
        choices = np.stack([rng.integers(0, len(table), count) for table in self.space.factorizations], axis=1)
        orders = rng.permuted(np.broadcast_to(np.arange(ranks), (count, slots, ranks)), axis=2)
        splits = rng.integers(0, ranks + 1, (count, slots))
        kept = rng.integers(0, 2, (count, bits))
        return np.concatenate([choices, orders.reshape((count, -1)), splits, kept], axis=1)

    def cross(self, rng: np.random.Generator, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Rows that take each rank's factors, each slot's order and split, and each bit from either parent."""
        result = first.copy()
        for own, other in zip(self.parts(result), self.parts(second), strict=True):
            pick = rng.random(own.shape[:2]) < 0.5
            own[pick] = other[pick]
        return result

    def mutate(self, rng: np.random.Generator, rows: np.ndarray, changes: int = 1) -> np.ndarray:
        """Rows with some small changes: a prime factor moves between two slots, two loops change places, a split moves
        by one, a tensor is kept or bypassed."""
        rows = rows.copy()
        kinds = self._kinds
        for _ in range(changes):
            drawn = rng.choice(len(kinds), size=len(rows), p=kinds)
            for kind, change in enumerate((self._move_factor, self._swap, self._shift, self._flip)):
                at = np.flatnonzero(drawn == kind)
                if len(at):
                    rows[at] = change(rng, rows[at])
        return rows

    @cached_property
    def _kinds(self) -> np.ndarray:
        """How often each kind of change is drawn; none that the space does not have."""
        slots, bits = self.space.freedom.slots, self.space.freedom.bits
        moves = any(len(table) > 1 for table in self.space.factorizations)
        weights = [
            3.0 * moves,
            2.0 * any(len(slot.free) > 1 for slot in slots),
            0.5 * any(slot.has_free_split for slot in slots),
            1.0 * (len(bits) > 0),
        ]
        return np.asarray(weights) / sum(weights) if sum(weights) else np.eye(4)[0]

    def _move_factor(self, rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
        """A prime factor of a rank moves from one slot to another, where the constraints allow it; now and then the
        rank takes any other factors, since constraints may leave no way of such steps."""
        movable = [rank for rank, table in enumerate(self.space.factorizations) if len(table) > 1]
        if not movable:
            return rows
        drawn = rng.choice(movable, len(rows))
        for rank in movable:
            at = np.flatnonzero(drawn == rank)
            neighbors, size = self._neighbors[rank], len(self.space.factorizations[rank])
            starts, counts = neighbors.starts[rows[at, rank]], neighbors.counts[rows[at, rank]]
            step = (rng.random(len(at)) * counts).astype(int)
            there = (counts > 0) & (rng.random(len(at)) >= JUMPS)
            rows[at, rank] = rng.integers(0, size, len(at))
            rows[at[there], rank] = neighbors.rows[(starts + step)[there]]
        return rows

    def _swap(self, rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
        _, orders, _, _ = self.parts(rows)
        free = [(t, slot.free) for t, slot in enumerate(self.space.freedom.slots) if len(slot.free) > 1]
        lanes = np.arange(len(rows))
        slot = rng.integers(0, len(free), len(rows))
        for place, (t, ranks) in enumerate(free):
            at = lanes[slot == place]
            pair = rng.permuted(np.broadcast_to(np.asarray(ranks), (len(at), len(ranks))), axis=1)[:, :2]
            # positions of the two ranks, so that pinned ones stay out of it
            where = np.argsort(orders[at, t], axis=1)
            first, second = (where[np.arange(len(at)), pair[:, side]] for side in (0, 1))
            orders[at, t, first], orders[at, t, second] = pair[:, 1], pair[:, 0]
        return rows

    def _shift(self, rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
        ranks = self._sizes[0]
        _, _, splits, _ = self.parts(rows)
        free = [t for t, slot in enumerate(self.space.freedom.slots) if slot.has_free_split]
        t, lanes = rng.choice(free, len(rows)), np.arange(len(rows))
        splits[lanes, t] = np.clip(splits[lanes, t] + rng.choice((-1, 1), len(rows)), 0, ranks)
        return rows

    def _flip(self, rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
        kept = self.parts(rows)[3]
        bit = rng.integers(0, kept.shape[1], len(rows))
        kept[np.arange(len(rows)), bit] ^= 1
        return rows

    @cached_property
    def _neighbors(self) -> "list[Neighbors]":
        return [neighbors_of(table) for table in self.space.factorizations]


@dataclass(frozen=True)
class Neighbors:
    """Per row of a table, the rows that differ from it by one prime factor in another slot: `counts` of them from
    `starts` on in `rows`."""

    starts: np.ndarray
    counts: np.ndarray
    rows: np.ndarray


def neighbors_of(table: np.ndarray) -> Neighbors:
    """**Arguments:** `table`: [choice, slot] factors."""
    table = np.asarray(table, np.int64)
    codes = codes_of(table, table)
    order = np.argsort(codes)
    owners, others = [np.zeros(0, int)], [np.zeros(0, int)]
    for prime in primes(int(table[0].prod())):
        for source, target in permutations(range(table.shape[1]), 2):
            own = np.flatnonzero(table[:, source] % prime == 0)
            moved = table[own]
            moved[:, source] //= prime
            moved[:, target] *= prime
            place = np.searchsorted(codes, codes_of(table, moved), sorter=order)
            found = order[np.minimum(place, len(table) - 1)]
            same = (table[found] == moved).all(axis=1)
            owners.append(own[same])
            others.append(found[same])
    owner, other = np.concatenate(owners), np.concatenate(others)
    counts = np.bincount(owner, minlength=len(table))
    return Neighbors(np.cumsum(counts) - counts, counts, other[np.lexsort((other, owner))])


def primes(number: int) -> list[int]:
    """The distinct prime factors, ascending."""
    found, candidate = [], 2
    while candidate * candidate <= number:
        if number % candidate == 0:
            found.append(candidate)
            while number % candidate == 0:
                number //= candidate
        candidate += 1
    return [*found, number] if number > 1 else found
