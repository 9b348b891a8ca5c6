"""Energy of the networks between levels (spec/dense.md section 9)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._math import floor, floor_div, fold, stack
from ..program import Program
from .traffic import Traffic


class NetworkUse(eqx.Module):
    """Energies of all instances in pJ, counts per instance of the level above the network."""

    energy_pj: Float[Array, "level tensor *#lane"]
    link_energy_pj: Float[Array, "level tensor *#lane"]
    spatial_reductions: Float[Array, "level tensor *#lane"]
    ingresses: Float[Array, "level tensor *#lane"]
    hops: Float[Array, "level tensor *#lane"]
    hop_energy_pj: Float[Array, "level *#lane"]
    accesses: Float[Array, "record level tensor *#lane"]


def hop_energy(program: Program) -> Array:
    """pJ per word and hop, per level (9.2, 9.3). The hop length is that of the tile below, taken from the areas, unless
    given."""
    instances = program.mesh_x * program.mesh_y
    inner = stack([program.compute_mesh_x * program.compute_mesh_y, *instances[:-1]])
    children = floor_div(inner, instances)
    tile, tile_areas = program.compute_area, []
    for s in range(program.structure.levels):
        tile_areas.append(tile)
        tile = program.area[s] + tile * children[s]
    area = stack(tile_areas)
    side = jnp.where(area > 0.0, jnp.sqrt(jnp.where(area > 0.0, area, 1.0)), 0.0)
    width = jnp.where(program.tile_width >= 0.0, program.tile_width, side)
    derived = program.network_word_bits * (width / 1000.0) * jnp.maximum(program.wire_energy, 0.0)
    return jnp.where(program.energy_per_hop >= 0.0, program.energy_per_hop, derived)


def multicast_hops(multicast: Array, fanout: Array) -> Array:
    """Average hops of a word that reaches `multicast` of `fanout` children (9.4)."""
    reach, side = jnp.sqrt(multicast), jnp.sqrt(fanout)
    return side * reach + 0.5 * (side - reach) - side / reach + 0.5


def network_use(program: Program, traffic: Traffic) -> NetworkUse:
    conventions, records = program.structure.conventions, traffic.records
    is_output = program.is_output[None] > 0.0
    exists = records.accesses > 0.0
    accesses = records.accesses
    if conventions.output_network_round_trip:
        returns = is_output & (program.reduction_supported[:, None] == 0.0)
        round_trip = 2.0 * accesses - traffic.partition_size[None]
        accesses = jnp.where(returns[None] & exists, round_trip, accesses)
    sent = jnp.maximum(accesses, 0.0)
    hops = multicast_hops(jnp.where(exists, records.multicast, 1.0), records.fanout[None, :, None])
    round_down = floor if conventions.integer_counts else lambda value: value

    def add_record(carry, record):
        routers, reductions = carry
        sent, accesses, hops, multicast = record
        return round_down(routers + (1.0 + hops) * sent), round_down(reductions + (multicast - 1.0) * accesses)

    zero = jnp.zeros_like(sent[0])
    routers, reductions = fold(add_record, (zero, zero), (sent, accesses, hops, records.multicast))
    wire = jnp.sum(hops * sent, axis=0)
    ingresses = jnp.sum(accesses, axis=0)

    hop_energy_pj = hop_energy(program)
    per_hop, per_router = hop_energy_pj[:, None], program.router_energy[:, None]
    links = records.links
    return NetworkUse(
        energy_pj=(wire * per_hop + routers * per_router) * traffic.instances,
        link_energy_pj=links * (per_hop + 2.0 * per_router) * traffic.instances,
        spatial_reductions=jnp.where(is_output, reductions, 0.0),
        ingresses=ingresses,
        hops=wire / jnp.where(ingresses > 0.0, ingresses, 1.0),
        hop_energy_pj=hop_energy_pj,
        accesses=accesses,
    )
