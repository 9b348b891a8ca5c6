"""Rows of genes are members of their space, and small changes of them are small."""

from functools import cache

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.searches.genes import Genes, neighbors_of, primes
from jaxloop.spec.constraints import KeepConstraint, OrderConstraint, SplitConstraint
from tests.searches.designs import SPATIAL, TEMPORAL, design_of, factor
from tests.searches.mapper_cases import space as space_of_case

GRID, ONE = (2, 4), (1, 1)
CONSTRAINED = {
    "free": {},
    "factors": {"factors": (factor("L0", TEMPORAL, "M", "<=", 2), factor("L1", SPATIAL, "N", "=", 1))},
    "orders": {"orders": (OrderConstraint("L1", TEMPORAL, ("K",), ("M",)), OrderConstraint("L1", SPATIAL, ("N",)))},
    "split": {"splits": (SplitConstraint("L1", 1),)},
    "keeps": {"keeps": (KeepConstraint("L0", "A", False), KeepConstraint("L0", "Z", True))},
}
SPACES = (*CONSTRAINED, "m01-mapper-plain", "09", "14")


@cache
def space(name: str) -> jl.MapSpace:
    if name not in CONSTRAINED:
        return space_of_case(name)
    return jl.MapSpace(design_of({"M": 12, "N": 4, "K": 6}, [GRID, GRID, ONE], **CONSTRAINED[name]))


@pytest.mark.parametrize("name", SPACES)
def test_all_rows_are_members(name: str):
    """Random rows, what is bred of them, and what mutations of mutations are."""
    genes, rng = Genes(space(name)), np.random.default_rng(3)
    rows = genes.random(rng, 200)
    for _ in range(20):
        assert rows.shape == (200, genes.length)
        numbers = space(name).index_of(genes.mapping(rows))
        assert (np.asarray(numbers) < space(name).size).all()
        _, orders, splits, kept = genes.parts(rows)
        assert (np.sort(orders, axis=2) == np.arange(orders.shape[2])).all()
        assert (splits >= 0).all() and np.isin(kept, (0, 1)).all()
        rows = genes.cross(rng, rows, rng.permutation(rows))
        rows = genes.mutate(rng, rows, int(rng.integers(1, 4)))


def test_children_have_their_parents_parts():
    genes, rng = Genes(space("free")), np.random.default_rng(0)
    first, second = genes.random(rng, 300), genes.random(rng, 300)
    child = genes.cross(rng, first, second)
    taken = []
    for own, one, other in zip(genes.parts(child), genes.parts(first), genes.parts(second), strict=True):
        own, one, other = (part.reshape((*part.shape[:2], -1)) for part in (own, one, other))
        assert ((own == one).all(axis=2) | (own == other).all(axis=2)).all()
        differ = (one != other).any(axis=2)
        taken.append((own == one).all(axis=2)[differ].mean())
    assert all(0.4 < share < 0.6 for share in taken)


def test_mutations_leave_their_parents_alone():
    genes, rng = Genes(space("free")), np.random.default_rng(0)
    rows = genes.random(rng, 500)
    before = rows.copy()
    changed = genes.mutate(rng, rows)
    np.testing.assert_array_equal(rows, before)
    parts = zip(genes.parts(rows), genes.parts(changed), strict=True)
    kinds = np.stack([(a != b).reshape((len(rows), -1)).any(axis=1) for a, b in parts])
    assert (kinds.sum(axis=0) <= 1).all()
    assert kinds.any(axis=1).all()
    _, orders, splits, _ = genes.parts(rows)
    _, new_orders, new_splits, _ = genes.parts(changed)
    assert set(np.unique((orders != new_orders).sum(axis=(1, 2)))) == {0, 2}
    assert np.abs(splits - new_splits).sum(axis=1).max() == 1


def test_pinned_ranks_stay():
    """Mutations swap free ranks, none of which is pinned, so that each of them changes the mapping's genes."""
    genes, rng = Genes(space("orders")), np.random.default_rng(0)
    rows = genes.random(rng, 500)
    _, before, _, _ = genes.parts(rows)
    _, after, _, _ = genes.parts(genes.mutate(rng, rows))
    for t, slot in enumerate(space("orders").freedom.slots):
        for rank in (*slot.inner, *slot.outer):
            np.testing.assert_array_equal(before[:, t] == rank, after[:, t] == rank)


@pytest.mark.parametrize("name", SPACES)
def test_neighbors_differ_by_one_prime(name: str):
    for table in space(name).factorizations:
        found = neighbors_of(table)
        size = int(table[0].prod())
        pairs = set()
        for own in range(len(table)):
            for other in found.rows[found.starts[own] : found.starts[own] + found.counts[own]]:
                ratio = table[other] / table[own]
                changed = ratio[ratio != 1.0]
                assert len(changed) == 2 and changed.prod() == pytest.approx(1.0)
                assert round(changed.max()) in primes(size) and changed.max() == round(changed.max())
                pairs.add((own, int(other)))
        assert pairs == {(b, a) for a, b in pairs}
        assert len(pairs) == len(found.rows)
        apart = np.exp(np.abs(np.log(table[:, None] / table[None])).sum(axis=2) / 2.0).round(6)
        two = (table[:, None] != table[None]).sum(axis=2) == 2
        wanted = {(int(a), int(b)) for a, b in np.argwhere(two & np.isin(apart, primes(size)))}
        assert pairs == wanted


def test_primes():
    assert [primes(number) for number in (1, 2, 12, 49, 97, 1001)] == [[], [2], [2, 3], [7], [97], [7, 11, 13]]
