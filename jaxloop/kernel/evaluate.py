"""The dense model in order: tile the nest, count the traffic, price it (spec/dense.md)."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from ..program import Mapping, Program
from ..result import Evaluation, Status
from .capacity import check
from .energy import storage_energy, total, total_area
from .fanout import fan_outs
from .latency import latency
from .links import enumerate_records
from .multicast import Multicast, multicast_groups
from .network import NetworkUse, network_use
from .records import Records, closed_form_records, links_possible
from .temporal import Reuse, temporal_reuse
from .tiling import Tiles, tile_boxes
from .traffic import Traffic, storage_traffic


def evaluate(program: Program, mapping: Mapping) -> Evaluation:
    """Evaluates one mapping. Pure, differentiable, never raises on values and never gives NaN.

    **Arguments:**

    - `program`, `mapping`: leaves with one trailing lane axis (1 or B), or none (then `jax.vmap` batches). A program
      whose structure enumerates links (`elements > 0`) must come without lanes.

    **Returns:** an `Evaluation` with the same lanes.
    """
    given, mapping = mapping, _sound(mapping)
    tiles = tile_boxes(program, mapping)
    reuse = temporal_reuse(program, mapping, tiles)
    multicast = multicast_groups(program, mapping, tiles)
    records, unsure, uncounted = _records(program, mapping, tiles, reuse, multicast)
    traffic = storage_traffic(program, mapping, tiles, records)
    network = network_use(program, traffic)
    storage = storage_energy(program, traffic)
    compute_cycles = reuse.loops.steps[0]
    time = latency(program, traffic, compute_cycles)
    legality = check(program, given, traffic)

    units = traffic.compute_x * traffic.compute_y
    computes = compute_cycles * units
    compute_energy = computes * program.compute_energy
    levels_energy = total(storage.energy_pj + storage.address_pj + network.energy_pj + network.link_energy_pj)
    return Evaluation(
        status=legality.status | jnp.where(uncounted, jnp.int32(Status.UNCOUNTED_LINKS), jnp.int32(0)),
        violation=legality.violation,
        needs_enumeration=unsure,
        cycles=time.cycles,
        energy_pj=compute_energy + levels_energy,
        area_um2=total_area(program),
        computes=computes,
        compute_cycles=compute_cycles,
        compute_instances=units,
        compute_energy_pj=compute_energy,
        level_cycles=time.level_cycles,
        slowdown=time.slowdown,
        clusters=jnp.broadcast_to(storage.clusters[:, None], traffic.instances.shape),
        energy_pj_by_tensor=storage.energy_pj,
        address_energy_pj=storage.address_pj,
        capacity_words=legality.capacity_words,
        record_multicast=records.multicast,
        record_scatter=records.scatter,
        record_accesses=network.accesses,
        **_traffic_fields(traffic),
        **_network_fields(traffic, network),
    )


def _sound(mapping: Mapping) -> Mapping:
    """The mapping with loops of one iteration where a factor is not positive, so that all numbers stay finite."""

    def positive(factors: Array) -> Array:
        return jnp.where(factors > 0.0, factors, 1.0)

    factors = {name: positive(getattr(mapping, name)) for name in ("temporal", "spatial_x", "spatial_y")}
    return replace(mapping, **factors)


def _traffic_fields(traffic: Traffic) -> dict[str, Any]:
    """What an evaluation takes over from the counts of the levels."""
    names = ("compute_x", "compute_y", "instances_x", "instances_y", "instances", "tile_words", "partition_size")
    counts = ("reads", "fills", "updates", "temporal_reductions", "address_generations")
    return {name: getattr(traffic, name) for name in (*names, *counts)}


def _network_fields(traffic: Traffic, network: NetworkUse) -> dict[str, Any]:
    """What an evaluation takes over from the networks."""
    return {
        "network_energy_pj": network.energy_pj,
        "link_transfers": traffic.records.links,
        "link_energy_pj": network.link_energy_pj,
        "spatial_reductions": network.spatial_reductions,
        "fanout": traffic.records.fanout[:, None] * traffic.is_active,
        "ingresses": network.ingresses,
        "hops": network.hops,
        "hop_energy_pj": network.hop_energy_pj,
    }


def _records(
    program: Program, mapping: Mapping, tiles: Tiles, reuse: Reuse, multicast: Multicast
) -> tuple[Records, Array, Array]:
    """Traffic records; where they might be wrong for lack of enumeration; where the enumeration was too small."""
    structure = program.structure
    never = jnp.zeros_like(reuse.loops.steps[0], dtype=bool)
    if not (structure.conventions.link_transfers or structure.irregular):
        return closed_form_records(multicast, reuse.delivered), never, never
    if structure.elements:
        records, uncounted = enumerate_records(program, mapping, tiles, reuse, multicast)
        return records, never, uncounted
    unsure = links_possible(program, mapping, tiles, reuse, multicast, fan_outs(program, mapping, tiles))
    return closed_form_records(multicast, reuse.delivered), unsure, never
