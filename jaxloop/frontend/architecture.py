"""The `architecture:` section: the tree of versions 0.2 and 0.3 and the dialect with `arithmetic` and `storage`
(spec/inputs.md 1.1 and 1.5)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .._errors import Place
from ..spec.architecture import Architecture, Compute, Storage
from .attributes import misplaced, read_compute, read_mesh, read_storage
from .nodes import Map, Node, Scalar, tags_in
from .schema import Reader

_CLASSES = {
    "storage": ("DRAM", "SRAM", "regfile", "smartbuffer", "storage"),
    "compute": ("mac", "intmac", "fpmac", "compute"),
    "network": ("XY_NoC", "Legacy", "ReductionTree", "SimpleMulticast"),
}
"""A component is of the first kind of which its class contains a word, in this order."""

_DEFAULT_COMPUTE = "__ARITH__"
_V04_TAGS = frozenset({"!Component", "!Container", "!Parallel", "!Hierarchical", "!Pipelined", "!Nothing"})
_ACCELFORGE_TAGS = frozenset({"!Memory", "!Compute", "!Toll", "!Fanout", "!Spatial", "!Fork", "!Array", "!Hierarchy"})
_RANGE = re.compile(r"\[([^\]]*)\]")
_BOUNDS = re.compile(r"\s*([0-9]+)\s*\.\.\s*([0-9]+)\s*")
_TREE_KEYS = ("version", "subtree", "name", "attributes", "local", "constraints")
_NODE_KEYS = ("name", "attributes", "local", "subtree")
_COMPONENT_KEYS = ("name", "class", "subclass", "attributes")
_COMPONENT_SILENT = ("actions", "required_actions", "area_scale", "energy_scale", "primitive_type")


@dataclass(frozen=True)
class Hardware:
    """What the section holds. `unmodeled` gives the class of each component that is no storage and no compute,
    `uncounted` the components whose number of instances is wrong (an error is recorded)."""

    architecture: Architecture
    unmodeled: dict[str, str]
    uncounted: set[str]


@dataclass(frozen=True)
class _Component:
    name: str
    class_name: str
    kind: str
    place: Place
    attributes: Map
    instances: int | None


def read_architecture(reader: Reader, section: Node) -> Hardware | None:
    """Reads the section; None when it holds no compute unit or no storage level at all (errors are recorded)."""
    map = reader.map(section, "the architecture")
    if map is None or _is_other_format(reader, map):
        return None
    if "subtree" in map:
        components = _tree(reader, map)
    elif "arithmetic" in map or "storage" in map:
        components = _flat(reader, map)
    else:
        reader.error(
            map.place,
            "the architecture holds neither `subtree` nor `arithmetic` and `storage`",
            "write `version: 0.3` and `subtree: [...]`",
        )
        return None
    return _assemble(reader, map, components)


def _is_other_format(reader: Reader, map: Map) -> bool:
    """Refuses the formats that are recognized but not read."""
    version = map.get("version")
    text = version.text if isinstance(version, Scalar) else ""
    tags = dict(reversed(list(tags_in(map))))
    v04 = next((tag for tag in tags if tag in _V04_TAGS), None)
    foreign = next((tag for tag in tags if tag in _ACCELFORGE_TAGS), None)
    if foreign is not None:
        reader.error(
            tags[foreign],
            f'the tag "{foreign}" belongs to an architecture of AccelForge, another tool with another format',
            "write the hardware as a Timeloop v0.3 tree (`architecture: {version: 0.3, subtree: ...}`)",
        )
    elif _number(text) == 0.4 or "nodes" in map or v04 is not None:
        sign, place = "`nodes:`", map.place_of("nodes")
        if _number(text) == 0.4:
            sign, place = f'"version: {text}"', map.place_of("version")
        elif v04 is not None:
            sign, place = f'"{v04}"', tags[v04]
        reader.error(
            place,
            f"{sign} marks the v0.4 dialect, which is not read yet",
            "write the hardware as a v0.3 tree (`version: 0.3`, `subtree: [...]`)",
        )
    elif tags:
        tag, place = next(iter(tags.items()))
        reader.error(place, f'unknown YAML tag "{tag}"', "remove it: the v0.3 dialect has no tags")
    elif "subtree" in map and _number(text) not in (0.2, 0.3):
        written = f'"{text}" is unsupported' if text else "is missing"
        reader.error(map.place_of("version"), f"the architecture's version {written}", "write `version: 0.3`")
    elif "subtree" not in map and _number(text) in (0.2, 0.3):
        reader.error(map.place_of("version"), f"version {text} has no `subtree`", "write `subtree: [...]`")
    else:
        return False
    # A tree that only lacks its version is read on, so that its other errors are found as well.
    return "subtree" not in map or bool(tags) or _number(text) == 0.4


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _tree(reader: Reader, top: Map) -> list[_Component]:
    """All components, innermost first."""
    reader.check_keys(top, _TREE_KEYS)
    if "local" in top:
        reader.warn(
            top.place_of("local"),
            "`local` directly below `architecture` is not used",
            "move the components into the `local` of a subtree node",
        )
    _report_misplaced(reader, top)
    components: list[_Component] = []
    node: Map | None = top
    count = 1
    while node is not None and "subtree" in node:
        children = reader.sequence(node.get("subtree"), "`subtree`")
        if len(children) > 1:
            reader.error(
                node.place_of("subtree"),
                f"`subtree` holds {len(children)} nodes: a tree with branches is not modeled",
                "keep one node per subtree; replicas are a range in its name, as in PE[0..15]",
            )
        node = reader.map(children[0], "the subtree node") if children else None
        if node is None:
            break
        reader.check_keys(node, _NODE_KEYS)
        _report_misplaced(reader, node)
        count *= _name_and_count(reader, node)[1]
        components.extend(_local(reader, node, count))
    return components[::-1]


def _local(reader: Reader, node: Map, count: int) -> Iterator[_Component]:
    for item in reader.sequence(node.get("local"), "`local`"):
        component = reader.map(item, "the component")
        if component is None:
            continue
        reader.check_keys(component, _COMPONENT_KEYS, _COMPONENT_SILENT)
        name, own = _name_and_count(reader, component)
        class_name = reader.text(component.get("class"), "the class") or ""
        kind = _kind(class_name)
        if not class_name:
            reader.error(
                component.place, f'component "{name}" has no class', "write, for example, `class: storage` or `compute`"
            )
        if not name and kind != "compute":
            reader.error(component.place, "a component has no name", "write `name:`")
        place = component.place_of("class")
        attributes = reader.map(component.get("attributes"), "`attributes`") or Map(component.place, {})
        yield _Component(name, class_name, kind, place, attributes, count * own)


def _flat(reader: Reader, top: Map) -> list[_Component]:
    """The components of the dialect without a tree, innermost first."""
    reader.check_keys(top, ("version", "arithmetic", "storage"), ("name", "constraints"))
    components: list[_Component] = []
    arithmetic = reader.map(top.get("arithmetic"), "`arithmetic`")
    if arithmetic is not None:
        name = _name_and_count(reader, arithmetic)[0]
        components.append(_Component(name, "compute", "compute", arithmetic.place, arithmetic, None))
    for item in reader.sequence(top.get("storage"), "`storage`"):
        storage = reader.map(item, "the storage level")
        if storage is None:
            continue
        name = _name_and_count(reader, storage)[0]
        if not name:
            reader.error(storage.place, "a storage level has no name", "write `name:`")
        class_name = reader.text(storage.get("class"), "the class") or ""
        components.append(_Component(name, class_name, "storage", storage.place, storage, None))
    return components


def _name_and_count(reader: Reader, map: Map) -> tuple[str, int]:
    """The name before the first bracket, and the replicas that its range `[a..b]` stands for (0: the range is
    wrong)."""
    text = reader.text(map.get("name"), "the name") or ""
    name, bracket, _ = text.partition("[")
    inside = _RANGE.search(text)
    if not bracket or (inside and ".." not in inside.group(1)):
        return name, 1
    bounds = _BOUNDS.fullmatch(inside.group(1)) if inside else None
    if bounds is None or int(bounds.group(2)) < int(bounds.group(1)):
        reader.error(
            map.place_of("name"),
            f'the range in the name "{text}" is not [first..last]',
            "write two whole numbers, as in PE[0..15]; expressions are not understood",
        )
        return name, 0
    return name, int(bounds.group(2)) - int(bounds.group(1)) + 1


def _kind(class_name: str) -> str:
    return next((kind for kind, words in _CLASSES.items() if any(word in class_name for word in words)), "")


def _report_misplaced(reader: Reader, node: Map) -> None:
    attributes = node.get("attributes")
    lost = misplaced(attributes.items) if isinstance(attributes, Map) else []
    if lost:
        reader.warn(
            node.place_of("attributes"),
            "attributes of a subtree node are not inherited by its components: " + ", ".join(lost),
            "write them at each component",
        )


def _assemble(reader: Reader, top: Map, components: list[_Component]) -> Hardware | None:
    levels: list[Storage] = []
    compute: Compute | None = None
    unmodeled: dict[str, str] = {}
    places: dict[str, Place] = {}
    uncounted: set[str] = set()
    for component in components:
        name = component.name or _DEFAULT_COMPUTE
        if component.kind in ("storage", "compute"):
            if name in places:
                reader.error(
                    component.place,
                    f'the name "{name}" is also used at line {places[name].line}',
                    "give each level a name of its own",
                )
                uncounted.add(name)
                continue
            places[name] = component.place
        if component.kind == "compute" and compute is not None:
            reader.error(
                component.place,
                f'there are two compute components, "{name}" and "{compute.name}"',
                "keep the one that performs the operations",
            )
        elif component.kind in ("storage", "compute"):
            mesh = read_mesh(reader, name, component.attributes, component.instances)
            if mesh is None:
                uncounted.add(name)
            if component.kind == "compute":
                compute = read_compute(reader, name, component.attributes, mesh or (1, 1))
            else:
                level = read_storage(reader, name, component.class_name, component.attributes, mesh or (1, 1))
                levels.append(level)
        else:
            unmodeled[name] = component.class_name
            _report_unmodeled(reader, component)
    if compute is None:
        reader.error(top.place, "the architecture has no compute component", "add one of class `compute` or `intmac`")
    if not levels:
        reader.error(top.place, "the architecture has no storage level", "add one of class `SRAM` or `DRAM`")
    if compute is None or not levels:
        return None
    architecture = Architecture(compute, tuple(levels))
    _check_fanouts(reader, architecture, places, uncounted)
    return Hardware(architecture, unmodeled, uncounted)


def _report_unmodeled(reader: Reader, component: _Component) -> None:
    if component.kind == "network":
        reader.error(
            component.place,
            f'"{component.name}" is an explicit network of class "{component.class_name}", which is not modeled',
            "remove it: a network is inferred below each level from that level's attributes",
        )
    elif component.class_name:
        reader.warn(
            component.place,
            f'"{component.name}" has the unknown class "{component.class_name}" and is not modeled',
            "`class` must contain one of "
            + ", ".join(_CLASSES["storage"] + _CLASSES["compute"])
            + "; the name of a compound class belongs in `subclass`",
        )


def _check_fanouts(reader: Reader, architecture: Architecture, places: dict[str, Place], uncounted: set[str]) -> None:
    """The instances of each level must divide those of what lies below; levels for which they do not are added to
    `uncounted`."""
    unknown = frozenset(uncounted)
    inner: Compute | Storage = architecture.compute
    for outer in architecture.levels:
        pairs = {"meshX": (inner.mesh_x, outer.mesh_x), "meshY": (inner.mesh_y, outer.mesh_y)}
        for key, (inside, outside) in pairs.items() if unknown.isdisjoint((inner.name, outer.name)) else ():
            if inside % outside != 0:
                uncounted.update((inner.name, outer.name))
                reader.error(
                    places[inner.name],
                    f'"{inner.name}" has {inner.instances} instances ({key} {inside}), the level above it'
                    f' "{outer.name}" has {outer.instances} ({key} {outside}), and {outside} does not divide {inside}',
                    f'make {key} of "{inner.name}" a multiple of that of "{outer.name}"',
                )
        inner = outer
