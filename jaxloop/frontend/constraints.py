"""Constraints on mappings: `mapspace_constraints:`, `architecture_constraints:` and their aliases (spec/inputs.md
section 4).

Only the syntax is checked here, so that a design with a mapping can be evaluated whatever its constraints say; whether
they can be met is found out where a map space is built.
"""

import re
from collections.abc import Iterator
from typing import Any

from .._errors import Place, nearest
from ..spec.architecture import Architecture
from ..spec.constraints import (
    Constraints,
    FactorConstraint,
    KeepConstraint,
    LoopKind,
    OrderConstraint,
    OverbookingConstraint,
    ParallelismConstraint,
    Relation,
    Reuse,
    ReuseConstraint,
    SplitConstraint,
)
from ..spec.einsum import Einsum
from .nodes import Map, Node, Scalar, Sequence, canonical, kind_of
from .schema import Kind, Reader

MAPSPACE_KEYS = ("mapspace", "mapspace_constraints")
ARCHITECTURE_KEYS = ("arch_constraints", "architecture_constraints")

_TYPES = {name: name for name in ("temporal", "spatial", "bypass", "max_overbooked_proportion", "utilization")}
_TYPE_ALIASES = {
    "datatype": "bypass",
    "bypassing": "bypass",
    "dataspace": "bypass",
    "parallelism": "utilization",
}
_FACTOR_KEYS = ("factors", "permutation", "default_max_factor", "default_min_factor")
_REUSE = {
    "no_temporal_reuse": Reuse.TEMPORAL,
    "no_link_transfer": Reuse.LINK_TRANSFER,
    "no_multicast_no_reduction": Reuse.MULTICAST,
}
_KEYS = {
    "temporal": (*_FACTOR_KEYS, "no_temporal_reuse"),
    "spatial": (*_FACTOR_KEYS, "split", "no_link_transfer", "no_multicast_no_reduction"),
    "bypass": ("keep", "bypass"),
    "max_overbooked_proportion": ("proportion",),
    "utilization": ("min",),
}
_DEFAULTS = {"default_max_factor": Relation.AT_MOST, "default_min_factor": Relation.AT_LEAST}
_TOKEN = re.compile(r"([A-Za-z]+)\s*(<=|>=|=*)\s*([0-9]+)")
_SEPARATORS = re.compile(r"[\s,;]*")
_TEMPLATES = ("uber", "ruby")
_V04_KEYS = (
    "factors_only",
    "no_iteration_over_dataspaces",
    "must_iterate_over_dataspaces",
    "keep_only",
    "bypass_only",
    "maximize_dims",
    "maximize_dims_capacity",
    "no_reuse",
    "rmw_first_update",
    "no_coalesce",
)
"""Keys of the v0.4 dialect that change what a constraint means."""


class ConstraintReader:
    """Collects the items of all sources. Names are not checked against an architecture or an einsum that is None
    (because its section is broken)."""

    def __init__(self, reader: Reader, architecture: Architecture | None, einsum: Einsum | None):
        self._reader = reader
        self._levels = [level.name for level in architecture.levels] if architecture is not None else None
        self._sizes = einsum.size_of if einsum is not None else None
        self._tensors = [tensor.name for tensor in einsum.tensors] if einsum is not None else None
        self._items: dict[str, list] = {name: [] for name in Constraints.__dataclass_fields__}
        self._template: tuple[str, Place] | None = None

    def read(self, section: Node, key: str) -> None:
        """Takes one source in; `key` is how the file calls it."""
        for item in self._sources(section, key):
            map = self._reader.map(item, "a constraint")
            if map is not None:
                self._item(map, None)

    def constraints(self) -> Constraints:
        """What all sources hold together."""
        lists: dict[str, Any] = {
            name: tuple(items) for name, items in self._items.items() if not name.startswith("template")
        }
        template, place = self._template or ("uber", Constraints().template_place)
        return Constraints(**lists, template=template, template_place=place)

    def _sources(self, section: Node, key: str) -> tuple[Node, ...]:
        """The items in any of the shapes of 4.2."""
        if isinstance(section, Sequence):
            return section.items
        map = self._reader.map(section, f"`{key}`")
        if map is None:
            return ()
        named = map.get("constraints")
        chosen = f"constraints_{canonical(named.text)}" if isinstance(named, Scalar) else "constraints"
        self._reader.check_keys(map, ("targets", "constraints", "template", chosen), ("version",))
        self._read_template(map)
        if isinstance(named, Scalar) and map.get(chosen) is None:
            remedy = nearest(chosen, [name for name in map.items if name not in ("constraints", "template")])
            self._reader.error(named.place, f'there is no "constraints_{named.text}"', remedy or "add it")
        listed = [map.get(name) for name in dict.fromkeys(("targets", chosen))]
        return tuple(item for node in listed for item in self._reader.sequence(node, "the list of constraints"))

    def _read_template(self, map: Map) -> None:
        node = map.get("template")
        template = self._reader.enum(node, "template", {name: name for name in _TEMPLATES}, {})
        if node is not None and template is not None:
            self._template = template, node.place

    def _item(self, map: Map, outer: str | None) -> None:
        node = map.get("target") or map.get("name")
        level = outer if node is None else self._reader.known(node, self._levels, "level")
        nested = map.get("constraints")
        if nested is not None:
            self._reader.check_keys(map, ("target", "name", "constraints"))
            for item in self._reader.sequence(nested, "the list of constraints"):
                inner = self._reader.map(item, "a constraint")
                if inner is not None and (level is not None or node is None):
                    self._item(inner, level)
            return
        kind = self._reader.enum(map.get("type"), "constraint type", _TYPES, _TYPE_ALIASES)
        if map.get("type") is None:
            self._reader.error(map.place, "a constraint has no `type`", "write " + ", ".join(_TYPES))
        if node is None and outer is None:
            self._reader.error(map.place, "a constraint has no `target`", "write the name of a storage level")
        for key in _V04_KEYS:
            if key in map:
                message = f"`{key}` belongs to the v0.4 dialect, which is not read yet"
                self._reader.error(map.place_of(key), message, "write out what it stands for")
        if kind is None or level is None:
            return
        self._reader.check_keys(map, ("type", "target", "name", "attributes", *_KEYS[kind]), ("remainders", *_V04_KEYS))
        options = _Options(map, self._reader.map(map.get("attributes"), "`attributes`"))
        if options.nested is not None:
            self._reader.check_keys(options.nested, _KEYS[kind])
        getattr(self, f"_{kind}")(map, options, level)

    def _temporal(self, map: Map, options: "_Options", level: str) -> None:
        self._loops(map, options, level, LoopKind.TEMPORAL)

    def _spatial(self, map: Map, options: "_Options", level: str) -> None:
        self._loops(map, options, level, LoopKind.SPATIAL)
        split = self._reader.value(map.get("split"), Kind.COUNT)
        if split is not None:
            self._items["splits"].append(SplitConstraint(level, split, map.place_of("split")))

    def _bypass(self, map: Map, options: "_Options", level: str) -> None:
        for key, keep in (("keep", True), ("bypass", False)):
            node = options.get(key)
            for tensor in self._reader.names(node, self._tensors, "tensor"):
                place = node.place if node is not None else map.place
                self._items["keeps"].append(KeepConstraint(level, tensor, keep, place))

    def _max_overbooked_proportion(self, map: Map, options: "_Options", level: str) -> None:
        value = self._share(map, options, "proportion")
        if value is not None:
            self._items["overbooking"].append(OverbookingConstraint(level, value, map.place))

    def _utilization(self, map: Map, options: "_Options", level: str) -> None:
        value = self._share(map, options, "min")
        if value is not None:
            self._items["parallelism"].append(ParallelismConstraint(level, value, map.place))

    def _share(self, map: Map, options: "_Options", key: str) -> float | None:
        node = options.get(key)
        if node is None:
            self._reader.error(map.place, f"the constraint has no `{key}`", "write a number from 0 to 1")
        value = self._reader.value(node, Kind.COST)
        if node is not None and value is not None and value > 1:
            self._reader.error(node.place, f"{kind_of(node)} is above 1", "write a share from 0 to 1")
            return None
        return value

    def _loops(self, map: Map, options: "_Options", level: str, kind: LoopKind) -> None:
        for relation, rank, value, place in self._factors(options.get("factors")):
            self._items["factors"].append(FactorConstraint(level, kind, rank, relation, value, place))
        for key, relation in _DEFAULTS.items():
            node = options.get(key)
            value = self._reader.value(node, Kind.POSITIVE)
            if node is not None and value is not None:
                self._items["factors"].append(FactorConstraint(level, kind, None, relation, value, node.place))
        permutation = options.get("permutation")
        if permutation is not None:
            inner, outer = self._permutation(permutation)
            self._items["orders"].append(OrderConstraint(level, kind, inner, outer, permutation.place))
        for key, reuse in _REUSE.items():
            node = map.get(key)
            if node is not None and key in _KEYS[kind]:
                tensors = tuple(self._reader.names(node, self._tensors, "tensor"))
                self._items["reuses"].append(ReuseConstraint(level, reuse, tensors, node.place))

    def _factors(self, node: Node | None) -> Iterator[tuple[Relation, str, int, Place]]:
        """Reads `K=4 M2 N<=4 C>=2` or a list of such texts. `K=0` is the full size of K."""
        for item in (node,) if isinstance(node, Scalar) else self._reader.sequence(node, "the factors"):
            text = (self._reader.text(item, "the factors") or "").partition("#")[0]
            rest = _TOKEN.sub(" ", text)
            if not _SEPARATORS.fullmatch(rest):
                message = f'cannot read "{rest.strip()}" in the factors "{text}"'
                self._reader.error(item.place, message, 'write "M=4 K<=2 N>=2"; leave out the ranks that are free')
            for rank, sign, digits in _TOKEN.findall(text):
                relation = Relation(sign) if sign in tuple(Relation) else Relation.EQUAL
                value = int(digits)
                if self._sizes is not None and rank not in self._sizes:
                    self._reader.error(
                        item.place, f'unknown dimension "{rank}" in the factors', nearest(rank, self._sizes)
                    )
                elif value == 0 and relation is not Relation.EQUAL:
                    self._reader.error(item.place, f'"{rank}{sign}0" bounds no factor', "write a number from 1")
                else:
                    full = self._sizes[rank] if self._sizes is not None else 1
                    yield relation, rank, value or full, item.place

    def _permutation(self, node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Reads `PREFIX` or `PREFIX_SUFFIX`."""
        items = (node,) if isinstance(node, Scalar) else self._reader.sequence(node, "the permutation")
        text = "".join((self._reader.text(item, "the permutation") or "").partition("#")[0] for item in items)
        text = re.sub(r"[\s,]", "", text)
        found: list[str] = []
        for rank in text.replace("_", "", 1):
            if self._sizes is not None and rank not in self._sizes:
                message = f'unknown dimension "{rank}" in the permutation'
                self._reader.error(node.place, message, nearest(rank, self._sizes))
            elif rank in found:
                self._reader.error(node.place, f'the permutation names "{rank}" twice', "name each rank once")
            else:
                found.append(rank)
        pinned_inside = text.partition("_")[0]
        inner = tuple(rank for rank in found if rank in pinned_inside)
        return inner, tuple(rank for rank in found if rank not in pinned_inside)


class _Options:
    """The options of an item, which may stand in its `attributes`."""

    def __init__(self, map: Map, nested: Map | None):
        self._map, self.nested = map, nested

    def get(self, key: str) -> Node | None:
        value = self._map.get(key)
        return value if value is not None or self.nested is None else self.nested.get(key)
