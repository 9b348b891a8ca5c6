"""Is the mapping legal on this hardware? (spec/dense.md section 7.2)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._math import floor_div, stack
from ..program import Mapping, Program
from ..result import Status, Violation
from .traffic import Traffic


class Legality(eqx.Module):
    status: Int[Array, "*#lane"]
    violation: Int[Array, "level1 *#lane"]
    capacity_words: Float[Array, "level *#lane"]


def _first_violation(tests: list[tuple[Bool[Array, "..."], Violation]]) -> Array:
    """The first test that fails, as the reference reports one reason per level."""
    result = jnp.zeros_like(tests[0][0], dtype=jnp.int32)
    for failed, violation in reversed(tests):
        result = jnp.where(failed, jnp.int32(violation), result)
    return result


def check(program: Program, mapping: Mapping, traffic: Traffic) -> Legality:
    """`mapping` as given: factors that are not positive cover nothing."""
    covered = jnp.prod(mapping.temporal * mapping.spatial_x * mapping.spatial_y, axis=0)
    limited = jnp.isfinite(program.size)
    share = floor_div if program.structure.conventions.integer_counts else jnp.divide
    effective = jnp.where(limited, share(jnp.where(limited, program.size, 0.0), program.multiple_buffering), jnp.inf)
    used = jnp.sum(traffic.tile_words, axis=1)
    least = jnp.where(limited, effective, 0.0) * program.min_utilization
    instances = program.mesh_x * program.mesh_y
    levels = _first_violation(
        [
            (used > effective, Violation.CAPACITY),
            (limited & (used < least), Violation.UTILIZATION),
            (jnp.max(traffic.instances, axis=1) > instances, Violation.INSTANCES),
            (traffic.instances_x > program.mesh_x, Violation.MESH_X),
            (traffic.instances_y > program.mesh_y, Violation.MESH_Y),
        ]
    )
    compute_used, units = traffic.compute_x * traffic.compute_y, program.compute_mesh_x * program.compute_mesh_y
    compute = _first_violation(
        [
            (compute_used > units, Violation.INSTANCES),
            (traffic.compute_x > program.compute_mesh_x, Violation.MESH_X),
            (traffic.compute_y > program.compute_mesh_y, Violation.MESH_Y),
        ]
    )
    violation = stack([compute, *levels])
    bits = {
        Status.OVER_CAPACITY: jnp.any(violation == Violation.CAPACITY, axis=0),
        Status.UNDER_UTILIZED: jnp.any(violation == Violation.UTILIZATION, axis=0),
        Status.OVER_INSTANCES: jnp.any(violation == Violation.INSTANCES, axis=0),
        Status.OVER_MESH_X: jnp.any(violation == Violation.MESH_X, axis=0),
        Status.OVER_MESH_Y: jnp.any(violation == Violation.MESH_Y, axis=0),
        Status.NOT_STORED: jnp.any((jnp.max(mapping.keep, axis=0) == 0.0) & (program.is_tensor > 0.0), axis=0),
        # half an iteration: rank sizes are integers, relaxed factors meet them up to rounding
        Status.NOT_COVERING: jnp.any(~(jnp.abs(covered - program.rank_sizes) <= 0.5), axis=0),
        Status.NEGATIVE_READS: jnp.any(traffic.exceeds_accesses, axis=(0, 1)),
    }
    status = jnp.zeros_like(bits[Status.NOT_STORED], dtype=jnp.int32)
    for flag, bit in bits.items():
        status = status | jnp.where(bit, jnp.int32(flag), jnp.int32(0))
    return Legality(status=status, violation=violation, capacity_words=effective)
