"""What becomes of the dense traffic: formats thin it, gating and skipping remove accesses (spec/sparse.md 2.8, 3.6 to
3.8)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import ceil, exact_divide, floor, stack
from ..program import Action, Program
from .cells import Cells
from .joint import Pairs, without_removed
from .nest import Nest, of_outer, of_parent
from .occupancy import Occupancy
from .position_skipping import PositionSkipping
from .rank_loops import FormatRanks
from .safs import Safs
from .spatial_skipping import SpatialSkipping
from .traffic import Traffic


class Accesses(eqx.Module):
    """Counts per instance.

    **Attributes:**

    - `words`: of data; `metadata`: units of metadata and payload (last axis) per format rank, at the cells.
    - `temporal_reductions`, `decompressions`, `compressions`: words.
    - `instances`: average number in use: below a level with metadata, those with an empty tile have nothing to do.
    - `computes`: of all units, without those that the operands' SAFs remove.
    - `operand_chance`: chance that the innermost SAF of an operand removes a compute; `operand_present`: it has one.
    - `local_chance`: chance that a level's SAF removes an access that outer ones have left.
    """

    words: Float[Array, "fate action level tensor *#lane"]
    metadata: Float[Array, "fate action 1 cell format_rank 2 *#lane"]
    temporal_reductions: Float[Array, "level tensor *#lane"]
    decompressions: Float[Array, "level tensor *#lane"]
    compressions: Float[Array, "level tensor *#lane"]
    instances: Float[Array, "level tensor *#lane"]
    computes: Float[Array, "*#lane"]
    operand_chance: Float[Array, "tensor *#lane"]
    operand_present: Bool[Array, "tensor *#lane"]
    local_chance: Float[Array, "level tensor *#lane"]


def _roundings(program: Program):
    """How many of a number of accesses a share of them is, at most and at least."""
    if program.structure.conventions.integer_counts:
        return floor, ceil
    return (lambda x: x), (lambda x: x)


def _after_formats(
    program: Program,
    ranks: FormatRanks,
    occupancy: Occupancy,
    cells: Cells,
    traffic: Traffic,
    positions: PositionSkipping | None,
) -> tuple[Array, Array]:
    """Words [action, level, tensor] and units of metadata [action, 1, cell, format_rank, 2] (2.8, 3.6)."""
    down, up = _roundings(program)
    dense = stack([traffic.reads, traffic.fills, traffic.updates])
    share = jnp.where(ranks.has_metadata, occupancy.density, 1.0)
    if positions is None:
        left = stack([share, share, share])
    else:
        reads = jnp.concatenate([(share[0] * positions.reads)[None], share[1:]])
        left = stack([reads, share, share])
    words = jnp.where(left == 1.0, dense, dense - down(dense * (1.0 - left)))
    tiles = cells.pick(exact_divide(dense, jnp.maximum(traffic.tile_words, 1.0)[None]), axis=1)
    units = up(occupancy.units[None] * tiles[:, :, :, None, None])
    return words, jnp.where(cells.pick(ranks.has_metadata)[None, :, :, None, None], units, 0.0)


def _thinned(
    program: Program, ranks: FormatRanks, safs: Safs, cells: Cells, words: Array, metadata: Array
) -> tuple[Array, Array, Array]:
    """Words and metadata without what the next outer SAF keeps from arriving, and that SAF's chance."""
    conventions = program.structure.conventions
    down, _ = _roundings(program)
    none = jnp.zeros_like(safs.chance[0])
    present, chance, count = of_outer(safs.present, (safs.present, safs.chance, ranks.count), (none > 0.0, none, none))
    words = words - down(words * chance)
    share, one_rank, replaced = cells.pick((chance, count == 1.0, present & safs.present))
    share = share[None, :, :, None, None]
    if conventions.one_rank_thinning:
        index = jnp.arange(metadata.shape[3]).reshape((1, 1, 1, -1, 1) + (1,) * (metadata.ndim - 5))
        updates = jnp.arange(metadata.shape[0]).reshape((-1,) + (1,) * (metadata.ndim - 1)) == Action.UPDATE
        share = jnp.where(one_rank[None, :, :, None, None] & (index == 0) & ~updates, share, 0.0)
    metadata = metadata - down(metadata * share)
    if conventions.update_counts_for_metadata_reads:
        reads = jnp.where(replaced[:, :, None, None], metadata[Action.UPDATE], metadata[Action.READ])
        metadata = stack([reads, metadata[Action.FILL], metadata[Action.UPDATE]])
    return words, metadata, chance


def _local_chance(safs: Safs, outer: Array) -> Array:
    """The chance that a SAF removes what an outer one has left: both chances are of all accesses. Where the inner one
    removes less than the outer one, the reference wraps around (quirk Q19); nothing is removed here."""
    left = 1.0 - outer
    beyond = 1.0 - exact_divide(1.0 - safs.chance, jnp.where(left > 0.0, left, 1.0))
    return jnp.where(safs.present, jnp.where(left > 0.0, jnp.clip(beyond, 0.0, 1.0), 0.0), 0.0)


def sparse_accesses(
    program: Program,
    nest: Nest,
    ranks: FormatRanks,
    occupancy: Occupancy,
    cells: Cells,
    safs: Safs,
    traffic: Traffic,
    computes: Array,
    spatial: SpatialSkipping | None,
    positions: PositionSkipping | None,
    pairs: Pairs | None,
) -> Accesses:
    """`computes`: algorithmic ones of all units; `spatial`: what `safs` contain of spatial skipping."""
    _, up = _roundings(program)
    words, metadata = _after_formats(program, ranks, occupancy, cells, traffic, positions)
    words, metadata, outer = _thinned(program, ranks, safs, cells, words, metadata)
    chance = _local_chance(safs, outer)
    if spatial is not None:
        # children that are left out save nothing at the level itself
        chance = jnp.where(spatial.present, 0.0, chance)

    kept = _by_fate(words, _dropped_words(program, words, chance), safs.skips)
    reductions = exact_divide(
        traffic.temporal_reductions * kept[0, Action.UPDATE], jnp.where(traffic.updates > 0.0, traffic.updates, 1.0)
    )
    instances = traffic.instances * _busy(program, occupancy, spatial)
    decompressions, compressions = _conversions(program, nest, ranks, instances, kept[0])
    present, operand_chance = _innermost(safs)
    reads_only = (program.is_output == 0.0) & present
    if pairs is not None and program.structure.sparse is not None:
        operand_chance = without_removed(pairs, operand_chance, program.structure.sparse.operands)
    return Accesses(
        words=kept,
        metadata=_by_fate(metadata, *_dropped_metadata(program, ranks, safs, cells, metadata, chance)),
        temporal_reductions=jnp.where(traffic.updates > 0.0, up(reductions), 0.0),
        decompressions=decompressions,
        compressions=compressions,
        instances=instances,
        computes=_computes_left(program, computes, reads_only, operand_chance, positions),
        operand_chance=jnp.where(reads_only, operand_chance, 0.0),
        operand_present=reads_only,
        local_chance=chance,
    )


def _by_fate(all_of: Array, removed: Array, skips: Array) -> Array:
    return stack([all_of - removed, jnp.where(skips, 0.0, removed), jnp.where(skips, removed, 0.0)])


def _dropped_words(program: Program, words: Array, chance: Array) -> Array:
    """Words [action, level, tensor] that a level's own SAF removes there: fills are those of others (3.7.1)."""
    down, up = _roundings(program)
    reads, updates = words[Action.READ] * chance, words[Action.UPDATE] * chance
    return stack([jnp.where(program.is_output[None] > 0.0, up(reads), down(reads)), 0.0 * reads, down(updates)])


def _dropped_metadata(
    program: Program, ranks: FormatRanks, safs: Safs, cells: Cells, metadata: Array, chance: Array
) -> tuple[Array, Array]:
    """Units of metadata that go with the data of the next inner level [action, 1, cell, format_rank, 2], and whether by
    skipping."""
    down, _ = _roundings(program)
    own, share, skips = cells.pick((jnp.where(ranks.has_child, ranks.child_count, ranks.count), chance, safs.skips))
    index = jnp.arange(metadata.shape[3], dtype=own.dtype).reshape((1, 1, -1) + (1,) * (own.ndim - 2))
    share = jnp.where(index < own[:, :, None], share[:, :, None], 0.0)[None, :, :, :, None]
    local = jnp.arange(metadata.shape[0]).reshape((-1,) + (1,) * (metadata.ndim - 1)) != Action.FILL
    return jnp.where(local, down(metadata * share), 0.0), skips[:, :, None, None]


def _conversions(
    program: Program, nest: Nest, ranks: FormatRanks, instances: Array, words: Array
) -> tuple[Array, Array]:
    """Words that a level without compression decompresses on their way in and compresses on their way out, where the
    next outer level is compressed (3.8). `words` [action, level, tensor]: actual ones."""
    none = jnp.zeros_like(instances[0])
    from_compressed = of_parent(nest, ranks.compressed, none > 0.0) & ~ranks.compressed & nest.keep
    updates = of_parent(nest, words[Action.UPDATE], none)
    if not program.structure.conventions.compressions_of_one_parent:
        updates = updates * exact_divide(of_parent(nest, instances, none), jnp.where(instances > 0.0, instances, 1.0))
    compresses = from_compressed & (program.is_output[None] > 0.0)
    return jnp.where(from_compressed, words[Action.FILL], 0.0), jnp.where(compresses, updates, 0.0)


def _busy(program: Program, occupancy: Occupancy, spatial: SpatialSkipping | None) -> Array:
    """Share of the instances in the mapping that are in use on average [level, tensor]."""
    filled = 1.0 - occupancy.removed
    if spatial is None:
        return filled
    if program.structure.conventions.spatial_shares_alone:
        return spatial.share + 0.0 * filled
    return jnp.minimum(spatial.share, filled)


def _innermost(safs: Safs) -> tuple[Array, Array]:
    """Whether a tensor has a SAF, and the chance of the innermost one for operations [tensor]."""
    present, chance = jnp.zeros_like(safs.present[0]), jnp.zeros_like(safs.operation_chance[0])
    for s in range(safs.present.shape[0]):
        chance = jnp.where(safs.present[s] & ~present, safs.operation_chance[s], chance)
        present = present | safs.present[s]
    return present, chance


def _computes_left(
    program: Program, computes: Array, present: Array, chance: Array, positions: PositionSkipping | None
) -> Array:
    """Operands remove computes one after another in the order of the tensors (3.7), compacted ones those of their own
    zeros."""
    down, _ = _roundings(program)
    for tensor in range(program.structure.tensors):
        computes = computes - jnp.where(present[tensor], down(computes * chance[tensor]), 0.0)
        if positions is not None:
            computes = computes - down(computes * (1.0 - positions.density[tensor]))
    return computes


def has_format_mismatch(nest: Nest, ranks: FormatRanks) -> Array:
    """A compressed tile inside an uncompressed one [level, tensor], at the inner level: the reference aborts (3.8)."""
    parent = of_parent(nest, (nest.keep, ranks.compressed), jax.tree.map(jnp.zeros_like, (nest.keep[0], nest.keep[0])))
    return nest.keep & ranks.compressed & parent[0] & ~parent[1]
