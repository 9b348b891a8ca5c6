"""Fixed-structured: every tile holds its share of nonzeros, rounded down or up (spec/sparse.md 1.3)."""

from typing import Any

import jax.numpy as jnp

from ..._math import ceil, exact_divide, floor
from .base import AbstractDensity, Box, Nonzeros, Visit, Walk


class FixedStructured(AbstractDensity):
    """The share `x = words * density` of a tile lies between two integers: it holds `ceil(x)` with probability
    `x - floor(x)`, else `floor(x)`."""

    def prob_empty(self, nonzeros: Nonzeros, tile: Box) -> Any:
        return jnp.maximum(1.0 - tile.words * nonzeros.density, 0.0)

    def mean(self, nonzeros: Nonzeros, tile: Box) -> Any:
        return tile.words * nonzeros.density

    def least(self, nonzeros: Nonzeros, tile: Box) -> tuple[Any, Any]:
        low, words = floor(tile.words * nonzeros.density), jnp.maximum(tile.words, 1.0)
        return low, floor(exact_divide(low, words) * words)

    def largest(self, nonzeros: Nonzeros, tile: Box) -> Any:
        return ceil(tile.words * nonzeros.density)

    def walk(self, nonzeros: Nonzeros, tile: Box, parts: Box) -> Walk:
        share = tile.words * nonzeros.density
        low = floor(share)
        return Walk(length=jnp.full_like(share, 2.0), fixed=(low, share - low), state=())

    def visit(self, nonzeros: Nonzeros, tile: Box, parts: Box, walk: Walk, index: Any) -> tuple[Visit, Any]:
        low, rest = walk.fixed
        count = low + index
        probability = jnp.where(index == 0, 1.0 - rest, rest)
        return Visit(count, probability, self.prob_empty_within(nonzeros, tile, count, parts)), ()

    def prob_empty_within(self, nonzeros: Nonzeros, tile: Box, count: Any, part: Box) -> Any:
        share = part.words * exact_divide(count, jnp.maximum(tile.words, 1.0))
        return jnp.maximum(1.0 - share, 0.0)
