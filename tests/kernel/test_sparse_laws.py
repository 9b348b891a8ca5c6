"""What must hold of any sparse design, in the readings in which it does (spec/sparse.md).

Each example is a batch of random points of one structure (tests/sparse_points.py), so that a reading needs one
executable.
"""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

import jaxloop as jl
from jaxloop.program import Action, Fate
from jaxloop.result import Evaluation
from jaxloop.run.batch import BATCH_FIELDS
from jaxloop.status import Status
from tests.helpers import assert_all_finite
from tests.sparse_points import (
    BANDED,
    GATING,
    GROUPS,
    PRICES,
    SKIPPING,
    SPARSE_PRICES,
    STRUCTURED,
    UNIFORM,
    WORDS,
    Choice,
    Point,
    as_lanes,
    draw_all,
    evaluate_points,
    with_sparse,
    without_sparse,
)

seeds = st.integers(0, 2**32 - 1)
examples = settings(max_examples=2, phases=(Phase.generate,))  # a smaller seed is no simpler example

READINGS = {"timeloop": jl.TIMELOOP_2022, "micro22": jl.MICRO22, "smooth": jl.SMOOTH}
each_reading = pytest.mark.parametrize(
    "reading", ["timeloop", pytest.param("micro22", marks=pytest.mark.slow), "smooth"]
)

DENSE_FIELDS = tuple(
    name
    for name in BATCH_FIELDS
    if name
    not in ("metadata_accesses", "metadata_units", "stored_units", "fiber_length", "expected_words", "expected_density")
    and name not in ("stored_words", "saf_kind", "saf_chance", "saf_local_chance", "leader_words", "leader_empty")
)
"""Fields that a dense design fills too."""
ENERGIES = tuple(name for name in DENSE_FIELDS if "energy" in name)


def sparse_of(point: Point) -> Any:
    return point[0].sparse


def lanes_of(points: list[Point]) -> tuple[Any, Any]:
    """The sparse part and the mapping, with lanes."""
    program, mapping = as_lanes(points)
    return program.sparse, mapping


def has_metadata(points: list[Point]) -> np.ndarray:
    sparse, mapping = lanes_of(points)
    return (sparse.rank_format > 0).any(axis=2) & (mapping.keep > 0.0)


def next_outer(result: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    """Whether a level further out has a SAF of the tensor, and the chance of the nearest."""
    kind, chance = np.asarray(result.saf_kind), np.asarray(result.saf_chance)
    present, outer = np.zeros(kind.shape, bool), np.zeros(chance.shape)
    for s in reversed(range(len(kind) - 1)):
        present[s] = present[s + 1] | (kind[s + 1] > 0)
        outer[s] = np.where(kind[s + 1] > 0, chance[s + 1], outer[s + 1])
    return present, outer


def assert_same(ours: Evaluation, expected: Evaluation, names: Any = BATCH_FIELDS, rtol: float = 0.0) -> None:
    for name in names:
        np.testing.assert_allclose(getattr(ours, name), getattr(expected, name), rtol=rtol, atol=0.0, err_msg=name)


@each_reading
@examples
@given(seeds)
def test_density_one_is_dense(reading: str, seed: int):
    """Whatever is gated or skipped: no tile is ever empty. Without formats, which cost metadata."""
    points = [with_sparse(p, density=np.ones(3)) for p in draw_all(seed, Choice((STRUCTURED, UNIFORM), formats=False))]
    conventions = READINGS[reading]
    ours = evaluate_points(points, conventions)
    expected = evaluate_points([without_sparse(point) for point in points], conventions)
    counts = [name for name in DENSE_FIELDS if name not in ENERGIES]
    assert_same(ours, expected, counts)
    # prices are added up in another order
    assert_same(ours, expected, ENERGIES, rtol=2e-15)
    assert not np.asarray(ours.saf_chance).any()


@each_reading
@examples
@given(seeds)
def test_formats_of_full_tensors(reading: str, seed: int):
    """At density 1 words are those of the dense design and every tile takes what the fullest takes. Not of uniformly
    random tensors in the reference's readings, where the tiles of a full one count as empty (quirk Q2)."""
    conventions = READINGS[reading]
    distributions = (STRUCTURED,) if conventions.least_occupancy_is_empty else (STRUCTURED, UNIFORM)
    points = [with_sparse(p, density=np.ones(3)) for p in draw_all(seed, Choice(distributions))]
    ours = evaluate_points(points, conventions)
    expected = evaluate_points([without_sparse(point) for point in points], conventions)
    assert_same(ours, expected, ("accesses", "computes_by_fate", "instances", "reads", "fills", "updates"))
    kept = as_lanes(points)[1].keep > 0.0
    np.testing.assert_allclose(ours.expected_words * kept, ours.tile_words, rtol=1e-14)
    np.testing.assert_allclose(ours.metadata_units, ours.stored_units, rtol=1e-14)


@each_reading
@examples
@given(seeds)
def test_counts_add_up(reading: str, seed: int):
    """What is not actual, gated or skipped was eliminated: by a format, or by a SAF further out. A density that comes
    out an ulp above 1 adds one to the reference's counts (3.6: the floor of a tiny negative number is -1)."""
    points = draw_all(seed)
    conventions = READINGS[reading]
    result = evaluate_points(points, conventions)
    algorithmic = np.stack([result.reads, result.fills, result.updates])
    total = np.asarray(result.accesses).sum(axis=0)
    assert (np.asarray(result.accesses) >= 0.0).all()
    rounding = 2.0 if conventions.integer_counts else 1e-9 * algorithmic
    thinned, chance = next_outer(result)
    stored = np.where(has_metadata(points), result.expected_density, 1.0)
    np.testing.assert_array_less(np.abs(total - algorithmic * stored * (1.0 - chance)), rounding + 1e-9)
    whole = ~has_metadata(points) & ~thinned
    np.testing.assert_array_equal(np.where(whole, total, 0.0), np.where(whole, algorithmic, 0.0))
    np.testing.assert_array_less(
        total, algorithmic * (1.0 + 1e-12) + (1.0 if conventions.integer_counts else 1e-9) + 1e-9
    )
    kind = np.asarray(result.saf_kind)
    removed = np.asarray(result.accesses)[[Fate.GATED, Fate.SKIPPED]]
    for fate, code in zip(removed, (GATING, SKIPPING), strict=True):
        assert not np.where(kind == code, 0.0, fate).any()
    assert not removed[:, Action.FILL].any()


@each_reading
@examples
@given(seeds)
def test_operations_add_up(reading: str, seed: int):
    """Eliminated are those that operands' SAFs remove, and those of which neither operand is there."""
    conventions = READINGS[reading]
    points = draw_all(seed, Choice())
    result = evaluate_points(points, conventions)
    counts, computes = np.asarray(result.computes_by_fate), np.asarray(result.computes)
    assert (counts >= 0.0).all()
    # the artifact's program rounds a chance of 0 to an operation too many (8.1)
    noise = 1.0 if conventions.double_sided_complement else 0.0
    assert (counts.sum(axis=0) <= computes * (1.0 + 1e-12) + noise).all()
    with_saf = np.asarray(result.saf_kind)[:, :2].any(axis=(0, 1))
    may_be_absent = has_metadata(points)[:, :2].any(axis=0).all(axis=0)
    whole = ~with_saf & ~may_be_absent
    np.testing.assert_allclose(counts.sum(axis=0)[whole], computes[whole], rtol=1e-14)


@each_reading
@examples
@given(seeds)
def test_probabilities(reading: str, seed: int):
    result = evaluate_points(draw_all(seed), READINGS[reading])
    for name in ("saf_chance", "saf_local_chance", "tile_empty", "leader_empty", "expected_density"):
        value = np.asarray(getattr(result, name))
        assert (value >= 0.0).all() and (value <= 1.0 + 1e-12).all(), name
    slowdown = np.asarray(result.slowdown)
    assert (slowdown > 0.0).all() and (slowdown <= 1.0).all()


@each_reading
@examples
@given(seeds)
def test_all_levels_hold_the_same_share(reading: str, seed: int):
    """The chance that a tile is there times its density is that of the whole tensor. Not of a banded one, whose tiles
    may not fill it (1.5), and not of a uniformly random one in the reference's readings, where the fewest nonzeros that
    a tile can have count as none (quirk Q2)."""
    conventions = READINGS[reading]
    distributions = (STRUCTURED,) if conventions.least_occupancy_is_empty else (STRUCTURED, UNIFORM)
    points = draw_all(seed, Choice(distributions))
    result = evaluate_points(points, conventions)
    sparse, mapping = lanes_of(points)
    share = (1.0 - np.asarray(result.tile_empty)) * result.expected_density
    np.testing.assert_allclose(np.where(mapping.keep > 0.0, share, sparse.density), share * 0.0 + sparse.density)


def recast(point: Point, kind: int) -> Point:
    """All gating and skipping of this kind."""
    return with_sparse(point, saf_kind=np.where(sparse_of(point).saf_kind > 0, kind, 0).astype(np.int32))


def sound_choice(conventions: jl.Conventions) -> Choice:
    """Points whose operands have states that are chances. The artifact's program does not keep them in [0, 1], which
    they leave where an operand has a SAF, and then counts operations twice that SAFs and compute units remove (8.1):
    how many of them are gated is a matter of the order in which they are cut to what is there."""
    return Choice() if conventions.clamped_states else Choice(targets=(2,))


@each_reading
@examples
@given(seeds)
def test_skipping_is_gating_that_takes_no_time(reading: str, seed: int):
    """Counts differ in their fate alone, and cycles are never more."""
    conventions = READINGS[reading]
    points = draw_all(seed, sound_choice(conventions))
    gated, skipped = (evaluate_points([recast(p, kind) for p in points], conventions) for kind in (GATING, SKIPPING))
    for name in ("accesses", "metadata_accesses"):
        ours, expected = np.asarray(getattr(skipped, name)), np.asarray(getattr(gated, name))
        np.testing.assert_array_equal(ours[Fate.ACTUAL], expected[Fate.ACTUAL], err_msg=name)
        np.testing.assert_array_equal(ours[Fate.SKIPPED], expected[Fate.GATED], err_msg=name)
        assert not ours[Fate.GATED].any() and not expected[Fate.SKIPPED].any()
    timed = ("cycles", "level_cycles", "slowdown", "address_generations", "metadata_accesses")
    assert_same(skipped, gated, [n for n in BATCH_FIELDS if n not in ("saf_kind", "accesses", *timed, *ENERGIES)])
    for name in ("cycles", "level_cycles", "address_generations"):
        assert (np.asarray(getattr(skipped, name)) <= np.asarray(getattr(gated, name))).all(), name


@each_reading
@examples
@given(seeds)
def test_skipping_operations_is_gating_that_takes_no_time(reading: str, seed: int):
    """The actual ones are the same, but for two roundings instead of one."""
    conventions = READINGS[reading]
    points, one, none = draw_all(seed, sound_choice(conventions)), np.ones(()), np.zeros(())
    gated = evaluate_points([with_sparse(p, compute_gating=one, compute_skipping=none) for p in points], conventions)
    skipped = evaluate_points([with_sparse(p, compute_gating=one, compute_skipping=one) for p in points], conventions)
    assert (np.asarray(skipped.cycles) <= np.asarray(gated.cycles) * (1.0 + 1e-12)).all()
    actual = [np.asarray(result.computes_by_fate)[Fate.ACTUAL] for result in (gated, skipped)]
    np.testing.assert_allclose(*actual, rtol=1e-9, atol=1.0 if conventions.integer_counts else 1e-9)


def priced_in_order(point: Point) -> Point:
    """What is removed costs no more than what happens."""
    prices = sparse_of(point).metadata_energy
    return with_sparse(point, metadata_energy=-np.sort(-prices, axis=0))


def denser(point: Point, rng: random.Random) -> Point:
    """One of the tensors with a higher density."""
    density = sparse_of(point).density.copy()
    tensor = rng.randrange(3)
    density[tensor] = rng.uniform(density[tensor], 1.0)
    return with_sparse(point, density=density)


@each_reading
@examples
@given(seeds)
def test_chances_fall_with_density(reading: str, seed: int):
    rng, conventions = random.Random(seed), READINGS[reading]
    points = draw_all(seed, Choice((STRUCTURED, UNIFORM)))
    few, many = (evaluate_points(side, conventions) for side in (points, [denser(p, rng) for p in points]))
    for name in ("leader_empty", "saf_chance"):
        assert (np.asarray(getattr(many, name)) <= np.asarray(getattr(few, name)) + 1e-12).all(), name


@pytest.mark.parametrize("kind", [GATING, SKIPPING])
@examples
@given(seeds)
def test_costs_rise_with_density(kind: int, seed: int):
    """Of accesses of all instances, operations, cycles and energy. In the smooth reading, where nothing is rounded and
    expectations are exact; for groups without alternatives and of one kind, since the choice between them depends on
    density (3.3, 3.4); if what is removed costs no more than what happens."""
    rng = random.Random(seed)
    points = [priced_in_order(p) for p in draw_all(seed, Choice((STRUCTURED, UNIFORM), kinds=(0, kind)))]
    few, many = (evaluate_points(side, jl.SMOOTH) for side in (points, [denser(p, rng) for p in points]))

    def rises(name: str, less: Any, more: Any) -> None:
        assert (np.asarray(less) <= np.asarray(more) * (1.0 + 1e-9) + 1e-9).all(), name

    for name in ("cycles", "energy_pj", "level_cycles", "stored_words", "metadata_bits", "energy_pj_by_tensor"):
        rises(name, getattr(few, name), getattr(many, name))
    rises("computes", few.computes_by_fate[Fate.ACTUAL], many.computes_by_fate[Fate.ACTUAL])
    rises("accesses", few.accesses[Fate.ACTUAL] * few.instances, many.accesses[Fate.ACTUAL] * many.instances)


@each_reading
@examples
@given(seeds)
def test_no_nonzeros_and_a_single_one(reading: str, seed: int):
    """Finite numbers. A tile holds the single nonzero in proportion to its words; without any, all tiles are empty."""
    points, conventions = draw_all(seed, Choice((STRUCTURED, UNIFORM))), READINGS[reading]
    empty = evaluate_points([with_sparse(p, density=np.zeros(3)) for p in points], conventions)
    lonely = evaluate_points([with_sparse(p, density=1.0 / WORDS) for p in points], conventions)
    for result in (empty, lonely):
        assert_all_finite(result)
    below = parents(points)
    np.testing.assert_array_equal(empty.tile_empty, below)
    share = np.asarray(lonely.tile_words) / WORDS[:, None]
    np.testing.assert_allclose(lonely.tile_empty, np.where(below, 1.0 - share, 0.0), atol=1e-12)
    assert not empty.computes_by_fate[Fate.ACTUAL, ...][sure_to_vanish(points)].any()


def sure_to_vanish(points: list[Point]) -> np.ndarray:
    """Where every operation with a zero is gated, skipped or not there [lane]."""
    return lanes_of(points)[0].compute_gating > 0.0


def parents(points: list[Point]) -> np.ndarray:
    """Where the next outer level that keeps the tensor has metadata [level, tensor, lane]."""
    own, keep = has_metadata(points), as_lanes(points)[1].keep > 0.0
    found, outer = np.zeros_like(own), np.zeros_like(own[0])
    for s in reversed(range(len(own))):
        found[s] = outer & keep[s]
        outer = np.where(keep[s], own[s], outer)
    return found


def idle_moved(point: Point, rng: random.Random) -> Point:
    """Loops of one iteration anywhere between the others, but for the spatial ones at the compute units."""
    program, mapping = point
    bounds = {"temporal_order": mapping.temporal, "spatial_order": mapping.spatial_x * mapping.spatial_y}
    orders = {name: getattr(mapping, name).copy() for name in bounds}
    for name, order in orders.items():
        for s in range(int(name == "spatial_order"), len(order)):
            kept = [rank for rank in order[s] if bounds[name][s, rank] > 1.0]
            for rank in rng.sample(idle := [rank for rank in order[s] if rank not in kept], len(idle)):
                kept.insert(rng.randint(0, len(kept)), rank)
            order[s] = kept
    return program, replace(mapping, **orders)


@each_reading
@examples
@given(seeds)
def test_loops_of_one_iteration_change_nothing(reading: str, seed: int):
    """With blocks of one word: else a leader tile grows along the rank of the innermost loop, whatever its bound (3.2
    step 5d). Spatial loops at the compute units stay where they are: the last one is the target loop where no other
    moves the target (3.2 step 3). Without uncompressed representations: they take such a loop for all of its rank that
    lies further in (2.3). In the reference's readings without any: a format rank without loops has the tile of the
    innermost loop, whatever its bound (2.4)."""
    rng, conventions = random.Random(seed), READINGS[reading]
    points = draw_all(seed, Choice(blocks=(1,), formats=not conventions.recorded_dummy_tiles, uncompressed=0.0))
    ours, expected = (evaluate_points(side, conventions) for side in ([idle_moved(p, rng) for p in points], points))
    assert_same(ours, expected, rtol=1e-14)


def repriced(point: Point, prices: dict[str, np.ndarray]) -> Point:
    program, mapping = point
    sparse = replace(sparse_of(point), **{name: prices[name] for name in SPARSE_PRICES})
    return replace(program, **{name: prices[name] for name in PRICES}, sparse=sparse), mapping


@each_reading
@examples
@given(seeds)
def test_energy_is_linear_in_the_prices(reading: str, seed: int):
    """Of groups without alternatives: which one is chosen depends on prices (3.3)."""
    numbers, conventions = np.random.default_rng(seed), READINGS[reading]
    points = draw_all(seed)
    tables: list[list[Point]] = [[], [], []]
    for point in points:
        first, second = ({n: numbers.uniform(0.1, 9.0, np.shape(price_of(point, n))) for n in PRICED} for _ in range(2))
        mixed = {name: 3.0 * first[name] + 0.25 * second[name] for name in PRICED}
        for table, prices in zip(tables, (first, second, mixed), strict=True):
            table.append(repriced(point, prices))
    energies = [np.asarray(evaluate_points(table, conventions).energy_pj) for table in tables]
    np.testing.assert_allclose(energies[2], 3.0 * energies[0] + 0.25 * energies[1], rtol=1e-12)
    free = [repriced(point, {n: np.zeros_like(price_of(point, n)) for n in PRICED}) for point in points]
    assert not np.asarray(evaluate_points(free, conventions).energy_pj).any()


PRICED = (*PRICES, *SPARSE_PRICES)


def price_of(point: Point, name: str) -> Any:
    return getattr(point[0] if name in PRICES else sparse_of(point), name)


@each_reading
@examples
@given(seeds)
def test_order_of_groups_does_not_matter(reading: str, seed: int):
    """Of groups of one kind: only a larger chance replaces another (3.4)."""
    rng, conventions = random.Random(seed), READINGS[reading]
    points = draw_all(seed, Choice(kinds=(rng.choice((GATING, SKIPPING)),)))
    names = ("saf_kind", "saf_level", "saf_target", "saf_leaders")
    shuffled = []
    for point in points:
        order = rng.sample(range(GROUPS), GROUPS)
        shuffled.append(with_sparse(point, **{n: getattr(sparse_of(point), n)[order] for n in names}))
    assert_same(evaluate_points(shuffled, conventions), evaluate_points(points, conventions))


def enlarged(point: Point, rng: random.Random, doublings: int = 27) -> Point:
    """The point with ranks M and K longer by 2^`doublings` each, spread over the levels: A has 2^60 words."""
    program, mapping = point
    temporal, sizes = mapping.temporal.copy(), program.rank_sizes.copy()
    for rank in range(2):
        for _ in range(doublings):
            temporal[rng.randrange(len(temporal)), rank] *= 2.0
        sizes[rank] *= 2.0**doublings
    return replace(program, rank_sizes=sizes), replace(mapping, temporal=temporal)


@pytest.mark.parametrize("reading", ["timeloop", "smooth"])
@examples
@given(seeds)
def test_tensors_of_many_words(reading: str, seed: int):
    """2^60. The reference's sums over occupancies take as long as there are likely ones, so that there no tensor is
    uniformly random."""
    rng, conventions = random.Random(seed), READINGS[reading]
    choice = Choice((STRUCTURED,) if conventions.occupancy_sums else (STRUCTURED, UNIFORM, BANDED))
    points = [enlarged(point, rng) for point in draw_all(seed, choice)]
    result = evaluate_points(points, conventions)
    dense = evaluate_points([without_sparse(point) for point in points], conventions)
    assert_all_finite(result)
    assert not (np.asarray(result.status) & ~(int(Status.FORMATS_DO_NOT_FIT) | int(Status.NEGATIVE_READS))).any()
    sparse, mapping = lanes_of(points)
    share = (1.0 - np.asarray(result.tile_empty)) * result.expected_density
    kept = (mapping.keep > 0.0) & (sparse.density_kind != BANDED)
    np.testing.assert_allclose(np.where(kept, share, sparse.density), share * 0.0 + sparse.density, rtol=1e-9)
    total = np.asarray(result.accesses).sum(axis=0)
    assert (total <= np.asarray(dense.accesses).sum(axis=0) * (1.0 + 1e-9) + 1.0).all()
    assert (np.asarray(result.compute_cycles) <= np.asarray(dense.compute_cycles) * (1.0 + 1e-9)).all()


def spoiled(point: Point, rng: random.Random) -> Point:
    """A point that something is wrong with."""
    program, mapping = point
    level = rng.randrange(len(mapping.temporal))
    wrong = rng.choice((0.0, -1.0, 7.0, np.nan, np.inf))
    temporal, keep = mapping.temporal.copy(), mapping.keep.copy()
    temporal[level, 0], keep[:, rng.randrange(3)] = wrong, 0.0
    formats = sparse_of(point).rank_format.copy()
    formats[:, :, 1:] = 0
    tiny = np.ones_like(program.size)
    return rng.choice(
        (
            (program, replace(mapping, temporal=temporal)),
            (program, replace(mapping, keep=keep)),
            with_sparse(point, rank_format=formats, merges=0.0 * sparse_of(point).merges),
            with_sparse((replace(program, size=tiny), mapping), metadata_size=tiny),
        )
    )


@each_reading
@examples
@given(seeds)
def test_a_bad_row_poisons_no_other(reading: str, seed: int):
    """Factors that are no numbers, tensors stored nowhere, formats with too few ranks, hardly any capacity."""
    rng, conventions = random.Random(seed), READINGS[reading]
    points = draw_all(seed)
    bad = {lane: spoiled(points[lane], rng) for lane in rng.sample(range(len(points)), 20)}
    clean = evaluate_points(points, conventions)
    mixed = evaluate_points([bad.get(lane, point) for lane, point in enumerate(points)], conventions)
    assert_all_finite(mixed)
    others = [lane for lane in range(len(points)) if lane not in bad]
    for name in BATCH_FIELDS:
        ours, expected = (np.asarray(getattr(result, name))[..., others] for result in (mixed, clean))
        np.testing.assert_array_equal(ours, expected, err_msg=name)
    assert (np.asarray(mixed.status)[list(bad)] != 0).sum() >= 10
