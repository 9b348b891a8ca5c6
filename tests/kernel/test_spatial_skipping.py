"""Spatial skipping (spec/sparse.md 3.5): the kernel against the plain-Python oracle, a worked example, laws."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.spec.architecture import Architecture
from jaxloop.spec.density import Density, Distribution
from jaxloop.spec.sparse import ActionKind, ActionOptimization, Intersection, SparseTarget
from tests.kernel.test_against_oracle import check
from tests.kernel.test_gradients import gradients, lowered
from tests.sparse_examples import BACKING, BUFFER, A, B, Example, Z
from tests.sparse_strategies import random_sparse_design

WORKED = Example(
    backing="M4 K2;KMN",
    spatial="K4",
    buffer="N4",
    densities={"A": "fixed-structured 0.5"},
    formats={("Backing", "A"): "UOP UOP CP", ("Buffer", "A"): "CP"},
    actions={"Backing": ("skipping-spatial B<-A", "skipping-spatial Z<-A")},
    elements=2,
)
"""The fan-out K4 hands out single elements of A, half of which are zero: 2 of 4 processing elements are needed. B moves
with the next loop K2, so that a child's tile of B meets one element of A at a time."""


def narrowed(rng: random.Random, architecture: Architecture) -> Architecture:
    """Half as many children along some axes; a level with one child has no fan-out to the reference."""
    levels, compute = list(architecture.levels), architecture.compute
    for s in range(len(levels)):
        for axis, mesh in enumerate(("mesh_x", "mesh_y")):
            children = Architecture(compute, tuple(levels)).fanout(s)[axis]
            if children % 2 or children == 2 or rng.random() < 0.5:
                continue
            levels[:s] = [replace(level, **{mesh: getattr(level, mesh) // 2}, cluster_size=1) for level in levels[:s]]
            compute = replace(compute, **{mesh: getattr(compute, mesh) // 2})
    return replace(architecture, levels=tuple(levels), compute=compute)


def with_spatial_skipping(rng: random.Random, design: jl.Design) -> jl.Design | None:
    """The design with spatial directives at levels with a fan-out; None without such a level."""
    assert design.nest is not None
    names = [tensor.name for tensor in design.einsum.tensors]
    targets = {target.level: target for target in design.sparse.targets}
    conditions, found = set(), False
    for s, nest in enumerate(design.nest.levels):
        if not any(loop.bound > 1 for loop in (*nest.spatial_x, *nest.spatial_y)):
            continue
        own, groups = targets.get(nest.level, SparseTarget(nest.level)), []
        taken = {option.target for group in own.actions for option in group.options}
        with_metadata = [form.tensor for target in design.sparse.targets for form in target.formats]
        stored = {name for outer in design.nest.levels[s:] for name in outer.keep}
        for target in rng.sample(names, rng.choice((1, 2, 3))):
            if rng.random() < (0.05 if target in taken or target not in stored else 1.0):
                likely = [name for name in names if name != target and name in with_metadata]
                condition = rng.choice(likely or [name for name in names if name != target])
                conditions.add(condition)
                option = Intersection(target, (condition,))
                groups.append(ActionOptimization(ActionKind.SPATIAL_SKIPPING, (option,)))
        found = found or bool(groups)
        targets[nest.level] = replace(own, actions=(*own.actions, *groups))
    densities = dict(design.densities)
    for name in conditions:
        if rng.random() < 0.6:
            densities[name] = Density(Distribution.FIXED_STRUCTURED, rng.choice((0.125, 0.25, 1 / 3, 0.5, 0.75)))
    architecture = narrowed(rng, design.architecture) if rng.random() < 0.4 else design.architecture
    sparse = replace(design.sparse, targets=tuple(targets.values()))
    return replace(design, sparse=sparse, densities=densities, architecture=architecture) if found else None


def draw(seed: int, family: str, count: int) -> list[jl.Design]:
    rng = random.Random(f"spatial {family} {seed}")
    found: list[jl.Design] = []
    while len(found) < count:
        design = with_spatial_skipping(rng, random_sparse_design(rng, family))
        found += [design] if design is not None else []
    return found


def outcomes(designs: list[jl.Design]) -> Counter[str]:
    """How many are equal, refused by both or undefined; none is different."""
    verdicts = [check(design) for design in designs]
    assert [found for found in enumerate(verdicts) if found[1].outcome == "different"] == []
    return Counter(verdict.outcome for verdict in verdicts)


@pytest.mark.parametrize(("family", "least"), [("plain", 0.4), ("windows", 0.25)])
def test_equals_the_oracle(family: str, least: float):
    assert outcomes(draw(1, family, 200))["equal"] >= 200 * least


@pytest.mark.slow
@pytest.mark.parametrize("family", ["plain", "flattened", "banded", "windows"])
def test_long_sweep(family: str):
    assert outcomes(draw(2, family, 1500))["equal"] >= 300


def test_worked_example():
    """4 x 4 x 8 operations on 4 processing elements in the mapping, 2 in the hardware."""
    found = WORKED.evaluate()
    assert found.reasons == []
    assert (found.compute_x, found.compute_y, found.compute_instances) == (2.0, 1.0, 2.0)
    assert found.computes == 128.0 and found.computes_by_fate.tolist() == [64.0, 0.0, 0.0]
    assert found.compute_cycles == 32.0 and found.utilization == 1.0
    np.testing.assert_array_equal(found.instances[BUFFER], [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(found.clusters[BUFFER], [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(found.saf_kind, [[0, 0, 0], [0, 3, 3]])
    np.testing.assert_array_equal(found.saf_chance[BACKING], [0.0, 0.5, 0.5])
    # nothing is removed at the level of the directive, half of what remains is at the level below
    np.testing.assert_array_equal(found.accesses[0, 0, BACKING, B], found.reads[BACKING, B])
    np.testing.assert_array_equal(found.accesses[0, :, BUFFER, B], 0.5 * np.array([32.0, found.fills[BUFFER, B], 0.0]))
    np.testing.assert_array_equal(found.accesses[0, 2, BUFFER, Z], 16.0)
    # A itself is compressed: a child has every element that it needs
    assert found.expected_density[BUFFER, A] == 1.0 and found.accesses[0, 0, BUFFER, A] == found.reads[BUFFER, A]
    # per instance 16 reads of 10 pJ and half of the fills of 12 pJ, on 2 instances
    assert found.energy_pj_by_tensor[BUFFER, B] == 2.0 * (16.0 * 10.0 + 0.5 * found.fills[BUFFER, B] * 12.0)


def test_a_tile_that_stays_must_be_useless_all_the_time():
    """With the loop M4 inside K2, a child's tile of B meets four elements of A, which are not all zero."""
    found = replace(WORKED, backing="M4 K2;MKN").evaluate()
    np.testing.assert_array_equal(found.saf_chance[BACKING], [0.0, 0.0, 0.5])
    assert found.reasons[0] == "couldn't map level Buffer: Required fanoutX 4 does not meet hardware constraint 2"
    assert jl.Status.OVER_FAN_OUT in jl.Status(int(found.status))


def test_a_condition_without_metadata_has_no_effect():
    found = replace(WORKED, formats={}, elements=4).evaluate()
    assert found.valid and found.compute_x == 4.0 and found.saf_chance.max() == 0.0


def test_more_must_exist_than_are_busy_on_average():
    """A uniformly random tensor may be full anywhere. As in the reference the average then says nothing of the levels
    further in; the smooth reading keeps it."""
    example = replace(WORKED, densities={"A": "hypergeometric 0.5"}, elements=4)
    found, smooth = (jl.evaluate(jl.loads(example.texts()), conventions=c) for c in (jl.TIMELOOP_2022, jl.SMOOTH))
    assert found.valid and smooth.valid
    assert found.compute_x == smooth.compute_x == 4.0
    assert (found.compute_instances, smooth.compute_instances) == (4.0, 2.0)
    assert (found.compute_cycles, smooth.compute_cycles) == (16.0, 32.0)
    np.testing.assert_allclose(smooth.instances[BUFFER], [2.0, 2.0, 2.0])


def test_the_average_number_of_units_is_truncated():
    """0.49 of 4 x 2 units; whole ones must exist."""
    example = replace(
        WORKED, spatial="K4 M2;KMN", backing="M2 K2;KMN", densities={"A": "fixed-structured 0.49"}, elements=8
    )
    design = jl.loads(example.texts())
    found, paper = (jl.evaluate(design, conventions=c) for c in (jl.TIMELOOP_2022, jl.MICRO22))
    assert (found.compute_x, paper.compute_x) == (4.0, 4.0)
    assert found.compute_instances == 3.0 and paper.compute_instances == pytest.approx(8 * 0.49)
    left = 128.0 - np.floor(128.0 * 0.51)
    assert (found.compute_cycles, paper.compute_cycles) == (np.ceil(left / 3.0), np.ceil(left / (8 * 0.49)))


@pytest.mark.parametrize(
    ("actions", "density", "elements", "bit", "reason"),
    [
        (WORKED.actions["Backing"], "fixed-structured 0.75", 2, jl.Status.OVER_FAN_OUT, "Required fanoutX 3 does not"),
        (("skipping-spatial B<-A",), "fixed-structured 0.5", 2, jl.Status.OVER_FAN_OUT, "Required fanoutX 4 does not"),
        (
            ("skipping-spatial B<-A", "gating B<-A"),
            *("fixed-structured 1.0", 4, jl.Status.MIXED_SAFS),
            "one level does both spatial skipping and gating or skipping",
        ),
    ],
)
def test_refusals(actions: tuple[str, ...], density: str, elements: int, bit: jl.Status, reason: str):
    example = replace(WORKED, actions={"Backing": actions}, densities={"A": density}, elements=elements)
    found = example.evaluate()
    assert bit in jl.Status(int(found.status)) and reason in found.reasons[0]


@pytest.mark.parametrize("actions", [("skipping-spatial B<-AZ",), ("skipping-spatial B<-A", "skipping-spatial B<-Z")])
def test_one_condition_per_target(actions: tuple[str, ...]):
    example = replace(WORKED, actions={"Backing": actions})
    with pytest.raises(jl.SpecError, match=r'takes one condition, tensor "B" at level "Backing" has 2 \(A, Z\)'):
        example.evaluate()


@pytest.mark.slow
def test_dense_conditions_change_nothing():
    """But for quirk Q3, which looks for a SAF and not for its chance."""
    conventions = replace(jl.TIMELOOP_2022, update_counts_for_metadata_reads=False)
    fields = (
        "cycles",
        "energy_pj",
        "compute_cycles",
        "instances",
        "clusters",
        "accesses",
        "metadata_accesses",
        "status",
    )
    compared = 0
    for design in draw(3, "plain", 60):
        full = replace(design, densities={})
        targets = tuple(
            replace(t, actions=tuple(group for group in t.actions if group.kind is not ActionKind.SPATIAL_SKIPPING))
            for t in full.sparse.targets
        )
        without = replace(full, sparse=replace(full.sparse, targets=targets))
        ours, plain = (jl.evaluate(d, conventions=conventions) for d in (full, without))
        if ours.valid and without.sparse.has_effect:
            compared += 1
            for field in fields:
                np.testing.assert_array_equal(getattr(ours, field), getattr(plain, field), err_msg=field)
    assert compared >= 20


@pytest.mark.parametrize("conventions", [jl.TIMELOOP_2022, jl.MICRO22, jl.SMOOTH], ids=["2022", "micro22", "smooth"])
def test_a_wider_fan_out_is_never_slower(conventions: jl.Conventions):
    """Of the same hardware, and of the same density."""
    cycles = []
    for fan, steps in ((1, 8), (2, 4), (4, 2), (8, 1)):
        example = replace(WORKED, spatial=f"K{fan}", backing=f"M4 K{steps};KMN", elements=8)
        found = jl.evaluate(jl.loads(example.texts()), conventions=conventions)
        assert found.valid
        cycles.append(float(found.cycles))
    assert cycles == sorted(cycles, reverse=True) and cycles[-1] < cycles[1]


def test_sparser_conditions_need_fewer_children():
    """A batch over densities equals its members, and expansions, work and energy grow with the density."""
    design, shares = jl.loads(replace(WORKED, elements=4).texts()), np.array([0.25, 0.3, 0.5, 0.75, 1.0])
    lanes = jl.evaluate(design, densities={"A": shares})
    for index, share in enumerate(shares):
        single = jl.evaluate(replace(design, densities={"A": Density(Distribution.FIXED_STRUCTURED, float(share))}))
        for field in ("compute_x", "compute_instances", "compute_cycles", "energy_pj", "instances", "status"):
            np.testing.assert_array_equal(getattr(lanes, field)[index], getattr(single, field), err_msg=field)
    np.testing.assert_array_equal(lanes.compute_x, [1.0, 2.0, 2.0, 3.0, 4.0])
    assert (np.diff(lanes.energy_pj) > 0.0).all() and (np.diff(lanes.computes_by_fate[:, 0]) > 0.0).all()


@pytest.mark.slow
def test_gradients_are_finite():
    found = gradients(lowered(jl.loads(WORKED.texts())))
    for output, leaves in found.items():
        for name, leaf in leaves.items():
            for array in [leaf] if isinstance(leaf, np.ndarray) else vars(leaf).values():
                assert array is None or not isinstance(array, np.ndarray) or np.isfinite(array).all(), (output, name)
