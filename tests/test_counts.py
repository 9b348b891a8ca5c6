"""How often the kernel is traced and compiled: once per size class and conventions, whatever the numbers."""

import random
from collections.abc import Iterator
from dataclasses import replace

import jax
import numpy as np
import pytest

import jaxloop as jl
from jaxloop.lower import lower, lower_mapping
from jaxloop.program import RANK_FORMATS, SAF_KINDS, SparseProgram
from jaxloop.run.batch import evaluate_one
from jaxloop.run.executables import compilations
from jaxloop.spec.sparse import ActionKind
from tests.golden.compare import files_of, read_cases
from tests.golden.sample import DATA, SHARES, file_of
from tests.helpers import fixed_design, random_mapping, random_mappings, stacked
from tests.sparse_examples import EXAMPLES
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
    return {
        kind: count - before[kind] for kind, count in compilations().items() if kind in ("closed_form", "enumerating")
    }


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


def choices(sparse: SparseProgram, numbers: np.random.Generator, tensors: int) -> SparseProgram:
    """Other densities, formats and SAFs."""
    kinds = [SAF_KINDS[kind] for kind in (ActionKind.GATING, ActionKind.SKIPPING)]
    formats = numbers.choice([*RANK_FORMATS.values()], np.shape(sparse.rank_format))
    mask = numbers.integers(0, 2, (3, *np.shape(sparse.saf_leaders)))
    return replace(
        sparse,
        density=numbers.random(np.shape(sparse.density)),
        rank_format=np.where(np.asarray(sparse.rank_format) > 0, formats, 0).astype(np.int32),
        saf_kind=numbers.choice([0, *kinds], np.shape(sparse.saf_kind)).astype(np.int32),
        saf_level=numbers.integers(0, 2, np.shape(sparse.saf_level)).astype(np.int32),
        saf_target=numbers.integers(-1, tensors, np.shape(sparse.saf_target)).astype(np.int32),
        saf_leaders=mask[0].astype(float),
        compute_gating=numbers.integers(0, 2, ()).astype(float),
        compute_skipping=numbers.integers(0, 2, ()).astype(float),
    )


def test_a_thousand_sparse_designs_are_one_trace(events: list[str]):
    """One after the other: densities, formats, gating and skipping are numbers."""
    design, numbers = jl.loads(EXAMPLES["6 hierarchical"].texts()), np.random.default_rng(4)
    program = lower(design, jl.TIMELOOP_2022).program
    assert design.nest is not None and program.sparse is not None
    mapping = lower_mapping(design.nest, design.einsum, program.structure)
    before, energies = compilations(), []
    for count in range(1000):
        if count == 1:
            assert since(before)["closed_form"] <= 1  # none where another test was here before
            events.clear()
        other = replace(program, sparse=choices(program.sparse, numbers, len(design.einsum.tensors)))
        energies.append(float(evaluate_one(other, mapping, np.dtype(np.float64)).energy_pj))
    assert events == []
    assert len(set(energies)) > 900


def test_sweeps_of_sparse_designs_add_none(events: list[str]):
    """Densities and what sparse accelerators have beside dense ones, at the front door."""
    design = jl.loads(EXAMPLES["6 hierarchical"].texts())
    jl.evaluate(design)
    events.clear()
    for value in np.linspace(0.0, 0.99, 20):
        jl.evaluate(design, densities={"A": value, "B": 1.0 - value}, hardware={"MAC.skipped_energy": value})
        jl.evaluate(design, hardware={"Buffer.metadata_width": 8.0 + value, "Backing.gated_read_energy": value})
    assert events == []


def test_few_size_classes_hold_the_golden_cases():
    """Of all profiles, dense and sparse. Beside an executable for each there are those that enumerate children, two in
    all (`tests/golden` counts what is really compiled)."""
    designs = [jl.loads(files_of(case)) for name in SHARES for case in read_cases(DATA / file_of(name))]
    structures = {lower(design, jl.TIMELOOP_2022).program.structure for design in designs}
    assert len(designs) > 400 and {structure.sparse is None for structure in structures} == {True, False}
    assert len(structures) <= 6
