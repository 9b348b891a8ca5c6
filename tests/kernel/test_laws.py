"""What must hold for any design: neutral elements of the description, linearity in prices, independence of names.

Designs come from few size classes, so that all examples share a handful of executables.
"""

import random
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jaxloop as jl
from jaxloop.lower import lower, lower_mapping
from jaxloop.run.batch import evaluate_one
from jaxloop.spec.architecture import Network, Storage
from jaxloop.spec.einsum import Axis, Einsum, Tensor, Term
from jaxloop.spec.mapping import LevelNest, Loop
from tests.helpers import assert_all_finite, assert_same_dict, edit_levels, fixed_design, random_mapping
from tests.strategies import designs

small_designs = designs(max_fanout=8, directives=0.1)
seeds = st.integers(0, 2**32 - 1)
examples = settings(max_examples=40)


def results(design: jl.Design, conventions: jl.Conventions = jl.TIMELOOP_2022) -> dict[str, Any]:
    return jl.evaluate(design, conventions=conventions).to_dict()


def _shuffled_idle(loops: tuple[Loop, ...], rng: random.Random) -> list[Loop]:
    """The loops of more than one iteration in their order, the others anywhere between them."""
    kept, idle = [loop for loop in loops if loop.bound > 1], [loop for loop in loops if loop.bound == 1]
    for loop in rng.sample(idle, len(idle)):
        kept.insert(rng.randint(0, len(kept)), loop)
    return kept


@examples
@given(small_designs, seeds)
def test_loops_of_one_iteration_change_nothing(design: jl.Design, seed: int):
    rng = random.Random(seed)

    def edit(_: int, level: LevelNest) -> LevelNest:
        moved = [loop for loop in level.spatial_x + level.spatial_y if loop.bound == 1]
        spatial = [tuple(loop for loop in loops if loop.bound > 1) for loops in (level.spatial_x, level.spatial_y)]
        split = rng.randint(0, len(moved))
        return replace(
            level,
            temporal=tuple(_shuffled_idle(level.temporal, rng)),
            spatial_x=tuple(_shuffled_idle((*spatial[0], *moved[:split]), rng)),
            spatial_y=tuple(_shuffled_idle((*spatial[1], *moved[split:]), rng)),
        )

    assert_same_dict(results(edit_levels(design, edit)), results(design))


def _with_rank(design: jl.Design, rank: str, position: int, rng: random.Random) -> jl.Design:
    """The design with one more rank of size 1 and a loop over it on every level."""
    einsum = design.einsum
    ranks, sizes = list(einsum.ranks), list(einsum.sizes)
    ranks.insert(position, rank)
    sizes.insert(position, 1)

    def edit(_: int, level: LevelNest) -> LevelNest:
        temporal = list(level.temporal)
        temporal.insert(rng.randint(0, len(temporal)), Loop(rank, 1, 1))
        return replace(level, temporal=tuple(temporal), spatial_y=(*level.spatial_y, Loop(rank, 1, 1)))

    return edit_levels(replace(design, einsum=replace(einsum, ranks=tuple(ranks), sizes=tuple(sizes))), edit)


def _with_axis(tensor: Tensor, axis: Axis, position: int) -> Tensor:
    return replace(tensor, axes=(*tensor.axes[:position], axis, *tensor.axes[position:]))


@examples
@given(designs("conv1d", max_fanout=8, directives=0.1), seeds, st.sampled_from(["unused", "own axis", "in an axis"]))
def test_rank_of_size_one_changes_nothing(design: jl.Design, seed: int, use: str):
    rng = random.Random(seed)
    wider = _with_rank(design, "X", rng.randint(0, 4), rng)
    weights, inputs, outputs = wider.einsum.tensors
    if use == "own axis":
        tensors = (*(_with_axis(t, Axis((Term("X", 3),)), rng.randint(0, 1)) for t in (weights, inputs)), outputs)
    elif use == "in an axis":
        terms = rng.sample((*outputs.axes[0].terms, Term("X", 2)), 2)
        tensors = (weights, inputs, replace(outputs, axes=(Axis(tuple(terms)), *outputs.axes[1:])))
    else:
        tensors = wider.einsum.tensors
    wider = replace(wider, einsum=replace(wider.einsum, tensors=tensors))
    assert_same_dict(results(wider), results(design))


def _with_unused_level(design: jl.Design, index: int, name: str) -> jl.Design:
    """The design with a level above `levels[index - 1]` that stores nothing and has no loops: as many instances as the
    level inside it, and a network that costs nothing."""
    assert design.nest is not None
    inner, nests = design.architecture.levels[index - 1], list(design.nest.levels)
    free = Network(energy_per_hop=0.0)
    level = Storage(name, mesh_x=inner.mesh_x, mesh_y=inner.mesh_y, vector_access_energy=7.0, network=free)
    ones = tuple(Loop(rank, 1, 1) for rank in design.einsum.ranks)
    nests.insert(index, LevelNest(name, ones, (), (), ()))
    levels = [*design.architecture.levels[:index], level, *design.architecture.levels[index:]]
    return replace(
        design,
        architecture=replace(design.architecture, levels=tuple(levels)),
        nest=jl.LoopNest(tuple(nests)),
    )


@examples
@given(designs(max_levels=3, max_fanout=8, directives=0.1), seeds)
def test_unused_level_changes_nothing(design: jl.Design, seed: int):
    """In the smooth reading: in the reference's, words that a bypassed level sends never travel over links (5.3)."""
    count = len(design.architecture.levels)
    index = 1 + seed % count
    plain = results(design, jl.SMOOTH)
    deeper = results(_with_unused_level(design, index, "Unused"), jl.SMOOTH)
    del deeper["levels"][index + 1]
    # the same networks, one of them cut in two by the unused level
    parts = list(deeper["networks"].values())
    del parts[index]
    deeper["networks"] = dict(zip(plain["networks"], parts, strict=True))
    assert_same_dict(deeper, plain, rtol=1e-12)


@pytest.mark.parametrize(
    "kind, levels, conventions",
    [("matmul", 3, jl.TIMELOOP_2022), ("conv1d", 2, jl.TIMELOOP_2022), ("conv2d", 3, jl.SMOOTH)],
)
def test_size_class_gives_what_exact_arrays_give(kind: str, levels: int, conventions: jl.Conventions):
    """Padding changes nothing. One design per kind and many mappings, so that the exact arrays have one shape."""
    design, rng = fixed_design(kind, levels), random.Random(3)
    padded, exact = lower(design, conventions), lower(design, conventions, exact=True)
    assert padded.program.structure.levels > exact.program.structure.levels
    for _ in range(20):
        mapping = random_mapping(design, rng)
        ours = jl.evaluate(design, mappings=mapping, conventions=conventions)
        theirs = evaluate_one(exact.program, mapping, np.dtype(np.float64))
        for name in ("status", "violation", "cycles", "energy_pj", "reads", "fills", "updates", "network_energy_pj"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, err_msg=name)


def test_lowered_nest_is_the_same_in_both_sizes():
    design = fixed_design("conv1d", 2)
    assert design.nest is not None
    structure = lower(design, jl.TIMELOOP_2022).program.structure
    own, padded = jl.mapping_of(design), lower_mapping(design.nest, design.einsum, structure)
    for name in own.__dataclass_fields__:
        small, large = getattr(own, name), getattr(padded, name)
        np.testing.assert_array_equal(large[tuple(slice(n) for n in small.shape)], small, err_msg=name)


def _prices(design: jl.Design, rng: random.Random) -> dict[str, float]:
    """A price for everything that costs energy."""
    prices = {f"{design.architecture.compute.name}.energy": rng.uniform(0.1, 2.0)}
    for level in design.architecture.levels:
        hop = "wire_energy" if level.network.energy_per_hop is None else "energy_per_hop"
        for attribute in ("read_energy", "fill_energy", "update_energy", "address_energy", "router_energy", hop):
            prices[f"{level.name}.{attribute}"] = rng.uniform(0.1, 100.0)
    return prices


@examples
@given(small_designs, seeds)
def test_energy_is_linear_in_the_prices(design: jl.Design, seed: int):
    rng = random.Random(seed)
    first, second = _prices(design, rng), _prices(design, rng)
    mixed = {key: 3.0 * first[key] + 0.25 * second[key] for key in first}
    energies = [jl.evaluate(design, hardware=prices).energy_pj for prices in (first, second, mixed)]
    np.testing.assert_allclose(energies[2], 3.0 * energies[0] + 0.25 * energies[1], rtol=1e-12)
    assert jl.evaluate(design, hardware=dict.fromkeys(first, 0.0)).energy_pj == 0.0


def _relabeled(design: jl.Design, rng: random.Random) -> jl.Design:
    """Ranks renamed and listed in another order, axes and terms of the tensors in another order."""
    einsum, names = design.einsum, {rank: f"rank{i}" for i, rank in enumerate(design.einsum.ranks)}
    listed = rng.sample(list(zip(einsum.ranks, einsum.sizes, strict=True)), len(einsum.ranks))

    def renamed(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        return tuple(replace(loop, rank=names[loop.rank]) for loop in loops)

    def edit(_: int, level: LevelNest) -> LevelNest:
        return replace(
            level,
            temporal=renamed(level.temporal),
            spatial_x=renamed(level.spatial_x),
            spatial_y=renamed(level.spatial_y),
        )

    def axis(old: Axis) -> Axis:
        return Axis(tuple(replace(t, rank=names[t.rank]) for t in rng.sample(old.terms, len(old.terms))))

    tensors = [replace(t, axes=tuple(map(axis, rng.sample(t.axes, len(t.axes))))) for t in einsum.tensors]
    ranks, sizes = zip(*((names[rank], size) for rank, size in listed), strict=True)
    return edit_levels(replace(design, einsum=Einsum(einsum.name, ranks, sizes, tuple(tensors))), edit)


@examples
@given(small_designs, seeds)
def test_names_and_order_of_ranks_and_axes_do_not_matter(design: jl.Design, seed: int):
    assert_same_dict(results(_relabeled(design, random.Random(seed))), results(design))


@settings(max_examples=100)
@given(small_designs, seeds)
def test_any_numbers_give_finite_results(design: jl.Design, seed: int):
    """Mappings that cover nothing, keep nothing and fit nowhere."""
    rng = np.random.default_rng(seed)
    own = jl.mapping_of(design)
    factors = {n: np.ones_like(own.temporal) for n in ("spatial_x", "spatial_y")}
    for spatial in factors.values():  # one rank per level: at most 64 children
        spatial[np.arange(len(spatial)), rng.integers(0, spatial.shape[1], len(spatial))] = rng.integers(
            1, 9, len(spatial)
        )
    factors["temporal"] = rng.integers(1, 9, own.temporal.shape).astype(float)
    masks = [n for n in own.__dataclass_fields__ if n == "keep" or n.startswith("no_")]
    drawn = {n: (rng.random(own.keep.shape) < rng.random()).astype(float) for n in masks}
    mapping = replace(own, **factors, **drawn)
    for conventions in (jl.TIMELOOP_2022, jl.SMOOTH):
        assert_all_finite(jl.evaluate(design, mappings=mapping, conventions=conventions))


def test_mapping_is_not_changed():
    """The arrays of the caller are his own."""
    design = fixed_design("conv1d", 3)
    mapping = jl.mapping_of(design)
    before = jax.tree.map(np.copy, mapping)
    jl.evaluate(design, mappings=mapping, hardware={"MAC.energy": 2.0}, sizes={"P": 3})
    assert jax.tree.all(jax.tree.map(np.array_equal, mapping, before))
