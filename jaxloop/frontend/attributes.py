"""The attributes of storage levels and compute units (spec/inputs.md 1.2-1.4 and 1.6, spec/dense.md 7.1 and 9.1)."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from .._errors import Place, nearest
from ..spec.architecture import Compute, Metadata, Network, Storage
from .nodes import Map, canonical
from .schema import Attribute, Kind, Reader, closest

_NO_LIMIT = "or leave the key out for no limit"


def _attribute(kind: Kind, *names: str, hint: str = "") -> Attribute:
    return Attribute(names, kind, hint)


_MESH = {
    "instances": _attribute(Kind.POSITIVE, "instances"),
    "mesh_x": _attribute(Kind.POSITIVE, "meshX"),
    "mesh_y": _attribute(Kind.POSITIVE, "meshY"),
}

STORAGE: Mapping[str, Attribute] = {
    "word_bits": _attribute(Kind.POSITIVE, "word_bits", "word_width", "datawidth"),
    "block_size": _attribute(Kind.POSITIVE, "block_size", "n_words"),
    "cluster_size": _attribute(Kind.POSITIVE, "cluster_size"),
    "width": _attribute(Kind.POSITIVE, "width", "memory_width", "data_storage_width"),
    "entries": _attribute(Kind.COUNT, "entries"),
    "depth": _attribute(Kind.COUNT, "depth", "memory_depth", "data_storage_depth"),
    "size_kib": _attribute(Kind.COUNT, "sizeKB"),
    "technology": _attribute(Kind.TEXT, "technology"),
    "ports": _attribute(Kind.POSITIVE, "num_ports", "n_ports"),
    "banks": _attribute(Kind.COUNT, "num_banks", "n_banks"),
    "bandwidth": _attribute(Kind.RATE, "bandwidth", hint=_NO_LIMIT),
    "read_bandwidth": _attribute(Kind.RATE, "read_bandwidth", hint=_NO_LIMIT),
    "write_bandwidth": _attribute(Kind.RATE, "write_bandwidth", hint=_NO_LIMIT),
    "shared_bandwidth": _attribute(Kind.RATE, "shared_bandwidth", hint=_NO_LIMIT),
    "multiple_buffering": _attribute(Kind.RATE, "multiple_buffering"),
    "min_utilization": _attribute(Kind.COST, "min_utilization"),
    "reduction_supported": _attribute(Kind.FLAG, "reduction_supported"),
    "vector_access_energy": _attribute(Kind.COST, "vector_access_energy"),
    "address_energy": _attribute(Kind.REAL, "addr_gen_energy"),
    "cluster_area": _attribute(Kind.COST, "cluster_area"),
    "network_word_bits": _attribute(Kind.POSITIVE, "network_word_bits"),
    "router_energy": _attribute(Kind.COST, "router_energy"),
    "wire_energy": _attribute(Kind.COST, "wire_energy"),
    "tile_width": _attribute(Kind.COST, "tile_width"),
    "energy_per_hop": _attribute(Kind.COST, "energy_per_hop"),
    "fill_latency": _attribute(Kind.COUNT, "network_fill_latency"),
    "drain_latency": _attribute(Kind.COUNT, "network_drain_latency"),
    "metadata_word_bits": _attribute(Kind.COUNT, "metadata_datawidth", "metadata_word_bits"),
    "metadata_block_size": _attribute(Kind.POSITIVE, "metadata_block_size"),
    "metadata_width": _attribute(Kind.COUNT, "metadata_storage_width", "metadata_width"),
    "metadata_depth": _attribute(Kind.COUNT, "metadata_storage_depth", "metadata_depth"),
    "compression_supported": _attribute(Kind.FLAG, "compression_supported"),
    "decompression_supported": _attribute(Kind.FLAG, "decompression_supported"),
    "concordant_traversal": _attribute(Kind.FLAG, "concordant_compressed_tile_traversal"),
    "allow_overbooking": _attribute(Kind.FLAG, "allow_overbooking"),
}

COMPUTE: Mapping[str, Attribute] = {
    "word_bits": _attribute(Kind.POSITIVE, "word_bits", "datawidth"),
    "energy": _attribute(Kind.COST, "energy"),
    "area": _attribute(Kind.COST, "area"),
}

_SIZES = ("entries", "depth", "size_kib")

_REFUSED_FLAGS = {
    "tile_partition_supported": "partitioned tiles are not modeled (nor by the reference)",
}
_NETWORK_KEYS = (
    "network_read",
    "network_fill",
    "network_drain",
    "network_update",
    "network_operand",
    "network_result",
)
_NETWORK_TYPES = ("1:1", "1:N")

_ESTIMATOR_ONLY = frozenset(
    """technology type class subclass latency cycle_time cycle_seconds global_cycle_seconds action_latency_cycles
    n_instances n_rd_ports n_wr_ports n_rw_ports n_rdwr_ports n_rdport n_wrport n_rdwrport num_rdports num_wrports
    update_fifo_depth control_queue_depth metadata_n_banks metadata_counter_width num_pipline_stages
    num_pipeline_stages multiplier_width adder_width exponent mantissa width voltage temperature""".split()
)
"""Attributes that only an energy estimator reads: silent."""


def read_storage(reader: Reader, name: str, class_name: str, map: Map, mesh: tuple[int, int]) -> Storage:
    """One storage level of `mesh` instances from its attributes."""
    values = reader.attributes(map, STORAGE)
    _refuse(reader, name, map)
    _report_unused(reader, name, map, STORAGE)
    is_dram = "DRAM" in class_name or values["technology"] == "DRAM"
    word_bits = _or(values["word_bits"], 16)
    block_size, cluster_size = _block_and_cluster(reader, name, map, values, word_bits)
    size = _size(reader, name, map, values, word_bits, block_size, is_dram)
    if is_dram and cluster_size != 1:
        reader.error(
            map.place_of("width"),
            f'DRAM level "{name}" comes out with cluster size {cluster_size}',
            "give `block-size` (words per access) as width / word bits, or `cluster-size: 1`",
        )
    if values["ports"] not in (None, 1, 2):
        reader.error(map.place_of("num_ports"), f'level "{name}" has {values["ports"]} ports', "write 1 or 2")
    if values["min_utilization"] and size is None:
        reader.error(
            map.place_of("min_utilization"), f'level "{name}" has a minimum utilization but no size', "give it a size"
        )
    read_bandwidth, write_bandwidth = _bandwidths(reader, name, map, values)
    address_energy = values["address_energy"]
    cluster_area = values["cluster_area"]
    return Storage(
        name=name,
        technology="DRAM" if is_dram else "SRAM",
        word_bits=word_bits,
        block_size=block_size,
        cluster_size=cluster_size,
        size=size,
        multiple_buffering=_or(values["multiple_buffering"], 1.0),
        min_utilization=_or(values["min_utilization"], 0.0),
        mesh_x=mesh[0],
        mesh_y=mesh[1],
        read_bandwidth=read_bandwidth,
        write_bandwidth=write_bandwidth,
        shared_bandwidth=values["shared_bandwidth"],
        reduction_supported=_or(values["reduction_supported"], not is_dram),
        vector_access_energy=values["vector_access_energy"],
        address_energy=address_energy if address_energy is not None and address_energy >= 0 else None,
        area=None if cluster_area is None else cluster_area / cluster_size,
        network=_network(values, word_bits),
        metadata=_metadata(reader, name, map, values),
        compression_supported=_or(values["compression_supported"], False),
        decompression_supported=_or(values["decompression_supported"], False),
        concordant_traversal=_or(values["concordant_traversal"], False),
        allow_overbooking=_or(values["allow_overbooking"], False),
    )


def read_compute(reader: Reader, name: str, map: Map, mesh: tuple[int, int]) -> Compute:
    """The compute units, `mesh` of them, from their attributes."""
    values = reader.attributes(map, COMPUTE)
    _refuse(reader, name, map)
    _report_unused(reader, name, map, COMPUTE)
    return Compute(name, _or(values["word_bits"], 16), *mesh, values["energy"], values["area"])


def names_of(table: Mapping[str, Attribute]) -> list[str]:
    """All spellings in a table."""
    return [name for attribute in table.values() for name in attribute.names]


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _block_and_cluster(reader: Reader, name: str, map: Map, values: dict[str, Any], word_bits: int) -> tuple[int, int]:
    width: int | None = values["width"]
    block: int | None = values["block_size"]
    cluster: int | None = values["cluster_size"]
    if width is None:
        return block or 1, cluster or 1
    place = map.place_of(next(name for name in STORAGE["width"].names if map.get(name) is not None))
    if width % (word_bits * (block or 1) * (cluster or 1)) != 0:
        product = f"word bits {word_bits}" + (f" x block size {block}" if block else "")
        product += f" x cluster size {cluster}" if cluster else ""
        reader.error(
            place,
            f'level "{name}": the row width {width} is not a multiple of {product}',
            "width = word bits x block size x cluster size; check all of them (word bits default to 16)",
        )
    elif block and cluster and block * cluster * word_bits != width:
        reader.error(
            place,
            f'level "{name}": word bits {word_bits} x block size {block} x cluster size {cluster} is'
            f" {word_bits * block * cluster}, not the row width {width}",
            "leave one of them out to have it derived",
        )
    if block:
        return block, cluster or max(1, width // (word_bits * block))
    return max(1, width // ((cluster or 1) * word_bits)), cluster or 1


def _size(
    reader: Reader, name: str, map: Map, values: dict[str, Any], word_bits: int, block_size: int, is_dram: bool
) -> int | None:
    entries, depth, size_kib = values["entries"], values["depth"], values["size_kib"]
    if size_kib is not None and (entries is not None or depth is not None):
        reader.error(
            map.place_of("sizeKB"),
            f'level "{name}" gives its size as sizeKB and as {"entries" if entries is not None else "depth"}',
            "keep one of them",
        )
    if entries is not None:
        return entries
    if depth is not None:
        return depth * block_size
    if size_kib is not None:
        return size_kib * 1024 * 8 // word_bits
    is_given = any(map.get(key) is not None for field in _SIZES for key in STORAGE[field].names)
    if not is_dram and not is_given:
        reader.error(
            map.place,
            f'level "{name}" has no size',
            "give `depth` (rows), `entries` (words) or `sizeKB`; only a level of technology DRAM may be unlimited",
        )
    return None


def read_mesh(reader: Reader, name: str, map: Map, instances: int | None) -> tuple[int, int] | None:
    """Instances along X and Y (spec/inputs.md 1.4). `instances` follows from the ranges in the tree; None: not given,
    0: unknown because a range is wrong. None with an error when they do not form a mesh."""
    errors = len(reader.diagnostics.errors)
    values = reader.attributes(map, _MESH)
    mesh_x, mesh_y = values["mesh_x"], values["mesh_y"]
    total = values["instances"] if values["instances"] is not None else instances
    if total == 0 or len(reader.diagnostics.errors) > errors:
        return None
    if total is None and mesh_x is not None and mesh_y is not None:
        return mesh_x, mesh_y
    if total is None:
        reader.error(map.place, f'"{name}" does not say how many instances it has', "give `instances`")
        return None
    if mesh_x is None and mesh_y is None:
        return total, 1
    given = {key: side for key, side in (("meshX", mesh_x), ("meshY", mesh_y)) if side is not None}
    product = math.prod(given.values())
    if total % product != 0 or (len(given) == 2 and product != total):
        reader.error(
            map.place_of(next(iter(given))),
            f'"{name}" has {total} instances, which do not form a mesh with '
            + " and ".join(f"{key} {side}" for key, side in given.items()),
            "meshX x meshY must equal the number of instances (ranges [a..b] or `instances`)",
        )
        return None
    rest = max(1, total // product)
    return mesh_x or rest, mesh_y or rest


def _bandwidths(reader: Reader, name: str, map: Map, values: dict[str, Any]) -> tuple[float | None, float | None]:
    half = None
    if values["bandwidth"] is not None:
        half = values["bandwidth"] / 2
        reader.warn(
            map.place_of("bandwidth"),
            f'level "{name}": `bandwidth` is deprecated and read as {half:g} words per cycle each for reads and writes',
            "give `read_bandwidth` and `write_bandwidth`",
        )
    return _or(values["read_bandwidth"], half), _or(values["write_bandwidth"], half)


def _network(values: dict[str, Any], word_bits: int) -> Network:
    return Network(
        word_bits=_or(values["network_word_bits"], word_bits),
        router_energy=values["router_energy"],
        wire_energy=values["wire_energy"],
        tile_width=values["tile_width"],
        energy_per_hop=values["energy_per_hop"],
        fill_latency=_or(values["fill_latency"], 0),
        drain_latency=_or(values["drain_latency"], 0),
    )


def _metadata(reader: Reader, name: str, map: Map, values: dict[str, Any]) -> Metadata:
    bits = _or(values["metadata_word_bits"], 0)
    block = _or(values["metadata_block_size"], 1)
    width = _or(values["metadata_width"], 0)
    if bits and width and width % (bits * block) != 0:
        reader.error(
            map.place_of("metadata_storage_width"),
            f'level "{name}": the metadata row width {width} is not a multiple of metadata word bits {bits}'
            f" x metadata block size {block}",
            "change one of the three",
        )
    return Metadata(bits, block, width, _or(values["metadata_depth"], 0))


def _refuse(reader: Reader, name: str, map: Map) -> None:
    for key in _NETWORK_KEYS:
        if map.get(key) is not None:
            reader.error(
                map.place_of(key),
                f'"{name}" names a network of its own in `{key}`; explicit networks are not modeled',
                "remove the key: a network is inferred below each level from that level's attributes",
            )
    for key, reason in _REFUSED_FLAGS.items():
        if reader.value(map.get(key), Kind.FLAG):
            reader.error(map.place_of(key), f'"{name}" sets `{key}`: {reason}', "remove the key")
    kind = reader.text(map.get("network_type"), "the network type")
    if kind is not None and kind not in _NETWORK_TYPES:
        reader.error(
            map.place_of("network_type"),
            f'"{name}" has network type "{kind}", which is not modeled',
            "modeled: " + ", ".join(_NETWORK_TYPES),
        )


def _report_unused(reader: Reader, name: str, map: Map, table: Mapping[str, Attribute]) -> None:
    """One warning per probable misspelling and one for all other attributes that the model does not use."""
    known = names_of(table) + names_of(_MESH)
    handled = {*known, *_REFUSED_FLAGS, *_NETWORK_KEYS, "network_type"}
    unused: list[str] = []
    place: Place | None = None
    seen: dict[str, str] = {}
    for key in map.items:
        spelling = canonical(key)
        if spelling in seen:
            reader.error(map.places[key], f'"{key}" and "{seen[spelling]}" are the same key', "keep one of the two")
        seen[spelling] = key
        if spelling in handled or spelling in _ESTIMATOR_ONLY or spelling in _INLINE_KEYS:
            continue
        if spelling not in _NO_MISSPELLING and closest(spelling, known, 0.85) is not None:
            reader.warn(map.places[key], f'the attribute "{key}" of "{name}" is not known', nearest(spelling, known))
            continue
        unused.append(key)
        place = place or map.places[key]
    if unused and place is not None:
        reader.warn(place, f'attributes of "{name}" that the model does not use: ' + ", ".join(unused))


_INLINE_KEYS = frozenset({"name"})
"""Keys that stand beside the attributes in the dialect with `arithmetic` and `storage`."""

_NO_MISSPELLING = frozenset({"read_energy", "write_energy", "update_energy"})
"""Attributes that look like known ones (`wire_energy`) but mean something that the model does not use."""


def misplaced(keys: Iterable[str]) -> list[str]:
    """Those of `keys` that are attributes of levels, for a warning where attributes have no effect."""
    known = {*names_of(STORAGE), *names_of(COMPUTE), *names_of(_MESH)} - _ESTIMATOR_ONLY
    return [key for key in keys if canonical(key) in known]
