"""The model in order: tile the nest, count the traffic, thin it, price it (spec/dense.md, spec/sparse.md)."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ..program import Mapping, Program
from ..result import Evaluation, Status
from .capacity import check
from .energy import by_activity, compute_energy, storage_energy, total, total_area
from .fanout import fan_outs
from .latency import latency
from .links import enumerate_records
from .multicast import Multicast, multicast_groups
from .network import NetworkUse, network_use
from .outcome import dense_fields, sparse_fields
from .records import Records, closed_form_records, links_possible
from .sparsity import Sparsity, sparse_model
from .temporal import Reuse, temporal_reuse
from .tiling import Tiles, tile_boxes
from .traffic import Traffic, storage_traffic


class Enumerated(eqx.Module):
    """Traffic records from an enumeration of links, for `evaluate`. `applies`: they count, else the closed form does;
    `uncounted`: not all could be counted."""

    records: Records
    applies: Bool[Array, "*#lane"]
    uncounted: Bool[Array, "*#lane"]


def enumerate_links(program: Program, mapping: Mapping) -> Enumerated:
    """The records of one mapping as the enumeration of children finds them (spec/dense.md 4.6), which concerns the
    dense part only. `program`, whose structure enumerates links (`elements > 0`), and `mapping` without lanes."""
    mapping = _sound(mapping)
    tiles = tile_boxes(program, mapping)
    reuse = temporal_reuse(program, mapping, tiles)
    records, uncounted = enumerate_records(program, mapping, tiles, reuse, multicast_groups(program, mapping, tiles))
    return Enumerated(records, jnp.ones_like(uncounted), uncounted)


def evaluate(program: Program, mapping: Mapping, enumerated: Enumerated | None = None) -> Evaluation:
    """Evaluates one mapping. Pure, differentiable, never raises on values and never gives NaN.

    **Arguments:**

    - `program`, `mapping`: leaves with one trailing lane axis (1 or B), or none (then `jax.vmap` batches). A program
      whose structure enumerates links (`elements > 0`) must come without lanes.
    - `enumerated`: what `enumerate_links` found, likewise.

    **Returns:** an `Evaluation` with the same lanes.
    """
    given, mapping = mapping, _sound(mapping)
    tiles = tile_boxes(program, mapping)
    reuse = temporal_reuse(program, mapping, tiles)
    multicast = multicast_groups(program, mapping, tiles)
    records, unsure, uncounted = _records(program, mapping, tiles, reuse, multicast)
    if enumerated is not None:
        records, unsure, uncounted = _chosen(records, unsure, enumerated)
    traffic = storage_traffic(program, mapping, tiles, records)
    network = network_use(program, traffic)
    units = traffic.compute_x * traffic.compute_y
    computes = reuse.loops.steps[0] * units
    sparsity = None
    if program.sparse is not None:
        sparsity = sparse_model(program, program.sparse, mapping, tiles, traffic, computes)
    compute_cycles = reuse.loops.steps[0] if sparsity is None else sparsity.computes.cycles
    storage = storage_energy(program, traffic, sparsity)
    time = latency(program, traffic, sparsity, compute_cycles)
    legality = check(program, given, traffic, sparsity)
    compute_pj = compute_energy(program, computes, sparsity)
    levels_pj = total(storage.energy_pj + storage.address_pj + network.energy_pj + network.link_energy_pj)
    return Evaluation(
        status=legality.status | jnp.where(uncounted, jnp.int32(Status.UNCOUNTED_LINKS), jnp.int32(0)),
        violation=legality.violation,
        needs_enumeration=unsure,
        cycles=time.cycles,
        energy_pj=compute_pj + levels_pj,
        area_um2=total_area(program),
        computes=computes,
        compute_cycles=compute_cycles,
        compute_instances=units if sparsity is None else sparsity.computes.units,
        compute_energy_pj=compute_pj,
        level_cycles=time.level_cycles,
        slowdown=time.slowdown,
        clusters=storage.clusters + 0.0 * traffic.instances,
        energy_pj_by_tensor=storage.energy_pj,
        energy_pj_by_activity=by_activity(storage, network.energy_pj + network.link_energy_pj),
        address_energy_pj=storage.address_pj,
        address_generations=storage.address_generations,
        capacity_words=legality.capacity_words,
        capacity_bits=legality.capacity_bits,
        record_multicast=records.multicast,
        record_scatter=records.scatter,
        record_accesses=network.accesses,
        **(_traffic_fields(traffic) | _expansions(sparsity)),
        **_network_fields(traffic, network),
        **(dense_fields(traffic, computes) if sparsity is None else sparse_fields(sparsity)),
    )


def _sound(mapping: Mapping) -> Mapping:
    """The mapping with loops of one iteration where a factor is not positive, so that all numbers stay finite."""

    def positive(factors: Array) -> Array:
        return jnp.where((factors > 0.0) & jnp.isfinite(factors), factors, 1.0)

    factors = {name: positive(getattr(mapping, name)) for name in ("temporal", "spatial_x", "spatial_y")}
    return replace(mapping, **factors)


def _traffic_fields(traffic: Traffic) -> dict[str, Any]:
    """What an evaluation takes over from the counts of the levels."""
    names = ("compute_x", "compute_y", "instances_x", "instances_y", "tile_words", "partition_size")
    counts = ("reads", "fills", "updates")
    return {name: getattr(traffic, name) for name in (*names, *counts)}


def _expansions(sparsity: Sparsity | None) -> dict[str, Any]:
    """Instances that must exist where spatial skipping leaves some out, in place of those of the mapping."""
    if sparsity is None or sparsity.spatial is None:
        return {}
    spatial = sparsity.spatial
    return {
        "compute_x": spatial.compute_x,
        "compute_y": spatial.compute_y,
        "instances_x": spatial.used_x,
        "instances_y": spatial.used_y,
    }


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


def _chosen(records: Records, unsure: Array, enumerated: Enumerated) -> tuple[Records, Array, Array]:
    """Both lists of records, one of them emptied."""
    applies, found = enumerated.applies, enumerated.records

    def both(closed: Array, listed: Array) -> Array:
        return jnp.concatenate([jnp.where(applies, 0.0, closed), jnp.where(applies, listed, 0.0)])

    chosen = Records(
        multicast=both(records.multicast, found.multicast),
        scatter=both(records.scatter, found.scatter),
        accesses=both(records.accesses, found.accesses),
        links=jnp.where(applies, found.links, records.links),
        fanout=records.fanout,
    )
    return chosen, unsure & ~applies, enumerated.uncounted & applies


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
