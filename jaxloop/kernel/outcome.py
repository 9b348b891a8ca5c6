"""What an evaluation takes over from the sparse model, or from the lack of one."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from .._math import stack
from .sparsity import Sparsity
from .traffic import Traffic


def sparse_fields(sparsity: Sparsity) -> dict[str, Any]:
    occupancy, accesses, cells = sparsity.occupancy, sparsity.accesses, sparsity.cells
    return {
        "accesses": accesses.words,
        "metadata_accesses": cells.put(accesses.metadata, axis=2),
        "temporal_reductions": accesses.temporal_reductions,
        "decompressions": accesses.decompressions,
        "compressions": accesses.compressions,
        "instances": accesses.instances,
        "computes_by_fate": sparsity.computes.counts,
        "expected_words": occupancy.words,
        "expected_density": occupancy.density,
        "tile_empty": occupancy.removed,
        "metadata_units": cells.put(occupancy.units),
        "stored_words": occupancy.largest_words,
        "stored_units": cells.put(occupancy.largest_units),
        "metadata_bits": occupancy.largest_bits,
        "fiber_length": sparsity.ranks.fiber,
        "saf_kind": sparsity.saf_kind,
        "saf_chance": sparsity.safs.chance,
        "saf_local_chance": accesses.local_chance,
        "leader_words": sparsity.leader_words,
        "leader_empty": sparsity.leader_empty,
        "format_violation": sparsity.format_violation,
    }


def dense_fields(traffic: Traffic, computes: Array) -> dict[str, Any]:
    """Every access and operation happens, and tiles are full."""
    words = stack([traffic.reads, traffic.fills, traffic.updates])
    none = jnp.zeros_like(traffic.reads)
    no_ranks = none[:, :, None][:, :, :0]
    no_units = jnp.stack([no_ranks, no_ranks], axis=3)
    no_leaders = jnp.zeros_like(none[:, :, None] + none[:, None])
    no_code = jnp.zeros_like(none, dtype=jnp.int32)
    return {
        "accesses": stack([words, 0.0 * words, 0.0 * words]),
        "metadata_accesses": jnp.zeros((3, 3, *no_units.shape), none.dtype),
        "temporal_reductions": traffic.temporal_reductions,
        "decompressions": none,
        "compressions": none,
        "instances": traffic.instances,
        "computes_by_fate": stack([computes, 0.0 * computes, 0.0 * computes]),
        "expected_words": traffic.tile_words,
        "expected_density": (traffic.tile_words > 0.0).astype(none.dtype),
        "tile_empty": none,
        "metadata_units": no_units,
        "stored_words": traffic.tile_words,
        "stored_units": no_units,
        "metadata_bits": none,
        "fiber_length": no_ranks,
        "saf_kind": no_code,
        "saf_chance": none,
        "saf_local_chance": none,
        "leader_words": no_leaders,
        "leader_empty": no_leaders,
        "format_violation": no_code,
    }
