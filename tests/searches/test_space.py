"""Map spaces against brute force, against the reference's counts and order, and their draws."""

import itertools
import math
from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import chisquare

from jaxloop import LoopNest, SpecError, loads, mapping_of
from jaxloop.conventions import TIMELOOP_2022
from jaxloop.lower import lower_mapping
from jaxloop.lower.classes import exact_structure
from jaxloop.program import Mapping
from jaxloop.searches import MapSpace
from jaxloop.searches.arrays import nest_of
from jaxloop.spec.constraints import (
    Constraints,
    KeepConstraint,
    MapperOptions,
    OrderConstraint,
    OverbookingConstraint,
    ParallelismConstraint,
    Reuse,
    ReuseConstraint,
    SplitConstraint,
)
from jaxloop.spec.design import Design
from jaxloop.spec.sparse import ActionKind, ActionOptimization, SparseOptimizations, SparseTarget
from tests.frontend.base import TEXTS
from tests.searches.brute_force import key_of, nests, tilings
from tests.searches.designs import SPATIAL, TEMPORAL, design_of, factor
from tests.spec_examples.examples import EXAMPLES

ONE, ROW, GRID = (1, 1), (4, 1), (2, 4)
BYPASS = (KeepConstraint("L0", "A", False),)
"""Fewer free bits, so that brute force is quick."""


def structure_of(design: Design):
    return exact_structure(design.einsum, design.architecture, 1, TIMELOOP_2022)


def rows_of(mapping: Mapping) -> list[Mapping]:
    lanes = len(mapping.temporal)
    return [Mapping(**{n: getattr(mapping, n)[i] for n in mapping.__dataclass_fields__}) for i in range(lanes)]


def check_against_brute_force(design: Design) -> MapSpace:
    """The space holds every nest once, numbers are inverted, and arrays are those of the nests."""
    space = MapSpace(design)
    wanted = nests(design)
    assert space.size == len(space) == len(wanted)
    numbers = np.arange(space.size)
    batch = space.decode(numbers)
    assert {key_of(design, nest_of(design, row)) for row in rows_of(batch)} == wanted
    assert (space.index_of(batch) == numbers).all()
    some = numbers[:: max(1, space.size // 20)]
    for number, row in zip(some, rows_of(space.decode(some)), strict=True):
        assert space.index_of(space[number]) == number
        lowered = lower_mapping(space[number], design.einsum, structure_of(design))
        for name in row.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(row, name), getattr(lowered, name), err_msg=name)
            assert getattr(row, name).dtype == getattr(lowered, name).dtype
    return space


CONSTRAINED = {
    "free": {},
    "equal": {"factors": (factor("L0", TEMPORAL, "M", "=", 2), factor("L1", SPATIAL, "N", "=", 1))},
    "at-most": {"factors": (factor("L0", TEMPORAL, "M", "<=", 2), factor("L1", TEMPORAL, "N", "<=", 1))},
    "at-least": {"factors": (factor("L1", TEMPORAL, "M", ">=", 2),)},
    "defaults": {
        "factors": (
            factor("L1", TEMPORAL, None, "<=", 3),
            factor("L1", TEMPORAL, "M", "=", 1),
            factor("L0", TEMPORAL, None, ">=", 2),
            factor("L0", TEMPORAL, "K", "=", 1),
        )
    },
    "too-large": {"factors": (factor("L1", TEMPORAL, "K", "=", 9),)},
    "order": {"orders": (OrderConstraint("L1", TEMPORAL, ("K", "M")),)},
    "suffix": {"orders": (OrderConstraint("L1", TEMPORAL, (), ("M",)), OrderConstraint("L1", SPATIAL, ("N",)))},
    "innermost-order": {"orders": (OrderConstraint("L0", TEMPORAL, ("K", "N", "M")),)},
    "split": {"splits": (SplitConstraint("L1", 1),)},
    "split-none": {"splits": (SplitConstraint("L1", 0),)},
    "split-all": {"splits": (SplitConstraint("L1", 99),)},
    "split-and-order": {"splits": (SplitConstraint("L1", 2),), "orders": (OrderConstraint("L1", SPATIAL, ("N",)),)},
    "split-and-suffix": {
        "splits": (SplitConstraint("L1", 2),),
        "orders": (OrderConstraint("L1", SPATIAL, (), ("K", "M")),),
    },
    "keep": {"keeps": (KeepConstraint("L0", "Z", True), *BYPASS)},
    "outermost-bypass": {"keeps": (KeepConstraint("L1", "Z", False), KeepConstraint("L0", "Z", True))},
    "reuse": {
        "reuses": (ReuseConstraint("L1", Reuse.MULTICAST, ("A",)), ReuseConstraint("L0", Reuse.TEMPORAL, ("Z",)))
    },
}


@pytest.mark.parametrize("mesh", [ONE, (1, 2), GRID])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_every_nest_once(name: str, mesh: tuple[int, int]):
    """Two levels, the outer one with children or without."""
    fields = {"keeps": BYPASS} | CONSTRAINED[name]
    check_against_brute_force(design_of({"M": 4, "N": 2, "K": 3}, [mesh, mesh, ONE], **fields))


@pytest.mark.parametrize("meshes", [[GRID, ONE, ONE], [(4, 4), (2, 2), ONE], [ROW, ROW, ONE, ONE]])
def test_every_nest_once_of_other_fan_outs(meshes: list[tuple[int, int]]):
    """Children at the innermost level, at both, at the middle of three."""
    levels = [f"L{i}" for i in range(len(meshes) - 2)]
    pinned = tuple(KeepConstraint(level, tensor, True) for level in levels for tensor in "AZ")
    check_against_brute_force(design_of({"M": 4, "N": 2}, meshes, keeps=pinned))


@st.composite
def designs(draw: st.DrawFn) -> Design:
    ranks = "MNK"[: draw(st.integers(1, 3))]
    sizes = {rank: draw(st.sampled_from([1, 2, 3, 4, 6])) for rank in ranks}
    meshes = draw(st.sampled_from([[ONE, ONE, ONE], [ROW, ROW, ONE], [GRID, GRID, ONE], [GRID, ROW[:1] + (2,), ONE]]))
    if meshes[1] == (4, 2):
        meshes = [(4, 4), (4, 2), ONE]
    orders, splits = [], []
    for kind in (TEMPORAL, SPATIAL):
        order = draw(st.permutations(ranks))
        start = draw(st.integers(0, len(ranks)))
        end = draw(st.integers(start, len(ranks)))
        if draw(st.booleans()):
            orders.append(OrderConstraint("L1", kind, tuple(order[:start]), tuple(order[end:])))
    if draw(st.booleans()):
        splits.append(SplitConstraint("L1", draw(st.integers(0, 4))))
    factors = [
        factor("L1", draw(st.sampled_from([TEMPORAL, SPATIAL])), rank, "<=", draw(st.integers(1, 4)))
        for rank in ranks
        if draw(st.booleans())
    ]
    return design_of(sizes, meshes, factors=tuple(factors), orders=tuple(orders), splits=tuple(splits), keeps=BYPASS)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(designs())
def test_every_nest_once_of_any_small_design(design: Design):
    check_against_brute_force(design)


def test_sizes_of_the_reference():
    """By hand after spec/inputs.md 5.2: 16 = 2^4 over 4 tiling levels has C(7, 3) factorizations, 8 has C(6, 3); three
    of the four levels have orders of which the spatial one is flat; a split has 4 choices; 6 bits are free."""
    design = loads({name: text for name, text in TEXTS.items() if name != "mapping.yaml"})
    space = MapSpace(design)
    assert space.dimensions == {
        "factorizations": math.comb(7, 3) * math.comb(6, 3) ** 2,
        "permutations": 6**2,
        "splits": 4,
        "bypass": 2**6,
    }
    assert space.full_size == 129_024_000 == MapSpace(design, prune=False).size
    assert space.size < space.full_size
    assert f"pruned to {space.size:,} (" in space.summary()


@pytest.mark.parametrize("mesh", [ONE, ROW, GRID])
def test_pruning_only_drops_repetitions_and_what_does_not_fit(mesh: tuple[int, int]):
    design = design_of({"M": 4, "N": 2}, [mesh, mesh, ONE])
    full, pruned = MapSpace(design, prune=False), MapSpace(design)
    assert len(full) == math.prod(full.dimensions.values()) == full.full_size
    batch = full.decode(np.arange(len(full)))
    rows = np.array([key for key in range(len(full))])[full.admissible(batch)]
    everything = {key_of(design, full[int(i)]) for i in rows}
    kept = pruned.decode(np.arange(len(pruned)))
    assert everything == {key_of(design, pruned[int(i)]) for i in np.flatnonzero(pruned.admissible(kept))}


def test_full_order_is_the_references():
    """The reference's loops written out: bypass bits vary fastest, then splits, permutations, factorizations."""
    design = design_of({"M": 4, "N": 2}, [GRID, GRID, ONE], tensors=("Z",))
    full = MapSpace(design, prune=False)
    rows = {
        "M": [(1, 1, 4), (4, 1, 1), (1, 4, 1), (2, 1, 2), (1, 2, 2), (2, 2, 1)],
        "N": [(1, 1, 2), (2, 1, 1), (1, 2, 1)],
    }
    assert {tuple(row) for row in full.factorizations[0].tolist()} == set(rows["M"])
    ordered = {rank: _reference_rows(size, 3) for rank, size in design.einsum.size_of.items()}
    assert [tuple(row) for row in full.factorizations[0].tolist()] == ordered["M"]
    number = 0
    for n_row, m_row in itertools.product(ordered["N"], ordered["M"]):
        for outer, spatial in itertools.product(itertools.permutations("MN"), repeat=2):
            for split, keep in itertools.product(range(3), (False, True)):
                bounds = [dict(M=m_row[t], N=n_row[t]) for t in range(3)]
                x, y = spatial[:split], spatial[split:]
                wanted = (
                    (
                        tuple((r, bounds[0][r]) for r in "MN" if bounds[0][r] > 1),
                        tuple(tuple((r, bounds[1][r]) for r in part if bounds[1][r] > 1) for part in (x, y)),
                        tuple((r, bounds[2][r]) for r in outer if bounds[2][r] > 1),
                    ),
                    (("Z",) if keep else (), ("Z",)),
                )
                assert key_of(design, full[number]) == wanted, number
                number += 1
    assert number == len(full)


def _reference_rows(size: int, slots: int) -> list[tuple[int, ...]]:
    """The outermost factor is chosen first, from 1, n, 2, n/2, ...; the innermost is what is left."""
    if slots == 1:
        return [(size,)]
    pairs = [(low, size // low) for low in range(1, size + 1) if size % low == 0 and low * low <= size]
    divisors = list(dict.fromkeys(d for pair in pairs for d in pair))
    return [(*rest, last) for last in divisors for rest in _reference_rows(size // last, slots - 1)]


LARGE = design_of({"C": 64, "K": 96, "P": 56, "Q": 56, "R": 3, "S": 3, "N": 4}, [(16, 16), (4, 4), (2, 2), ONE, ONE])


@cache
def large_space() -> MapSpace:
    return MapSpace(LARGE)


def test_spaces_beyond_machine_words():
    space = large_space()
    assert space.size > 2**70
    with pytest.raises(OverflowError, match=r"more than len\(\) can tell: use .size"):
        len(space)
    numbers = [0, 1, space.size // 3, space.size - 1]
    assert (space.index_of(space.decode(numbers)) == numbers).all()
    assert space[-1] == space[space.size - 1]
    drawn = space.sample(0, 2000)
    assert len(set(drawn.tolist())) == 2000
    batch = space.decode(drawn)
    assert (space.index_of(batch) == drawn).all()
    product = (batch.temporal * batch.spatial_x * batch.spatial_y).prod(1)
    assert (product == np.array(LARGE.einsum.sizes)).all()


def test_numbers_outside_are_refused():
    space = MapSpace(design_of({"M": 4}, [ONE, ONE, ONE]))
    for number in (space.size, -space.size - 1):
        with pytest.raises(IndexError):
            space[number]
    for numbers in ([space.size], [-1]):
        with pytest.raises(IndexError):
            space.decode(numbers)
    assert space.decode([]).temporal.shape == (0, 2, 1)


def test_draws_depend_on_seed_and_position_alone():
    for space in (large_space(), MapSpace(design_of({"M": 4, "N": 6}, [GRID, GRID, ONE]))):
        whole = space.sample(7, 100)
        parts = [space.sample(7, count, start) for start, count in ((0, 1), (1, 12), (13, 50), (63, 37))]
        assert (np.concatenate(parts) == whole).all()
        assert (space.sample(8, 100) != whole).any()
        assert 0 <= min(whole) and max(whole) < space.size


def test_seeds():
    space = large_space()
    typed, raw = jax.random.key(3), jax.random.PRNGKey(3)
    assert (space.sample(typed, 9) == space.sample(raw, 9)).all()
    assert (space.sample(typed, 9) != space.sample(jax.random.key(4), 9)).any()
    with pytest.raises(ValueError, match="the seed is -1"):
        space.sample(-1, 1)
    with pytest.raises(TypeError, match="the seed is 0.5"):
        space.sample(0.5, 1)


def test_draws_are_uniform():
    space = MapSpace(design_of({"M": 4, "N": 3}, [GRID, GRID, ONE], keeps=BYPASS))
    counts = np.bincount(space.sample(0, 100 * space.size), minlength=space.size)
    assert chisquare(counts).pvalue > 0.001
    large = large_space()
    shares = (large.sample(1, 20_000) * 20 // large.size).astype(int)
    assert chisquare(np.bincount(shares, minlength=20)).pvalue > 0.001


def test_any_choice_gives_a_member():
    for fields in ({}, CONSTRAINED["split-and-order"], CONSTRAINED["suffix"], CONSTRAINED["keep"]):
        design = design_of({"M": 4, "N": 2, "K": 6}, [GRID, GRID, ONE], **fields)
        space = MapSpace(design)
        generator = np.random.default_rng(0)
        choices = np.stack([generator.integers(len(t), size=3000) for t in space.factorizations], -1)
        orders = generator.random((3000, len(space.freedom.slots), 3)).argsort(-1)
        splits = generator.integers(-1, 6, (3000, len(space.freedom.slots)))
        keeps = generator.integers(0, 2, (3000, len(space.freedom.bits)))
        numbers = space.index_of(space.assemble(choices, orders, splits, keeps))
        assert len(set(numbers.tolist())) > 300
        assert (space.index_of(space.assemble(choices)) >= 0).all()


def test_orders_and_splits_are_taken():
    space = MapSpace(design_of({"M": 2, "N": 2}, [GRID, GRID, ONE]))
    both = [[t.tolist().index(row) for t in space.factorizations] for row in ([1, 2, 1], [1, 1, 2])]
    swapped = np.array([[[1, 0]] * 3] * 2)
    batch = space.assemble(np.array(both), swapped, np.array([[0, 1, 0]] * 2), np.zeros((2, 2)))
    assert batch.spatial_order[0, 1].tolist() == batch.temporal_order[1, 1].tolist() == [1, 0]
    assert (batch.spatial_x[0, 1].tolist(), batch.spatial_y[0, 1].tolist()) == ([1, 2], [2, 1])
    assert batch.keep[0].tolist() == [[0, 0], [1, 1]]


def test_a_mapping_of_the_files_is_found():
    design = loads(TEXTS)
    space = MapSpace(design)
    assert design.nest is not None
    number = space.index_of(design.nest)
    assert key_of(design, space[number]) == key_of(design, design.nest)
    assert space.index_of(mapping_of(design)) == number


def moved(nest: LoopNest, s: int, **changes) -> LoopNest:
    levels = list(nest.levels)
    levels[s] = replace(levels[s], **changes)
    return LoopNest(tuple(levels))


def test_nests_outside_are_refused():
    fields = {"orders": (OrderConstraint("L1", TEMPORAL, ("M",)),), "keeps": (KeepConstraint("L0", "A", True),)}
    design = design_of({"M": 4, "N": 4}, [ROW, ROW, ONE], factors=(factor("L0", TEMPORAL, "M", "<=", 2),), **fields)
    space = MapSpace(design)
    inside = next(
        nest
        for nest in map(space.__getitem__, range(len(space)))
        if [loop.bound for loop in nest.levels[1].temporal] == [2, 4]
    )
    outer = inside.levels[1]
    swapped = moved(inside, 1, temporal=outer.temporal[::-1])
    bypassed = moved(inside, 0, keep=())
    switched = moved(inside, 0, no_temporal_reuse=("A",))
    large = [replace(loop, bound=8, residual=8) for loop in outer.temporal]
    for nest, what in (
        (swapped, "temporal order of L1"),
        (bypassed, "keep"),
        (switched, "no_temporal_reuse"),
        (moved(inside, 1, temporal=tuple(large)), "factors"),
    ):
        with pytest.raises(ValueError, match=f"mapping 0 is not in the space: its {what} "):
            space.index_of(nest)
    with pytest.raises(ValueError, match="holds the same nest several times"):
        MapSpace(design, prune=False).index_of(inside)


def test_admissible():
    design = design_of({"M": 8, "N": 8}, [(4, 2), (4, 2), ONE], parallelism=(ParallelismConstraint("L0", 0.5),))
    design = replace(design, mapper=MapperOptions(max_temporal_loops=2))
    space = MapSpace(design)
    batch = space.decode(space.sample(0, 4000))
    x, y = batch.spatial_x[:, 1].prod(-1), batch.spatial_y[:, 1].prod(-1)
    wanted = (x <= 4) & (y <= 2) & (x * y >= 4) & ((batch.temporal > 1).sum((1, 2)) <= 2)
    assert 0 < wanted.sum() < 4000
    assert (space.admissible(batch) == wanted).all()
    nowhere = Mapping(**{n: getattr(batch, n) for n in batch.__dataclass_fields__ if n != "keep"}, keep=batch.keep * 0)
    assert not space.admissible(nowhere).any()


def test_spatial_skipping_lifts_the_fan_out():
    design = design_of({"M": 8}, [ROW, ROW, ONE], keeps=BYPASS)
    action = ActionOptimization(ActionKind.SPATIAL_SKIPPING, ())
    sparse = SparseOptimizations((SparseTarget("L1", actions=(action,)),), is_present=True)
    space, bounded = MapSpace(replace(design, sparse=sparse)), MapSpace(design)
    assert max(space.factorizations[0][:, 1]) == 8 and max(bounded.factorizations[0][:, 1]) == 4
    assert space.admissible(space.decode(np.arange(len(space)))).all()


CONTRADICTIONS = {
    "two factors": (
        {"factors": (factor("L0", TEMPORAL, "M", "=", 2), factor("L0", TEMPORAL, "M", "=", 4))},
        ['M=4 of "L0" (temporal)', "contradicts", 'M=2 of "L0" (temporal)'],
    ),
    "two maxima": (
        {"factors": (factor("L0", TEMPORAL, "M", "<=", 2), factor("L0", TEMPORAL, "M", "<=", 4))},
        ["M<=4", "contradicts", "M<=2"],
    ),
    "two orders": (
        {"orders": (OrderConstraint("L1", TEMPORAL, ("M",)), OrderConstraint("L1", TEMPORAL, ("N",)))},
        ['permutation N of "L1"', "contradicts", 'permutation M of "L1"'],
    ),
    "two splits": ({"splits": (SplitConstraint("L1", 1), SplitConstraint("L1", 2))}, ["split 2", "split 1"]),
    "keep and bypass": (
        {"keeps": (KeepConstraint("L0", "A", True), KeepConstraint("L0", "A", False))},
        ['bypass of "A" at "L0" contradicts keep of "A" at "L0"'],
    ),
    "nowhere": (
        {"keeps": tuple(KeepConstraint(level, "A", False) for level in ("L0", "L1"))},
        ['the tensor "A" is stored nowhere', 'bypass of "A" at "L0"', 'bypass of "A" at "L1"'],
    ),
    "reuse": (
        {"reuses": (ReuseConstraint("L0", Reuse.TEMPORAL, ("A",)), ReuseConstraint("L0", Reuse.TEMPORAL, ()))},
        ["no_temporal_reuse", "contradicts"],
    ),
    "no divisor": (
        {"factors": (factor("L0", TEMPORAL, "M", "=", 3),)},
        ['M=3 of "L0" (temporal): does not divide the size 8 of M'],
    ),
    "no divisor together": (
        {"factors": (factor("L0", TEMPORAL, "M", "=", 4), factor("L1", TEMPORAL, "M", "=", 4))},
        ['M=4 of "L0"', 'M=4 of "L1"', "product 16, which does not divide the size 8 of M"],
    ),
    "all given": (
        {
            "factors": tuple(
                factor(level, kind, "M", "=", 1)
                for level, kind in (("L0", TEMPORAL), ("L1", TEMPORAL), ("L1", SPATIAL))
            )
        },
        ["all factors of M are given and multiply to 1", '"L0" (temporal)', '"L1" (spatial)', '"L1" (temporal)'],
    ),
    "maxima": (
        {"factors": (factor("L0", TEMPORAL, "M", "<=", 1), factor("L1", TEMPORAL, "M", "<=", 1))},
        ["no factors of M multiply to its size 8", 'M<=1 of "L0"', 'M<=1 of "L1"', 'the 4 children of "L1"'],
    ),
    "minima": (
        {"factors": (factor("L0", TEMPORAL, "M", ">=", 4), factor("L1", TEMPORAL, "M", ">=", 4))},
        ["no factors of M", 'M>=4 of "L0"', 'M>=4 of "L1"'],
    ),
    "fan-out": (
        {"factors": (factor("L1", SPATIAL, "M", "=", 8),)},
        ["no factors of M", 'M=8 of "L1" (spatial)', 'the 4 children of "L1"'],
    ),
    "no fan-out": ({"factors": (factor("L0", SPATIAL, "M", "=", 2),)}, ['M=2 of "L0" (spatial)', "needs a fan-out"]),
    "parallelism at another level": (
        {"parallelism": (ParallelismConstraint("L1", 0.5),)},
        ['parallelism of at least 0.5 at "L1"', "is not at the innermost level"],
    ),
    "parallelism out of reach": (
        {
            "parallelism": (ParallelismConstraint("L0", 0.9),),
            "factors": (factor("L1", SPATIAL, None, "=", 1),),
        },
        ["parallelism of at least 0.9", "out of reach", "default factor =1"],
    ),
    "template": ({"template": "ruby"}, ['the template "ruby"', "not supported"]),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_named(name: str):
    fields, texts = CONTRADICTIONS[name]
    with pytest.raises(SpecError) as info:
        MapSpace(design_of({"M": 8, "N": 4}, [ROW, ROW, ONE], **fields))
    (error,) = info.value.errors
    assert error.remedy
    for text in texts:
        assert text in error.message


def test_overbooking():
    design = design_of({"M": 4}, [ONE, ONE, ONE], overbooking=(OverbookingConstraint("L0", 0.5),))
    (warning,) = MapSpace(design).warnings
    assert 'max_overbooked_proportion 0.5 of "L0" has no effect' in warning.message
    levels = tuple(replace(level, allow_overbooking=True) for level in design.architecture.levels)
    with pytest.raises(SpecError, match="max_overbooked_proportion 0.5 .* is not supported"):
        MapSpace(replace(design, architecture=replace(design.architecture, levels=levels)))


def test_equal_constraints_may_repeat_and_those_without_effect_are_reported():
    twice = (factor("L0", TEMPORAL, "M", "=", 2),) * 2
    orders = (OrderConstraint("L0", SPATIAL, ("M",)), OrderConstraint("L0", TEMPORAL, ("M",)))
    fields = {
        "factors": (*twice, factor("L1", TEMPORAL, "M", "=", 99)),
        "orders": orders,
        "splits": (SplitConstraint("L0", 1),),
    }
    space = MapSpace(design_of({"M": 8}, [ONE, ONE, ONE], **fields))
    assert space.size == 4
    assert [warning.message.partition(" ")[0] for warning in space.warnings] == [
        "permutation",
        "split",
        "permutation",
        "M=99",
    ]


def test_too_large_spaces_are_refused():
    ranks = {rank: 2**8 for rank in "ABCDEFGHIJ"}
    with pytest.raises(SpecError, match="can be counted.*pin the permutations"):
        MapSpace(design_of(ranks, [(4, 4)] * 3 + [(2, 2)] * 3 + [ONE] * 3))
    with pytest.raises(SpecError, match="factorizations of .*constrain the factors of M"):
        MapSpace(design_of({"M": 2**30}, [ONE] * 11))


def test_tiling_levels():
    space = large_space()
    assert [(slot.level, slot.kind) for slot in space.freedom.slots] == tilings(LARGE)
    assert [slot.is_ordered for slot in space.freedom.slots] == [True] * 6 + [True]
    assert Constraints() == LARGE.constraints


@pytest.mark.parametrize("name", ["09", "10", "14"])
def test_what_the_reference_found_is_in_the_space(name: str):
    design = loads(EXAMPLES[name].files())
    space = MapSpace(design)
    assert design.nest is not None
    number = space.index_of(design.nest)
    assert key_of(design, space[number]) == key_of(design, design.nest)
    batch = space.decode([number])
    assert space.admissible(batch).all()
    full = MapSpace(design, prune=False)
    rows = rows_of(full.decode(np.arange(full.size)))
    assert key_of(design, design.nest) in {key_of(design, nest_of(design, row)) for row in rows}
