"""Levels that plan for fewer nonzeros than their fullest tile may hold (spec/sparse.md 5.2).

Each compressed tensor is allotted its share of the level by expected occupancy. The planned tile is the fullest one
that fits with the largest chance, found by bisection to one in a hundred; what tiles hold beyond it is read from the
next outer level.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._math import ceil, exact_divide
from ..program import Program, SparseProgram
from .cells import Cells
from .density import Densities
from .occupancy import CellTiles, Occupancy, metadata_bits
from .tiling import effective_size

HALVINGS = 7
"""Steps of the bisection from 1 to below one hundredth."""


def overbooked(
    program: Program,
    sparse: SparseProgram,
    everything: CellTiles,
    occupancy: Occupancy,
    densities: Densities,
    cells: Cells,
) -> Occupancy:
    """The occupancy with planned tiles in place of the fullest ones where a level may be overbooked. A tile that
    fills its share exactly fits (the reference does not end there, quirk Q17)."""
    conventions = program.structure.conventions
    ranks = everything.ranks
    applies = (sparse.allow_overbooking > 0.0) & jnp.isfinite(program.size)
    expected = jnp.where(everything.kept, jnp.where(ranks.compressed, occupancy.words, everything.tile.words), 0.0)
    total = jnp.sum(expected, axis=1)[:, None]
    share = exact_divide(expected, jnp.where(total > 0.0, total, 1.0))
    allotted = [
        ceil(jnp.where(applies, effective_size(program, jnp.where(applies, size, 0.0)), 0.0)[:, None] * share)
        for size in (program.size, jnp.where(jnp.isfinite(sparse.metadata_size), sparse.metadata_size, 0.0))
    ]
    tiles, at_cells = cells.pick(everything), densities.pick(cells)
    walk = at_cells.walk(tiles.tile, jax.tree.map(lambda leaf: leaf[:0], tiles.below))

    def planned(confidence: Array) -> tuple[Array, Array, Array]:
        """Words, units and bits of the tile planned for with this confidence [level, tensor]."""
        count = walk.quantile(cells.pick(confidence), tiles.kept)
        within = at_cells.prob_empty_within(tiles.tile, count, tiles.below)
        units = tiles.units(conventions, at_cells.prob_none(tiles.tile, count), within)
        bits = metadata_bits(sparse, cells, units)
        return cells.put(count), units, ceil(bits) if conventions.integer_counts else bits

    def fits(confidence: Array) -> Array:
        words, _, bits = planned(confidence)
        return (words <= allotted[0]) & (bits <= allotted[1])

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        lower, upper = bounds
        middle = (lower + upper) / 2.0
        fit = fits(middle)
        return jnp.where(fit, middle, lower), jnp.where(fit, upper, middle)

    none = jnp.zeros_like(occupancy.words + applies[:, None])
    lower, _ = jax.lax.fori_loop(0, HALVINGS, halve, (none, jnp.ones_like(none)))
    confidence = jnp.where(fits(none), lower, 0.0)
    words, units, bits = planned(confidence)
    changes = applies[:, None] & ranks.compressed
    at_cell = cells.pick(changes)[:, :, None, None]
    return replace(
        occupancy,
        largest_words=jnp.where(changes, words, occupancy.largest_words),
        largest_units=jnp.where(at_cell, units, occupancy.largest_units),
        largest_bits=jnp.where(changes, bits, occupancy.largest_bits),
        confidence=jnp.where(changes, confidence, 1.0),
    )
