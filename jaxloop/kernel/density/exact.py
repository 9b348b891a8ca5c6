"""Hypergeometric probabilities that are correctly rounded, by recurrences in twice the precision.

The reference's integer counts come from sums of probabilities; a last bit that differs can make a count of few words
differ by one. All counts of a row of nodes are consecutive, so that one costs a product and a quotient of integers.
These must be exact as floats: the probabilities are those claimed while `tile * nonzeros` and
`nonzeros * (size - nonzeros)` stay below 2^53; beyond, every step adds a relative error of up to 2^-52. Probabilities
below 1e-270 are less exact. Everything is elementwise. Walks carry no tangent.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._math import floor, valued
from ..._twofold import Twofold, twofold, where
from ...program import OCCUPANCIES
from .base import Visit, Walk
from .stirling import prob_empty

MOST_TERMS = 64
"""Factors that are multiplied for one probability before its logarithm is used instead."""


def consecutive_window(size: Any, nonzeros: Any, tile: Any) -> tuple[Any, Any]:
    """First and last count that matter: the support within 10 standard deviations and 40 of the mean. What lies outside
    adds up to less than 1e-20."""
    size, nonzeros, tile = jax.lax.stop_gradient(_checked(size, nonzeros, tile))
    whole = jnp.maximum(size, 1.0)
    mean = tile * (nonzeros / whole)
    variance = mean * ((size - nonzeros) / whole) * ((size - tile) / jnp.maximum(size - 1.0, 1.0))
    reach = 10.0 * jnp.sqrt(jnp.maximum(variance, 0.0)) + 40.0
    least = jnp.maximum(tile - (size - nonzeros), 0.0)
    first = jnp.maximum(least, floor(mean - reach))
    return first, jnp.minimum(jnp.minimum(tile, nonzeros), floor(mean + reach) + 1.0)


class _Urn(eqx.Module):
    """What stays the same while tiles are looked at: `size`, `nonzeros`, `tile` words; those of the `parts`
    [part, ...]; the `total` weight."""

    size: Float[Array, "*any"]
    nonzeros: Float[Array, "*any"]
    tile: Float[Array, "*any"]
    parts: Float[Array, "part *any"]
    total: Twofold


class Draws(eqx.Module):
    """Where a walk over consecutive numbers of nonzeros stands: the number, its weight, and for each part the chance to
    be empty."""

    count: Float[Array, "*any"]
    weight: Twofold
    empty: Twofold

    def visit(self, urn: _Urn) -> Visit:
        return Visit(self.count, self.weight.quotient(urn.total), self.empty.high)

    def next(self, urn: _Urn) -> "Draws":
        up, down = _ratio(urn.size, urn.nonzeros, urn.tile, self.count)
        left = urn.tile - self.count
        following = self.empty.times(jnp.maximum(left - urn.parts, 0.0)).over(
            jnp.maximum(left, 1.0)[None] + 0.0 * urn.parts
        )
        return Draws(self.count + 1.0, self.weight.times(up).over(down), following)


def start_draws(size: Any, nonzeros: Any, tile: Any, parts: Any) -> Walk:
    """A walk over the numbers of `consecutive_window`, with correctly rounded probabilities that a tile of `tile` of
    the `size` words holds so many of the `nonzeros`, and that `parts` [part, ...] of such a tile hold none: correctly
    rounded too where the first number or the part is at most `MOST_TERMS`, else as exact as `prob_empty` is."""
    size, nonzeros, tile = _checked(size, nonzeros, tile)
    first, last = consecutive_window(size, nonzeros, tile)
    # a tile of a mapping that does not cover its ranks may hold more; nobody shall wait for it
    length = last - first + 1.0
    length = jnp.where(length > 0.0, jnp.minimum(length, OCCUPANCIES + 1.0), 0.0)
    one = twofold(jnp.ones_like(first))

    def add(index: Any, state: tuple[Any, Twofold, Twofold]) -> tuple[Any, Twofold, Twofold]:
        count, weight, total = state
        up, down = _ratio(size, nonzeros, tile, count)
        more = where(index < length, total.plus(weight), total)
        return count + 1.0, weight.times(up).over(down), more

    start = (first, one, twofold(jnp.zeros_like(first)))
    total = jax.lax.fori_loop(0, jnp.max(length).astype(jnp.int32), add, start)[2]
    parts = jnp.minimum(parts, tile[None])
    whole, low = (jnp.broadcast_to(x[None], parts.shape) for x in (tile, first))
    return Walk(
        length=length,
        fixed=_Urn(size, nonzeros, tile, parts, total),
        state=Draws(first, one, _none_drawn(whole, low, parts, MOST_TERMS)),
    )


def prob_empty_exact(size: Any, nonzeros: Any, tile: Any, terms: int = MOST_TERMS) -> Any:
    """Probability that a tile of `tile` words holds none of the `nonzeros` among `size` words: correctly rounded where
    one of the two is at most `terms`, else `prob_empty`."""
    size, nonzeros, tile = _checked(size, nonzeros, tile)
    exact = _none_drawn(*jax.lax.stop_gradient((size, nonzeros, tile)), terms)
    return valued(prob_empty(size, nonzeros, tile), exact.high)


def _checked(size: Any, nonzeros: Any, tile: Any) -> tuple[Any, Any, Any]:
    """Counts within reason. Those that are have their whole tangent, also at the limits."""
    size, nonzeros, tile = (jnp.where(x < 0.0, 0.0, x) for x in jnp.broadcast_arrays(size, nonzeros, tile))
    return size, jnp.where(nonzeros > size, size, nonzeros), jnp.where(tile > size, size, tile)


def _ratio(size: Any, nonzeros: Any, tile: Any, count: Any) -> tuple[Any, Any]:
    """Numerator and denominator of the quotient of the probabilities of `count + 1` and `count`; the numerator is 0 at
    the end of the support."""
    up = jnp.maximum(nonzeros - count, 0.0) * jnp.maximum(tile - count, 0.0)
    return up, (count + 1.0) * jnp.maximum(((size - nonzeros) - tile) + count + 1.0, 1.0)


def _none_drawn(size: Any, marked: Any, drawn: Any, terms: int) -> Twofold:
    """Probability that none of the marked words is among those drawn, as a product of quotients; all factors are
    integers."""
    fewer, more = jnp.minimum(marked, drawn), jnp.maximum(marked, drawn)
    short = fewer <= terms
    length = jnp.where(short, fewer, 0.0)

    def runs(state: tuple[Any, Twofold]) -> Any:
        return jnp.any(state[0] < length)

    def step(state: tuple[Any, Twofold]) -> tuple[Any, Twofold]:
        index, chance = state
        following = chance.times(jnp.maximum(size - more - index, 0.0)).over(jnp.maximum(size - index, 1.0))
        return index + 1.0, where(index < length, following, chance)

    start = (jnp.zeros_like(size), twofold(jnp.ones_like(size)))
    _, chance = jax.lax.while_loop(runs, step, start)
    return where(short, chance, twofold(prob_empty(size, marked, drawn)))
