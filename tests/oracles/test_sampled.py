"""The smooth model against what happens to really drawn sparse tensors.

First the simulator itself, on cases that can be counted by hand, and its encoder, by decoding; then the model on random
designs; last the known limits of the model, each with the size of the error in one example.
"""

import itertools
import math

import numpy as np
import pytest

import jaxloop
from jaxloop.program import Action, Fate
from jaxloop.result import Evaluation
from jaxloop.spec.sparse import RankFormat

from .sampled import Estimate, Key, Simulation, compare, estimate
from .sampled_cases import A_TILE, BY_HAND, DENSITIES, GATING, HALF, LIMITS, TWO_OF_FOUR
from .sampled_designs import FAMILIES, Level, Saf, Spec, random_spec
from .sampled_format import Digit, Layout, count_units, decode, encode
from .sampled_limits import limits
from .sampled_tensors import band, blocks, lattice, uniform

FATES = {"actual": Fate.ACTUAL, "gated": Fate.GATED, "skipped": Fate.SKIPPED}
ACTIONS = {"reads": Action.READ, "fills": Action.FILL, "updates": Action.UPDATE}


def model_counts(simulation: Simulation, evaluation: Evaluation) -> dict[Key, float]:
    """What the model expects under the simulation's keys, over all instances."""
    walk = simulation.walk
    out: dict[Key, float] = {("computes", kind): float(evaluation.computes_by_fate[f]) for kind, f in FATES.items()}
    out["cycles",] = float(evaluation.compute_cycles)
    for number, name in enumerate(walk.tensors):
        for level in (s for s in range(walk.depth) if walk.keeps(name, s)):
            at, where = (level, number), (level, name)
            instances = float(evaluation.instances[at])
            present = 1.0 - float(evaluation.tile_empty[at])
            out["instances", *where] = instances
            out["tile_words", *where] = present * float(evaluation.expected_words[at])
            for (kind, fate), (action, index) in itertools.product(FATES.items(), ACTIONS.items()):
                out[action, kind, *where] = instances * float(evaluation.accesses[fate, index, *at])
            layout = simulation.layouts[name].get(level)
            parts = itertools.product(range(len(layout.ranks) if layout else 0), enumerate(("metadata", "payload")))
            for rank, (part, what) in parts:
                out["tile_units", *where, rank, what] = present * float(evaluation.metadata_units[*at, rank, part])
                for (kind, fate), (action, index) in itertools.product(FATES.items(), ACTIONS.items()):
                    units = float(evaluation.metadata_accesses[fate, index, *at, rank, part])
                    out[f"metadata_{action}", kind, *where, rank, what] = instances * units
            for what in ("temporal_reductions", "decompressions", "compressions"):
                out[what, *where] = instances * float(getattr(evaluation, what)[at])
    return out


@pytest.mark.parametrize(("spec", "expected"), BY_HAND, ids=["E2", "E3", "E4", "E5", "bitmask"])
def test_cases_counted_by_hand(spec: Spec, expected: dict[Key, float]):
    simulation = Simulation(spec.load())
    assert list(compare(estimate(simulation, np.random.default_rng(0), 2000), expected, 2000)) == []
    model = model_counts(simulation, jaxloop.evaluate(simulation.design, conventions=jaxloop.SMOOTH))
    assert {key: model[key] for key in expected} == pytest.approx(expected, rel=1e-9)


def test_one_matrix_product_counted_by_hand():
    """Rows of A times B, one nonzero in A: M 2, K 2, N 2 at the inner level, K outer; A is [[1, 0], [0, 0]]."""
    spec = Spec(
        "matmul",
        (Level("N2 M2"), Level("K2")),
        formats={(1, "A"): "CP CP", (0, "A"): "CP"},
        safs=(Saf(0, "B", "A"), Saf(1, "B", "A")),
        compute=("skipping",),
    )
    masks = {"A": np.array([[[1, 0], [0, 0]]], bool), "B": np.ones((1, 2, 2), bool), "Z": np.ones((1, 2, 2), bool)}
    counts = {key: float(value[0]) for key, value in Simulation(spec.load()).run(masks).items()}
    # the second column of A is empty: it is not delivered, nor the second row of B
    assert counts["instances", 0, "A"] == 0.5
    assert counts["fills", "actual", 0, "A"] == 1
    assert counts["reads", "actual", 1, "B"] == 2 and counts["reads", "skipped", 1, "B"] == 2
    # of the first, only the upper element is there: two of the four products with it need B
    assert counts["reads", "actual", 0, "B"] == 2 and counts["reads", "skipped", 0, "B"] == 2
    assert counts["computes", "actual"] == 2 and counts["cycles",] == 2
    # the outer level stores one coordinate per rank, the inner one the coordinate within the column
    assert counts["metadata_reads", "actual", 1, "A", 1, "metadata"] == 1
    assert counts["metadata_fills", "actual", 0, "A", 0, "metadata"] == 1


COMPRESSED_FORMATS = RankFormat.CP, RankFormat.B, RankFormat.RLE
LISTS = [
    formats
    for count in (1, 2, 3)
    for formats in itertools.product(RankFormat, repeat=count)
    # once a rank is compressed, all ranks inside it are
    if not any(a in COMPRESSED_FORMATS and b not in COMPRESSED_FORMATS for a, b in itertools.pairwise(formats))
]


@pytest.mark.parametrize("formats", LISTS, ids=lambda formats: "-".join(formats))
def test_encoded_tiles_decode_and_are_counted(formats: tuple[RankFormat, ...]):
    """Streams hold the tile, and `count_units` counts their entries."""
    rng = np.random.default_rng(len(LISTS))
    shape = (3, 4, 2)[: len(formats)]
    layout = Layout(formats[::-1], tuple((Digit(width, 0),) for width in reversed(shape)), len(formats) - 1)
    for density in (0.0, 0.1, 0.4, 1.0):
        tile = rng.random(shape) < density
        streams = encode(tile, formats)
        np.testing.assert_array_equal(decode(streams, formats, shape), tile)
        units = count_units(tile.reshape(-1), layout)[::-1]
        assert [len(stream.metadata) for stream in streams] == units[:, 0].tolist()
        assert [len(stream.payload) for stream in streams[:-1]] == units[:-1, 1].tolist()
        assert units[-1, 1] == 0  # the data itself


def test_lattices_give_every_tile_its_share():
    rng = np.random.default_rng(0)
    for density, shape in itertools.product((0.25, 0.5, 0.75), ((16,), (8, 8), (4, 8, 4), (1, 8))):
        masks = lattice(rng, 64, shape, density)
        for tile in itertools.product(*([1 << b for b in range(s.bit_length())] for s in shape)):
            split = [x for side, extent in zip(shape, tile, strict=True) for x in (side // extent, extent)]
            nonzeros = masks.reshape(64, *split).sum(tuple(range(2, 2 * len(shape) + 1, 2)))
            share = math.prod(tile) * density
            assert nonzeros.min() >= math.floor(share) and nonzeros.max() <= math.ceil(share)


def test_samples_have_their_density():
    rng = np.random.default_rng(0)
    assert (uniform(rng, 50, (4, 6), 0.25).sum((1, 2)) == 6).all()
    assert abs(uniform(rng, 4000, (4, 6), 0.25).mean(0) - 0.25).max() < 0.03
    assert (blocks(rng, 50, (4, 8), 2, 4).reshape(50, 4, 2, 4).sum(-1) == 2).all()
    assert band((4, 4), 1).sum() == 10


def check_design(spec: Spec, seed: int) -> None:
    """Every count within 1 % or 3 standard errors. What fails with few samples is drawn again, many times: a chance
    deviation goes away."""
    simulation = Simulation(spec.load())
    evaluation = jaxloop.evaluate(simulation.design, conventions=jaxloop.SMOOTH)
    model = model_counts(simulation, evaluation)
    for attempt, samples in enumerate((128, 2000)):
        counts = estimate(simulation, np.random.default_rng([seed, attempt]), samples)
        missing = {key for key, value in counts.items() if key not in model and value.mean and key[0] not in UNMODELED}
        assert not missing
        found = list(compare(counts, model, samples))
        if not found:
            break
    assert found == [], spec
    for number, name in enumerate(simulation.walk.tensors):
        for level in simulation.layouts[name]:
            assert counts["largest_tile", level, name].mean <= evaluation.stored_words[level, number] + 1e-9


UNMODELED = "lockstep_cycles", "longest_cycles", "largest_tile"


def check_family(family: str, seeds: range, wanted: int) -> None:
    checked = 0
    for seed in seeds:
        spec = random_spec(seed, family)
        if checked < wanted and not limits(Simulation(spec.load())):
            check_design(spec, seed)
            checked += 1
    assert checked == wanted


@pytest.mark.parametrize("family", FAMILIES)
def test_random_designs(family: str):
    check_family(family, range(100), 12)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_many_random_designs(family: str):
    check_family(family, range(1000, 2000), 150)


@pytest.mark.parametrize("name", LIMITS)
def test_known_limits(name: str):
    """The model errs here, and by this much."""
    limit = LIMITS[name]
    simulation = Simulation(limit.spec.load())
    model = model_counts(simulation, jaxloop.evaluate(simulation.design, conventions=jaxloop.SMOOTH))
    rng = np.random.default_rng(0)
    counts = estimate(simulation, rng, 1000, limit.sampler) if limit.sampler else estimate(simulation, rng, 1000)
    assert model[limit.key] == pytest.approx(limit.model, abs=1e-9)
    assert abs(counts[limit.key].mean - limit.truth) <= max(4 * counts[limit.key].error, 1e-9)
    assert abs(limit.truth - limit.model) > 0.01 * limit.truth
    # tensors that are not as their densities promise are not a matter of the design
    assert limit.sampler is not None or limits(simulation)


def test_whole_blocks_are_as_the_model_says():
    """2 of 4 at random is as good as a lattice to tiles of whole blocks, and to single elements."""
    spec = Spec(
        "matmul",
        (Level("K4"), Level("N4 M8 K2")),
        HALF,
        {(1, "A"): "UOP UOP CP", (0, "A"): "CP"},
        (Saf(1, "B", "A"), Saf(0, "B", "A")),
        ("gating",),
    )
    simulation = Simulation(spec.load())
    model = model_counts(simulation, jaxloop.evaluate(simulation.design, conventions=jaxloop.SMOOTH))
    counts = estimate(simulation, np.random.default_rng(0), 500, TWO_OF_FOUR)
    assert list(compare(counts, model, 500)) == []


def test_units_that_wait_for_each_other():
    """The model's cycles are those of evenly loaded units. In lockstep a step costs a cycle if one unit works."""
    spec = Spec(
        "matmul",
        (Level("K8", "M4"), Level("N8 M2")),
        DENSITIES,
        {(1, "A"): "UOP UOP UOP CP", (0, "A"): "UOP CP"},
        (Saf(0, "B", "A"),),
        ("skipping",),
    )
    counts = estimate(Simulation(spec.load()), np.random.default_rng(0), 1000)
    assert counts["cycles",].mean == 512 / 4 * 0.25
    expected: dict[Key, float] = {("lockstep_cycles",): 128 * (1 - A_TILE)}
    assert list(compare(counts, expected, 1000)) == []
    assert counts["cycles",].mean < counts["longest_cycles",].mean < counts["lockstep_cycles",].mean


def test_estimates_have_errors():
    counts = estimate(Simulation(GATING.load()), np.random.default_rng(0), 400)
    assert counts["reads", "actual", 0, "B"] == Estimate(32.0, 0.0)
    # 2 elements of A x 16 of B meet per sample, of 128; a variance of that order
    assert 0.05 < counts["computes", "actual"].error < 0.3
