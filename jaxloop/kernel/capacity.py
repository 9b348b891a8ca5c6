"""Is the mapping legal on this hardware? (spec/dense.md section 7.2, spec/sparse.md 2.7 and 5.2)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._math import stack
from ..program import Mapping, Program
from ..result import Status, Violation
from .sparsity import Sparsity
from .tiling import effective_size
from .traffic import Traffic


class Legality(eqx.Module):
    """`capacity_words`, `capacity_bits`: effective sizes for data and metadata."""

    status: Int[Array, "*#lane"]
    violation: Int[Array, "level1 *#lane"]
    capacity_words: Float[Array, "level *#lane"]
    capacity_bits: Float[Array, "level *#lane"]


def _first_violation(tests: list[tuple[Bool[Array, "..."], Violation]]) -> Array:
    """The first test that fails, as the reference reports one reason per level."""
    result = jnp.zeros_like(tests[0][0], dtype=jnp.int32)
    for failed, violation in reversed(tests):
        result = jnp.where(failed, jnp.int32(violation), result)
    return result


class _Demand(eqx.Module):
    """What a mapping needs: words and bits of each level, instances on average and as a mesh."""

    words: Float[Array, "level *#lane"]
    bits: Float[Array, "level *#lane"]
    instances: Float[Array, "level *#lane"]
    used_x: Float[Array, "level *#lane"]
    used_y: Float[Array, "level *#lane"]
    compute_x: Float[Array, "*#lane"]
    compute_y: Float[Array, "*#lane"]


def _demand(mapping: Mapping, traffic: Traffic, sparsity: Sparsity | None) -> _Demand:
    words, instances = jnp.sum(traffic.tile_words, axis=1), traffic.instances
    bits = jnp.zeros_like(words)
    mesh = (traffic.instances_x, traffic.instances_y, traffic.compute_x, traffic.compute_y)
    if sparsity is not None:
        occupancy, spatial = sparsity.occupancy, sparsity.spatial
        words, instances = jnp.sum(occupancy.largest_words * (mapping.keep > 0.0), axis=1), sparsity.accesses.instances
        bits = jnp.sum(jnp.where(sparsity.ranks.has_metadata, occupancy.largest_bits, 0.0), axis=1)
        if spatial is not None:
            mesh = (spatial.used_x, spatial.used_y, spatial.compute_x, spatial.compute_y)
    return _Demand(words, bits, jnp.max(instances, axis=1), *mesh)


def _violations(program: Program, demand: _Demand, size: Array, metadata_size: Array) -> Array:
    """`Violation` of the compute units and of each level; `size`, `metadata_size`: effective ones."""
    limited = jnp.isfinite(program.size)
    least = jnp.where(limited, size, 0.0) * program.min_utilization
    levels = _first_violation(
        [
            (demand.words > size, Violation.CAPACITY),
            (demand.bits > metadata_size, Violation.METADATA_CAPACITY),
            (limited & (demand.words < least), Violation.UTILIZATION),
            (demand.instances > program.mesh_x * program.mesh_y, Violation.INSTANCES),
            (demand.used_x > program.mesh_x, Violation.MESH_X),
            (demand.used_y > program.mesh_y, Violation.MESH_Y),
        ]
    )
    units = program.compute_mesh_x * program.compute_mesh_y
    compute = _first_violation(
        [
            (demand.compute_x * demand.compute_y > units, Violation.INSTANCES),
            (demand.compute_x > program.compute_mesh_x, Violation.MESH_X),
            (demand.compute_y > program.compute_mesh_y, Violation.MESH_Y),
        ]
    )
    return stack([compute, *levels])


OF_VIOLATION = {
    Violation.CAPACITY: Status.OVER_CAPACITY,
    Violation.METADATA_CAPACITY: Status.OVER_METADATA_CAPACITY,
    Violation.UTILIZATION: Status.UNDER_UTILIZED,
    Violation.INSTANCES: Status.OVER_INSTANCES,
    Violation.MESH_X: Status.OVER_MESH_X,
    Violation.MESH_Y: Status.OVER_MESH_Y,
}


def check(program: Program, mapping: Mapping, traffic: Traffic, sparsity: Sparsity | None) -> Legality:
    """`mapping` as given: factors that are not positive cover nothing."""
    covered = jnp.prod(mapping.temporal * mapping.spatial_x * mapping.spatial_y, axis=0)
    size = effective_size(program, program.size)
    unlimited = jnp.full_like(size, jnp.inf)
    metadata_size = unlimited if program.sparse is None else effective_size(program, program.sparse.metadata_size)
    violation = _violations(program, _demand(mapping, traffic, sparsity), size, metadata_size)
    flags = {flag: jnp.any(violation == code, axis=0) for code, flag in OF_VIOLATION.items()}
    flags |= {
        Status.NOT_STORED: jnp.any((jnp.max(mapping.keep, axis=0) == 0.0) & (program.is_tensor > 0.0), axis=0),
        # half an iteration: rank sizes are integers, relaxed factors meet them up to rounding
        Status.NOT_COVERING: jnp.any(~(jnp.abs(covered - program.rank_sizes) <= 0.5), axis=0),
        Status.NEGATIVE_READS: jnp.any(traffic.exceeds_accesses, axis=(0, 1)),
    }
    if sparsity is not None:
        flags[Status.FORMATS_DO_NOT_FIT] = jnp.any(sparsity.format_violation > 0, axis=(0, 1))
        flags[Status.NO_SOURCE] = sparsity.unsourced
        if sparsity.spatial is not None:
            flags[Status.OVER_FAN_OUT] = sparsity.spatial.over_fan_out
            flags[Status.MIXED_SAFS] = sparsity.spatial.mixed
            flags[Status.UNEVEN_FIBERS] = sparsity.spatial.uneven
    status = jnp.zeros_like(flags[Status.NOT_STORED], dtype=jnp.int32)
    for flag, bit in flags.items():
        status = status | jnp.where(bit, jnp.int32(flag), jnp.int32(0))
    return Legality(status=status, violation=violation, capacity_words=size, capacity_bits=metadata_size)
