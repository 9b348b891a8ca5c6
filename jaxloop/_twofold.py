"""Numbers of twice the precision: unevaluated sums of two floats, for results that must be correctly rounded.

XLA fuses, duplicates and hands to LLVM, which contracts `a * b + c` to one rounding. The usual error-free
transformations compare a product as rounded with the same product in another expression, and fail where only one of the
two is contracted. Here nearly every product is exact: its factors are halves of significands, split by their bits, so
that contraction changes nothing. The few products and quotients that are rounded pass through `shielded`.

An argument must have one value wherever XLA computes it: an input, an integer, what a loop carries, or one operation on
such; of `a * b + c` one copy may be contracted and another not. Divisions may be turned into products with reciprocals,
which are a little off: remainders make up for it. Numbers below 1e-270 lose their lower half, as XLA flushes subnormal
numbers to zero, and numbers above 1e300 overflow. No operation has a useful tangent.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Twofold(eqx.Module):
    """The number `high + low`, `high` being the float nearest to it. The relative error of each operation is below
    2^-100 (float32: 2^-43)."""

    high: Float[Array, "*any"]
    low: Float[Array, "*any"]

    def plus(self, other: "Twofold") -> "Twofold":
        """The sum with another number, of the same sign."""
        total = exact_sum(self.high, other.high)
        return _ordered_sum(total.high, total.low + (self.low + other.low))

    def times(self, factor: Any) -> "Twofold":
        factor = shielded(factor)
        high, low = _product(self.high, factor)
        return _ordered_sum(high, low + shielded(self.low * factor))

    def over(self, divisor: Any) -> "Twofold":
        divisor = shielded(divisor)
        quotient = shielded(self.high / divisor)
        return _ordered_sum(quotient, shielded(self._remainder(quotient, divisor) / divisor))

    def quotient(self, divisor: "Twofold") -> Any:
        """`self / divisor`, rounded once to a float."""
        quotient = shielded(self.high / divisor.high)
        remainder = self._remainder(quotient, divisor.high) - shielded(quotient * divisor.low)
        return quotient + shielded(remainder / divisor.high)

    def _remainder(self, quotient: Any, divisor: Any) -> Any:
        high, low = _product(quotient, divisor)
        return ((self.high - high) - low) + self.low


def twofold(x: Any) -> Twofold:
    x = jnp.asarray(x)
    return Twofold(x, jnp.zeros_like(x))


def where(condition: Any, x: Twofold, y: Twofold) -> Twofold:
    return Twofold(jnp.where(condition, x.high, y.high), jnp.where(condition, x.low, y.low))


def exact_sum(x: Any, y: Any) -> Twofold:
    """`x + y` without error."""
    x, y = shielded(x), shielded(y)
    total = x + y
    part = total - x
    return Twofold(total, (x - (total - part)) + (y - part))


def exact_product(x: Any, y: Any) -> Twofold:
    """`x * y` without error."""
    return _ordered_sum(*_product(shielded(x), shielded(y)))


def shielded(x: Any) -> Any:
    """`x`, which the compiler must round before it is used: it sees no more than the lesser of `x` and the largest
    float, and cannot contract a product behind that."""
    largest = jnp.finfo(jnp.result_type(x)).max.item()
    return jnp.where(x < largest, x, largest)


def _ordered_sum(x: Any, y: Any) -> Twofold:
    """`x + y` without error where `x` is 0 or not smaller than `y`."""
    total = x + y
    return Twofold(total, y - (total - x))


def _split(x: Any) -> tuple[Any, Any]:
    """Two floats that add up to `x`, each of at most half as many digits: the product of two such is exact."""
    info = jnp.finfo(x.dtype)
    dropped = info.nmant // 2 + 1
    bits = jax.lax.bitcast_convert_type(x, jnp.dtype(f"int{info.bits}"))
    rounded = (bits + (1 << dropped - 1)) & -(1 << dropped)
    high = jax.lax.bitcast_convert_type(rounded, x.dtype)
    return high, x - high


def _product(x: Any, y: Any) -> tuple[Any, Any]:
    """Two floats that add up to `x * y`, the first of them next to it. All products are exact, and all sums but the
    second."""
    (x_high, x_low), (y_high, y_low) = _split(x), _split(y)
    highest, middle = x_high * y_high, x_high * y_low + x_low * y_high
    high = highest + middle
    return high, (middle - (high - highest)) + x_low * y_low
