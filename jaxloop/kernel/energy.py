"""Energy of storage accesses, and area (spec/dense.md sections 7.3 and 10, spec/sparse.md 5.3 and 5.4)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._math import ceil_div, exact_divide, floor, floor_div, stack
from ..program import Action, Conversion, Fate, Program, SparseProgram
from .nest import of_child
from .occupancy import metadata_bits
from .sparsity import Sparsity
from .traffic import Traffic

BLOCK_TABLE: dict[int, tuple[int, ...]] = {
    2: (251, 125, 84, 63, 51, 42, 36, 32, 28, 1),
    4: (375, 188, 125, 94, 75, 63, 54, 47, 42, 1),
    8: (438, 219, 146, 110, 88, 73, 63, 55, 49, 1),
    16: (469, 235, 157, 118, 94, 79, 67, 59, 52, 1),
    32: (485, 243, 162, 122, 97, 81, 70, 61, 52, 1),
}
"""Words per block -> blocks, by tenths of density, from which on a compressed tile is taken to fill its blocks
(spec/sparse.md 5.3)."""


class StorageEnergy(eqx.Module):
    """`energy_pj`: accesses of all instances; `parts`: the same by the first five of `Activity`; `address_pj`: address
    generation of all clusters in use; `clusters`: physical rows in use; `address_generations`: per cluster."""

    energy_pj: Float[Array, "level tensor *#lane"]
    parts: Float[Array, "part level tensor *#lane"]
    address_pj: Float[Array, "level tensor *#lane"]
    address_generations: Float[Array, "level tensor *#lane"]
    clusters: Float[Array, "level #tensor *#lane"]


def _per_block(program: Program):
    return ceil_div if program.structure.conventions.whole_blocks else jnp.divide


def storage_energy(program: Program, traffic: Traffic, sparsity: Sparsity | None) -> StorageEnergy:
    """Energy per vector access times whole vector accesses; instances that share a cluster share its energy."""
    if sparsity is None:
        block, per_block = program.block_size[:, None], _per_block(program)
        energy, accesses = jnp.zeros_like(traffic.reads), []
        for action, count in zip(Action, (traffic.reads, traffic.fills, traffic.updates), strict=True):
            accesses.append(per_block(count, block) * program.action_energy[action])
            energy = energy + accesses[-1]
        parts = stack([*accesses, jnp.zeros_like(energy), jnp.zeros_like(energy)])
        addresses, instances = traffic.address_generations, traffic.instances
        used = (traffic.instances_x * traffic.instances_y)[:, None]
    else:
        assert program.sparse is not None
        energy, parts = _sparse_energy(program, program.sparse, traffic, sparsity)
        words = sparsity.accesses.words
        timed = words[Fate.ACTUAL] + words[Fate.GATED]
        needed = jnp.where(program.is_output[None] > 0.0, timed[Action.UPDATE], timed[Action.READ])
        addresses, instances = needed + timed[Action.FILL], sparsity.accesses.instances
        used = sparsity.used_instances(traffic)
    rows = floor_div(program.mesh_x * program.mesh_y, program.cluster_size)[:, None]
    clusters = jnp.minimum(used, rows)
    return StorageEnergy(
        energy_pj=energy * (clusters / jnp.where(used > 0.0, used, 1.0)) * instances,
        parts=stack([part * (clusters / jnp.where(used > 0.0, used, 1.0)) * instances for part in parts]),
        address_pj=addresses * program.address_energy[:, None] * clusters,
        address_generations=addresses,
        clusters=clusters,
    )


def _sparse_energy(
    program: Program, sparse: SparseProgram, traffic: Traffic, sparsity: Sparsity
) -> tuple[Array, Array]:
    """Data, metadata and changes of representation, of one instance [level, tensor], and the same by part. What the
    tiles of an overbooked level hold beyond the planned ones is read from the next outer level instead."""
    accesses, confidence = sparsity.accesses, sparsity.occupancy.confidence
    per_block = _per_block(program)
    prices = stack([program.action_energy, sparse.gated_energy, sparse.skipped_energy])
    blocks = per_block(accesses.words, program.block_size[:, None]) * _block_ratio(program, traffic, sparsity)

    has_rows = sparse.metadata_width > 0.0
    width = jnp.where(has_rows, sparse.metadata_width, 1.0)[:, None]
    rows = per_block(metadata_bits(sparse, sparsity.cells, accesses.metadata), width) * has_rows[:, None]
    conversions = (
        accesses.decompressions * sparse.conversion_energy[Conversion.DECOMPRESSION]
        + accesses.compressions * sparse.conversion_energy[Conversion.COMPRESSION]
    )
    of_metadata = jnp.sum(rows * sparse.metadata_energy, axis=(0, 1))
    energy = jnp.sum(blocks * prices, axis=(0, 1)) + of_metadata + conversions
    parts = stack([*jnp.sum(blocks * prices, axis=0), of_metadata, conversions])
    if not (program.structure.sparse and program.structure.sparse.overbooking):
        return energy, parts
    beyond = [reads[Fate.ACTUAL, Action.READ] * (1.0 - confidence) for reads in (blocks, rows)]
    data, metadata = of_child(sparsity.nest, beyond, [jnp.zeros_like(reads[0]) for reads in beyond])
    metadata_price = sparse.metadata_energy[Fate.ACTUAL, Action.READ]
    instead = data * program.action_energy[Action.READ], metadata * metadata_price
    none = jnp.zeros_like(energy)
    beyond = (instead[0], none, none, instead[1], none)
    parts = stack([part * confidence + more for part, more in zip(parts, beyond, strict=True)])
    return energy * confidence + instead[0] + instead[1], parts


def by_activity(storage: StorageEnergy, network_pj: Array) -> Array:
    """pJ of all tensors [level, activity]; `network_pj`: of the network below each level, links included [level,
    tensor]."""
    every = [*storage.parts, storage.address_pj, network_pj]
    return jnp.swapaxes(stack([jnp.sum(part, axis=1) for part in every]), 0, 1)


def _block_ratio(program: Program, traffic: Traffic, sparsity: Sparsity) -> Array:
    """Vector accesses per word of a compressed tile, against those of one that fills its blocks [level, tensor]."""
    if not program.structure.conventions.partial_blocks:
        return jnp.ones_like(traffic.reads)
    occupancy, block = sparsity.occupancy, program.block_size[:, None]
    density = occupancy.density
    tenth = jnp.clip(floor(exact_divide(density, jnp.full_like(density, 0.1))) - 1.0, 0.0, 9.0)
    # blocks from which on the tile counts as full: never for sizes that the table does not list
    enough = jnp.full_like(density * block, jnp.inf)
    for size, row in BLOCK_TABLE.items():
        listed = sum(jnp.where(tenth == index, float(blocks), 0.0) for index, blocks in enumerate(row))
        enough = jnp.where(block == size, listed, enough)
    partial = enough > floor_div(traffic.tile_words, block)
    filled = exact_divide(occupancy.words, block)
    ratio = exact_divide(occupancy.blocks, jnp.where(filled > 0.0, filled, 1.0))
    applies = sparsity.ranks.compressed & (block > 1.0) & (density < 1.0) & (filled > 0.0) & partial
    return jnp.where(applies, ratio, 1.0)


def compute_energy(program: Program, computes: Array, sparsity: Sparsity | None) -> Array:
    """pJ of all operations; `computes`: algorithmic ones."""
    if sparsity is None or program.sparse is None:
        return computes * program.compute_energy
    counts = sparsity.computes.counts
    return (
        counts[Fate.ACTUAL] * program.compute_energy
        + counts[Fate.GATED] * program.sparse.gated_compute_energy
        + counts[Fate.SKIPPED] * program.sparse.skipped_compute_energy
    )


def total_area(program: Program) -> Array:
    """um^2 of all instances, used or not."""
    per_level = program.area * program.mesh_x * program.mesh_y
    compute = program.compute_area * program.compute_mesh_x * program.compute_mesh_y
    return sum(per_level[s] for s in range(program.structure.levels)) + compute


def total(per_level: Array) -> Array:
    """Sum over levels and tensors in that order."""
    return jnp.sum(stack([jnp.sum(row, axis=0) for row in per_level]), axis=0)
