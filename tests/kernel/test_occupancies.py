"""Sums and quantiles over occupancies, of tensors of all distributions side by side, against exact distributions."""

import math
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxloop.conventions import SMOOTH, TIMELOOP_2022, Conventions
from jaxloop.kernel.density import Densities
from jaxloop.kernel.density.base import Box, Nonzeros, Visit
from jaxloop.program import DENSITY_KINDS, SparseStructure
from jaxloop.spec.density import Density, Distribution

from ..helpers import QUICK
from ..oracles.sparse_density import density_model
from .occupancies import likely

LANES = 24
BAND = 3
SPARSE = SparseStructure(hypergeometric=True, band=BAND)
KINDS = (Distribution.FIXED_STRUCTURED, Distribution.HYPERGEOMETRIC, Distribution.BANDED)
CONFIDENCES = (1 / 128, 0.25, 0.3, 0.49, 0.5, 0.51, 0.75, 0.9, 127 / 128)


class Case(NamedTuple):
    """A square tensor and its tile."""

    density: Density
    side: int
    height: int
    width: int

    @property
    def is_random(self) -> bool:
        return self.density.distribution is Distribution.HYPERGEOMETRIC

    @property
    def entries(self) -> list[tuple[int, float]]:
        if self.is_random:
            size = self.side**2
            return random_entries(size, math.ceil(self.density.density * size), self.height * self.width)
        return density_model(self.density, (self.side, self.side)).entries((self.height, self.width))


def random_entries(size: int, filled: int, words: int) -> list[tuple[int, float]]:
    """The whole support of the hypergeometric distribution."""
    support = range(max(0, words + filled - size), min(words, filled) + 1)
    ways = [math.comb(filled, k) * math.comb(size - filled, words - k) for k in support]
    return [(k, n / math.comb(size, words)) for k, n in zip(support, ways, strict=True)]


def draw_cases() -> list[list[Case]]:
    """A row per distribution."""
    rng = np.random.default_rng(1)

    def draw(kind: Distribution) -> Case:
        side = int(rng.integers(2, 21))
        half, share = min(int(rng.integers(BAND + 1)), side - 1), float(rng.choice([rng.random(), 0.25, 0.5]))
        height, width = (int(rng.integers(1, side + 1)) for _ in range(2))
        return Case(Density(kind, 1.0 if kind is Distribution.BANDED else share, half), side, height, width)

    return [[draw(kind) for _ in range(LANES)] for kind in KINDS]


CASES = draw_cases()


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def inputs() -> tuple[Densities, Box]:
    """Tensors and tiles [tensor, lane]."""

    def column(read: Any) -> jax.Array:
        return jnp.asarray(np.array([[read(case) for case in row] for row in CASES], float))

    side, height, width = (column(lambda case, name=name: getattr(case, name)) for name in ("side", "height", "width"))
    density, half = column(lambda case: case.density.density), column(lambda case: case.density.band_width)
    kind = jnp.asarray([[DENSITY_KINDS[kind]] for kind in KINDS])
    nonzeros = Nonzeros(side * side, density, half, side, TIMELOOP_2022)
    return Densities(nonzeros, kind, SPARSE), Box(height * width, height, width)


def add(sums: Any, visit: Visit) -> Any:
    """Total probability, moments, chances of empty parts, and whether occupancies ascend."""
    total, mean, square, empty, last, ascending = sums
    chance, there = visit.probability, visit.probability > 0.0
    return (
        total + chance,
        mean + chance * visit.count,
        square + chance * visit.count**2,
        empty + chance * visit.part_empty,
        jnp.where(there, visit.count, last),
        ascending & (~there | (visit.count > last)),
    )


def start(like: Any) -> Any:
    zero = jnp.zeros_like(like)
    return zero, zero, zero, zero[None], zero - 1.0, jnp.ones_like(like, bool)


def test_sums():
    """Of tiles that are not wanted nothing is added. One word of a tile of k nonzeros is zero with chance 1 - k / n."""
    densities, tile = inputs()
    wanted = jnp.arange(LANES) % 4 != 3
    scalar = jnp.ones((1, len(KINDS), LANES))
    one = Box(scalar, scalar, scalar)
    found = jax.jit(lambda d, t: d.walk(t, one).sum(add, start(t.words), wanted), compiler_options=QUICK)(
        densities, tile
    )
    total, mean, square, empty, last, ascending = (np.asarray(leaf) for leaf in found)
    assert ascending.all()
    for row, cases in enumerate(CASES):
        for lane, case in enumerate(cases):
            if lane % 4 == 3:
                assert (total[row, lane], mean[row, lane], last[row, lane]) == (0.0, 0.0, -1.0)
                continue
            count, chance = (np.array(column, float) for column in zip(*case.entries, strict=True))
            assert total[row, lane] == pytest.approx(chance.sum(), rel=1e-14), case
            assert mean[row, lane] == pytest.approx(count @ chance, rel=1e-13), case
            assert square[row, lane] == pytest.approx(count**2 @ chance, rel=1e-13), case
            if case.density.distribution is not Distribution.BANDED:
                words = case.height * case.width
                parts = np.maximum(1.0 - count / words, 0.0) @ chance
                assert empty[0, row, lane] == pytest.approx(parts, rel=1e-12, abs=1e-14), case


def test_the_first_occupancy():
    densities, tile = inputs()
    none = jax.tree.map(lambda leaf: leaf[None][:0], tile)
    first = jax.jit(lambda d, t: d.walk(t, none).first(), compiler_options=QUICK)(densities, tile)
    for row, cases in enumerate(CASES):
        for lane, case in enumerate(cases):
            entries, count = dict(case.entries), int(first.count[row, lane])
            assert first.probability[row, lane] == entries[count], case
            assert sum(chance for k, chance in entries.items() if k < count) < 1e-20, case


def quantile(entries: list[tuple[int, float]], confidence: float, outward: bool) -> set[int]:
    """The smallest number that is exceeded with no more than the rest of `confidence`; or, below one half, the largest
    that is not exceeded with no more than `confidence`. Both neighbors of what the last digits decide."""
    found = set()
    for slack in (-1e-12, 0.0, 1e-12):
        below, chosen, known = Fraction(0), entries[0][0], Fraction(confidence) + Fraction(slack)
        for count, chance in entries:
            upto = below + Fraction(chance)
            if (upto <= known) if outward and confidence < 0.5 else (below < known):
                chosen = count
            below = upto
        found.add(chosen)
    return found


def quantiles(densities: Densities, tile: Box, wanted: Any, confidences: tuple[float, ...] = CONFIDENCES) -> np.ndarray:
    """[confidence, ...], and the first occupancy as the last of them."""
    none = jax.tree.map(lambda leaf: leaf[None][:0], tile)
    asked = jnp.asarray(confidences, tile.words.dtype)

    @partial(jax.jit, compiler_options=QUICK)
    def answer(densities: Densities, tile: Box) -> Any:
        walk = densities.walk(tile, none)
        found = jax.lax.map(lambda confidence: walk.quantile(confidence, wanted), asked)
        return jnp.concatenate([found, walk.first().count[None]])

    return np.asarray(answer(densities, tile))


def test_quantiles():
    """Of tiles that are not wanted it is the first occupancy."""
    wanted = jnp.arange(LANES) % 4 != 3
    *found, first = quantiles(*inputs(), wanted)
    decided = 0
    for confidence, of_tensors in zip(CONFIDENCES, found, strict=True):
        np.testing.assert_array_equal(of_tensors[:, 3::4], first[:, 3::4])
        for cases, of_lanes in zip(CASES, of_tensors, strict=True):
            for lane, (case, ours) in enumerate(zip(cases, of_lanes, strict=True)):
                allowed = quantile(case.entries, confidence, case.is_random)
                assert lane % 4 == 3 or ours in allowed, (case, confidence)
                decided += lane % 4 != 3 and len(allowed) == 1 and len(case.entries) > 1
    assert decided > 300


def random_tensors(
    cases: list[tuple[int, int, int]], strided: bool, dtype: type, conventions: Conventions
) -> tuple[Densities, Box]:
    """From words, nonzeros and words of the tile."""
    size, filled, words = np.array(cases, dtype).T
    kind = jnp.asarray(DENSITY_KINDS[Distribution.HYPERGEOMETRIC])
    size, density, words = jnp.asarray(size), jnp.asarray(filled / size), jnp.asarray(words)
    nonzeros = Nonzeros(size, density, size, size, conventions)
    return Densities(nonzeros, kind, SparseStructure(hypergeometric=True, strided=strided)), Box(words)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_quantiles_without_integer_counts(dtype: type):
    """The weights of a walk span more powers of ten than a short float holds."""
    cases = [(1024, 512, 256), (512, 256, 512), (4096, 1024, 64)]
    with jax.enable_x64(dtype == np.float64):
        *found, first = quantiles(*random_tensors(cases, False, dtype, SMOOTH), True)
    assert first.dtype == dtype
    for confidence, of_cases in zip(CONFIDENCES, found, strict=True):
        for case, ours in zip(cases, of_cases, strict=True):
            assert ours in quantile(random_entries(*case), confidence, True), (case, confidence)


def test_no_confidence_is_the_least_occupancy():
    """Even where the walk starts further up (spec/sparse.md 1.4)."""
    cases = [(1024, 512, 256), (1024, 900, 512), (512, 256, 512)]
    found, _ = quantiles(*random_tensors(cases, False, np.float64, TIMELOOP_2022), True, (0.0,))
    assert found.tolist() == [0.0, 388.0, 256.0]
    found, _ = quantiles(*inputs(), True, (0.0,))
    assert found.tolist() == [[float(case.entries[0][0]) for case in row] for row in CASES]


def test_quantiles_of_strided_walks():
    """Off by less than two strides."""
    cases = [(100_000, 50_000, 40_000), (100_000, 30_000, 50_000)]
    densities, tile = random_tensors(cases, True, np.float64, TIMELOOP_2022)
    walk = densities.walk(tile, Box(tile.words[None][:0])).walks[DENSITY_KINDS[Distribution.HYPERGEOMETRIC]]
    stride = np.asarray(walk.fixed[1])
    assert np.all(stride == 2.0)
    *found, _ = quantiles(densities, tile, True)
    for confidence, of_cases in zip(CONFIDENCES, found, strict=True):
        for case, ours in zip(cases, of_cases, strict=True):
            count, chance = likely(*case)
            entries = list(zip(count.tolist(), chance.tolist(), strict=True))
            assert all(abs(ours - exact) < 4.0 for exact in quantile(entries, confidence, True)), (case, confidence)


def test_walks_carry_no_tangent():
    densities, tile = inputs()

    def mean(words: jax.Array) -> jax.Array:
        whole = Box(words, tile.height, tile.width)
        walk = densities.walk(whole, jax.tree.map(lambda leaf: leaf[None][:0], whole))
        return jnp.sum(walk.sum(lambda total, visit: total + visit.probability * visit.count, 0.0 * tile.words, True))

    value, slope = jax.jit(jax.value_and_grad(mean), compiler_options=QUICK)(tile.words)
    assert value > 100.0 and not np.asarray(slope).any()
