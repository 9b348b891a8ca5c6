"""How often the kernel is traced and compiled: once per size class and conventions, whatever the numbers."""

import random
from collections.abc import Iterator
from dataclasses import replace

import jax
import numpy as np
import pytest

import jaxloop as jl
from jaxloop.lower import lower
from jaxloop.run.batch import compilations
from tests.helpers import fixed_design, random_mapping, random_mappings, stacked
from tests.strategies import random_design

BACKEND_COMPILE = "/jax/core/compile/backend_compile_duration"
TRACE = "/jax/core/compile/jaxpr_trace_duration"


@pytest.fixture
def events() -> Iterator[list[str]]:
    """Traces and compilations that JAX reports, of whatever function."""
    seen: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event in (BACKEND_COMPILE, TRACE):
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


def since(before: dict[str, int]) -> dict[str, int]:
    return {kind: count - before[kind] for kind, count in compilations().items()}


def test_events_are_seen(events: list[str]):
    """Else the tests below would find nothing whatever happens."""
    jax.jit(lambda x: x * 3.0 + len(events))(np.ones(7))
    assert BACKEND_COMPILE in events and TRACE in events


def test_a_thousand_mappings_are_one_trace(events: list[str]):
    """One after the other, with and without links. Conventions that no other test has, so that nothing is there yet."""
    conventions = jl.Conventions(first_read_elision=False, whole_blocks=False)
    design, rng, before = fixed_design("conv1d", 3), random.Random(2), compilations()
    energies = []
    for count in range(1000):
        if count == 50:
            assert since(before) == {"closed_form": 1, "enumerating": 1}
            events.clear()
        mapping = random_mapping(design, rng)
        energies.append(float(jl.evaluate(design, mappings=mapping, conventions=conventions).energy_pj))
    assert since(before) == {"closed_form": 1, "enumerating": 1}
    assert events == []
    assert len(set(energies)) > 500


def test_hardware_and_sizes_add_none(events: list[str]):
    design = fixed_design("conv1d", 3)
    level = design.architecture.levels[0].name
    jl.evaluate(design)
    events.clear()
    before = compilations()
    for value in range(1, 30):
        hardware = {f"{level}.size": value, f"{level}.read_energy": 0.5 * value, "MAC.energy": np.float32(value)}
        jl.evaluate(design, hardware=hardware)
        jl.evaluate(design, sizes={"P": value, "C": np.int64(2)})
    assert since(before) == {"closed_form": 0, "enumerating": 0}
    assert events == []


def test_designs_of_one_size_class_add_none():
    """Different workloads, levels, fan-outs, tables: twenty designs, one executable of each kind."""
    rng = random.Random(3)
    designs = [random_design(rng, kind, max_fanout=8) for kind in ("matmul", "batched_matmul", "matvec") * 7][:20]
    conventions = jl.Conventions(first_read_elision=False)
    assert len({lower(design, conventions).program.structure for design in designs}) == 1
    assert len({(design.einsum.name, len(design.architecture.levels)) for design in designs}) > 5
    before = compilations()
    for design in designs:
        jl.evaluate(design, conventions=conventions)
    added = since(before)
    assert added["closed_form"] == 1 and added["enumerating"] <= 1


def test_batches_of_one_size_are_one_trace(events: list[str]):
    """Other mappings, other hardware, other order of the same axes."""
    design = fixed_design("matmul", 3)
    name = design.architecture.levels[0].name
    batches = [stacked(random_mappings(design, 6, seed), *shape) for seed, shape in enumerate([(6,), (2, 3), (6, 1)])]
    jl.evaluate(design, mappings=batches[0], hardware={f"{name}.size": 100.0}, fields=("energy_pj",))
    before = compilations()["closed_form"]
    for count, batch in enumerate(batches):
        jl.evaluate(design, mappings=batch, hardware={f"{name}.size": 100.0 + count}, fields=("energy_pj",))
    assert compilations()["closed_form"] == before


def test_what_changes_the_graph_adds_one():
    """The count does count: other conventions are another executable."""
    design, before = fixed_design("matmul", 3), compilations()
    jl.evaluate(design, conventions=replace(jl.SMOOTH, whole_cycles=True))
    jl.evaluate(design, conventions=replace(jl.SMOOTH, whole_cycles=True))
    assert since(before) == {"closed_form": 1, "enumerating": 0}
