"""The `mapper:` section (spec/inputs.md section 5.1)."""

import re

from .._errors import nearest
from ..spec.architecture import Architecture
from ..spec.constraints import Algorithm, MapperOptions
from .nodes import Map, Node, Scalar, Sequence, canonical
from .schema import Attribute, Kind, Reader

_OPTIONS = {
    "threads": Attribute(("num_threads",), Kind.POSITIVE),
    "search_size": Attribute(("search_size",), Kind.COUNT, "0 for no limit"),
    "timeout": Attribute(("timeout", "heartbeat"), Kind.COUNT, "0 for never"),
    "victory_condition": Attribute(("victory_condition",), Kind.COUNT, "0 for never"),
    "sync_interval": Attribute(("sync_interval",), Kind.COUNT, "0 for never"),
    "filter_revisits": Attribute(("filter_revisits",), Kind.FLAG),
    "penalize_consecutive_bypass_fails": Attribute(("penalize_consecutive_bypass_fails",), Kind.FLAG),
    "max_permutations": Attribute(("max_permutations_per_if_visit",), Kind.POSITIVE),
    "max_temporal_loops": Attribute(("max_temporal_loops_in_a_mapping",), Kind.INTEGER, "-1 for no limit"),
    "diagnostics": Attribute(("diagnostics",), Kind.FLAG),
    "log_stats": Attribute(("log_stats",), Kind.FLAG),
    "log_suboptimal": Attribute(("log_suboptimal", "log_all"), Kind.FLAG),
    "live_status": Attribute(("live_status",), Kind.FLAG),
    "out_prefix": Attribute(("out_prefix",), Kind.TEXT),
}
"""Field of `MapperOptions` -> its spellings and what it must be."""

_METRIC_KEYS = ("optimization_metric", "optimization_metrics")
_SILENT = (
    "version",
    "emit_whoop_nest",
    "log_interval",
    "log_oave_mappings",
    "log_orojenesis_mappings",
    "log_mappings_yaml",
    "log_mappings_verbose",
    "log_all_mappings",
)
_METRICS = ("delay", "energy", "edp", "last_level_accesses", "ordered_accesses", "accesses_N")
_ACCESSES = re.compile(r"accesses_([0-9]+)")


def read_mapper(reader: Reader, section: Node, architecture: Architecture | None) -> MapperOptions:
    """Reads the section; what it does not give has the reference's default."""
    map = reader.map(section, "the mapper")
    if map is None:
        return MapperOptions(place=section.place)
    known = [name for attribute in _OPTIONS.values() for name in attribute.names]
    reader.check_keys(map, ("algorithm", *_METRIC_KEYS, *known), _SILENT)
    given = {name: value for name, value in reader.attributes(map, _OPTIONS).items() if value is not None}
    if given.get("max_temporal_loops", 0) < 0:
        given["max_temporal_loops"] = None
    algorithm = reader.enum(map.get("algorithm"), "algorithm", {str(a): a for a in Algorithm}, {})
    if algorithm is not None:
        given["algorithm"] = algorithm
    metrics = _metrics(reader, map, architecture)
    if metrics:
        given["metrics"] = metrics
    return MapperOptions(**given, place=map.place)


def _metrics(reader: Reader, map: Map, architecture: Architecture | None) -> tuple[str, ...]:
    """The priority list; the reference takes the singular key only where it is a text, jaxloop also a list there."""
    single, several = (map.get(key) for key in _METRIC_KEYS)
    if isinstance(single, Sequence):
        message = "a list under the singular `optimization_metric`: the reference would ignore it and take edp"
        reader.warn(single.place, message, "write `optimization-metrics:`")
    if single is not None and several is not None:
        place = map.place_of(_METRIC_KEYS[1])
        reader.warn(place, "`optimization_metrics` is not used because `optimization_metric` is given too", "keep one")
    node = single if single is not None else several
    found: list[str] = []
    for item in (node,) if isinstance(node, Scalar) else reader.sequence(node, "the list of metrics"):
        found += _metric(reader, item, len(architecture.levels) if architecture is not None else None)
    return tuple(dict.fromkeys(found))


def _metric(reader: Reader, item: Node, levels: int | None) -> list[str]:
    text = reader.text(item, "the metric") or ""
    name = canonical(text)
    match = _ACCESSES.fullmatch(name)
    if match is not None and levels is not None and int(match.group(1)) >= levels:
        reader.error(item.place, f'"{text}" counts a level that is not there', f"storage levels are 0 to {levels - 1}")
        return []
    if name == "ordered_accesses":
        return [f"accesses_{level}" for level in reversed(range(levels or 0))]
    if match is None and name not in _METRICS[:-1]:
        reader.error(item.place, f'unknown metric "{text}"', nearest(name, _METRICS))
        return []
    return [name]
