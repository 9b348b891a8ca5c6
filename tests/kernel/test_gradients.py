"""Derivatives of the smooth reading: finite everywhere, and those of finite differences where the model is smooth."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import jaxloop as jl
from jaxloop.kernel.evaluate import evaluate
from jaxloop.lower import lower, lower_mapping
from jaxloop.lower.program import to_device
from jaxloop.program import Action
from tests.helpers import QUICK, fixed_design
from tests.strategies import random_design

Point = tuple[jl.Program, jl.Mapping]
Leaves = dict[str, Any]
OUTPUTS = ("cycles", "energy_pj")
PRICES = ("action_energy", "address_energy", "compute_energy", "energy_per_hop", "router_energy")
BANDWIDTHS = ("read_bandwidth", "write_bandwidth", "shared_bandwidth")
FACTORS = ("temporal", "spatial_x", "spatial_y")


def lowered(design: jl.Design, conventions: jl.Conventions = jl.SMOOTH) -> Point:
    assert design.nest is not None
    program = lower(design, conventions).program
    return program, lower_mapping(design.nest, design.einsum, program.structure)


@partial(jax.jit, compiler_options=QUICK)
def _jacobian(program: jl.Program, mapping: jl.Mapping) -> dict[str, Leaves]:
    """Derivatives of all outputs by all leaves that are numbers and not indices."""

    def value(floats: tuple[Any, Any]) -> dict[str, jax.Array]:
        result = evaluate(*(eqx.combine(mine, rest) for mine, rest in zip(floats, others, strict=True)))
        return {output: getattr(result, output) for output in OUTPUTS}

    floats, others = zip(*(eqx.partition(tree, eqx.is_inexact_array) for tree in (program, mapping)), strict=True)
    return {
        output: {
            name: getattr(tree, name)
            for tree in by_leaf
            for name in tree.__dataclass_fields__
            if name != "structure" and getattr(tree, name) is not None
        }
        for output, by_leaf in jax.jacrev(value)(floats).items()
    }


def gradients(point: Point) -> dict[str, Leaves]:
    """Derivatives by output and leaf."""
    with jax.enable_x64(True):
        return jax.device_get(_jacobian(*to_device(point, np.float64)))


_evaluate = jax.jit(evaluate, compiler_options=QUICK)


def value_of(output: str, point: Point) -> float:
    with jax.enable_x64(True):
        return float(getattr(_evaluate(*to_device(point, np.float64)), output))


def priced(seed: int, bandwidth: Callable[[random.Random], float]) -> Point:
    """A convolution with three levels in which everything has a price and every bandwidth a limit."""
    rng = random.Random(seed)
    program, mapping = lowered(fixed_design("conv1d", 3))
    drawn = {n: rng.uniform(0.5, 2.0) + np.zeros_like(getattr(program, n)) for n in PRICES}
    limits = {n: bandwidth(rng) + np.zeros_like(getattr(program, n)) for n in BANDWIDTHS}
    return replace(program, **drawn, **limits), mapping


def central_difference(output: str, point: Point, name: str, index: tuple[int, ...]) -> float:
    program, mapping = point
    leaf = np.array(getattr(program, name))
    step = 1e-5 * leaf[index]
    values = []
    for sign in (1.0, -1.0):
        moved = leaf.copy()
        moved[index] += sign * step
        values.append(value_of(output, (replace(program, **{name: moved}), mapping)))
    return (values[0] - values[1]) / (2.0 * step)


@pytest.mark.parametrize("kind", ["matmul", "conv1d"])
def test_gradients_are_finite(kind: str):
    """By every number of hardware and mapping, at unlimited bandwidths, absent prices, loops of one iteration too."""
    rng = random.Random(1)
    for _ in range(40):
        found = gradients(lowered(random_design(rng, kind, max_fanout=8)))
        assert found["energy_pj"].keys() >= {*PRICES, *BANDWIDTHS, *FACTORS}
        for output, leaves in found.items():
            for name, leaf in leaves.items():
                assert np.isfinite(leaf).all(), (output, name)


def test_gradients_of_the_reference_are_finite():
    """With roundings, which pass the derivative through."""
    rng = random.Random(2)
    for _ in range(20):
        found = gradients(lowered(random_design(rng, "conv1d", max_fanout=8), jl.TIMELOOP_2022))
        for output, leaves in found.items():
            for name, leaf in leaves.items():
                assert np.isfinite(leaf).all(), (output, name)


@pytest.mark.parametrize("kind", ["matmul", "conv1d"])
def test_relaxed_factors_give_finite_gradients(kind: str):
    """Factors between the integers, as a descent passes through."""
    rng = np.random.default_rng(5)
    for seed in range(20):
        program, mapping = lowered(random_design(random.Random(seed), kind, max_fanout=8))
        relaxed = {n: getattr(mapping, n) * rng.uniform(0.9, 1.3, mapping.temporal.shape) for n in FACTORS}
        point = program, replace(mapping, **relaxed)
        assert np.isfinite([value_of(output, point) for output in OUTPUTS]).all()
        for output, leaves in gradients(point).items():
            for name, leaf in leaves.items():
                assert np.isfinite(leaf).all(), (output, name)


@pytest.mark.parametrize("name", PRICES)
def test_energy_by_prices(name: str):
    point = priced(3, lambda rng: 1e9)
    found = gradients(point)
    slopes = found["energy_pj"][name]
    for index in np.ndindex(slopes.shape):
        expected = central_difference("energy_pj", point, name, index)
        np.testing.assert_allclose(slopes[index], expected, rtol=1e-7, atol=1e-6)
    assert slopes.any()
    assert not found["cycles"][name].any()


def test_energy_by_access_prices_is_the_number_of_accesses():
    program, mapping = priced(4, lambda rng: 1e9)
    ones = np.ones_like(program.block_size)
    program = replace(program, block_size=ones, cluster_size=ones)
    found = gradients((program, mapping))["energy_pj"]["action_energy"]
    with jax.enable_x64(True):
        result = jax.device_get(_evaluate(*to_device((program, mapping), np.float64)))
    for action, counts in ((Action.READ, "reads"), (Action.FILL, "fills"), (Action.UPDATE, "updates")):
        np.testing.assert_allclose(found[action], getattr(result, counts) * result.instances, rtol=1e-12)


def throttled(seed: int) -> Point:
    """Narrow bandwidths of all sizes."""
    program, mapping = priced(seed, lambda rng: 10.0 ** rng.uniform(-2.0, -1.0))
    rng = np.random.default_rng(seed)
    limits = {n: getattr(program, n) * 10.0 ** rng.uniform(-1.0, 1.0, program.size.shape) for n in BANDWIDTHS}
    return replace(program, **limits), mapping


@pytest.mark.parametrize("seed", range(6))
def test_cycles_by_bandwidths(seed: int):
    """One bandwidth of one level limits the cycles; the others do not count."""
    point = throttled(seed)
    found = gradients(point)["cycles"]
    for name in BANDWIDTHS:
        for index in np.ndindex(found[name].shape):
            expected = central_difference("cycles", point, name, index)
            np.testing.assert_allclose(found[name][index], expected, rtol=1e-6, atol=1e-6)
    slopes = np.concatenate([found[name] for name in BANDWIDTHS])
    assert np.count_nonzero(slopes) == 1 and slopes.min() < 0.0


def test_energy_by_outermost_factors():
    """A factor of an outermost loop that is larger than one: counts are polynomials of it."""
    design = fixed_design("conv1d", 3)
    program, mapping = lowered(design)
    found = gradients((program, mapping))["energy_pj"]["temporal"]
    top = len(design.architecture.levels) - 1
    active = [rank for rank in range(len(design.einsum.ranks)) if mapping.temporal[top, rank] > 1.0]
    assert active
    for rank in active:
        values = []
        for sign in (1.0, -1.0):
            moved = np.array(mapping.temporal)
            moved[top, rank] += sign * 1e-5
            values.append(value_of("energy_pj", (program, replace(mapping, temporal=moved))))
        np.testing.assert_allclose(found[top, rank], (values[0] - values[1]) / 2e-5, rtol=1e-5)
