"""Arithmetic that must be right: roundings that decide integers, exact quotients, the greatest common divisor.

XLA turns a division by a broadcast value into a multiplication by its reciprocal, so that `ceil(a / b)` of integers can
come out one too high. Every rounding of a quotient in the kernel goes through this file. All roundings carry the
tangent of the unrounded value (straight-through), so that gradients see the trend and not the steps.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

UNROLLED = 16
"""Longest fold that is unrolled: beyond it, compile time grows more than run time shrinks."""


@jax.custom_jvp
def floor(x: Array) -> Array:
    return jnp.floor(x)


@jax.custom_jvp
def ceil(x: Array) -> Array:
    return jnp.ceil(x)


@jax.custom_jvp
def round_half_up(x: Array) -> Array:
    """Nearest integer, halves upward (for nonnegative values: away from zero)."""
    return jnp.floor(x + 0.5)


@jax.custom_jvp
def ceil_div(x: Array, b: Array) -> Array:
    """`ceil(x / b)` for integers `x >= 0`, `b > 0` held as floats, exact below 2^53 (float32: 2^24)."""
    quotient = jnp.round(x / b)
    return quotient + (x - quotient * b > 0).astype(quotient.dtype)


@jax.custom_jvp
def floor_div(x: Array, b: Array) -> Array:
    """`floor(x / b)` for integers `x >= 0`, `b > 0` held as floats, exact below 2^53 (float32: 2^24)."""
    quotient = jnp.round(x / b)
    return quotient - (x - quotient * b < 0).astype(quotient.dtype)


def _straight_through(rounding):
    def rule(primals, tangents):
        (x,), (tangent,) = primals, tangents
        return rounding(x), tangent

    rounding.defjvp(rule)


def _straight_through_quotient(rounding):
    def rule(primals, tangents):
        (x, b), (tangent_x, tangent_b) = primals, tangents
        return rounding(x, b), (tangent_x - x / b * tangent_b) / b

    rounding.defjvp(rule)


for _rounding in (floor, ceil, round_half_up):
    _straight_through(_rounding)
for _rounding in (ceil_div, floor_div):
    _straight_through_quotient(_rounding)


@jax.custom_jvp
def valued(source: Any, value: Any) -> Any:
    """`value`, with the tangent of `source`, which equals it but for rounding."""
    return value


@valued.defjvp
def _valued_jvp(primals, tangents):
    return primals[1], tangents[0]


def exact_divide(x: Array, b: Array) -> Array:
    """The correctly rounded quotient of finite values. `b + 0 * x` has the full shape of the result, which keeps XLA
    from replacing the division by a multiplication with a reciprocal."""
    return x / (b + 0.0 * x)


GCD_STEPS = 64
"""Steps of Euclid's algorithm: enough for integers below the 64th Fibonacci number, 1e13."""


def gcd(x: Array, y: Array) -> Array:
    """Greatest common divisor of the integers nearest to positive `x` and `y`, by Euclid's algorithm; its tangent is
    zero."""

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        larger, smaller, count = state
        divisor = jnp.maximum(smaller, 1.0)
        remainder = larger - divisor * floor_div(larger, divisor)
        done = smaller == 0
        return jnp.where(done, larger, smaller), jnp.where(done, 0.0, remainder), count + 1

    def runs(state: tuple[Array, Array, Array]) -> Array:
        return jnp.any(state[1] > 0.0) & (state[2] < GCD_STEPS)

    x, y = jnp.broadcast_arrays(jax.lax.stop_gradient(x), jax.lax.stop_gradient(y))
    x, y = (jnp.maximum(jnp.round(value), 1.0) for value in (x, y))
    return jax.lax.while_loop(runs, step, (jnp.maximum(x, y), jnp.minimum(x, y), jnp.zeros((), jnp.int32)))[0]


def fold(step: Callable[[Any, Any], Any], start: Any, items: Any) -> Any:
    """`step(carry, item)` over the leading axis of `items` in order; unrolled when short, a scan when long."""
    count = jax.tree.leaves(items)[0].shape[0]
    if count <= UNROLLED:
        for index in range(count):
            start = step(start, jax.tree.map(lambda leaf, i=index: leaf[i], items))
        return start
    return jax.lax.scan(lambda carry, item: (step(carry, item), None), start, items)[0]


def stack(arrays: Sequence[Array]) -> Array:
    """Stacks along a new leading axis after broadcasting, so that shared and batched lanes may be mixed."""
    return jnp.stack(jnp.broadcast_arrays(*arrays))


def product(arrays: Sequence[Array]) -> Array:
    result = arrays[0]
    for array in arrays[1:]:
        result = result * array
    return result
