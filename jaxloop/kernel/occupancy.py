"""What tiles hold: expected and largest numbers of nonzeros and units of metadata (spec/sparse.md 2.5, 2.6, 5.2)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._math import ceil, ceil_div, exact_divide, valued
from .._twofold import shielded
from ..conventions import Conventions
from ..program import Program, SparseProgram
from .cells import Cells
from .density import Densities
from .density.base import Box, Visit
from .formats import Fibers, rank_units
from .nest import Nest, of_parent
from .rank_loops import FormatRanks


class Occupancy(eqx.Module):
    """Per instance of a level, given that its tile is not empty where only such tiles are stored.

    **Attributes:** (units [.., 2] are of metadata and payload, at the cells)

    - `removed`: chance that a tile is empty and therefore not there: below a level with metadata, else 0.
    - `words`: expected nonzeros; `density`: their share of the tile.
    - `units`: expected metadata.
    - `blocks`: expected vector accesses to read the nonzeros of a tile once.
    - `largest_words`, `largest_units`, `largest_bits`: of the fullest tile, as it is stored; of an overbooked level, of
      the fullest one that is planned for.
    - `confidence`: chance that a tile is not fuller than that.
    """

    removed: Float[Array, "level tensor *#lane"]
    words: Float[Array, "level tensor *#lane"]
    density: Float[Array, "level tensor *#lane"]
    units: Float[Array, "1 cell format_rank 2 *#lane"]
    blocks: Float[Array, "level tensor *#lane"]
    largest_words: Float[Array, "level tensor *#lane"]
    largest_units: Float[Array, "1 cell format_rank 2 *#lane"]
    largest_bits: Float[Array, "level tensor *#lane"]
    confidence: Float[Array, "level tensor *#lane"]


class CellTiles(eqx.Module):
    """Tiles at the cells, and what is asked of them.

    **Attributes:** `formats`: codes of their ranks; `tile`, `below`: the tiles and, per rank, the tiles of one element;
    `conditioned`: only nonempty tiles are there; `kept`: there are tiles; `block`: words per vector access.
    """

    ranks: FormatRanks
    formats: Int[Array, "1 cell format_rank *#lane"]
    tile: Box
    conditioned: Bool[Array, "1 cell *#lane"]
    kept: Bool[Array, "1 cell *#lane"]
    block: Float[Array, "1 cell *#lane"]

    @property
    def below(self) -> Box:
        """[format_rank, 1, cell]"""
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 2, 0), self.ranks.below)

    def units(self, conventions: Conventions, tile_empty: Array, below_empty: Array) -> Array:
        """Units of metadata [1, cell, format_rank, 2].

        **Arguments:** chances that a tile [1, cell] and that one element of each rank [format_rank, 1, cell] is empty;
        both given the same number of nonzeros, or both regardless of it.
        """
        ranks = self.ranks
        active = ranks.exists & ((ranks.fiber > 1.0) | ranks.anchor)
        below = jnp.moveaxis(below_empty, 0, 2)
        empty = _of_next(ranks.exists, tile_empty, below)
        elements = ranks.fiber * (1.0 - below)
        of_rank = Fibers(ranks.fibers, ranks.fiber, ranks.fibers * (1.0 - empty), elements, conventions)
        return _without_data(*(jnp.where(active, kind, 0.0) for kind in rank_units(self.formats, of_rank)))


def _of_next(exists: Array, tile_empty: Array, below: Array) -> Array:
    """Chance that a fiber is empty [1, cell, format_rank]: that of an element of the next outer rank, or of the whole
    tile."""
    whole = tile_empty[:, :, None] + 0.0 * below[:, :, :1]
    outer = jnp.concatenate([below[:, :, 1:], whole], axis=2)
    has_outer = jnp.concatenate([exists[:, :, 1:], jnp.zeros_like(exists[:, :, :1])], axis=2)
    return jnp.where(has_outer, outer, tile_empty[:, :, None])


def _without_data(metadata: Array, payload: Array) -> Array:
    """Both as one array [1, cell, format_rank, 2]; the payload of the innermost rank that has units is the data
    itself."""
    ranks = metadata.shape[2]
    index = jnp.arange(ranks, dtype=metadata.dtype).reshape((1, 1, ranks) + (1,) * (metadata.ndim - 3))
    place = jnp.where((metadata != 0.0) | (payload != 0.0), index, float(ranks))
    is_data = index == jnp.min(place, axis=2)[:, :, None]
    return jnp.stack(jnp.broadcast_arrays(metadata, jnp.where(is_data, 0.0, payload)), axis=3)


def metadata_bits(sparse: SparseProgram, cells: Cells, units: Array) -> Array:
    """Bits [..., level, tensor] of `units` [..., 1, cell, format_rank, 2]."""
    leaves = cells.pick((sparse.metadata_bits, sparse.payload_bits))
    bits = jnp.stack(jnp.broadcast_arrays(*leaves), axis=3)
    # rounded products: the sum is rounded up to whole bits
    weighted = jnp.sum(shielded(units * bits), axis=(-bits.ndim + 2, -bits.ndim + 3))
    return cells.put(weighted, axis=weighted.ndim - bits.ndim + 2)


def all_tiles(program: Program, sparse: SparseProgram, nest: Nest, ranks: FormatRanks, tile: Box) -> CellTiles:
    """The tiles of all levels and tensors; `tile` [level, tensor]: what levels hold."""
    conditioned = of_parent(nest, ranks.has_metadata, jnp.zeros_like(nest.keep[0])) & nest.keep
    block = jnp.broadcast_to(
        program.block_size[:, None], jnp.broadcast_shapes(nest.keep.shape, program.block_size[:, None].shape)
    )
    return CellTiles(ranks, sparse.rank_format, tile, conditioned, nest.keep, block)


def tile_occupancy(
    program: Program, sparse: SparseProgram, everything: CellTiles, densities: Densities, cells: Cells
) -> Occupancy:
    """`everything`: the tiles of all levels and tensors."""
    conventions, tile, block = program.structure.conventions, everything.tile, everything.block
    tiles, at_cells = cells.pick(everything), densities.pick(cells)
    expected = _closed_form(tiles, at_cells)
    if conventions.occupancy_sums:
        parts = [_summed(part.pick(everything), densities.pick(part)) for part in cells.by_level()]
        summed = jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=1), *parts)
        known = at_cells.is_real  # counts need no sum over what might be
        expected = jax.tree.map(lambda closed, total: _known(known, closed, valued(closed, total)), expected, summed)
    removed, words, units, blocks = expected

    largest = at_cells.largest(tiles.tile)
    within = at_cells.prob_empty_within(tiles.tile, largest, tiles.below)
    fullest = tiles.units(conventions, at_cells.prob_none(tiles.tile, largest), within)
    is_sparse = tiles.ranks.has_metadata if conventions.sparse_words_with_metadata else tiles.ranks.compressed
    largest_bits = metadata_bits(sparse, cells, fullest)
    mean = densities.mean(tile)
    words = cells.put(words, otherwise=mean)
    return Occupancy(
        removed=cells.put(removed),
        words=words,
        density=exact_divide(words, jnp.maximum(tile.words, 1.0)),
        units=units,
        blocks=cells.put(blocks, otherwise=mean / block),
        largest_words=cells.put(jnp.where(is_sparse, largest, tiles.tile.words), otherwise=tile.words),
        largest_units=fullest,
        largest_bits=ceil(largest_bits) if conventions.integer_counts else largest_bits,
        confidence=jnp.ones_like(words),
    )


def _known(known: Array, closed: Array, summed: Array) -> Array:
    """`closed` [1, cell, ...] where `known` [cell, lanes]."""
    shape = (1, known.shape[0], *(1,) * (closed.ndim - known.ndim - 1), *known.shape[1:])
    return jnp.where(known.reshape(shape), closed, summed)


def _closed_form(tiles: CellTiles, densities: Densities) -> tuple[Array, Array, Array, Array]:
    """The tower rule: whether a fiber or an element is empty is asked of the whole tensor, so that the occupancy of the
    tile does not appear. Chance of absent tiles, words, units, blocks."""
    empty = densities.prob_empty(tiles.tile)
    removed = jnp.where(tiles.conditioned, empty, 0.0)
    left = 1.0 - removed
    # no tile is left: a share of nothing is 0
    share = jnp.where(left > 0.0, 1.0 / jnp.where(left > 0.0, left, 1.0), 0.0)
    words = densities.mean(tiles.tile) * share
    below_empty = 1.0 - (1.0 - densities.prob_empty(tiles.below)) * share
    units = tiles.units(densities.nonzeros.conventions, 1.0 - (1.0 - empty) * share, below_empty)
    return removed, words, jnp.where((left > 0.0)[:, :, None, None], units, 0.0), words / tiles.block


def _summed(tiles: CellTiles, densities: Densities) -> tuple[Array, Array, Array, Array]:
    """The sum over occupancies, from the smallest up: the reference's roundings to whole units depend on the last digit
    of these sums. Carries no tangent. As `_closed_form`."""
    conventions, tile = densities.nonzeros.conventions, tiles.tile
    low, reference_low = densities.least(tile)
    conditioned = tiles.conditioned & ((reference_low if conventions.least_occupancy_is_empty else low) == 0.0)
    occupancies = densities.walk(tile, tiles.below)
    first = occupancies.first()
    removed = jnp.where(conditioned & (first.count == low), first.probability, 0.0)
    left = 1.0 - removed

    def add(sums: tuple[Array, Array, Array], visit: Visit) -> tuple[Array, Array, Array]:
        removes = conditioned & (visit.count == low)
        given = exact_divide(visit.probability, jnp.where(left > 0.0, left, 1.0))
        given = jnp.where(removes | (left <= 0.0), 0.0, given)
        units = tiles.units(conventions, densities.prob_none(tile, visit.count), visit.part_empty)
        weight = visit.probability if conventions.unconditional_blocks else given
        return (
            sums[0] + shielded(given * visit.count),
            sums[1] + shielded(given[:, :, None, None] * units),
            sums[2] + shielded(ceil_div(visit.count, tiles.block) * weight),
        )

    zero = jnp.zeros_like(removed + tiles.block)
    units = jnp.zeros_like(tiles.ranks.fiber + zero[:, :, None])
    return removed, *occupancies.sum(add, (zero, jnp.stack([units, units], axis=3), zero), tiles.kept)
