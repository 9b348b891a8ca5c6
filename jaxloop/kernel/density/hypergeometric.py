"""Hypergeometric: a fixed number of nonzeros, spread at random over the tensor (spec/sparse.md 1.4).

A tile of n of the tensor's N words, r of which are nonzero, holds k nonzeros with probability
`C(r, k) C(N - r, n - k) / C(N, n)`.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._math import ceil, ceil_div, exact_divide, floor
from .base import AbstractDensity, Box, Nonzeros, Visit, Walk
from .exact import Draws, prob_empty_exact, start_draws
from .stirling import polynomial, prob_empty, remaining, stirling_remainder

SMALL_REMAINDERS = {1: 0.08106146679532726, 2: 0.0413406959554093, 3: 0.02767792568499834}
"""Remainders of log(x!), by x, where the fraction is too short."""
SERIES = tuple(1.0 / odd for odd in (3, 5, 7, 9, 11, 13))
"""Of atanh(v) / v, without its leading 1."""
SERIES_REACH = 0.05
STRIDED_NODES = 1024
"""Occupancies that are looked at where there are too many."""
TWO_PI = 6.283185307179586


def _cell(count: Any, mean: Any, offset: Any) -> Any:
    """What one cell of the two-by-two table adds to minus the logarithm of a weight: the deviance of `count` from
    `mean`, the logarithm of `sqrt(count / mean)` and the remainder of `log(count!)`. `offset` is `count - mean`."""
    none = count < 0.5
    positive = jnp.where(mean > 0.0, mean, 1.0)
    # counts above 0 come nowhere near -1 but for rounding
    relative = jnp.where(none, 0.0, jnp.maximum(offset / positive, 2.0**-20 - 1.0))
    log = jnp.log1p(relative)
    ratio = relative / (2.0 + relative)
    square = ratio * ratio
    near = offset * ratio + 2.0 * count * ratio * square * polynomial(SERIES, square)
    deviance = jnp.where(jnp.abs(ratio) < SERIES_REACH, near, count * log - offset)
    remainder = stirling_remainder(jnp.maximum(count, 4.0))
    for whole, value in SMALL_REMAINDERS.items():
        remainder = jnp.where(jnp.abs(count - whole) <= 0.5, value, remainder)
    # without log(sqrt(2 pi mean)), which all counts of a distribution share
    empty = mean - jnp.where(mean > 0.0, 0.5 * jnp.log(TWO_PI * positive), 0.0)
    return jnp.where(none, empty, deviance + 0.5 * log + remainder)


def _log_weight(size: Any, nonzeros: Any, tile: Any, count: Any) -> Any:
    """Logarithm of the probability of `count` but for a constant, in Loader's saddle-point form."""
    whole = jnp.maximum(size, 1.0)
    zeros, outside = size - nonzeros, size - tile
    counts = (count, nonzeros - count, tile - count, remaining(size, nonzeros, tile) + count)
    means = tuple(x * (y / whole) for x, y in ((tile, nonzeros), (nonzeros, outside), (tile, zeros), (zeros, outside)))
    signs = (1.0, -1.0, -1.0, 1.0)
    # all four offsets are equal up to sign; the one next to the smallest mean has lost the fewest digits
    offset, smallest = counts[0] - means[0], means[0]
    for x, mean, sign in zip(counts[1:], means[1:], signs[1:], strict=True):
        offset = jnp.where(mean < smallest, sign * (x - mean), offset)
        smallest = jnp.minimum(mean, smallest)
    cells = zip(counts, means, signs, strict=True)
    return -sum(_cell(jnp.maximum(x, 0.0), mean, sign * offset) for x, mean, sign in cells)


def _weight(size: Any, nonzeros: Any, tile: Any, count: Any, reference: Any) -> Any:
    """Relative to the logarithm `reference`, that of a likely count. Counts that are rounded by more than a standard
    deviation may be far likelier."""
    return jnp.exp(jnp.minimum(_log_weight(size, nonzeros, tile, count) - reference, 60.0))


def _window(size: Any, nonzeros: Any, tile: Any, nodes: int) -> tuple[Any, Any, Any]:
    """First and last count and the stride of the nodes: all of the support where that fits, else what lies within 8
    standard deviations and 20 of the mean."""
    whole = jnp.maximum(size, 1.0)
    least = floor(jnp.maximum(-remaining(size, nonzeros, tile), 0.0))
    most = jnp.maximum(floor(jnp.minimum(tile, nonzeros)), least)
    mean = tile * (nonzeros / whole)
    variance = mean * ((size - nonzeros) / whole) * ((size - tile) / jnp.maximum(size - 1.0, 1.0))
    reach = 8.0 * jnp.sqrt(jnp.maximum(variance, 0.0)) + 20.0
    fits = most - least < nodes
    first = jnp.where(fits, least, jnp.maximum(least, floor(mean - reach)))
    last = jnp.where(fits, most, jnp.minimum(most, ceil(mean + reach)))
    return first, last, ceil_div(last - first + 1.0, jnp.full_like(last, nodes))


def _nonzeros(nonzeros: Nonzeros) -> Any:
    share = nonzeros.density * nonzeros.words
    return ceil(share) if nonzeros.conventions.integer_counts else share


class Hypergeometric(AbstractDensity):
    """`ceil(density * words)` nonzeros (not rounded without integer counts), every arrangement equally likely.

    With integer counts, probabilities are correctly rounded (`exact.py`): the reference's counts depend on their last
    digits.

    **Attributes:** `strided`: tiles may have too many likely occupancies to look at each. Every second, third, ... one
    is taken, which sums smooth functions as the trapezoidal rule does, to better than 1e-9 of the function's range; a
    function with jumps, such as a rounding, is off by as much as its mean over the skipped counts.
    """

    strided: bool = eqx.field(static=True, default=False)

    def prob_empty(self, nonzeros: Nonzeros, tile: Box) -> Any:
        form = prob_empty_exact if nonzeros.conventions.integer_counts else prob_empty
        return form(nonzeros.words, _nonzeros(nonzeros), tile.words)

    def mean(self, nonzeros: Nonzeros, tile: Box) -> Any:
        return exact_divide(tile.words * _nonzeros(nonzeros), jnp.maximum(nonzeros.words, 1.0))

    def least(self, nonzeros: Nonzeros, tile: Box) -> tuple[Any, Any]:
        """A tile larger than the tensor's zeros holds some nonzeros. The reference wraps around there and says 0 (quirk
        Q2), and where the tile is the tensor it may lose one in a quotient (Q14); its variant of Q2 without any
        occupancy is not modeled."""
        size, filled, words = nonzeros.words, _nonzeros(nonzeros), tile.words
        quotient = exact_divide(filled, jnp.maximum(size, 1.0))
        reference = jnp.where(words < size, 0.0, floor(quotient * size))
        return jnp.maximum(-remaining(size, filled, words), 0.0), reference

    def largest(self, nonzeros: Nonzeros, tile: Box) -> Any:
        return jnp.minimum(tile.words, _nonzeros(nonzeros))

    def walk(self, nonzeros: Nonzeros, tile: Box, parts: Box) -> Walk:
        size, filled, words = jnp.broadcast_arrays(nonzeros.words, _nonzeros(nonzeros), tile.words)
        words = jnp.where(words > size, size, words)
        if nonzeros.conventions.integer_counts and not self.strided:
            return start_draws(size, filled, words, parts.words)
        first, last, stride = _window(size, filled, words, STRIDED_NODES)
        length = floor(exact_divide(last - first, stride)) + 1.0
        middle = jnp.clip(floor(words * (filled / jnp.maximum(size, 1.0))), first, last)
        reference = _log_weight(size, filled, words, middle)

        def add(index: Any, total: Any) -> Any:
            weight = _weight(size, filled, words, first + stride * index, reference)
            return total + jnp.where(index < length, weight, 0.0)

        total = jax.lax.fori_loop(0, jnp.max(length).astype(jnp.int32), add, jnp.zeros_like(first))
        return Walk(length=length, fixed=(first, stride, reference, total), state=())

    def visit(self, nonzeros: Nonzeros, tile: Box, parts: Box, walk: Walk, index: Any) -> tuple[Visit, Any]:
        if isinstance(walk.state, Draws):
            return walk.state.visit(walk.fixed), walk.state.next(walk.fixed)
        first, stride, reference, total = walk.fixed
        size, filled, words = jnp.broadcast_arrays(nonzeros.words, _nonzeros(nonzeros), tile.words)
        count = first + stride * jnp.minimum(index, walk.length - 1.0)
        probability = _weight(size, filled, jnp.minimum(words, size), count, reference) / total
        return Visit(count, probability, self.prob_empty_within(nonzeros, tile, count, parts)), ()

    def prob_empty_within(self, nonzeros: Nonzeros, tile: Box, count: Any, part: Box) -> Any:
        return prob_empty(tile.words, count, part.words)
