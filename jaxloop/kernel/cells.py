"""Cells: the pairs of a level and a tensor for which metadata is modeled.

Arrays over all levels and tensors are mostly empty there. Where a design's own sizes are used, only the cells that can
have metadata, or lie inside such, are computed: `[level, tensor]` becomes `[1, cell]`.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array


class Cells(eqx.Module):
    """**Attributes:** `pairs`: level and tensor of each cell; None for all, which leaves arrays as they are. `levels`,
    `tensors`: numbers of them."""

    pairs: tuple[tuple[int, int], ...] | None = eqx.field(static=True)
    levels: int = eqx.field(static=True)
    tensors: int = eqx.field(static=True)

    def pick(self, tree: Any, axis: int = 0) -> Any:
        """Leaves with a level at `axis` and a tensor behind it, at the cells."""
        if self.pairs is None:
            return tree
        pairs, before = self.pairs, (slice(None),) * axis

        def chosen(leaf: Array) -> Array:
            cells = jnp.stack([leaf[(*before, level, tensor)] for level, tensor in pairs], axis=axis)
            return jnp.expand_dims(cells, axis)

        return jax.tree.map(chosen, tree)

    def pick_tensors(self, tree: Any) -> Any:
        """Leaves with a tensor as their first axis, at the cells [cell, ...]."""
        if self.pairs is None:
            return tree
        tensors = [tensor for _, tensor in self.pairs]
        return jax.tree.map(lambda leaf: jnp.stack([leaf[tensor] for tensor in tensors]), tree)

    def put(self, leaf: Array, axis: int = 0, otherwise: Array | None = None) -> Array:
        """The inverse of `pick`; 0 or `otherwise` [..., level, tensor, ...] elsewhere."""
        if self.pairs is None:
            return leaf
        before = (slice(None),) * axis
        places = {pair: index for index, pair in enumerate(self.pairs)}
        none = jnp.zeros_like(leaf[(*before, 0, 0)])

        def at(level: int, tensor: int) -> Array:
            if (level, tensor) in places:
                return leaf[(*before, 0, places[level, tensor])]
            return none if otherwise is None else jnp.broadcast_to(otherwise[(*before, level, tensor)], none.shape)

        rows = [jnp.stack([at(level, t) for t in range(self.tensors)], axis=axis) for level in range(self.levels)]
        return jnp.stack(rows, axis=axis)

    def by_level(self) -> Sequence["Cells"]:
        """The cells of each level that has some; all together if all are modeled."""
        if self.pairs is None:
            return [self]
        levels = sorted({level for level, _ in self.pairs})
        return [
            Cells(tuple(pair for pair in self.pairs if pair[0] == level), self.levels, self.tensors) for level in levels
        ]
