"""Capacity, energy and cycles of the storage levels (spec/sparse.md section 5)."""

import math
from dataclasses import dataclass

from jaxloop.spec.architecture import Storage
from jaxloop.spec.design import Design

from .sparse_density import DensityModel
from .sparse_errors import Refusal, Undefined
from .sparse_format import Held, tile_units, word_bits
from .sparse_geometry import Geometry
from .sparse_traffic import ACTIONS, KINDS, Counts, IntUnits

_DATA = {
    "random_reads": ("random_read", "read"),
    "random_fills": ("random_fill", "write"),
    "random_updates": ("random_update", "random_fill", "write"),
    "gated_reads": ("gated_read", "idle", "read"),
    "gated_fills": ("gated_fill", "gated_write", "idle", "write"),
    "gated_updates": ("gated_update", "gated_write", "idle", "write"),
    "skipped_reads": ("skipped_read", "gated_read", "idle", "read"),
    "skipped_fills": ("skipped_fill", "skipped_write", "gated_write", "idle", "write"),
    "skipped_updates": ("skipped_update", "skipped_write", "gated_write", "idle", "write"),
}
_METADATA = {
    "random_reads": ("random_metadata_read", "metadata_read", "metadata_idle", "idle"),
    "random_fills": ("random_metadata_fill", "metadata_write", "metadata_idle", "idle"),
    "random_updates": ("random_metadata_update", "metadata_write", "metadata_idle", "idle"),
    "gated_reads": ("gated_metadata_read", "metadata_idle", "metadata_read"),
    "gated_fills": ("gated_metadata_fill", "gated_metadata_write", "metadata_idle", "metadata_write"),
    "gated_updates": ("gated_metadata_update", "gated_metadata_write", "metadata_idle", "metadata_write"),
    "skipped_reads": ("skipped_metadata_read", "metadata_idle", "metadata_read"),
    "skipped_fills": ("skipped_metadata_fill", "skipped_metadata_write", "metadata_idle", "metadata_write"),
    "skipped_updates": ("skipped_metadata_update", "skipped_metadata_write", "metadata_idle", "metadata_write"),
}
_COMPUTE_RANDOM = ("mac_random", "mult_random", "mac", "mult", "compute")
_COMPUTE_GATED = ("mac_gated", "mult_gated", "compute_gated", "mac", "mult", "compute")
_COMPUTE = {
    "random": _COMPUTE_RANDOM,
    "gated": _COMPUTE_GATED,
    "skipped": ("mac_skipped", "mult_skipped", "compute_skipped", *_COMPUTE_GATED),
}
_BLOCK_TABLE = {
    2: (251, 125, 84, 63, 51, 42, 36, 32, 28, 1),
    4: (375, 188, 125, 94, 75, 63, 54, 47, 42, 1),
    8: (438, 219, 146, 110, 88, 73, 63, 55, 49, 1),
    16: (469, 235, 157, 118, 94, 79, 67, 59, 52, 1),
    32: (485, 243, 162, 122, 97, 81, 70, 61, 52, 1),
}


def _price(design: Design, component: str, entries: tuple[str, ...], default: float) -> float:
    tables = design.energy_table.components if design.energy_table else {}
    table = tables.get(component, {})
    return next((table[entry] for entry in entries if entry in table), default)


def data_prices(design: Design, level: Storage) -> dict[str, float]:
    """pJ per vector access by kind and action; without a table only what happens costs."""
    base = level.vector_access_energy or 0.0
    return {
        action: _price(design, level.name, entries, base if action.startswith("random") else 0.0)
        for action, entries in _DATA.items()
    }


def compute_prices(design: Design) -> dict[str, float]:
    """pJ per operation by kind."""
    unit = design.architecture.compute
    base = {"random": unit.energy or 0.0}
    return {kind: _price(design, unit.name, entries, base.get(kind, 0.0)) for kind, entries in _COMPUTE.items()}


@dataclass
class Capacity:
    """Words and metadata bits that the fullest tile takes; its units per rank."""

    words: int
    bits: int
    units: IntUnits


def bits_of(held: Held, units: list[list[float]] | IntUnits, level: Storage) -> float:
    """Bits of metadata and payload units; a rank without elements carries none."""
    total = 0.0
    for rank, (metadata, payload) in zip(held.ranks.formats, units, strict=True):
        metadata_bits, payload_bits = word_bits(rank, level.metadata.word_bits)
        total += metadata * metadata_bits + payload * payload_bits
    return total


def capacity(held: Held, model: DensityModel, level: Storage) -> Capacity:
    """Worst case (5.2 without overbooking)."""
    if not held.has_metadata:
        return Capacity(held.shape, 0, [])
    words = model.maximum(held.tile)
    units = tile_units(held.ranks, model, held.tile, words)
    return Capacity(words, math.ceil(bits_of(held, units, level)), [[math.ceil(u) for u in rank] for rank in units])


def check_level(level: Storage, used: list[Capacity], instances: float, fanout: tuple[int, int]) -> None:
    """**Raises:** `Refusal` with the first thing that does not fit (5.2)."""
    words, bits = sum(c.words for c in used), sum(c.bits for c in used)
    if level.size is not None:
        size = math.floor(level.size / level.multiple_buffering)
        row = math.floor(level.metadata.depth * level.metadata.width / level.multiple_buffering)
        if words > size:
            raise Refusal(level.name, f"mapped tile size {words} exceeds buffer capacity {size}")
        if bits > row:
            raise Refusal(level.name, f"mapped metadata tile size {bits} exceeds metadata buffer capacity {row}")
        if words < size * level.min_utilization:
            raise Refusal(level.name, f"mapped tile size {words} is less than constrained minimum utilization")
    if instances > level.instances:
        raise Refusal(level.name, f"mapped instances {instances} exceeds hardware instances {level.instances}")
    for axis, mapped, mesh in (("X", fanout[0], level.mesh_x), ("Y", fanout[1], level.mesh_y)):
        if mapped > mesh:
            raise Refusal(level.name, f"mapped {axis} expansion {mapped} exceeds hardware mesh{axis} {mesh}")


def block_ratio(held: Held, model: DensityModel, block: int) -> float:
    """How many more vector accesses a compressed tile takes than its words need (5.3)."""
    if not held.compressed or block == 1 or held.density >= 1.0 or held.density == 0.0:
        return 1.0
    if block not in _BLOCK_TABLE:
        raise Undefined(f"the reference aborts for compressed blocks of {block} words")
    index = math.floor(held.density / 0.1) - 1 if held.density >= 0.1 else 0
    if _BLOCK_TABLE[block][index] <= held.shape // block:
        return 1.0
    blocks = sum(math.ceil(k / block) * p for k, p in model.entries(held.tile) if k)
    return blocks / (held.shape * held.density / block)


def storage_energy(
    design: Design, level: Storage, held: Held, model: DensityModel, counts: Counts, clusters_share: float
) -> float:
    """pJ of one instance; `clusters_share`: clusters per instance in use (5.3, 5.4)."""
    prices = data_prices(design, level)
    ratio = block_ratio(held, model, level.block_size)
    energy = 0.0
    for kind in KINDS:
        for action in ACTIONS:
            energy += math.ceil(counts.data[kind][action] / level.block_size) * ratio * prices[f"{kind}_{action}"]
            if held.has_metadata and level.metadata.width:
                bits = bits_of(held, counts.metadata[kind][action], level)
                price = _price(design, level.name, _METADATA[f"{kind}_{action}"], 0.0)
                energy += math.ceil(bits / level.metadata.width) * price
    energy += counts.decompressions * _price(design, level.name, ("decompression_count",), 0.0)
    energy += counts.compressions * _price(design, level.name, ("compression_count",), 0.0)
    return energy * clusters_share


def address_energy(level: Storage, is_output: bool, counts: Counts, clusters: int) -> float:
    """pJ of all clusters for generating addresses; skipped accesses need none (5.4)."""
    actions = ("updates", "fills") if is_output else ("reads", "fills")
    generations = sum(counts.data[kind][action] for kind in ("random", "gated") for action in actions)
    return generations * max(level.address_energy or 0.0, 0.0) * clusters


def words_per_cycle(
    level: Storage, held: Held, counts: Counts, actions: tuple[str, ...], instances: float, used: int, cycles: int
) -> float:
    """Of one tensor, whose accesses are evened out over all instances (5.6)."""
    words = sum(counts.data[kind][action] for kind in ("random", "gated") for action in actions)
    if held.has_metadata and level.metadata.width:
        bits = sum(bits_of(held, counts.metadata[k][a], level) for k in ("random", "gated") for a in actions)
        words += int(bits) // level.word_bits
    words = math.ceil(words / (used / instances)) if instances else 0
    if words < 0:
        raise Undefined("chances of a banded tensor sum to more than 1 (quirk Q15): the reference's words wrap around")
    return words / cycles if cycles else (math.inf if words else 0.0)


def slowdown(level: Storage, read: float, write: float) -> float:
    """Share of full speed that the bandwidths allow."""
    share = 1.0
    for limit, needed in (
        (level.read_bandwidth, read),
        (level.write_bandwidth, write),
        (level.shared_bandwidth, read + write),
    ):
        if limit is not None and limit < needed:
            share = min(share, limit / needed)
    return share


def used_instances(geometry: Geometry, level: int) -> int:
    """Without spatial skipping."""
    return math.prod(geometry.fanouts(level))
