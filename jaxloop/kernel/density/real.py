"""Nonzeros of real data: every answer is a count over the tiles of a mask (docs/model.md 25).

Bounds of loops divide the sizes of their ranks, so that the tiles of all mappings are boxes whose sides are divisors.
What may be asked of such boxes has been counted before (`lower/masks.py`) and is looked up here.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...program import Masks
from .base import AbstractDensity, Box, Nonzeros, Visit, Walk
from .stirling import prob_empty


def without_lanes(masks: Masks) -> Masks:
    """Masks are shared by all lanes."""
    return jax.tree.map(lambda leaf: leaf[..., 0] if leaf.ndim > 2 else leaf, masks)


def box_index(masks: Masks, radix: Any, sides: Any) -> Array:
    """Which of the counted boxes have these sides, per rank; `radix` per rank, broadcast against them. Of each rank
    the largest divisor that is reached."""
    index: Any = 0.0
    for divisors, own, side in zip(masks.divisors, radix, sides, strict=True):
        reached = jnp.sum((side[..., None] + 0.5 >= divisors).astype(side.dtype), axis=-1)
        index = index + own * jnp.maximum(reached - 1.0, 0.0)
    return jax.lax.stop_gradient(index).astype(jnp.int32)


class RealData(AbstractDensity):
    """The nonzeros of a given tensor. All aligned tiles are equally likely. Walks are not to be had: expectations take
    the tower rule, which is exact for counts (`occupancy.py: tile_occupancy`)."""

    def _look_up(self, nonzeros: Nonzeros, table: str, tile: Box) -> Any:
        masks, lanes = nonzeros.masks, (1,) * (nonzeros.words.ndim - 1)
        assert masks is not None and tile.sides is not None
        tensors = masks.radix.shape[0]
        radix = masks.radix.T.reshape((-1, tensors, *lanes))
        index = box_index(masks, radix, tile.sides)
        return getattr(masks, table)[jnp.arange(tensors).reshape((tensors, *lanes)), index]

    def prob_empty(self, nonzeros: Nonzeros, tile: Box) -> Any:
        return self._look_up(nonzeros, "empty", tile)

    def mean(self, nonzeros: Nonzeros, tile: Box) -> Any:
        return self._look_up(nonzeros, "mean", tile)

    def least(self, nonzeros: Nonzeros, tile: Box) -> tuple[Any, Any]:
        least = self._look_up(nonzeros, "least", tile)
        return least, least

    def largest(self, nonzeros: Nonzeros, tile: Box) -> Any:
        return self._look_up(nonzeros, "most", tile)

    def walk(self, nonzeros: Nonzeros, tile: Box, parts: Box) -> Walk:
        """A single step at the mean, which nobody asks for."""
        return Walk(length=jnp.ones_like(tile.words), fixed=(), state=())

    def visit(self, nonzeros: Nonzeros, tile: Box, parts: Box, walk: Walk, index: Any) -> tuple[Visit, Any]:
        mean = self.mean(nonzeros, tile)
        return Visit(mean, jnp.ones_like(mean), self.prob_empty_within(nonzeros, tile, mean, parts)), ()

    def prob_empty_within(self, nonzeros: Nonzeros, tile: Box, count: Any, part: Box) -> Any:
        """As if the nonzeros of the tile lay anywhere in it: asked of the fullest tile only."""
        return prob_empty(tile.words, count, part.words)
