"""`jaxloop/_twofold.py`: exact whatever XLA fuses and LLVM contracts. Every form compiles to other kernels; where only
the low part is used, products are contracted first of all."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxloop._twofold import Twofold, exact_product, exact_sum, shielded, twofold

COUNT = 196_608
LANES = 256
Pair = tuple[Any, Any]


def numbers(seed: int, count: int = COUNT) -> np.ndarray:
    """Both signs, many magnitudes; significands at random, of few digits, and next to powers of two."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(2**52, 2**53, count)
    near = rng.integers(0, 8, count)
    kinds = [whole, whole >> 27 << 27, 2**52 + near, 2**53 - 1 - near]
    significand = np.choose(rng.integers(0, 4, count), kinds).astype(np.float64)
    return significand * 2.0 ** rng.integers(-112, 8, count) * rng.choice([-1, 1], count)


def exactly_multiplied(x: np.ndarray, y: np.ndarray) -> Pair:
    """By Dekker's method in numpy, which rounds every operation."""
    halves = []
    for value in (x, y):
        scaled = 134217729.0 * value
        high = scaled - (scaled - value)
        halves += [high, value - high]
    x_high, x_low, y_high, y_low = halves
    high = x * y
    return high, x_low * y_low - (((high - x_high * y_high) - x_low * y_high) - x_high * y_low)


def exactly_added(x: np.ndarray, y: np.ndarray) -> Pair:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


FORMS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "both": lambda f: lambda *args: (f(*args).high, f(*args).low),
    "low only": lambda f: lambda *args: (None, f(*args).low),
    "fused": lambda f: lambda *args: (None, -2.0 * (f(*args).low / -2.0)),
    "two kernels": lambda f: lambda *args: (jnp.sort(f(*args).high)[:0], f(*args).low),
    "scan": lambda f: (
        lambda *args: jax.lax.scan(
            lambda state, items: (state + f(*items).high, (f(*items).high, f(*items).low)),
            jnp.zeros(LANES),
            tuple(x.reshape(-1, LANES) for x in args),
        )[1]
    ),
    "vmap": lambda f: (
        lambda *args: jax.vmap(lambda *xs: (f(*xs).high, f(*xs).low), -1, -1)(*(x.reshape(-1, LANES) for x in args))
    ),
}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def assert_equal(found: Pair, expected: Pair) -> None:
    for ours, right in zip(found, expected, strict=True):
        if ours is not None and ours.size:
            np.testing.assert_array_equal(np.asarray(ours).ravel(), right)


def test_expected_products_are_exact():
    x, y = numbers(0, 500), numbers(1, 500)
    for factor, other, high, low in zip(x, y, *exactly_multiplied(x, y), strict=True):
        assert Fraction(high) + Fraction(low) == Fraction(factor) * Fraction(other)


@each_form
def test_product(form: Callable):
    x, y = numbers(2), numbers(3)
    with jax.enable_x64(True):
        assert_equal(jax.jit(form(exact_product))(x, y), exactly_multiplied(x, y))


@each_form
def test_sum(form: Callable):
    x, y = numbers(4), numbers(5)
    with jax.enable_x64(True):
        assert_equal(jax.jit(form(exact_sum))(x, y), exactly_added(x, y))


@each_form
def test_of_products(form: Callable):
    """Arguments that are products, rounded, which a compiler would contract with what is done to them."""
    x, y, z = numbers(6), numbers(7), numbers(8)
    with jax.enable_x64(True):
        found = jax.jit(form(lambda x, y, z: exact_product(x * y, z)))(x, y, z)
        assert_equal(found, exactly_multiplied(x * y, z))
        found = jax.jit(form(lambda x, y, z: exact_sum(z, x * y)))(x, y, z)
        assert_equal(found, exactly_added(z, x * y))


def test_shield():
    """Without it the compiler computes the error of the product; so this machine has what the shield is for."""
    x, y = numbers(9), numbers(10)
    with jax.enable_x64(True):
        plain = jax.jit(lambda x, y, z: x * y - z)(x, y, x * y)
        held = jax.jit(lambda x, y, z: shielded(x * y) - z)(x, y, x * y)
    assert np.asarray(plain).any() and not np.asarray(held).any()


def test_one_operand_for_many():
    """Lanes that share one operand."""
    x, y = numbers(11, 12 * LANES).reshape(12, LANES), numbers(12, 12)[:, None]
    with jax.enable_x64(True):
        found = jax.jit(lambda x, y: exact_product(x, y))(x, y)
        shared = jax.jit(lambda x, y: twofold(x).over(y))(x, y)
    np.testing.assert_array_equal(np.asarray(found.low), exactly_multiplied(x, np.broadcast_to(y, x.shape))[1])
    np.testing.assert_array_equal(np.asarray(shared.high), x / y)


def test_operations_against_fractions():
    count = 1000
    x, y = exactly_multiplied(numbers(13, count), numbers(14, count)), numbers(15, count)
    z = exactly_multiplied(numbers(16, count), numbers(17, count))

    def work(x: Twofold, y: Any, z: Twofold) -> Any:
        sign = jnp.sign(x.high) * jnp.sign(z.high)
        return x.times(y), x.over(y), x.plus(Twofold(sign * z.high, sign * z.low)), x.quotient(z)

    with jax.enable_x64(True):
        *found, quotient = jax.jit(work)(Twofold(*map(jnp.asarray, x)), y, Twofold(*map(jnp.asarray, z)))
    halves = [(np.asarray(one.high), np.asarray(one.low)) for one in found]
    halves.append((np.asarray(quotient), np.full(count, np.nan)))
    for index in range(count):
        first, second = (Fraction(high[index]) + Fraction(low[index]) for high, low in (x, z))
        factor = Fraction(y[index])
        added = first + (second if first * second > 0 else -second)
        rights = (first * factor, first / factor, added, first / second)
        for (high, low), right in zip(halves, rights, strict=True):
            error = abs(right) / 2**100
            half = Fraction(np.spacing(abs(high[index]))) / 2
            assert abs(Fraction(high[index]) - right) <= half + error
            if not np.isnan(low[index]):
                assert abs(Fraction(high[index]) + Fraction(low[index]) - right) <= error


def test_zero():
    with jax.enable_x64(True):
        zero, one = twofold(jnp.zeros(3)), twofold(jnp.ones(3))
        for result in (zero.times(jnp.full(3, 7.0)), zero.over(jnp.full(3, 7.0)), zero.plus(zero)):
            np.testing.assert_array_equal(np.asarray(result.high + result.low), 0.0)
        np.testing.assert_array_equal(np.asarray(zero.quotient(one)), 0.0)


def test_single_precision():
    x, y = (numbers(seed, 20_000).astype(np.float32) for seed in (18, 19))
    found = jax.jit(lambda x, y: (exact_product(x, y).low, twofold(x).times(y).over(y)))(x, y)
    product = x.astype(np.float64) * y.astype(np.float64)
    high = product.astype(np.float32)
    expected = product - high
    normal = np.abs(product) > 1e-25
    np.testing.assert_array_equal(np.asarray(found[0])[normal], expected[normal])
    assert found[1].high.dtype == jnp.float32
    np.testing.assert_array_equal(np.asarray(found[1].high)[normal], x[normal])
