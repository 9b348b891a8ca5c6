"""Architectures: malformed ones, and what each spelling of a quantity becomes."""

import pytest

from jaxloop import Design
from jaxloop.frontend import read_texts
from jaxloop.spec.architecture import Metadata, Storage
from tests.frontend.base import TEXTS, Malformed, check, edited, malformed

GLB = "architecture.subtree[0].subtree[0].local[0]"
SPAD = "architecture.subtree[0].subtree[0].subtree[0].local[0]"
MAC = "architecture.subtree[0].subtree[0].subtree[0].local[1]"
DEPTH = "          depth: 64\n"
MAC_ATTRIBUTES = "attributes: {datawidth: 8}"


def glb(name: str, line: str, message: str, remedy: str) -> Malformed:
    """One more attribute of Glb, which is wrong by itself."""
    key = line.partition(":")[0]
    return Malformed(name, DEPTH, f"{DEPTH}          {line}\n", line, f"{GLB}.attributes.{key}", message, remedy)


MALFORMED = [
    Malformed("version", "version: 0.3", "version: 0.7", "0.7", "architecture.version", '"0.7" is unsupported', "0.3"),
    Malformed("no-version", "  version: 0.3\n", "", "  subtree", "architecture", "version is missing", "version: 0.3"),
    Malformed("v04", "version: 0.3", "version: 0.4", "0.4", "architecture.version", "v0.4 dialect", "v0.3 tree"),
    Malformed("v04-nodes", "  subtree:\n  - name: system", "  nodes:\n  - name: system", "nodes", "architecture.nodes",
              "`nodes:` marks the v0.4 dialect", "v0.3 tree"),
    Malformed("v04-tag", "- name: Glb\n", "- !Component\n        name: Glb\n", "!Component", GLB,
              '"!Component" marks the v0.4 dialect', "v0.3 tree"),
    Malformed("accelforge", "- name: Glb\n", "- !Memory\n        name: Glb\n", "!Memory", GLB,
              '"!Memory" belongs to an architecture of AccelForge', "Timeloop v0.3"),
    Malformed("no-size", DEPTH, "", "width: 64\n", f"{GLB}.attributes", 'level "Glb" has no size', "DRAM"),
    glb("bandwidth-0", "read_bandwidth: 0", '"0" is not a number above 0', "leave the key out"),
    glb("bandwidth-negative", "shared_bandwidth: -1", '"-1" is not a number above 0', "leave the key out"),
    glb("two-sizes", "sizeKB: 1", 'level "Glb" gives its size as sizeKB and as depth', "keep one"),
    glb("network-key", "network_read: noc", "explicit networks are not modeled", "remove the key"),
    glb("network-type", "network-type: M:N", 'network type "M:N"', "1:1, 1:N"),
    glb("partition", "tile_partition_supported: true", "partitioned tiles are not modeled", "remove the key"),
    glb("overbooking", "allow_overbooking: yes", "overbooking is not modeled", "remove the key"),
    glb("two-spellings", "block_size: 8", '"block-size" and "block_size" are the same key', "keep one")
    if False
    else glb("ports", "n_ports: 3", 'level "Glb" has 3 ports', "1 or 2"),
]
