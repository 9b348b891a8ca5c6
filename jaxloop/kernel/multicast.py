"""Spatial reuse: how the children of one fan-out share words (spec/dense.md section 4.5).

Children with equal offsets receive the same words; partially overlapping halos are not shared. The histogram "number of
groups per multiplicity" has a closed form: loops irrelevant to the tensor multiply all multiplicities, an axis moved
by one rank has no coincidences, an axis moved by two ranks (a sliding window) has those of two arithmetic progressions.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._math import gcd
from ..program import Mapping, Program
from .tiling import Tiles


class Multicast(eqx.Module):
    """The multicast histogram of one fan-out per level and tensor.

    **Attributes:**

    - `fanout`: children of one instance that are used.
    - `repeats`: children that share everything (product of the irrelevant spatial loops).
    - `groups_by_multiple`: number of groups whose multiplicity is `repeats * (index + 1)`.
    - `groups`: their sum.
    """

    fanout: Float[Array, "level *#lane"]
    repeats: Float[Array, "level tensor *#lane"]
    groups_by_multiple: Float[Array, "multiple level tensor *#lane"]
    groups: Float[Array, "level tensor *#lane"]

    @property
    def factors(self) -> Float[Array, "multiple level tensor *#lane"]:
        """Multiplicities: the children of each group of `groups_by_multiple`."""
        multiple = jnp.arange(1, self.groups_by_multiple.shape[0] + 1, dtype=self.repeats.dtype)
        return _leading(multiple, self.repeats) * self.repeats[None]


def _window_groups(program: Program, tiles: Tiles) -> Array:
    """Groups per multiplicity 1, 2, ... of each sliding axis: [multiple, level, window, sliding].

    With bounds a, b and coprime strides x, y the number of offsets that occur at least k times is
    N(k) = max(0, a - (k-1) y) max(0, b - (k-1) x), counted with overlap; its second difference is the histogram.
    """
    ranks = program.structure.ranks
    index = jnp.arange(ranks, dtype=program.window_rank.dtype)
    index = index.reshape((1, 1, 1, ranks) + (1,) * (program.window_rank.ndim - 3))
    chosen = (program.window_rank[:, :, :, None] == index).astype(tiles.fan.dtype)
    bounds = jnp.sum(chosen[None] * tiles.fan[:, None, None, None], axis=4)
    strides = jnp.sum(chosen[None] * tiles.below[:, None, None, None], axis=4) * program.window_coefficient[None]
    used = strides > 0.0
    bounds, strides = jnp.where(used, bounds, 1.0), jnp.where(used, strides, 1.0)
    divisor = gcd(strides[:, :, :, 0], strides[:, :, :, 1])
    stride_first, stride_second = strides[:, :, :, 0] / divisor, strides[:, :, :, 1] / divisor
    first, second = bounds[:, :, :, 0], bounds[:, :, :, 1]
    count = _leading(jnp.arange(program.structure.multicast + 2, dtype=first.dtype), first)
    at_least = jnp.maximum(first[None] - count * stride_second[None], 0.0) * jnp.maximum(
        second[None] - count * stride_first[None], 0.0
    )
    return at_least[:-2] - 2.0 * at_least[1:-1] + at_least[2:]


def _leading(values: Array, like: Array) -> Array:
    """A vector as the leading axis in front of the axes of `like`."""
    return values.reshape(values.shape + (1,) * like.ndim)


def _convolve(first: Array, second: Array) -> Array:
    """Histogram of the product of two independent multiplicities, cut at the same length."""
    size = first.shape[0]
    divisors = [[d for d in range(1, multiple + 1) if multiple % d == 0] for multiple in range(1, size + 1)]
    rows = max(map(len, divisors))
    # one column per product; places beyond its divisors point at a zero behind the histogram
    left, right = np.full((rows, size), size), np.full((rows, size), size)
    for multiple, own in enumerate(divisors, 1):
        left[: len(own), multiple - 1] = np.array(own) - 1
        right[: len(own), multiple - 1] = multiple // np.array(own) - 1
    padded = [jnp.concatenate([histogram, jnp.zeros_like(histogram[:1])]) for histogram in (first, second)]
    return jnp.sum(padded[0][left] * padded[1][right], axis=0)


def multicast_groups(program: Program, mapping: Mapping, tiles: Tiles) -> Multicast:
    structure = program.structure
    moves = program.projection != 0.0
    fanout = jnp.prod(tiles.fan, axis=1)
    single = jnp.any(moves & (program.window_axis[:, :, None] == 0.0), axis=1)
    distinct = jnp.prod(jnp.where(single[None], tiles.fan[:, None], 1.0), axis=2)
    repeats = jnp.prod(jnp.where(jnp.any(moves, axis=1)[None], 1.0, tiles.fan[:, None]), axis=2)
    histogram = distinct[None]
    if structure.sliding:
        windows = _window_groups(program, tiles)
        shared = windows[:, :, :, 0]
        for axis in range(1, structure.sliding):
            shared = _convolve(shared, windows[:, :, :, axis])
        # tensors without windows have groups of multiplicity 1 alone
        shared = jnp.sum(shared[:, :, None] * program.window[None, None], axis=3)
        plain = 1.0 - jnp.sum(program.window, axis=1)
        first = shared[0] + plain[None]
        histogram = jnp.concatenate([jnp.broadcast_to(first, shared[0].shape)[None], shared[1:]]) * distinct[None]
    separate = mapping.no_multicast > 0.0
    repeats = jnp.where(separate, 1.0, repeats)
    alone = jnp.where(separate, fanout[:, None], histogram[0])
    histogram = jnp.concatenate([alone[None], jnp.where(separate[None], 0.0, histogram[1:])])
    return Multicast(fanout=fanout, repeats=repeats, groups_by_multiple=histogram, groups=jnp.sum(histogram, axis=0))
