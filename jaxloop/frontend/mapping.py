"""The `mapping:` section (spec/inputs.md section 3, spec/dense.md section 3)."""

from dataclasses import dataclass, field

from .._errors import Place, nearest
from ..spec.architecture import Architecture
from ..spec.einsum import Einsum
from ..spec.mapping import LevelNest, Loop, LoopNest
from .architecture import Hardware
from .factors import Factors, read_factors, read_permutation
from .nodes import Map, Node, Sequence, canonical
from .problem import Workload
from .schema import Kind, Reader

_TYPES = {name: name for name in ("temporal", "spatial", "bypass", "skew")}
_TYPE_ALIASES = {"datatype": "bypass", "dataspace": "bypass"}
_KEYS = {
    "temporal": ("type", "target", "factors", "permutation", "no_temporal_reuse"),
    "spatial": (
        "type",
        "target",
        "factors",
        "permutation",
        "split",
        "no_link_transfer",
        "no_multicast_no_reduction",
    ),
    "bypass": ("type", "target", "keep", "bypass", "stream"),
}
_REUSE = {
    "no_temporal_reuse": "no_temporal_reuse",
    "no_link_transfer": "no_link_transfer",
    "no_multicast_no_reduction": "no_multicast",
}
"""Keys that switch a kind of reuse off, and the fields of `LevelNest` that hold them."""


@dataclass(frozen=True)
class _Directive:
    """One temporal or spatial directive; `permutation` is complete, innermost first; `reuse` holds the tensors for
    which a kind of reuse is switched off, by key."""

    place: Place
    factors: Factors
    permutation: tuple[str, ...]
    split: int
    reuse: dict[str, list[str]]


@dataclass
class _Level:
    """What the directives say about one storage level."""

    temporal: _Directive | None = None
    spatial: _Directive | None = None
    keeps: dict[str, tuple[bool, Place]] = field(default_factory=dict)
    streams: set[str] = field(default_factory=set)


def read_mapping(
    reader: Reader, section: Node, hardware: Hardware | None, workload: Workload | None
) -> LoopNest | None:
    """Reads the section; None for an empty list (a mapper's input). Errors are recorded.

    Where `hardware` or `workload` is None (its section is broken) the names that it would tell are not checked, and
    there is no nest.
    """
    if isinstance(section, Sequence) and not section.items:
        return None
    errors = len(reader.diagnostics.errors)
    builder = _Builder(reader, hardware, workload)
    for item in reader.sequence(section, "the mapping"):
        map = reader.map(item, "a mapping directive")
        if map is not None:
            builder.add(map)
    if hardware is None or workload is None:
        return None
    if len(reader.diagnostics.errors) == errors:
        builder.check_products(section.place, workload)
    return builder.nest(section.place, hardware.architecture, workload.einsum)


class _Builder:
    def __init__(self, reader: Reader, hardware: Hardware | None, workload: Workload | None):
        self._reader = reader
        self._hardware = hardware
        self._sizes = workload.einsum.size_of if workload is not None else None
        self._tensors = [tensor.name for tensor in workload.einsum.tensors] if workload is not None else None
        levels = hardware.architecture.levels if hardware is not None else ()
        self._levels = {level.name: _Level() for level in levels}
        self._is_partial = False

    def add(self, map: Map) -> None:
        """Takes one directive in."""
        kind = self._reader.enum(map.get("type"), "directive type", _TYPES, _TYPE_ALIASES)
        if map.get("type") is None:
            self._reader.error(map.place, "a directive has no `type`", "write temporal, spatial or bypass")
        target = self._target(map)
        if kind == "skew":
            self._reader.error(map.place_of("type"), "`skew` directives are not modeled", "remove the directive")
            return
        if kind is None or target is None:
            return
        self._check_keys(map, kind)
        level = self._levels.setdefault(target, _Level())
        if kind == "bypass":
            self._edit_keeps(map, target, level)
            return
        other: _Directive | None = getattr(level, kind)
        if other is not None:
            self._reader.error(
                map.place,
                f'a second {kind} directive for level "{target}"; the first is at'
                f" {other.place.file}:{other.place.line}",
                "merge the two; a second loop over a dimension needs a further (zero-size, bypassed) level",
            )
            return
        directive = self._directive(map, target, kind)
        if kind == "temporal":
            level.temporal = directive
        elif self._hardware is None or self._has_fanout(target, directive, self._hardware):
            level.spatial = directive

    def _target(self, map: Map) -> str | None:
        node = map.get("target")
        if node is None:
            self._reader.error(map.place, "a directive has no `target`", "write the name of a storage level")
            return None
        name = self._reader.text(node, "the target")
        if name is None or self._hardware is None or name in self._levels:
            return name
        if name == self._hardware.architecture.compute.name:
            message, remedy = f'"{name}" is the compute unit', "directives target storage levels"
            remedy += ": the fan-out to the compute units is a spatial directive of the innermost level"
        elif name in self._hardware.unmodeled:
            class_name = self._hardware.unmodeled[name]
            if not class_name:  # an error already, at the component
                self._is_partial = True
                return None
            message = f'"{name}" has the class "{class_name}", which is no storage class, so it is not modeled'
            remedy = "give it a class that contains `storage`, `SRAM` or `regfile`, and its own class in `subclass`"
        else:
            message, remedy = f'unknown level "{name}"', nearest(name, self._levels)
        self._reader.error(node.place, message, remedy)
        return None

    def _check_keys(self, map: Map, kind: str) -> None:
        empty = [key for key, value in map.items.items() if isinstance(value, Sequence) and not value.items]
        self._reader.check_keys(map, _KEYS[kind], silent=[canonical(key) for key in empty])

    def _edit_keeps(self, map: Map, target: str, level: _Level) -> None:
        for key in ("keep", "bypass"):
            for tensor in self._reader.names(map.get(key), self._tensors, "tensor"):
                is_kept, place = level.keeps.get(tensor, (key == "keep", map.place))
                if is_kept != (key == "keep"):
                    self._reader.error(
                        map.place_of(key),
                        f'tensor "{tensor}" is both kept and bypassed at level "{target}" (line {place.line})',
                        "name it in one of the two lists",
                    )
                level.keeps[tensor] = (is_kept, place)
        level.streams.update(self._reader.names(map.get("stream"), self._tensors, "tensor"))

    def _directive(self, map: Map, target: str, kind: str) -> _Directive:
        where = f'the {kind} directive of level "{target}"'
        ranks = list(self._sizes or ())
        factors = read_factors(self._reader, map.get("factors"), self._sizes)
        missing = [rank for rank in ranks if rank not in factors.bounds]
        if missing:
            self._reader.warn(map.place_of("factors"), f"{where} has no factor for {' '.join(missing)}: 1 is taken")
        given = read_permutation(self._reader, map.get("permutation"), self._sizes)
        rest = [rank for rank in ranks if rank not in given]
        if rest:
            self._reader.warn(
                map.place_of("permutation"),
                f"the permutation of {where} leaves out {' '.join(rest)}: appended outermost in problem order",
            )
        split = self._reader.value(map.get("split"), Kind.COUNT) if kind == "spatial" else None
        permutation = (*given, *rest)
        reuse = {key: self._reader.names(map.get(key), self._tensors, "tensor") for key in _REUSE if key in _KEYS[kind]}
        return _Directive(map.place, factors, permutation, len(permutation) if split is None else split, reuse)

    def _has_fanout(self, target: str, directive: _Directive, hardware: Hardware) -> bool:
        architecture = hardware.architecture
        index = list(self._levels).index(target)
        inner = architecture.levels[index - 1] if index else architecture.compute
        if architecture.fanout(index) != (1, 1) or not hardware.uncounted.isdisjoint((inner.name, target)):
            return True
        message = (
            f'level "{target}" has no fan-out: it and "{inner.name}" below it have {inner.instances} instances each'
        )
        remedy = (
            f'a spatial directive of "{target}" distributes work to "{inner.name}"; target the level above replicas'
        )
        if any(bound != 1 for bound, _ in directive.factors.bounds.values()):
            self._reader.error(directive.place, message, remedy)
        else:
            self._reader.warn(directive.place, message + "; the directive has no effect", remedy)
        return False

    def check_products(self, place: Place, workload: Workload) -> None:
        """The loops over each dimension must multiply to its size (all faulty dimensions are reported)."""
        for rank, size in workload.einsum.size_of.items():
            if rank in workload.unsized or self._is_partial:
                continue
            last, chain, has_full = 0, [], False
            for name, level in reversed(self._levels.items()):
                for kind, directive in (("", level.temporal), (" (spatial)", level.spatial)):
                    if directive is None:
                        continue
                    bound, residual = directive.factors.bounds.get(rank, (1, 1))
                    last = last * bound + residual - 1
                    has_full = has_full or rank in directive.factors.full
                    if bound != 1:
                        chain.append(f"{name}{kind} {bound}" + ("" if residual == bound else f",{residual}"))
            if last + 1 != size:
                remedy = "the factors are " + " x ".join(chain) if chain else "it has no factor but 1"
                if has_full:
                    remedy += "; factor 0 stands for the full size, not for what the other levels leave"
                self._reader.error(
                    place,
                    f"product of all factors of dimension {rank} is {last + 1}, which is not equal to the dimension"
                    f" size of the workload {size}",
                    remedy,
                )

    def nest(self, place: Place, architecture: Architecture, einsum: Einsum) -> LoopNest:
        """All levels, innermost first; what the directives leave out is filled in and reported."""
        nests: list[LevelNest] = []
        for index, (name, level) in enumerate(self._levels.items()):
            if level.temporal is None:
                self._reader.warn(place, f'level "{name}" has no temporal directive: all its factors are 1')
            x, y = architecture.fanout(index)
            if level.spatial is None and (x, y) != (1, 1):
                self._reader.warn(place, f'level "{name}" has no spatial directive: its fan-out {x} x {y} is not used')
            nests.append(_level_nest(name, level, einsum))
        return LoopNest(tuple(nests))


def _level_nest(name: str, level: _Level, einsum: Einsum) -> LevelNest:
    spatial = _loops(level.spatial, einsum)
    split = level.spatial.split if level.spatial is not None else len(spatial)
    kept = {tensor: is_kept for tensor, (is_kept, _) in level.keeps.items()}
    reuse = {**(level.temporal.reuse if level.temporal else {}), **(level.spatial.reuse if level.spatial else {})}
    switches = {
        switch: tuple(tensor.name for tensor in einsum.tensors if tensor.name in reuse.get(key, ()))
        for key, switch in _REUSE.items()
    }
    keep = tuple(tensor.name for tensor in einsum.tensors if kept.get(tensor.name, True))
    return LevelNest(
        level=name,
        temporal=_loops(level.temporal, einsum),
        spatial_x=spatial[:split],
        spatial_y=spatial[split:],
        keep=keep,
        stream=tuple(t.name for t in einsum.tensors if t.name in level.streams and t.name not in keep),
        **switches,
    )


def _loops(directive: _Directive | None, einsum: Einsum) -> tuple[Loop, ...]:
    permutation = directive.permutation if directive is not None else einsum.ranks
    bounds = directive.factors.bounds if directive is not None else {}
    place = directive.place if directive is not None else Place()
    return tuple(Loop(rank, *bounds.get(rank, (1, 1)), place) for rank in permutation)
