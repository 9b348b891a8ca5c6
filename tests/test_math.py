"""`jaxloop/_math.py`: roundings exact under compilation, where XLA turns divisions into products with reciprocals."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxloop import _math

DIVISORS = np.arange(1, 129)
COUNTS = np.arange(200_001)
PRECISIONS = {"double": np.float64, "single": np.float32}
each_precision = pytest.mark.parametrize("dtype", PRECISIONS.values(), ids=PRECISIONS)
QUOTIENTS = {
    "ceil": (_math.ceil_div, lambda x, b: -(-x // b)),
    "floor": (_math.floor_div, lambda x, b: x // b),
}
each_quotient = pytest.mark.parametrize("ours, expected", QUOTIENTS.values(), ids=QUOTIENTS)
Rounding = Callable[[jax.Array, jax.Array], jax.Array]
Integers = Callable[[Any, Any], Any]


@contextmanager
def precision(dtype: type) -> Iterator[None]:
    with jax.enable_x64(dtype == np.float64):
        yield


@each_precision
@each_quotient
def test_quotients_by_one_divisor(ours: Rounding, expected: Integers, dtype: type):
    """One divisor for many numbers: where `ceil(x / b)` gives 4 for 21 / 7."""
    with precision(dtype):
        compiled, counts = jax.jit(ours), jnp.asarray(COUNTS, dtype)
        for divisor in DIVISORS:
            result = np.asarray(compiled(counts, jnp.asarray(divisor, dtype)))
            np.testing.assert_array_equal(result, expected(COUNTS, divisor))


@each_precision
@each_quotient
def test_quotients_by_a_column_of_divisors(ours: Rounding, expected: Integers, dtype: type):
    """Divisors per level, broadcast over a batch."""
    with precision(dtype):
        compiled, counts = jax.jit(ours), jnp.asarray(COUNTS, dtype)
        for rows in DIVISORS.reshape(16, 8, 1):
            result = np.asarray(compiled(counts[None], jnp.asarray(rows, dtype)))
            np.testing.assert_array_equal(result, expected(COUNTS[None], rows))


@each_precision
@each_quotient
@pytest.mark.parametrize("divisor", [3, 7, 49, 107])
def test_quotients_by_a_constant(ours: Rounding, expected: Integers, dtype: type, divisor: int):
    """A divisor known when compiling."""
    with precision(dtype):
        result = jax.jit(lambda x: ours(x, jnp.full((), divisor, dtype)))(jnp.asarray(COUNTS, dtype))
        np.testing.assert_array_equal(np.asarray(result), expected(COUNTS, divisor))


@each_precision
@each_quotient
def test_large_quotients(ours: Rounding, expected: Integers, dtype: type):
    """Up to half of the integers that the precision holds, and around exact multiples."""
    limit = 2**52 if dtype == np.float64 else 2**23
    rng = np.random.default_rng(0)
    divisors = rng.integers(1, 2 ** rng.integers(1, 20, 400))
    counts = np.minimum(rng.integers(0, limit, (400, 400)), limit - divisors[:, None])
    multiples = counts - counts % divisors[:, None]
    counts = np.concatenate([counts, multiples, multiples + 1, np.maximum(multiples - 1, 0)], axis=1)
    with precision(dtype):
        result = jax.jit(ours)(jnp.asarray(counts, dtype), jnp.asarray(divisors[:, None], dtype))
        np.testing.assert_array_equal(np.asarray(result), expected(counts, divisors[:, None]))


@each_precision
def test_exact_divide_is_the_correctly_rounded_quotient(dtype: type):
    """Bit by bit what numpy gives, for a divisor shared by all and for one per row."""
    rng = np.random.default_rng(1)
    integers = rng.integers(0, 10**6, 20_000).astype(dtype)
    values = np.concatenate([integers, (integers * rng.random(20_000)).astype(dtype)])
    divisors = np.concatenate([np.arange(1, 65), rng.random(64) * 1000]).astype(dtype)
    with precision(dtype):
        compiled = jax.jit(_math.exact_divide)
        for divisor in divisors:
            np.testing.assert_array_equal(np.asarray(compiled(values, divisor)), values / divisor)
        rows = np.asarray(compiled(values[None], divisors[:, None]))
        np.testing.assert_array_equal(rows, values[None] / divisors[:, None])


@each_precision
def test_gcd(dtype: type):
    numbers = np.arange(1, 257)
    rng = np.random.default_rng(2)
    large = rng.integers(1, 2**23, (2, 2000)) if dtype == np.float32 else rng.integers(1, 2**50, (2, 2000))
    with precision(dtype):
        compiled = jax.jit(_math.gcd)
        table = compiled(jnp.asarray(numbers[:, None], dtype), jnp.asarray(numbers[None], dtype))
        np.testing.assert_array_equal(np.asarray(table), np.gcd(numbers[:, None], numbers[None]))
        pairs = compiled(jnp.asarray(large[0], dtype), jnp.asarray(large[1], dtype))
        np.testing.assert_array_equal(np.asarray(pairs), [math.gcd(int(a), int(b)) for a, b in large.T])


@each_precision
def test_gcd_of_relaxed_numbers(dtype: type):
    """Factors on their way between integers have no divisor, but the search for one ends, near that of the integers
    nearby and never below the resolution of integers."""
    rng = np.random.default_rng(4)
    with precision(dtype):
        compiled = jax.jit(_math.gcd)
        drawn = np.asarray(compiled(*(jnp.asarray(rng.uniform(1.0, 100.0, 2000), dtype) for _ in range(2))))
        near = compiled(jnp.asarray([6.0001, 3.0, 12.0], dtype), jnp.asarray([4.0, 3.0001, 18.0], dtype))
    assert np.isfinite(drawn).all() and (drawn >= 0.5).all()
    np.testing.assert_allclose(np.asarray(near), [2.0, 3.0, 6.0], atol=1e-3)


@pytest.mark.parametrize("value, expected", [(0.0, 0.0), (0.49, 0.0), (0.5, 1.0), (1.5, 2.0), (2.5, 3.0), (2.51, 3.0)])
def test_halves_go_up(value: float, expected: float):
    assert _math.round_half_up(jnp.asarray(value)) == expected


@pytest.mark.parametrize("count", [1, _math.UNROLLED, _math.UNROLLED + 1, 3 * _math.UNROLLED])
def test_fold_is_a_loop(count: int):
    """In the given order, on both sides of the length from which it is a scan."""
    rng = np.random.default_rng(3)
    factors, terms = rng.random((count, 4)), rng.random((count, 4))
    expected = np.ones(4)
    for factor, term in zip(factors, terms, strict=True):
        expected = np.floor(1000.0 * (expected * factor + term))

    def step(carry: jax.Array, item: dict[str, jax.Array]) -> jax.Array:
        return jnp.floor(1000.0 * (carry * item["factor"] + item["term"]))

    with jax.enable_x64(True):
        items = {"factor": jnp.asarray(factors), "term": jnp.asarray(terms)}
        result = jax.jit(lambda items: _math.fold(step, jnp.ones(4), items))(items)
        text = jax.jit(lambda items: _math.fold(step, jnp.ones(4), items)).lower(items).as_text()
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)
    assert ("stablehlo.while" in text) == (count > _math.UNROLLED)


ROUNDINGS = {
    "floor": (_math.floor, np.floor),
    "ceil": (_math.ceil, np.ceil),
    "round": (_math.round_half_up, np.round),
}


@pytest.mark.parametrize("ours, expected", ROUNDINGS.values(), ids=ROUNDINGS)
def test_roundings_are_straight_through(ours: Callable[[jax.Array], jax.Array], expected: Callable[[float], float]):
    """They round, and have the derivative of what they round."""
    for value in (0.25, 3.75, 12.0):
        assert ours(jnp.asarray(value)) == expected(value)
        assert jax.grad(lambda x: 3.0 * ours(x))(value) == 3.0


@each_quotient
def test_quotients_have_the_derivative_of_the_quotient(ours: Rounding, expected: Integers):
    with jax.enable_x64(True):
        for x, b in ((7.0, 2.0), (21.0, 7.0), (0.0, 3.0)):
            by_x, by_b = jax.jit(jax.grad(ours, argnums=(0, 1)))(x, b)
            assert ours(jnp.asarray(x), jnp.asarray(b)) == expected(np.asarray(x), np.asarray(b))
            np.testing.assert_allclose([by_x, by_b], [1.0 / b, -x / b**2], rtol=1e-15)


def test_gcd_has_no_derivative():
    """Integers do not move: the tangent is zero, and the loop of unknown length is no obstacle."""
    with jax.enable_x64(True):
        assert jax.grad(lambda x: _math.gcd(x, jnp.asarray(18.0)) + x)(12.0) == 1.0


def test_stack_broadcasts_lanes():
    shared, batched = jnp.ones((3, 1)), jnp.arange(6.0).reshape(3, 2)
    result = _math.stack([shared, batched])
    np.testing.assert_array_equal(np.asarray(result), np.stack([np.ones((3, 2)), np.arange(6.0).reshape(3, 2)]))
