"""Energy and area tables: malformed ones, their three layouts, and how components find their levels."""

import pytest

from jaxloop.frontend import read_texts
from jaxloop.frontend.tables import level_name
from jaxloop.spec.tables import AreaTable, EnergyTable
from tests.frontend.base import AREAS, ENERGIES, Malformed, check, edited, malformed

READ = "{name: read, arguments: {}, energy: 64.0}"
MAIN = "ERT.tables[0]"


def read(name: str, new: str, path: str, message: str, remedy: str) -> Malformed:
    """Another read action of Main."""
    return Malformed(name, READ, new, new, f"{MAIN}.actions[0]{path}", message, remedy)


MALFORMED_ERT = [
    read(
        "negative", "{name: read, energy: -1}", ".energy", '"-1" is not a number from 0', 'action "read" of component'
    ),
    read("text", "{name: read, energy: 1 pJ}", ".energy", '"1 pJ" is not a number', '"system.Main"'),
    read("nan", "{name: read, energy: .nan}", ".energy", '".nan" is not a number', '"system.Main"'),
    read("list", "{name: read, energy: [1]}", ".energy", "the value is a list", '"system.Main"'),
    read("no-energy", "{name: read}", "", 'action "read" of component "system.Main" has no `energy`', "a number"),
    read("no-action", "{energy: 1}", "", 'an action of "system.Main" has no name', "name:"),
    read("scalar", "read", "", 'an action of "system.Main" is "read"', "mapping"),
    Malformed("version", "0.3", "0.5", "0.5", "ERT.version", "version 0.5 is unsupported", "0.2, 0.3, 0.4"),
    Malformed("no-version", "  version: 0.3\n", "", "  tables", "ERT", "version is missing", "0.2, 0.3, 0.4"),
    Malformed("version-text", "0.3", "new", "new", "ERT.version", '"new" is not a number', "write a number"),
    Malformed("no-tables", "  tables:", "  table:", "version", "ERT", "the ERT has no `tables`", "components"),
    Malformed("no-name", "- name: system.Main\n    ", "- ", "- actions", MAIN, "a table entry has no name", "name:"),
    Malformed(
        "actions",
        "- name: system.Main\n    actions:",
        "- name: system.Main\n    actions: 3\n    other:",
        "ons: 3",
        f"{MAIN}.actions",
        'the actions of "system.Main" is "3"',
        "write a list",
    ),
]

MAIN_AREA = "{name: system.Main, area: 10.0}"


def area(name: str, new: str, path: str, message: str, remedy: str) -> Malformed:
    """Another entry of Main in the ART."""
    return Malformed(name, MAIN_AREA, new, new, f"ART.tables[0]{path}", message, remedy)


MALFORMED_ART = [
    area("negative", "{name: system.Main, area: -3}", ".area", '"-3" is not a number from 0', '"system.Main"'),
    area("text", "{name: system.Main, area: big}", ".area", '"big" is not a number', "the area of component"),
    area("no-area", "{name: system.Main}", "", 'component "system.Main" has no `area`', "write `area:`"),
    area("no-name", "{area: 3}", "", "a table entry has no name", "name:"),
    area("scalar", "big", "", 'a table entry is "big"', "mapping"),
    Malformed("version", "0.3", "1", "version", "ART.version", "version 1 is unsupported", "0.2, 0.3, 0.4"),
    Malformed(
        "list", "ART:\n  version: 0.3\n  tables:", "ART:", "- {name: system.Main", "ART", "the ART is a list", "ap"
    ),
]


@malformed(MALFORMED_ERT)
def test_malformed_energies(case: Malformed):
    check("ert.yaml", case)


@malformed(MALFORMED_ART)
def test_malformed_areas(case: Malformed):
    check("art.yaml", case)


def test_base_tables():
    design = read_texts(edited())
    assert design.energy_table == EnergyTable(
        {"Main": {"read": 64.0, "write": 96.0}, "Glb": {"read": 8.0}, "Spad": {"read": 1.0}, "Mac": {"compute": 0.5}},
        None,
        "ert.yaml",
    )
    assert design.area_table == AreaTable({"Main": 10.0, "Glb": 20.0}, "art.yaml")


V02 = """\
ERT:
  version: 0.2
  tables:
    system.Main: {read: {energy: 64}, write: [{arguments: {}, energy: 96.0}, {arguments: {a: 1}, energy: 3.5}]}
    chip.Glb: {read: [{arguments: null, energy: 8}]}
    Spad[10..13]: {read: {energy: 1}}
    Mac: {compute: {energy: .5}}
"""


@pytest.mark.parametrize("text", [V02, ENERGIES.replace("0.3", "0.4"), ENERGIES.replace("0.3", "'0.3'")])
def test_layouts(text: str):
    assert read_texts(edited() | {"ert.yaml": text}).energy_table == read_texts(edited()).energy_table


def test_versions_of_areas():
    assert (
        read_texts(edited() | {"art.yaml": AREAS.replace("0.3", "0.4")}).area_table == read_texts(edited()).area_table
    )


def test_the_largest_entry_of_an_action_counts():
    entries = "{name: read, energy: 2}\n    - {name: read, energy: 70}\n    - {name: read, energy: 0}"
    table = read_texts(edited(("ert.yaml", READ, entries))).energy_table
    assert table is not None
    assert table.components["Main"]["read"] == 70.0


@pytest.mark.parametrize("wire", ["system.wire", "Wire", "chip.PE[0..3].wire[0..11]"])
def test_wire(wire: str):
    entry = f"  tables:\n  - {{name: '{wire}', actions: [{{name: transfer_random, energy: 0.1}}]}}"
    design = read_texts(edited(("ert.yaml", "  tables:", entry)))
    assert design.energy_table is not None
    assert (design.energy_table.wire_energy, design.warnings) == (0.1, ())
    assert "wire" not in design.energy_table.components


@pytest.mark.parametrize(
    "component, level",
    [
        ("Buf", "Buf"),
        ("chip.Buf", "Buf"),
        ("chip.PE[0..15].Buf", "Buf"),
        ("chip.PE[0..15].Buf[0..7]", "Buf"),
        ("chip.Buf[10..20]", "Buf"),
        ("chip.Buf[1..1].x", "x"),
    ],
)
def test_level_name(component: str, level: str):
    assert level_name(component) == level


def test_component_warnings():
    texts = edited(
        ("ert.yaml", "- name: system.chip.Glb", "- name: other.Glb\n    actions: []\n  - name: system.chip.Glb"),
        ("art.yaml", "system.chip.Glb", "system.chip.Lost"),
    )
    design = read_texts(texts)
    art, ert = design.warnings if design.warnings[0].place.file == "art.yaml" else design.warnings[::-1]
    assert "match no level by their last name: system.chip.Lost" in art.message
    assert "Spad, Glb, Main" in art.remedy
    assert '"other.Glb" and "system.chip.Glb" both mean level "Glb"' in ert.message
    assert design.energy_table is not None
    assert design.energy_table.components["Glb"] == {"read": 8.0}
