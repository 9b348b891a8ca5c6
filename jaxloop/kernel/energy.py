"""Energy of storage accesses, and area (spec/dense.md sections 7.3 and 10)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._math import ceil_div, floor_div, stack
from ..program import Action, Program
from .traffic import Traffic


class StorageEnergy(eqx.Module):
    """`energy_pj`: data accesses of all instances; `address_pj`: address generation of all clusters in use;
    `clusters`: physical rows in use."""

    energy_pj: Float[Array, "level tensor *#lane"]
    address_pj: Float[Array, "level tensor *#lane"]
    clusters: Float[Array, "level *#lane"]


def storage_energy(program: Program, traffic: Traffic) -> StorageEnergy:
    """Energy per vector access times whole vector accesses; instances that share a cluster share its energy."""
    block = program.block_size[:, None]
    counts = {Action.READ: traffic.reads, Action.FILL: traffic.fills, Action.UPDATE: traffic.updates}
    per_block = ceil_div if program.structure.conventions.whole_blocks else jnp.divide
    energy = jnp.zeros_like(traffic.reads)
    for action, count in counts.items():
        energy = energy + per_block(count, block) * program.action_energy[action]
    used = traffic.instances_x * traffic.instances_y
    rows = floor_div(program.mesh_x * program.mesh_y, program.cluster_size)
    clusters = jnp.minimum(used, rows)
    return StorageEnergy(
        energy_pj=energy * (clusters / used)[:, None] * traffic.instances,
        address_pj=traffic.address_generations * program.address_energy[:, None] * clusters[:, None],
        clusters=clusters,
    )


def total_area(program: Program) -> Array:
    """um^2 of all instances, used or not."""
    per_level = program.area * program.mesh_x * program.mesh_y
    compute = program.compute_area * program.compute_mesh_x * program.compute_mesh_y
    return sum(per_level[s] for s in range(program.structure.levels)) + compute


def total(per_level: Array) -> Array:
    """Sum over levels and tensors in that order."""
    return jnp.sum(stack([jnp.sum(row, axis=0) for row in per_level]), axis=0)
