"""Random designs, written as YAML and read back: nothing is lost, in either dialect of architectures."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from jaxloop import Design, LevelNest, Loop
from jaxloop.frontend import read_texts
from jaxloop.spec.architecture import Architecture, Storage
from jaxloop.spec.einsum import Einsum, Term
from tests.strategies import designs


def written_storage(level: Storage) -> dict[str, Any]:
    network = level.network
    attributes = {
        "technology": level.technology,
        "word-bits": level.word_bits,
        "block_size": level.block_size,
        "cluster-size": level.cluster_size,
        "entries": level.size,
        "multiple-buffering": level.multiple_buffering,
        "min_utilization": level.min_utilization,
        "meshX": level.mesh_x,
        "meshY": level.mesh_y,
        "instances": level.instances,
        "read_bandwidth": level.read_bandwidth,
        "write-bandwidth": level.write_bandwidth,
        "shared_bandwidth": level.shared_bandwidth,
        "reduction_supported": level.reduction_supported,
        "vector-access-energy": level.vector_access_energy,
        "addr-gen-energy": level.address_energy,
        "cluster-area": None if level.area is None else level.area * level.cluster_size,
        "network-word-bits": network.word_bits,
        "router-energy": network.router_energy,
        "wire_energy": network.wire_energy,
        "tile-width": network.tile_width,
        "energy-per-hop": network.energy_per_hop,
        "network_fill_latency": network.fill_latency,
        "network_drain_latency": network.drain_latency,
    }
    return {key: value for key, value in attributes.items() if value is not None}


def written_compute(architecture: Architecture) -> dict[str, Any]:
    compute = architecture.compute
    attributes = {
        "instances": compute.instances,
        "meshX": compute.mesh_x,
        "datawidth": compute.word_bits,
        "energy": compute.energy,
        "area": compute.area,
    }
    return {key: value for key, value in attributes.items() if value is not None}


def written_architecture(architecture: Architecture, dialect: str) -> dict[str, Any]:
    compute = written_compute(architecture)
    if dialect == "flat":
        storage = [{"name": level.name, **written_storage(level)} for level in architecture.levels]
        return {"arch": {"arithmetic": {"name": architecture.compute.name, **compute}, "storage": storage}}
    local = [
        {"name": level.name, "class": "storage", "attributes": written_storage(level)}
        for level in reversed(architecture.levels)
    ]
    local.append({"name": architecture.compute.name, "class": "compute", "attributes": compute})
    return {"architecture": {"version": 0.3, "subtree": [{"name": "system", "local": local}]}}


def written_problem(einsum: Einsum) -> dict[str, Any]:
    def term(term: Term) -> list[str]:
        return [term.rank, term.name] if term.name else [term.rank]

    terms = [term for tensor in einsum.tensors for axis in tensor.axes for term in axis.terms]
    coefficients = {term.name: term.coefficient for term in terms if term.name}
    shape = {
        "name": einsum.name,
        "dimensions": list(einsum.ranks),
        "coefficients": [{"name": name, "default": 0} for name in coefficients],
        "data-spaces": [
            {
                "name": tensor.name,
                "projection": [[term(t) for t in axis.terms] for axis in tensor.axes],
                "read-write": tensor.is_output,
            }
            for tensor in einsum.tensors
        ],
    }
    return {"problem": {"shape": shape, "instance": einsum.size_of | coefficients}}


def written_loops(target: str, kind: str, loops: tuple[Loop, ...]) -> dict[str, Any]:
    factors = " ".join(f"{loop.rank}={loop.bound}" for loop in loops)
    permutation = "".join(loop.rank for loop in loops)
    return {"target": target, "type": kind, "factors": factors, "permutation": permutation}


def written_mapping(design: Design) -> dict[str, Any]:
    directives: list[dict[str, Any]] = []
    assert design.nest is not None
    for index, level in enumerate(design.nest.levels):
        temporal = written_loops(level.level, "temporal", level.temporal)
        directives.append(temporal | {"no_temporal_reuse": list(level.no_temporal_reuse)})
        if design.architecture.fanout(index) != (1, 1):
            spatial = written_loops(level.level, "spatial", level.spatial_x + level.spatial_y)
            directives.append(
                spatial
                | {
                    "split": len(level.spatial_x),
                    "no_link_transfer": list(level.no_link_transfer),
                    "no_multicast_no_reduction": list(level.no_multicast),
                }
            )
        bypassed = [tensor.name for tensor in design.einsum.tensors if tensor.name not in level.keep]
        directives.append({"target": level.level, "type": "bypass", "keep": list(level.keep), "bypass": bypassed})
    return {"mapping": directives}


def written_energies(design: Design) -> dict[str, Any]:
    table = design.energy_table
    if table is None:
        return {}
    components = dict(table.components)
    if table.wire_energy is not None:
        components["wire"] = {"transfer_random": table.wire_energy}
    tables = [
        {"name": f"system.{name}[0..11]", "actions": [{"name": action, "energy": e} for action, e in actions.items()]}
        for name, actions in components.items()
    ]
    return {"ERT": {"version": 0.3, "tables": tables}}


def readable(design: Design) -> Design:
    """The design with what the files cannot say set to what the reader assumes: a level of SRAM has a size, and a
    level without fan-out has no spatial directive."""
    levels = tuple(
        replace(level, size=level.size if level.size is not None or level.technology == "DRAM" else 4096)
        for level in design.architecture.levels
    )
    assert design.nest is not None
    ones = tuple(Loop(rank, 1, 1) for rank in design.einsum.ranks)
    nests: list[LevelNest] = []
    for index, level in enumerate(design.nest.levels):
        if design.architecture.fanout(index) == (1, 1):
            level = replace(level, spatial_x=ones, spatial_y=(), no_link_transfer=(), no_multicast=())
        nests.append(level)
    return replace(
        design,
        architecture=replace(design.architecture, levels=levels),
        nest=replace(design.nest, levels=tuple(nests)),
        energy_table=None if design.energy_table is None else replace(design.energy_table, source="design.yaml"),
    )


@pytest.mark.parametrize("dialect", ["tree", "flat"])
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(designs(directives=0.2))
def test_round_trip(dialect: str, design: Design):
    design = readable(design)
    sections = (
        written_architecture(design.architecture, dialect)
        | written_problem(design.einsum)
        | written_mapping(design)
        | written_energies(design)
    )
    assert read_texts({"design.yaml": yaml.safe_dump(sections)}) == design
