"""`jaxloop/kernel/density/hypergeometric.py` against exact rational arithmetic."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxloop.conventions import SMOOTH, TIMELOOP_2022, Conventions
from jaxloop.kernel.density.base import Box, Nonzeros
from jaxloop.kernel.density.hypergeometric import STRIDED_NODES, Hypergeometric
from jaxloop.kernel.density.stirling import prob_empty, stirling_remainder

from ..helpers import QUICK
from ..oracles import sparse_density
from .occupancies import Seen, likely, look

Case = tuple[int, int, int]
"""Words of the tensor, nonzeros, words of the tile."""
PRECISIONS = {"double": np.float64, "single": np.float32}
each_precision = pytest.mark.parametrize("dtype", PRECISIONS.values(), ids=PRECISIONS)
TOLERANCES = {np.float64: 1e-12, np.float32: 1e-6}
SMALL = [(size, filled, words) for size in range(1, 25) for filled in range(size + 1) for words in range(size + 1)]
HUGE = 1 << 60
EXTREMES = [
    *((size, filled, words) for size in (0, 1) for filled in range(size + 1) for words in range(size + 1)),
    *((9, 0, 4), (9, 9, 4), (9, 4, 0), (9, 4, 9), (HUGE, 0, HUGE), (HUGE, HUGE, HUGE), (HUGE, HUGE, 0)),
    *((HUGE, HUGE, 1), (HUGE, 1, HUGE), (HUGE, HUGE // 2, HUGE // 2), (HUGE, HUGE // 2, 3), (HUGE, 1000, HUGE // 2)),
]


@contextmanager
def precision(dtype: type) -> Iterator[None]:
    with jax.enable_x64(dtype == np.float64):
        yield


def columns(cases: list[Case], dtype: type) -> list[jax.Array]:
    return [jnp.asarray(np.array([case[i] for case in cases], object).astype(dtype)) for i in range(3)]


def tensor(size: jax.Array, filled: jax.Array) -> Nonzeros:
    """With a density in the middle of those that give this many nonzeros."""
    density = jnp.maximum(filled - 0.5, 0.0) / jnp.maximum(size, 1.0)
    return Nonzeros(words=size, density=density, band_width=size, side=size, conventions=TIMELOOP_2022)


def real_tensor(size: jax.Array, filled: jax.Array) -> Nonzeros:
    """With any density."""
    return Nonzeros(size, filled / jnp.maximum(size, 1.0), size, size, SMOOTH)


def log_factorial(value: Any) -> Any:
    return mpmath.loggamma(mpmath.mpf(value) + 1)


def exponential(value: Any) -> Any:
    return mpmath.exp(value)


def by_factorials(size: float, filled: float, words: float) -> float:
    """C(N - r, n) / C(N, n) of real counts, with n <= N - r."""
    with mpmath.workdps(60):
        whole, r, n = map(mpmath.mpf, (size, filled, words))
        log = log_factorial(whole - r) + log_factorial(whole - n) - log_factorial(whole - r - n)
        return float(exponential(log - log_factorial(whole)))


def exact(case: Case) -> float:
    """C(N - r, n) / C(N, n), correctly rounded where one of r and n is small, else to 40 digits."""
    size, filled, words = case
    fewer, more = sorted((filled, words))
    if words > size - filled:
        return 0.0
    if fewer <= 200:
        return math.perm(size - more, fewer) / math.perm(size, fewer)
    return by_factorials(size, filled, words)


def draw(count: int, bits: float, mantissa: int, seed: int) -> list[Case]:
    """Sizes of up to `bits` bits, all counts with `mantissa` leading bits: some at random, some where the probability
    is well between 0 and 1, some next to where it gets 0."""
    rng = np.random.default_rng(seed)

    def representable(value: float) -> int:
        fraction, exponent = math.frexp(value)
        return int(math.ldexp(round(math.ldexp(fraction, mantissa)), exponent - mantissa))

    cases = []
    for kind in np.arange(count) % 3:
        size = representable(int(2 ** rng.uniform(0.0, bits)))
        one, other = (representable(min(size, int(2 ** rng.uniform(-1.0, math.log2(size) + 0.01)))) for _ in range(2))
        if kind == 1:
            other = representable(min(size, int(size / max(one, 1) * rng.exponential(2.0))))
        elif kind == 2:
            other = representable(min(size, max(size - one - int(rng.integers(-2, 6)), 0)))
        cases.append((size, one, other) if rng.integers(2) else (size, other, one))
    return cases


@each_precision
def test_prob_empty_is_exact(dtype: type):
    mantissa = 53 if dtype == np.float64 else 24
    cases = EXTREMES + draw(10_000, 12, mantissa, 1) + draw(10_000, 60, mantissa, 2)
    expected = np.array([exact(case) for case in cases])
    with precision(dtype):
        result = np.asarray(jax.jit(prob_empty)(*columns(cases, dtype)))
    none = np.array([words > size - filled for size, filled, words in cases])
    assert result.dtype == dtype
    assert np.sum((expected > 1e-3) & (expected < 0.999)) > 5000 and none.sum() > 2000
    assert np.all(result[none] == 0.0) and np.all((result >= 0.0) & (result <= 1.0))
    np.testing.assert_allclose(result, expected, rtol=0.0, atol=TOLERANCES[dtype])


@each_precision
def test_zeros_ones_and_quotients_are_exact(dtype: type):
    """Whether a probability is 0 or 1 decides what is conditioned on; whether that of a single word is the nearest
    number decides ceilings."""
    with precision(dtype):
        result = np.asarray(jax.jit(prob_empty)(*columns(SMALL, dtype)))
    for case, value in zip(SMALL, result, strict=True):
        size, filled, words = case
        assert (value == 0.0) == (words > size - filled), case
        assert (value == 1.0) == (filled == 0 or words == 0), case
        if filled == 1 or words == 1:
            assert value == dtype(size - (filled + words - 1)) / dtype(size), case


def test_single_words_of_large_tensors():
    """One size for many densities: where XLA would multiply by a reciprocal."""
    rng = np.random.default_rng(5)
    filled = np.sort(rng.integers(0, 1_000_003, 5000)).astype(float)
    with jax.enable_x64(True):
        size, word = jnp.asarray(1_000_003.0), jnp.asarray(1.0)
        result = np.asarray(jax.jit(prob_empty)(size, jnp.asarray(filled), word))
    np.testing.assert_array_equal(result, (1_000_003.0 - filled) / 1_000_003.0)


def test_prob_empty_of_real_counts():
    """By gamma functions."""
    rng = np.random.default_rng(6)
    size = 2 ** rng.uniform(2.0, 30.0, 500)
    filled = (size - 1.0) * rng.uniform(0.0, 0.9, 500)
    words = np.minimum(size / filled * rng.exponential(1.0, 500), 0.999 * (size - filled))
    cases = list(zip(size, filled, words, strict=True))
    expected = [by_factorials(*case) for case in cases]
    with jax.enable_x64(True):
        result = np.asarray(jax.jit(prob_empty)(*(jnp.asarray(x) for x in (size, filled, words))))
    np.testing.assert_allclose(result, expected, rtol=0.0, atol=1e-12)


def test_stirling_remainder():
    points = np.concatenate([np.linspace(4.0, 12.0, 200), 2.0 ** np.arange(4, 60)])
    expected = []
    with mpmath.workdps(60):
        for z in map(mpmath.mpf, points):
            formula = (z - 0.5) * mpmath.log(z) - z + mpmath.log(2 * mpmath.pi) / 2
            expected.append(float(log_factorial(z - 1) - formula))
    with jax.enable_x64(True):
        np.testing.assert_allclose(stirling_remainder(jnp.asarray(points)), expected, rtol=0.0, atol=1e-13)


@each_precision
def test_gradients_are_finite(dtype: type):
    drawn = draw(2000, 60, 53 if dtype == np.float64 else 24, 7)
    rng = np.random.default_rng(8)
    with precision(dtype):
        counts = columns(drawn + EXTREMES + SMALL, dtype)
        shares = rng.uniform(0.0, 1.0, (2, counts[0].size)).astype(dtype)
        counts = [
            jnp.concatenate([counts[0]] * 2),
            *(
                jnp.concatenate([x, jnp.asarray(share) * counts[0]])
                for x, share in zip(counts[1:], shares, strict=True)
            ),
        ]
        slope = jax.jit(jax.grad(lambda *counts: jnp.sum(prob_empty(*counts)), (0, 1, 2)), compiler_options=QUICK)
        slopes = slope(*counts)
    assert np.isfinite(np.asarray(slopes)).all()


def test_gradients_are_those_of_the_gamma_functions():
    """A step of one count divides the product of quotients by harmonic numbers' differences. Single words have the
    derivative of their quotient, also in a full tensor."""

    def harmonic(first: int, last: int) -> float:
        return sum(1.0 / i for i in range(first, last + 1))

    cases = [case for case in SMALL if case[2] <= case[0] - case[1] or case[2] == 1]
    # many words of large tensors: derivatives by r and by n change places with r and n
    large = draw(2000, 30, 53, 9)
    mirrored = [(size, words, filled) for size, filled, words in large]
    expected = []
    for size, filled, words in cases:
        chance, zeros, outside = exact((size, filled, words)), size - filled, size - words
        if zeros < words:
            expected.append((1.0 / size, -1.0 / size))
            continue
        by_filled = harmonic(zeros - words + 1, zeros)
        expected.append((chance * (by_filled - harmonic(outside + 1, size)), -chance * by_filled))
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(lambda *counts: jnp.sum(prob_empty(*counts)), (0, 1, 2)), compiler_options=QUICK)
        slopes = np.asarray(slope(*columns(cases + large + mirrored, np.float64))).T
    np.testing.assert_allclose(slopes[: len(cases), :2], expected, rtol=0.0, atol=1e-9)
    one, other = np.split(slopes[len(cases) :], 2)
    np.testing.assert_allclose(one[:, [0, 2, 1]], other, rtol=1e-6, atol=1e-12)


def draw_tiles(count: int, smallest: float, largest: float, seed: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    sizes = [int(2**bits) for bits in rng.uniform(smallest, largest, count)]
    return [(size, int(rng.integers(size + 1)), int(rng.integers(size + 1))) for size in sizes]


LANES = 320


def walked(
    cases: list[Case], dtype: type = np.float64, strided: bool = True, conventions: Conventions = TIMELOOP_2022
) -> Seen:
    """Walks over tiles with two parts, repeated to one number of lanes: one executable serves most tests."""
    lanes = [cases[i % len(cases)] for i in range(LANES)]
    assert len(cases) <= LANES
    with precision(dtype):
        size, filled, words = columns(lanes, dtype)
        nonzeros = tensor(size, filled) if conventions.integer_counts else real_tensor(size, filled)
        parts = Box(jnp.stack([jnp.floor(words / 3.0), jnp.ones_like(words)]))
        # one more in single precision, where bounds beyond 2^24 are rounded
        seen = look(Hypergeometric(strided), nonzeros, Box(words), STRIDED_NODES + 1, parts)
    return Seen(*(leaf[..., : len(cases)] for leaf in seen))


@pytest.mark.parametrize("dtype, strided", [(np.float64, False), (np.float64, True), (np.float32, True)])
def test_probabilities_of_counts(dtype: type, strided: bool):
    """Where the support fits, each is that of the oracle, and there are no others."""
    cases = draw_tiles(300, 0.0, 9.0, 10)
    if dtype == np.float32:  # without integer counts, where sizes are powers of two to have whole numbers of nonzeros
        cases = [case for bits in range(10) for case in draw_tiles(30, bits, bits + 1e-9, bits)]
    found = walked(cases, dtype, strided, TIMELOOP_2022 if dtype == np.float64 else SMOOTH)
    assert found.count.dtype == found.probability.dtype == dtype
    for case, count, chance, length in zip(cases, found.count.T, found.probability.T, found.length, strict=True):
        expected = sparse_density.hypergeometric(*case)
        used, least = int(length), max(0, case[1] + case[2] - case[0])
        wanted = [expected.get(int(k), 0.0) for k in count[:used]]
        assert np.all(np.diff(count[:used]) == 1.0) and not chance[used:].any()
        assert min(case[1], case[2]) + 1 - least >= used >= len(expected) and count[0] <= min(expected)
        if strided:
            assert used == min(case[1], case[2]) + 1 - least
        if dtype == np.float64 and not strided:
            assert all(p in (right, 0.0) for p, right in zip(wanted, chance[:used], strict=True)), case
        np.testing.assert_allclose(chance[:used], wanted, rtol=0.0, atol=1e-10 if dtype == np.float64 else 1e-6)


SMOOTH_FUNCTIONS = {
    "count": lambda count, mean, deviation: (count - mean) / (deviation + 1.0),
    "square": lambda count, mean, deviation: ((count - mean) / (deviation + 1.0)) ** 2,
    "wave": lambda count, mean, deviation: np.cos((count - mean) / (deviation + 1.0)),
    "empty": lambda count, mean, deviation: np.exp(-count / (deviation + 1.0)),
}


def test_expectations_over_strided_nodes():
    """Skewed distributions are the hard ones: a mean near an end of the support. Functions with jumps, such as a
    ceiling, are off by what they do at the skipped counts."""
    cases = draw_tiles(40, 12.0, 20.0, 11)
    for size in (100_000, 10_000_000):
        for filled in (size // 3, 20 * math.isqrt(size), size - 20 * math.isqrt(size)):
            for mean in np.geomspace(1.0, filled / 3.0, 12):
                words = round(mean * size / filled)
                cases += [(size, filled, words), (size, filled, size - words)]
    seen = walked(cases)
    strided = 0
    for case, *leaves in zip(cases, seen.count.T, seen.probability.T, seen.length.astype(int), strict=True):
        count, chance = leaves[0][: leaves[2]], leaves[1][: leaves[2]]
        support, exact_chance = likely(*case)
        mean = support @ exact_chance
        deviation = math.sqrt((support - mean) ** 2 @ exact_chance)
        strided += np.any(np.diff(count) > 1.0)
        np.testing.assert_array_equal(count % 1.0, 0.0)
        for name, function in SMOOTH_FUNCTIONS.items():
            error = function(count, mean, deviation) @ chance - function(support, mean, deviation) @ exact_chance
            assert abs(error) < 1e-9, (name, case)
        scale = max(case[2], 1)
        shares, exact_shares = (np.ceil(scale * -np.expm1(-k / scale)) / scale for k in (count, support))
        assert abs(shares @ chance - exact_shares @ exact_chance) < 4e-3, case
    assert strided >= 30


def test_moments_over_strided_nodes():
    """Mean and second moment of tensors of any size, which rational numbers give."""
    cases = [case for case in draw_tiles(200, 24.0, 49.0, 12) if 0 < case[1] < case[0] and 0 < case[2] < case[0]]
    seen = walked(cases)
    for (size, filled, words), count, chance in zip(cases, seen.count.T, seen.probability.T, strict=True):
        variance = Fraction(filled * words * (size - filled) * (size - words), size**2 * (size - 1))
        whole, rest = divmod(filled * words, size)
        offset, range_ = count - whole - rest / size, float(min(filled, words))
        assert math.fsum(chance) == pytest.approx(1.0, rel=1e-12)
        assert abs(offset @ chance) < 1e-9 * min(math.sqrt(variance), range_), (size, filled, words)
        assert offset**2 @ chance == pytest.approx(float(variance), rel=1e-9)
    assert len(cases) > 150 and np.all(np.diff(seen.count[:2], axis=0) > 1.0)


def test_weights_of_large_counts():
    """No digits are lost next to a mean of 1e14 words, where the terms of the deviance nearly cancel."""
    size, filled, words = 1 << 50, 1 << 49, 1 << 47
    count, chance = (leaf[:, 0] for leaf in walked([(size, filled, words)])[:2])
    bulk = np.flatnonzero(chance > 1e-8)[::8]
    with mpmath.workdps(60):
        cells = [(int(k), filled - int(k), words - int(k), size - filled - words + int(k)) for k in count[bulk]]
        logs = [-sum(log_factorial(x) for x in cell) for cell in cells]
        largest = max(logs)
        expected = np.array([float(exponential(log - largest)) for log in logs])
    found = chance[bulk]
    assert len(bulk) > 40
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=1e-12)


def test_mean_and_extremes():
    cases = [case for case in SMALL + draw_tiles(500, 0.0, 11.0, 13) if case[2] > 0]
    with jax.enable_x64(True):
        size, filled, words = columns(cases, np.float64)
        model = Hypergeometric()
        answers = jax.jit(lambda z, box: [model.mean(z, box), *model.least(z, box), model.largest(z, box)])
        mean, least, reference, largest = map(np.asarray, answers(tensor(size, filled), Box(words)))
    for i, case in enumerate(cases):
        assert mean[i] == case[2] * case[1] / case[0]
        assert least[i] == max(0, case[1] + case[2] - case[0]) and largest[i] == min(case[1], case[2])
        whole = case[2] == case[0]
        assert reference[i] == (math.floor(case[1] / case[0] * case[0]) if whole else 0), case


def test_the_reference_loses_a_nonzero_in_a_quotient():
    """Quirk Q14: 1 / 49 * 49 is below 1."""
    with jax.enable_x64(True):
        size, filled = jnp.asarray([49.0, 48.0]), jnp.asarray([1.0, 1.0])
        reference = jax.jit(lambda z, box: Hypergeometric().least(z, box)[1])(tensor(size, filled), Box(size))
    np.testing.assert_array_equal(reference, [0.0, 1.0])


def test_prob_empty_within_a_tile():
    """Of every part of tiles of up to 24 words with every count; a part may be said to be larger than its tile."""
    cases = [(size, filled, part) for size in range(1, 25) for filled in range(size + 1) for part in range(size + 4)]
    with jax.enable_x64(True):
        size, filled, part = columns(cases, np.float64)
        result = jax.jit(Hypergeometric().prob_empty_within)(tensor(size, filled), Box(size), filled[None], Box(part))
    for case, value in zip(cases, np.asarray(result)[0], strict=True):
        size, filled, part = case
        if part >= size:
            assert value == (filled == 0), case
        elif part == 1:
            assert value == (size - filled) / size, case
        else:
            assert abs(value - exact(case)) < 1e-13 and (value == 0.0) == (part > size - filled), case


@pytest.mark.parametrize("dtype, conventions", [(np.float64, TIMELOOP_2022), (np.float32, SMOOTH)])
def test_everything_is_finite(dtype: type, conventions: Conventions):
    """Values and derivatives by density and by words, at the ends of every range (`prob_empty` above)."""
    model = Hypergeometric()

    def answers(density: jax.Array, size: jax.Array, words: jax.Array) -> list[jax.Array]:
        nonzeros, box = Nonzeros(size, density, size, size, conventions), Box(words)
        return [model.mean(nonzeros, box), *model.least(nonzeros, box), model.largest(nonzeros, box)]

    @jax.jit
    def values_and_slopes(*arguments: jax.Array) -> tuple[list[jax.Array], tuple[jax.Array, ...]]:
        values, pull_back = jax.vjp(answers, *arguments)
        return values, pull_back([jnp.ones_like(value) for value in values])

    with precision(dtype):
        size, filled, words = columns([*EXTREMES, *SMALL[::7], *draw(500, 60, 24, 14)], dtype)
        density = filled / jnp.maximum(size, 1.0)
        values, slopes = values_and_slopes(density, size, words)
    for value in [*values, *slopes]:
        assert value.dtype == dtype and np.isfinite(np.asarray(value)).all()


@pytest.mark.parametrize("dtype, conventions", [(np.float64, TIMELOOP_2022), (np.float32, SMOOTH)])
def test_walks_are_finite(dtype: type, conventions: Conventions):
    """Of tensors of any size, and of counts between integers."""
    seen = walked([*EXTREMES, *SMALL[::40], *draw(150, 60, 24, 14)], dtype, conventions=conventions)
    for leaf in seen:
        assert leaf.dtype == dtype and np.isfinite(leaf).all()
    np.testing.assert_allclose(np.sum(seen.probability, axis=0), 1.0, rtol=1e-5)
    assert np.all((seen.part_empty >= 0.0) & (seen.part_empty <= 1.0))


def test_axes_and_lanes():
    """Nodes come first, lanes stay last, and shared lanes broadcast."""
    rng = np.random.default_rng(15)
    size = jnp.asarray([[64.0], [256.0]], jnp.float32)
    nonzeros = Nonzeros(size, jnp.asarray(rng.uniform(size=(2, 5)), jnp.float32), size, size, TIMELOOP_2022)
    box = Box(jnp.asarray([[[4.0], [8.0]], [[16.0], [32.0]], [[64.0], [64.0]]], jnp.float32))
    model = Hypergeometric(strided=True)
    seen = look(model, nonzeros, box, 128, Box(jnp.ones((2, 3, 2, 1), jnp.float32)))
    mean = np.asarray(jax.jit(model.mean)(nonzeros, box))
    assert seen.count.shape == seen.probability.shape == (128, 3, 2, 5)
    assert seen.part_empty.shape == (128, 2, 3, 2, 5)
    assert jax.eval_shape(model.prob_empty, nonzeros, box).shape == mean.shape == (3, 2, 5)
    np.testing.assert_allclose(np.sum(seen.count * seen.probability, axis=0), mean, rtol=1e-5)
    # a word of a tile of k nonzeros is zero with probability (n - k) / n: on average as any word of the tensor is
    expected = np.broadcast_to(1.0 - mean / np.asarray(box.words), (2, 3, 2, 5))
    np.testing.assert_allclose(np.sum(seen.part_empty * seen.probability[:, None], axis=0), expected, atol=1e-6)


@pytest.mark.parametrize("strided", [False, True])
def test_single_precision_stays_single(strided: bool):
    model = Hypergeometric(strided)

    def answers(nonzeros: Nonzeros, box: Box) -> list[Any]:
        walk = model.walk(nonzeros, box, Box(box.words[None]))
        visit, state = model.visit(nonzeros, box, Box(box.words[None]), walk, 1)
        return [visit, state, model.least(nonzeros, box), model.prob_empty(nonzeros, box)]

    with jax.enable_x64(True):
        size, filled, words = columns(SMALL[:40], np.float32)
        assert "xf64" not in jax.jit(answers).lower(tensor(size, filled), Box(words)).as_text()
