"""The `ERT:` and `ART:` sections (spec/inputs.md 7.1 and 7.2, spec/dense.md section 11)."""

import re
from collections.abc import Iterable, Iterator

from .._errors import Place
from ..spec.tables import AreaTable, EnergyTable
from .nodes import Map, Node, Sequence
from .schema import Kind, Reader

_VERSIONS = (0.2, 0.3, 0.4)
_RANGE = re.compile(r"\[[^\]]*\]$")
_WIRES = ("wire", "Wire")
_WIRE_ACTION = "transfer_random"


def level_name(component: str) -> str:
    """The level that a component of a table means: its last dotted part without a trailing range."""
    return _RANGE.sub("", component).rpartition(".")[2]


def read_energies(reader: Reader, section: Node, levels: Iterable[str] | None) -> EnergyTable | None:
    """Reads the ERT. `levels` are the names that components should match (None: unknown, not checked)."""
    tables = _tables(reader, section, "ERT")
    if tables is None:
        return None
    components: dict[str, dict[str, float]] = {}
    wire_energy: float | None = None
    names: dict[str, str] = {}
    for component, place, entry in _components(reader, tables):
        name = level_name(component)
        energies = _energies(reader, component, place, entry)
        if name in _WIRES:
            wire_energy = energies.get(_WIRE_ACTION, wire_energy)
            continue
        _report_repeated(reader, names, name, component, place)
        components[name] = energies
    _report_unmatched(reader, section.place, "ERT", names, levels)
    return EnergyTable(components, wire_energy, section.place.file)


def read_areas(reader: Reader, section: Node, levels: Iterable[str] | None) -> AreaTable | None:
    """Reads the ART; `levels` as in `read_energies`."""
    tables = _tables(reader, section, "ART")
    if tables is None:
        return None
    components: dict[str, float] = {}
    names: dict[str, str] = {}
    for component, place, entry in _components(reader, tables):
        map = reader.map(entry, f'the ART entry of "{component}"')
        if map is None:
            continue
        reader.check_keys(map, ("name", "area"))
        area = _number(reader, map, "area", f'component "{component}"')
        name = level_name(component)
        if name not in _WIRES:
            _report_repeated(reader, names, name, component, place)
            components[name] = area
    _report_unmatched(reader, section.place, "ART", names, levels)
    return AreaTable(components, section.place.file)


def _tables(reader: Reader, section: Node, what: str) -> Node | None:
    map = reader.map(section, f"the {what}")
    if map is None:
        return None
    reader.check_keys(map, ("version", "tables"))
    version = reader.value(map.get("version"), Kind.REAL)
    if map.get("version") is None or (version is not None and version not in _VERSIONS):
        written = "is missing" if version is None else f"{version:g} is unsupported"
        reader.error(map.place_of("version"), f"the {what}'s version {written}", "write one of 0.2, 0.3, 0.4")
    tables = map.get("tables")
    if tables is None:
        reader.error(map.place, f"the {what} has no `tables`", "list its components")
    return tables


def _components(reader: Reader, tables: Node) -> Iterator[tuple[str, Place, Node]]:
    """Each component's name, the name's place and its entry; both the list form and the mapping of version 0.2."""
    if isinstance(tables, Map):
        for name, entry in tables.items.items():
            yield name, tables.places[name], entry
        return
    for item in reader.sequence(tables, "`tables`"):
        entry = reader.map(item, "a table entry")
        name = reader.text(entry.get("name"), "the component's name") if entry is not None else None
        if entry is not None and name is None:
            reader.error(entry.place, "a table entry has no name", "write `name:`")
        elif entry is not None and name is not None:
            yield name, entry.place_of("name"), entry


def _energies(reader: Reader, component: str, place: Place, entry: Node) -> dict[str, float]:
    """The largest energy of each action."""
    energies: dict[str, float] = {}
    map = reader.map(entry, f'the ERT entry of "{component}"')
    if map is None:
        return energies
    for action, node in _actions(reader, component, map):
        map = reader.map(node, f'the action "{action}" of "{component}"')
        if map is not None:
            energy = _number(reader, map, "energy", f'action "{action}" of component "{component}"')
            energies[action] = max(energy, energies.get(action, 0.0))
    return energies


def _actions(reader: Reader, component: str, map: Map) -> Iterator[tuple[str, Node]]:
    if "name" in map or "actions" in map:
        reader.check_keys(map, ("name", "actions"))
        for item in reader.sequence(map.get("actions"), f'the actions of "{component}"'):
            entry = reader.map(item, f'an action of "{component}"')
            action = reader.text(entry.get("name"), "the action's name") if entry is not None else None
            if entry is not None and action is None:
                reader.error(entry.place, f'an action of "{component}" has no name', "write `name:`")
            elif entry is not None and action is not None:
                yield action, entry
        return
    for action, node in map.items.items():
        for item in node.items if isinstance(node, Sequence) else (node,):
            yield action, item


def _number(reader: Reader, map: Map, key: str, what: str) -> float:
    node = map.get(key)
    if node is None:
        reader.error(map.place, f"{what} has no `{key}`", f"write `{key}:` and a number")
    return reader.value(node, Kind.COST, f"the {key} of {what}") or 0.0


def _report_repeated(reader: Reader, names: dict[str, str], name: str, component: str, place: Place) -> None:
    if name in names:
        reader.warn(
            place,
            f'the components "{names[name]}" and "{component}" both mean level "{name}": the last one is used',
            "give the levels different names",
        )
    names[name] = component


def _report_unmatched(
    reader: Reader, place: Place, what: str, names: dict[str, str], levels: Iterable[str] | None
) -> None:
    if levels is None:
        return
    unmatched = [component for name, component in names.items() if name not in set(levels)]
    if unmatched:
        reader.warn(
            place,
            f"components of the {what} that match no level by their last name: " + ", ".join(unmatched),
            "levels: " + ", ".join(levels),
        )
