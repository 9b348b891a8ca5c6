"""The probability that a random tile is empty, by Stirling's formula (spec/sparse.md 1.4).

No gamma function is evaluated: the formula is written so that its large terms cancel as algebra, not as numbers, and
only its small remainder is computed.
"""

from typing import Any

import jax.numpy as jnp

from ..._math import exact_divide, valued

# Stieltjes's continued fraction of the remainder, nine terms from 1/12 and 1/30 on, as one quotient of polynomials in
# 1/z^2; below 5e-14 off from z = 4 on.
NUMERATOR = (0.08333333333333333, 1.0511064740393363, 3.158893007797349, 2.253130653338044, 0.1944234570447373)
DENOMINATOR = (1.0, 12.64661102180537, 38.31874598477122, 28.20155831553171, 2.9884249162067307)
SHIFT = 3
"""Every gamma function's argument is raised by this much, which leaves it at 4 or more."""


def polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    result = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = result * x + coefficient
    return result


def stirling_remainder(z: Any) -> Any:
    """`log Gamma(z) - ((z - 1/2) log z - z + log(2 pi) / 2)` for z >= 4; also `log(x!)` less Stirling's formula."""
    inverse = 1.0 / z
    square = inverse * inverse
    return inverse * polynomial(NUMERATOR, square) / polynomial(DENOMINATOR, square)


def remaining(size: Any, nonzeros: Any, tile: Any) -> Any:
    """`size - nonzeros - tile`, with what the first difference rounds off given back."""
    zeros = size - nonzeros
    return (zeros - tile) + ((size - zeros) - nonzeros)


def prob_empty(size: Any, nonzeros: Any, tile: Any) -> Any:
    """Probability that a tile of `tile` words holds none of the `nonzeros` among `size` words, for counts that need
    not be integers (feasibility.md 9).

    It is exactly 0 where `size - nonzeros - tile + 1 <= 0`, exactly 1 where there are no nonzeros or no words, and the
    correctly rounded quotient where either is one.
    """
    tile = jnp.where(tile > size, size, tile)
    left = remaining(size, nonzeros, tile) + 1.0
    single = (tile == 1.0) | (nonzeros == 1.0)
    possible = (left > 0.0) | (single & (left >= 0.0))
    quotient = exact_divide(jnp.where(tile == 1.0, size - nonzeros, size - tile), jnp.where(size > 0.0, size, 1.0))

    filled, words = jnp.where(possible, nonzeros, 0.0), jnp.where(possible, tile, 0.0)
    whole, neither = size + 1.0, remaining(size, filled, words) + 1.0
    not_filled, outside = size - filled + 1.0, size - words + 1.0
    raised, top = neither + SHIFT, whole + SHIFT
    # in single precision a share of a large size can round to 1
    lowest = jnp.finfo(jnp.result_type(raised)).epsneg.item() - 1.0
    log = (
        (raised - 0.5) * jnp.log1p(filled * (words / top) / raised)
        + words * jnp.log1p(jnp.maximum(-filled / top, lowest))
        + filled * jnp.log1p(jnp.maximum(-words / top, lowest))
        + (stirling_remainder(not_filled + SHIFT) - stirling_remainder(raised))
        + (stirling_remainder(outside + SHIFT) - stirling_remainder(top))
    )
    smooth = jnp.exp(log)
    for step in range(SHIFT):
        product = (neither + step) * (whole + step)
        smooth = smooth * (product / (product + filled * words))
    smooth = jnp.where(possible, smooth, 0.0)
    return valued(smooth, jnp.where(single, quotient, jnp.minimum(smooth, 1.0)))
