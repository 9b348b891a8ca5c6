"""The sparse model in order: formats, occupancy, gating and skipping, what is left of the traffic, operations
(spec/sparse.md section 0)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..program import SAF_KINDS, Mapping, Program, SparseProgram
from ..result import FormatViolation
from ..spec.sparse import ActionKind
from .accesses import Accesses, has_format_mismatch, sparse_accesses
from .cells import Cells
from .compute import Computes, count_computes
from .density import tensor_densities
from .joint import joint_leaders
from .leaders import leader_tiles
from .nest import Nest, box_of, footprint, of_parent, sparse_nest
from .occupancy import Occupancy, all_tiles, tile_occupancy
from .overbooking import overbooked
from .position_skipping import PositionSkipping, position_skipping
from .rank_loops import FormatRanks, format_ranks
from .safs import Safs, find_safs
from .spatial_skipping import SpatialSkipping, spatial_skipping
from .tiling import Tiles
from .traffic import Traffic


class Sparsity(eqx.Module):
    """All that the costs and the result need to know of the sparse model.

    **Attributes:** `leader_words`, `leader_empty` [level, target, condition]: leader tiles and their chances to be
    empty (1 word and chance 0 where the condition has no effect); `unsourced`: a SAF whose target no level stores;
    `spatial`: what is left of the fan-outs, None in programs without spatial skipping; `positions`: what compacting
    tensors does, likewise.
    """

    nest: Nest
    cells: Cells
    ranks: FormatRanks
    occupancy: Occupancy
    safs: Safs
    accesses: Accesses
    computes: Computes
    leader_words: Float[Array, "level tensor tensor *#lane"]
    leader_empty: Float[Array, "level tensor tensor *#lane"]
    format_violation: Int[Array, "level tensor *#lane"]
    unsourced: Bool[Array, "*#lane"]
    spatial: SpatialSkipping | None
    positions: PositionSkipping | None

    @property
    def saf_kind(self) -> Array:
        """`SparseProgram.saf_kind` of what each level does about each tensor."""
        gating, skipping = SAF_KINDS[ActionKind.GATING], SAF_KINDS[ActionKind.SKIPPING]
        kind = jnp.where(self.safs.present, jnp.where(self.safs.skips, skipping, gating), 0)
        if self.spatial is not None:
            kind = jnp.where(self.spatial.present, SAF_KINDS[ActionKind.SPATIAL_SKIPPING], kind)
        if self.positions is not None:
            compacted = self.positions.present & (kind[0] == 0)
            code = SAF_KINDS[ActionKind.POSITION_SKIPPING]
            kind = jnp.concatenate([jnp.where(compacted, code, kind[0])[None], kind[1:]])
        return kind.astype(jnp.int32)

    def used_instances(self, traffic: Traffic) -> Array:
        """Instances that must exist [level, tensor]; there may be none of those that spatial skipping leaves."""
        if self.spatial is None:
            return (traffic.instances_x * traffic.instances_y)[:, None]
        return self.spatial.instances_x * self.spatial.instances_y


def sparse_model(
    program: Program, sparse: SparseProgram, mapping: Mapping, tiles: Tiles, traffic: Traffic, computes: Array
) -> Sparsity:
    """`computes`: algorithmic ones of all units."""
    nest = sparse_nest(program, mapping, tiles)
    whole = tiles.fanned * mapping.temporal
    tile = box_of(program, jnp.broadcast_to(whole[:, None], _by_tensor(program, whole)))
    extents = footprint(program, jnp.broadcast_to(whole[-1][None], _by_tensor(program, whole)[1:]))
    densities = tensor_densities(program, sparse, jnp.prod(extents, axis=1), extents[:, 0])

    structure = program.structure
    assert structure.sparse is not None
    cells = Cells(structure.sparse.cells, structure.levels, structure.tensors)
    ranks = format_ranks(program, sparse, nest, tiles)
    everything = all_tiles(program, sparse, nest, ranks, tile)
    occupancy = tile_occupancy(program, sparse, everything, densities, cells)
    if structure.sparse.overbooking:
        occupancy = overbooked(program, sparse, everything, occupancy, densities, cells)
    positions = None
    if structure.sparse.position_skipping:
        positions = position_skipping(program, sparse, nest, tile, densities)
        occupancy = positions.unconditioned(occupancy, tile, densities.mean(tile))
    leaders = leader_tiles(program, sparse, nest, tiles)
    leader = box_of(program, leaders.box)
    empty = jnp.where(leaders.ineffective, 0.0, densities.prob_empty(leader))
    joint = joint_leaders(program, sparse, leaders)
    safs = find_safs(program, sparse, nest, ranks, occupancy, cells, empty, joint)
    spatial, units = None, traffic.compute_x * traffic.compute_y
    if structure.sparse.spatial_skipping:
        spatial = spatial_skipping(program, sparse, mapping, nest, ranks, tiles, traffic, densities, safs)
        safs, units = spatial.joined(safs), units * spatial.compute_share
    if positions is not None:
        dense = traffic.compute_x * traffic.compute_y
        units = jnp.where(positions.is_present, dense * positions.unit_share, units)
    pairs = None if joint is None else joint.pairs(safs.present)
    accesses = sparse_accesses(
        program, nest, ranks, occupancy, cells, safs, traffic, computes, spatial, positions, pairs
    )
    element = jax.tree.map(lambda leaf: jnp.ones_like(leaf[0]), tile)
    mean = densities.mean(element)
    operations = count_computes(program, sparse, nest, ranks, mean, accesses, units, positions, pairs)
    return Sparsity(
        nest=nest,
        cells=cells,
        ranks=ranks,
        occupancy=occupancy,
        safs=safs,
        accesses=accesses,
        computes=operations,
        leader_words=jnp.where(leaders.ineffective, 1.0, leader.words),
        leader_empty=empty,
        format_violation=_format_violations(program, sparse, nest, ranks),
        unsourced=jnp.any(safs.unsourced, axis=(0, 1)),
        spatial=spatial,
        positions=positions,
    )


def _by_tensor(program: Program, boxes: Array) -> tuple[int, ...]:
    """The shape of boxes [level, rank] repeated for each tensor."""
    return (boxes.shape[0], program.structure.tensors, *boxes.shape[1:])


def _format_violations(program: Program, sparse: SparseProgram, nest: Nest, ranks: FormatRanks) -> Array:
    """The first thing that is wrong with each representation, at the level that is at fault (2.3, 2.4, 2.7)."""
    none = jnp.zeros_like(nest.keep[0])
    outer, outer_ranks = of_parent(nest, (ranks.compressed, ranks.count), (none, none.astype(ranks.count.dtype)))
    shrinks = nest.keep & outer & ~ranks.compressed
    is_output = program.is_output[None] > 0.0
    tests: list[tuple[Array, FormatViolation]] = [
        (shrinks & (sparse.decompression_supported[:, None] == 0.0), FormatViolation.NO_DECOMPRESSION),
        (shrinks & is_output & (sparse.compression_supported[:, None] == 0.0), FormatViolation.NO_COMPRESSION),
        (outer & ranks.compressed & (outer_ranks < ranks.count), FormatViolation.RUNTIME_PARTITION),
        (ranks.misaligned, FormatViolation.MISALIGNED),
        (nest.keep & ranks.too_few, FormatViolation.TOO_FEW_RANKS),
        (has_format_mismatch(nest, ranks), FormatViolation.COMPRESSED_INSIDE),
    ]
    result = jnp.zeros_like(shrinks, dtype=jnp.int32)
    for failed, violation in reversed(tests):
        result = jnp.where(failed, jnp.int32(violation), result)
    return result
