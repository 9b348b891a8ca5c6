"""Banded: the nonzeros of a square tensor lie within a band around its diagonal (spec/sparse.md 1.5).

Tiles of `height` x `width` are aligned to the tensor's corner. A tile is known by its row group and its tile column;
its nonzeros depend only on how far it stands from the diagonal. In one row group the tiles left and right of the band
are empty, and the nonempty ones are consecutive. As in the reference few row groups are looked at: those that the
tensor's upper edge cuts the band in, each for itself and its mirror image, and the next one for all those between. That
is exact if whole tiles fill the tensor and `width` divides `height`; else the row groups between differ a little.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._math import GCD_STEPS, ceil_div, exact_divide, floor_div, round_half_up, stack
from .base import AbstractDensity, Box, Nonzeros, Visit, Walk


def nodes_needed(band_width: int) -> int:
    """Nodes that hold every occupancy that can occur with bands up to `band_width` and integer tile extents, 0
    included. Found by enumeration of bands up to 32 and extents up to `6 * band_width + 11`, not proven."""
    return 2 * band_width + 4


class Banded(AbstractDensity):
    """**Attributes:**

    - `band_width`: the largest half width that occurs; it bounds how many tiles must be looked at.
    """

    band_width: int = eqx.field(static=True)

    def prob_empty(self, nonzeros: Nonzeros, tile: Box) -> Any:
        """P(a tile holds no nonzero)."""
        rows = _rows(nonzeros, tile, self.band_width)
        return exact_divide(rows.empty_tiles(), rows.tiles)

    def mean(self, nonzeros: Nonzeros, tile: Box) -> Any:
        side = jnp.maximum(nonzeros.side, 1.0)
        half = jnp.minimum(nonzeros.band_width, side - 1.0)
        return tile.words * exact_divide(side + half * (2.0 * side - half - 1.0), side * side)

    def least(self, nonzeros: Nonzeros, tile: Box) -> tuple[Any, Any]:
        rows = _rows(nonzeros, tile, self.band_width)
        count, weight = rows.tile_kinds(self.band_width)
        beyond = rows.height * rows.width + 1.0
        smallest = jnp.min(jnp.where(weight > 0.0, count, beyond), axis=0)
        low = jnp.where(rows.empty_tiles() > 0.0, 0.0, smallest)
        return low, jnp.zeros_like(low)

    def largest(self, nonzeros: Nonzeros, tile: Box) -> Any:
        """The tile nearest to the diagonal holds most."""
        rows = _rows(nonzeros, tile, self.band_width)
        centered = floor_div(jnp.maximum(rows.top + (rows.height - rows.width) / 2.0, 0.0), rows.width)
        near = jnp.clip(stack([centered, centered + 1.0]), rows.first, rows.last)
        return jnp.max(jnp.where(rows.filled > 0.0, rows.count(near), 0.0), axis=(0, 1))

    def walk(self, nonzeros: Nonzeros, tile: Box, parts: Box) -> Walk:
        occupancies = self.occupancies(nonzeros, tile, nodes_needed(self.band_width))
        return Walk(length=jnp.sum(occupancies[1] > 0.0, axis=0).astype(tile.words.dtype), fixed=occupancies, state=())

    def visit(self, nonzeros: Nonzeros, tile: Box, parts: Box, walk: Walk, index: Any) -> tuple[Visit, Any]:
        place = jnp.minimum(index, walk.fixed[0].shape[0] - 1)
        count, probability = (jax.lax.dynamic_index_in_dim(leaf, place, keepdims=False) for leaf in walk.fixed)
        return Visit(count, probability, self.prob_empty_within(nonzeros, tile, count, parts)), ()

    def occupancies(self, nonzeros: Nonzeros, tile: Box, nodes: int) -> tuple[Any, Any]:
        """Counts in ascending order and their probabilities [node, ...]. Equal occupancies share a node. Too few nodes
        (`nodes_needed`) leave the largest occupancies to share the last one, at their mean."""
        rows = _rows(nonzeros, tile, self.band_width)
        count, weight = rows.tile_kinds(self.band_width)
        empty = rows.empty_tiles()
        count = jnp.concatenate([jnp.zeros_like(empty)[None], count])
        weight = jnp.concatenate([empty[None], weight])
        unused = jnp.broadcast_to(rows.height * rows.width + 1.0, count.shape)  # beyond all counts: sorted last
        count, weight = jax.lax.sort((jnp.where(weight > 0.0, count, unused), weight), dimension=0, num_keys=1)
        tiles, total = _merge(count, weight, nodes)
        used = tiles > 0.0
        merged = jnp.where(used, exact_divide(total, jnp.where(used, tiles, 1.0)), 0.0)
        if nonzeros.conventions.integer_counts:
            merged = round_half_up(merged)
        return merged, exact_divide(tiles, rows.tiles)

    def prob_empty_within(self, nonzeros: Nonzeros, tile: Box, count: Any, part: Box) -> Any:
        """With `integer_counts` as the reference computes it: it looks at the first tile that holds `count`, with
        that tile's corner added twice to the upper and left edges of the parts (quirk Q16). A tile elsewhere than at
        the tensor's corner is at least one part away from it, so that all its parts come out inverted, hence empty. The
        tile at the corner is the first of its kind. Without `integer_counts`: not conditioned on `count`."""
        if not nonzeros.conventions.integer_counts:
            probability = self.prob_empty(nonzeros, part)
            return jnp.broadcast_to(probability, jnp.broadcast_shapes(count.shape, probability.shape))
        side, height, width = _extents(nonzeros, tile)
        _, part_height, part_width = _extents(nonzeros, part)
        part_height, part_width = jnp.minimum(part_height, height), jnp.minimum(part_width, width)
        half = nonzeros.band_width
        at_corner = jnp.abs(count - _inside(0.0 * side, height, width, half)) < 0.5
        down, across = floor_div(height, part_height), floor_div(width, part_width)
        filled = _filled_at_corner(down, across, part_height, part_width, half)
        share = exact_divide(down * across - filled, down * across)
        return jnp.where(at_corner & (tile.words > 0.0), share, 1.0)

    def prob_none(self, nonzeros: Nonzeros, tile: Box, count: Any) -> Any:
        """With `integer_counts`, all tiles but that at the tensor's corner count as empty (quirk Q16)."""
        if not nonzeros.conventions.integer_counts:
            return (count == 0.0).astype(count.dtype)
        return self.prob_empty_within(nonzeros, tile, count, tile)


class _Rows(eqx.Module):
    """The row groups that are looked at. Axis `group` stands in front of the axes of the tiles.

    **Attributes:**

    - `height`, `width`, `half`: of the tiles and of the band.
    - `tiles`: tiles in the tensor.
    - `across`: tile columns.
    - `weight`: row groups that each stands for.
    - `top`: first row of each.
    - `first`, `last`: nonempty tile columns; `filled` is their number, 0 in groups that are not looked at.
    """

    height: Float[Array, "*any"]
    width: Float[Array, "*any"]
    half: Float[Array, "*any"]
    tiles: Float[Array, "*any"]
    across: Float[Array, "*any"]
    weight: Float[Array, "group *any"]
    top: Float[Array, "group *any"]
    first: Float[Array, "group *any"]
    last: Float[Array, "group *any"]
    filled: Float[Array, "group *any"]

    def empty_tiles(self) -> Float[Array, "*any"]:
        return jnp.sum(self.weight * (self.across - self.filled), axis=0)

    def count(self, column: Any) -> Any:
        """Nonzeros of the tile in this column of each row group."""
        return _inside(column * self.width - self.top, self.height, self.width, self.half)

    def tile_kinds(self, band_width: int) -> tuple[Float[Array, "kind *any"], Float[Array, "kind *any"]]:
        """Nonzeros of the nonempty tiles, and the number of tiles alike.

        At most `2 * band_width + 1` columns at either end cross an edge of the band. If there are more columns, the
        band runs through the others from their top to their bottom edge, and they are alike."""
        edge = 2 * band_width + 1
        step = jnp.arange(edge, dtype=self.top.dtype).reshape(-1, *(1,) * self.top.ndim)
        columns = [self.first + step, self.last - step, self.first[None] + edge]
        numbers = [step < self.filled, self.filled - step > edge, jnp.maximum(self.filled - 2.0 * edge, 0.0)[None]]
        column = jnp.concatenate(columns)
        number = jnp.concatenate([jnp.asarray(number, self.top.dtype) for number in numbers])
        count, weight = jnp.broadcast_arrays(self.count(column), self.weight * number)
        kinds = (count.shape[0] * count.shape[1], *count.shape[2:])
        return count.reshape(kinds), weight.reshape(kinds)


def _extents(nonzeros: Nonzeros, tile: Box) -> tuple[Any, Any, Any]:
    """Side of the tensor, height and width of the tile, all within reason."""
    if tile.height is None or tile.width is None:
        raise ValueError("a banded tensor needs the height and width of its tiles")
    side = jnp.maximum(nonzeros.side, 1.0)
    return side, jnp.clip(tile.height, 1.0, side), jnp.clip(tile.width, 1.0, side)


def _rows(nonzeros: Nonzeros, tile: Box, band_width: int) -> _Rows:
    side, height, width = _extents(nonzeros, tile)
    half = nonzeros.band_width
    side, height, width, half, words = jnp.broadcast_arrays(side, height, width, half, tile.words)
    down, across = floor_div(side, height), floor_div(side, width)
    group = jnp.arange(band_width + 1, dtype=height.dtype).reshape(-1, *(1,) * height.ndim)
    warm = ceil_div(half, height)  # row groups near the upper edge, where the band is cut off
    steady = jnp.maximum(down - 2.0 * warm, 0.0)
    if nonzeros.conventions.integer_counts:
        # the reference takes every one of them for two, also where the upper and the lower ones overlap (quirk Q15)
        near_edge = jnp.where(warm == down, 1.0, 2.0)
    else:
        near_edge = jnp.clip(down - 2.0 * group, 0.0, 2.0)
    weight = jnp.where(group == warm, steady, near_edge)
    top = group * height
    first = floor_div(jnp.maximum(top - half, 0.0), width)
    last = jnp.minimum(floor_div(top + height - 1.0 + half, width), across - 1.0)
    looked_at = group <= jnp.minimum(warm, down - 1.0)
    some_words = words > 0.0
    return _Rows(
        height=height,
        width=width,
        half=half,
        tiles=down * across,
        across=across,
        weight=jnp.where(some_words, jnp.where(looked_at, weight, 0.0), jnp.where(group == 0.0, down, 0.0)),
        top=top,
        first=first,
        last=last,
        filled=jnp.where(looked_at & some_words, jnp.maximum(last - first + 1.0, 0.0), 0.0),
    )


def _inside(offset: Any, height: Any, width: Any, half: Any) -> Any:
    """Nonzeros of a tile whose corner lies `offset` columns right of the diagonal: the summed lengths of those of its
    diagonals that belong to the band. By place `v` (column less row within the tile) the lengths grow from 1 to
    `min(height, width)`, stay, and shrink again; each stretch is summed without cancellation."""
    low, high = -half - offset, half - offset
    longest = jnp.minimum(height, width)

    def stretch(start: Any, end: Any) -> tuple[Any, Any]:
        start, end = jnp.maximum(low, start), jnp.minimum(high, end)
        return jnp.maximum(end - start + 1.0, 0.0), start + end

    growing, twice_grown = stretch(1.0 - height, longest - height - 1.0)
    staying, _ = stretch(longest - height, width - longest)
    shrinking, twice_shrunk = stretch(width - longest + 1.0, width - 1.0)
    return (
        growing * (2.0 * height + twice_grown) / 2.0
        + staying * longest
        + shrinking * (2.0 * width - twice_shrunk) / 2.0
    )


def _merge(
    count: Float[Array, "kind *any"], weight: Float[Array, "kind *any"], nodes: int
) -> tuple[Float[Array, "node *any"], Float[Array, "node *any"]]:
    """Tiles per node and the sum of their nonzeros, for counts in ascending order; counts that round to the same
    integer share a node."""
    value = jnp.round(jax.lax.stop_gradient(count)).reshape(count.shape[0], -1)
    is_new = jnp.concatenate([jnp.zeros_like(value[:1], bool), value[1:] != value[:-1]])
    place = jnp.minimum(jnp.cumsum(is_new, axis=0), nodes - 1)
    each = jnp.arange(value.shape[1])
    amounts = jnp.stack([weight, weight * count], axis=-1).reshape(*value.shape, 2)
    merged = jnp.zeros((nodes, value.shape[1], 2), count.dtype).at[place, each].add(amounts)
    merged = merged.reshape(nodes, *count.shape[1:], 2)
    return merged[..., 0], merged[..., 1]


def _filled_at_corner(down: Any, across: Any, height: Any, width: Any, half: Any) -> Any:
    """How many of `down` x `across` parts from the tensor's corner on hold a nonzero."""
    down, across, height, width, half = (
        jnp.round(jax.lax.stop_gradient(value)) for value in jnp.broadcast_arrays(down, across, height, width, half)
    )
    # columns that start before the band ends, less those that end before it starts; a row has at most `across`
    reach = height - 1.0 + half + width
    reaching = jnp.clip(ceil_div(jnp.maximum(across * width - reach, 0.0), height), 0.0, down)
    skipped = jnp.minimum(ceil_div(half, height), down)
    start = skipped * height - half
    leaving = jnp.clip(ceil_div(jnp.maximum(across * width - start, 0.0), height), 0.0, down - skipped)
    sums = _floor_sum(
        stack([reaching, leaving]),
        stack([height, height]),
        stack([reach, jnp.maximum(start, 0.0)]),
        stack([width, width]),
    )
    return sums[0] + (down - reaching) * across - sums[1] - (down - skipped - leaving) * across


def _floor_sum(terms: Array, slope: Array, start: Array, divisor: Array) -> Array:
    """`sum(floor((slope * i + start) / divisor) for i in range(terms))` of nonnegative integers, by the steps of
    Euclid's algorithm: whole parts are summed at once, the rest are lattice points under a line, counted from its other
    axis."""

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        total, terms, slope, start, divisor, count = state
        whole_slope, whole_start = floor_div(slope, divisor), floor_div(start, divisor)
        total = total + terms * (terms - 1.0) / 2.0 * whole_slope + terms * whole_start
        slope, start = slope - whole_slope * divisor, start - whole_start * divisor
        end = slope * terms + start
        height = floor_div(end, divisor)
        return total, height, divisor, end - height * divisor, jnp.maximum(slope, 1.0), count + 1

    def runs(state: tuple[Array, ...]) -> Array:
        return jnp.any(state[1] > 0.0) & (state[-1] < GCD_STEPS)

    zero = jnp.zeros((), jnp.int32)
    return jax.lax.while_loop(runs, step, (jnp.zeros_like(terms), terms, slope, start, divisor, zero))[0]
