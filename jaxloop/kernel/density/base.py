"""What a density model answers about the nonzeros of a tile (spec/sparse.md section 1).

Shapes: `tensor` is the last axis before the lanes everywhere here; any axes may stand before it.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._math import exact_divide
from ...conventions import Conventions
from ...program import Masks


class Nonzeros(eqx.Module):
    """The nonzeros of whole tensors.

    **Attributes:**

    - `words`: elements of the tensor.
    - `density`: share of nonzeros, in [0, 1].
    - `band_width`: half width of a band; used by the banded model only, as is `side`, the extent of a square tensor
      along its first axis.
    - `masks`: counts of real tensors, without lanes; None where no tensor is real data.
    - `conventions`: the switches.
    """

    words: Float[Array, "tensor *#lane"]
    density: Float[Array, "tensor *#lane"]
    band_width: Float[Array, "tensor *#lane"]
    side: Float[Array, "tensor *#lane"]
    conventions: Conventions = eqx.field(static=True)
    masks: Masks | None = None


class Box(eqx.Module):
    """Tiles: `words` elements, `height` x `width` along the tensor's first two axes (for the banded model; None where
    no tensor is banded), `sides` in the iteration space, one leaf per rank (None where no tensor is real data)."""

    words: Float[Array, "*any"]
    height: Float[Array, "*any"] | None = None
    width: Float[Array, "*any"] | None = None
    sides: tuple[Float[Array, "*any"], ...] | None = None


class Walk(eqx.Module):
    """A distribution of the number of nonzeros in tiles, looked at from the smallest number up.

    **Attributes:** `length`: numbers to look at, per tile; `fixed`: what stays the same meanwhile; `state`: what
    changes from one to the next.
    """

    length: Float[Array, "*any"]
    fixed: Any
    state: Any


class Visit(eqx.Module):
    """One number of nonzeros: `count`, its `probability`, and the chances that parts of a tile with so many are
    empty."""

    count: Float[Array, "*any"]
    probability: Float[Array, "*any"]
    part_empty: Float[Array, "part *any"]


class AbstractDensity(eqx.Module):
    """One way in which nonzeros are distributed. Every method is elementwise over tiles and finite everywhere (a tile
    of no words, a tensor of no nonzeros). All but walks are differentiable."""

    @abstractmethod
    def prob_empty(self, nonzeros: Nonzeros, tile: Box) -> Any:
        """P(a tile holds no nonzero)."""

    @abstractmethod
    def mean(self, nonzeros: Nonzeros, tile: Box) -> Any:
        """Expected nonzeros of a tile."""

    @abstractmethod
    def least(self, nonzeros: Nonzeros, tile: Box) -> tuple[Any, Any]:
        """The smallest occupancy of probability above 0, and as the reference computes it (they differ by quirks Q2
        and Q14: the reference may say 0)."""

    @abstractmethod
    def largest(self, nonzeros: Nonzeros, tile: Box) -> Any:
        """The largest possible occupancy."""

    def most_nonempty(self, nonzeros: Nonzeros, fiber: Box, element: Box) -> Any:
        """How many elements of a fiber hold a nonzero, at most."""
        return jnp.minimum(exact_divide(fiber.words, element.words), self.largest(nonzeros, fiber))

    @abstractmethod
    def walk(self, nonzeros: Nonzeros, tile: Box, parts: Box) -> Walk:
        """Starts at the smallest occupancy. Leaves of `parts`: [part, *those of `tile`]."""

    @abstractmethod
    def visit(self, nonzeros: Nonzeros, tile: Box, parts: Box, walk: Walk, index: Any) -> tuple[Visit, Any]:
        """The occupancy at which the walk stands, after `index` steps, and the state for the next one."""

    @abstractmethod
    def prob_empty_within(self, nonzeros: Nonzeros, tile: Box, count: Any, part: Box) -> Any:
        """P(`part` of a tile holds no nonzero | the tile holds `count` nonzeros)."""

    def prob_none(self, nonzeros: Nonzeros, tile: Box, count: Any) -> Any:
        """Chance that a tile with `count` nonzeros counts as empty."""
        return (count == 0.0).astype(count.dtype)
