"""Architectures: malformed ones, and what each spelling of a quantity becomes."""

import pytest

from jaxloop.frontend import read_texts
from jaxloop.spec.architecture import Metadata, Network, Storage
from tests.frontend.base import Malformed, check, edited, malformed

GLB = "architecture.subtree[0].subtree[0].local[0]"
SPAD = "architecture.subtree[0].subtree[0].subtree[0].local[0]"
MAC = "architecture.subtree[0].subtree[0].subtree[0].local[1]"
DEPTH = "          depth: 64\n"
MAC_NAME = "        - name: Mac\n"


def glb(name: str, line: str, message: str, remedy: str) -> Malformed:
    """One more attribute of Glb, which is wrong by itself."""
    key = line.partition(":")[0]
    return Malformed(name, DEPTH, f"{DEPTH}          {line}\n", line, f"{GLB}.attributes.{key}", message, remedy)


def top(name: str, old: str, new: str, at: str, path: str, message: str, remedy: str) -> Malformed:
    """An edit outside of the components."""
    return Malformed(name, old, new, at, f"architecture{path}", message, remedy)


MALFORMED = [
    top("version", "version: 0.3", "version: 0.7", "0.7", ".version", '"0.7" is unsupported', "version: 0.3"),
    top("no-version", "  version: 0.3\n", "", "  subtree", "", "version is missing", "version: 0.3"),
    top("v04", "version: 0.3", "version: 0.4", "0.4", ".version", '"version: 0.4" marks the v0.4 dialect', "v0.3 tree"),
    top("v04-nodes", "subtree:\n  - name: system", "nodes:\n  - name: system", "nodes", ".nodes", "v0.4", "v0.3 tree"),
    top(
        "no-tree", "  subtree:\n  - name: system", "  tree:\n  - name: system", "0.3", ".version", "subtree", "subtree"
    ),
    Malformed("v04-tag", "- name: Glb", "- !Component\n        name: Glb", "!Component", GLB, '"!Component"', "v0.3"),
    Malformed("accelforge", "- name: Glb", "- !Memory\n        name: Glb", "!Memory", GLB, "AccelForge", "Timeloop"),
    Malformed(
        "other-tag", "- name: Glb", "- !Foo\n        name: Glb", "!Foo", GLB, 'unknown YAML tag "!Foo"', "remove"
    ),
    Malformed("no-size", DEPTH, "", "          width: 64", f"{GLB}.attributes", '"Glb" has no size', "technology DRAM"),
    Malformed(
        "same-name",
        MAC_NAME,
        f"        - {{name: Glb, class: regfile, attributes: {{entries: 4}}}}\n{MAC_NAME}",
        "class: SRAM",
        f"{GLB}.class",
        'the name "Glb" is also used at line 27',
        "a name of its own",
    ),
    Malformed("no-class", "        class: SRAM\n", "", "name: Glb", GLB, 'component "Glb" has no class', "class"),
    glb("bandwidth-0", "read_bandwidth: 0", '"0" is not a number above 0', "leave the key out"),
    glb("bandwidth-negative", "shared_bandwidth: -1", '"-1" is not a number above 0', "leave the key out"),
    glb("two-sizes", "sizeKB: 1", 'level "Glb" gives its size as sizeKB and as depth', "keep one"),
    glb("network-key", "network_read: noc", "explicit networks are not modeled", "remove the key"),
    glb("network-type", "network-type: M:N", 'network type "M:N"', "1:1, 1:N"),
    glb("partition", "tile_partition_supported: true", "partitioned tiles are not modeled", "remove the key"),
    glb("overbooking", "allow_overbooking: maybe", '"maybe" is not yes or no', "write yes or no"),
    glb("flag", "reduction_supported: maybe", '"maybe" is not yes or no', "write yes or no"),
    glb("energy", "vector-access-energy: -2", '"-2" is not a number from 0', "write a number from 0"),
    glb("real-count", "cluster-size: 1.0", '"1.0" is not a whole number from 1', "write a whole number"),
    glb("list", "network_fill_latency: [3]", "the value is a list", "write a whole number"),
    glb("expression", "n_ports: 1 + 1", '"1 + 1" is not a whole number', "neither arithmetic"),
    Malformed(
        "two-spellings",
        DEPTH,
        f"{DEPTH}          word_bits: 8\n",
        "          word-bits: 8",
        f"{GLB}.attributes.word-bits",
        '"word-bits" and "word_bits" are the same key',
        "keep one",
    ),
    Malformed(
        "width",
        "          width: 64\n",
        "          memory_width: 60\n",
        "memory_width",
        f"{GLB}.attributes.memory_width",
        "row width 60 is not a multiple of word bits 8 x block size 8",
        "word bits default to 16",
    ),
    Malformed(
        "block-and-cluster",
        "          block-size: 8\n",
        "          block-size: 4\n          cluster_size: 1\n",
        "          width: 64",
        f"{GLB}.attributes.width",
        "word bits 8 x block size 4 x cluster size 1 is 32, not the row width 64",
        "leave one of them out",
    ),
    Malformed(
        "cluster-only",
        "          block-size: 8\n",
        "          cluster-size: 3\n",
        "          width: 64",
        f"{GLB}.attributes.width",
        "row width 64 is not a multiple of word bits 8 x cluster size 3",
        "width = word bits x block size x cluster size",
    ),
    Malformed(
        "dram-cluster",
        "{width: 64, block-size: 8, word-bits: 8, meta",
        "{width: 64, block-size: 4, word-bits: 8, meta",
        "block-size: 4",
        "architecture.subtree[0].local[0].attributes.width",
        'DRAM level "Main" comes out with cluster size 2',
        "cluster-size: 1",
    ),
    Malformed(
        "metadata-width",
        "metadata_storage_width: 16\n",
        "metadata_storage_width: 16\n          metadata_datawidth: 3\n",
        "metadata_storage_width: 16",
        f"{GLB}.attributes.metadata_storage_width",
        "metadata row width 16 is not a multiple of metadata word bits 3",
        "change one",
    ),
    Malformed(
        "instances-do-not-divide",
        "attributes: {datawidth: 8}",
        "attributes: {datawidth: 8, instances: 6}",
        "class: intmac",
        f"{MAC}.class",
        '"Mac" has 6 instances (meshX 6), the level above it "Spad" has 4 (meshX 4), and 4 does not divide 6',
        'make meshX of "Mac" a multiple of that of "Spad"',
    ),
    Malformed(
        "mesh",
        "attributes: {datawidth: 8}",
        "attributes: {datawidth: 8, meshX: 8, meshY: 2}",
        "meshX: 8",
        f"{MAC}.attributes.meshX",
        '"Mac" has 4 instances, which do not form a mesh with meshX 8 and meshY 2',
        "meshX x meshY",
    ),
    Malformed(
        "two-computes",
        MAC_NAME,
        f"        - {{name: Adder, class: compute}}\n{MAC_NAME}",
        "Adder",
        f"{MAC}.class",
        'two compute components, "Adder" and "Mac"',
        "keep the one",
    ),
    Malformed(
        "explicit-network",
        MAC_NAME,
        f"        - {{name: noc, class: XY_NoC}}\n{MAC_NAME}",
        "XY_NoC",
        f"{MAC}.class",
        '"noc" is an explicit network of class "XY_NoC"',
        "a network is inferred",
    ),
    Malformed(
        "range",
        "PE[0..3]",
        "PE[0..n-1]",
        "PE[",
        "architecture.subtree[0].subtree[0].subtree[0].name",
        '"PE[0..n-1]" is not [first..last]',
        "two whole numbers",
    ),
    Malformed(
        "branches",
        "          attributes: {datawidth: 8}\n",
        "          attributes: {datawidth: 8}\n      - name: other\n",
        "      subtree:",
        "architecture.subtree[0].subtree[0].subtree",
        "holds 2 nodes",
        "one node per subtree",
    ),
]


@malformed(MALFORMED)
def test_malformed(case: Malformed):
    check("arch.yaml", case)


def storage(attributes: str, class_name: str = "SRAM", name: str = "Glb") -> Storage:
    """The level that Glb becomes with other attributes."""
    old = edited()["arch.yaml"]
    start = old.index("      - name: Glb")
    end = old.index("      subtree:\n      - name: PE")
    component = f"      - {{name: '{name}', class: {class_name}, attributes: {{{attributes}}}}}\n"
    texts = edited(("arch.yaml", old[start:end], component))
    del texts["sparse.yaml"]
    return read_texts(texts).architecture.levels[1]


SPELLINGS = [
    ("word_bits", 4, ["word-bits: 4", "word_bits: 4", "word_width: 4", "datawidth: 4", "word-width: '4'"]),
    ("block_size", 2, ["block-size: 2", "block_size: 2", "n_words: 2", "width: 32", "width: 64, cluster-size: 2"]),
    ("cluster_size", 2, ["cluster-size: 2", "cluster_size: 2", "width: 64, block-size: 2"]),
    ("multiple_buffering", 2.0, ["multiple-buffering: 2", "multiple_buffering: 2.0"]),
    ("min_utilization", 0.5, ["min-utilization: 0.5", "min_utilization: .5"]),
    ("read_bandwidth", 2.5, ["read_bandwidth: 2.5", "read-bandwidth: 25e-1"]),
    ("reduction_supported", False, ["reduction_supported: no", "reduction-supported: FALSE"]),
    ("vector_access_energy", 3.0, ["vector-access-energy: 3", "vector_access_energy: 3"]),
    ("address_energy", 0.25, ["addr-gen-energy: 0.25"]),
    ("address_energy", None, ["addr-gen-energy: -0.1"]),
    ("area", 5.0, ["cluster-area: 10, cluster-size: 2"]),
    (
        "network",
        Network(16, 0.1, 0.2, 0.3, 0.4, 5, 6),
        [
            "router-energy: 0.1, wire-energy: 0.2, tile-width: 0.3, energy-per-hop: 0.4, network_fill_latency: 5,"
            " network_drain_latency: 6"
        ],
    ),
    ("network", Network(8), ["network-word-bits: 8"]),
    (
        "metadata",
        Metadata(2, 3, 12, 9),
        [
            "metadata_datawidth: 2, metadata_block_size: 3, metadata_storage_width: 12, metadata_storage_depth: 9",
            "metadata_word_bits: 2, metadata_block_size: 3, metadata_width: 12, metadata_depth: 9",
        ],
    ),
]


@pytest.mark.parametrize(
    "field, value, attributes",
    [pytest.param(field, value, text, id=text) for field, value, texts in SPELLINGS for text in texts],
)
def test_spellings(field: str, value: object, attributes: str):
    assert getattr(storage(f"entries: 64, {attributes}"), field) == value


@pytest.mark.parametrize(
    "attributes, size",
    [
        ("entries: 40", 40),
        ("entries: 0, depth: 0", 0),
        ("depth: 8, block-size: 4", 32),
        ("memory_depth: 8, memory_width: 64", 32),
        ("data_storage_depth: 8, width: 64, cluster-size: 2", 16),
        ("sizeKB: 4194304, word-bits: 8", 4194304 * 1024),
        ("sizeKB: 1, word-bits: 24", 341),
    ],
)
def test_size(attributes: str, size: int):
    assert storage(attributes).size == size


def test_dram_may_be_unlimited_and_does_not_reduce_by_default():
    for level in (storage("word-bits: 8", "LPDRAM"), storage("technology: DRAM")):
        assert (level.technology, level.size, level.reduction_supported) == ("DRAM", None, False)


def test_deprecated_bandwidth_is_halved_unless_overridden():
    level = storage("entries: 64, bandwidth: 8, write_bandwidth: 1")
    assert (level.read_bandwidth, level.write_bandwidth, level.shared_bandwidth) == (4.0, 1.0, None)


def test_ranges_multiply_and_instances_override():
    architecture = read_texts(edited()).architecture
    assert [level.name for level in architecture.levels] == ["Spad", "Glb", "Main"]
    assert [architecture.compute.instances, *(level.instances for level in architecture.levels)] == [4, 4, 1, 1]
    texts = edited(
        ("arch.yaml", "- name: Spad\n", "- name: Spad[1..2]\n"),
        ("arch.yaml", "attributes: {datawidth: 8}", "attributes: {datawidth: 8, instances: 16, meshY: 2}"),
    )
    architecture = read_texts(texts).architecture
    assert (architecture.levels[0].mesh_x, architecture.levels[0].mesh_y) == (8, 1)
    assert (architecture.compute.mesh_x, architecture.compute.mesh_y) == (8, 2)
    assert architecture.fanout(0) == (1, 2)


@pytest.mark.parametrize(
    "old, new, message, remedy",
    [
        (DEPTH, f"{DEPTH}          read_bandwith: 1\n", '"read_bandwith" of "Glb" is not known', '"read_bandwidth"'),
        (DEPTH, f"{DEPTH}          skip_zero: 1\n          foo: 2\n", "does not use: skip_zero, foo", ""),
        (DEPTH, f"{DEPTH}          memory_depth: 9\n", '"memory_depth: 9" is not used because "depth: 64"', "keep one"),
        (DEPTH, f"{DEPTH}          bandwidth: 4\n", "`bandwidth` is deprecated and read as 2 words", "read_bandwidth"),
        (MAC_NAME, f"        - {{name: r, class: reg}}\n{MAC_NAME}", 'unknown class "reg"', "belongs in `subclass`"),
        ("  - name: system\n", "  - name: system\n    attributes: {datawidth: 8}\n", "not inherited", "each component"),
        ("  version: 0.3\n", "  version: 0.3\n  local: []\n", "directly below `architecture`", "subtree node"),
    ],
)
def test_warnings(old: str, new: str, message: str, remedy: str):
    (warning,) = read_texts(edited(("arch.yaml", old, new))).warnings
    assert message in warning.message
    assert remedy in warning.remedy
    assert (warning.place.file, warning.place.line > 0) == ("arch.yaml", True)


def test_estimator_attributes_are_silent():
    quiet = f"{DEPTH}          technology: 45nm\n          n_rdwr_ports: 2\n          latency: 1ns\n"
    assert read_texts(edited(("arch.yaml", DEPTH, quiet))).warnings == ()


FLAT = """\
arch:
  arithmetic: {name: Mac, instances: 4, word-bits: 8, energy: 0.5}
  storage:
  - {name: Spad, entries: 64, instances: 4, word-bits: 8, metadata_storage_width: 8}
  - {name: Glb, sizeKB: 1, meshX: 1, meshY: 1, word-bits: 8, width: 64, metadata_storage_width: 16}
  - {name: Main, technology: DRAM, instances: 1, word-bits: 8, width: 64, block-size: 8}
"""


def test_flat_dialect():
    design = read_texts(edited() | {"arch.yaml": FLAT})
    assert [level.name for level in design.architecture.levels] == ["Spad", "Glb", "Main"]
    assert [level.size for level in design.architecture.levels] == [64, 1024, None]
    assert design.architecture.compute.energy == 0.5
    assert design.architecture.fanout(1) == (4, 1)
    assert design.nest == read_texts(edited()).nest


FLAT_MALFORMED = [
    Malformed(
        "instances",
        "instances: 4, word-bits: 8, energy",
        "energy",
        "arithmetic",
        "arch.arithmetic",
        '"Mac" does not say how many instances',
        "instances",
    ),
    Malformed("size", "sizeKB: 1, ", "", "Glb", "arch.storage[1]", 'level "Glb" has no size', "DRAM"),
    Malformed("name", "{name: Main, ", "{", "technology", "arch.storage[2]", "a storage level has no name", "name"),
    Malformed("typo", "entries: 64", "entries: x", "Spad", "arch.storage[0].entries", '"x" is not', "whole number"),
]


@malformed(FLAT_MALFORMED)
def test_flat_malformed(case: Malformed):
    mapping = "mapping: []\n"
    texts = {"arch.yaml": FLAT, "problem.yaml": edited()["problem.yaml"], "mapping.yaml": mapping}
    check("arch.yaml", case, texts)
