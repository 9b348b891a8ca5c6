"""The kernel is written for one mapping: lanes, `jax.vmap`, single calls, eager calls and both precisions agree."""

import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import jaxloop as jl
from jaxloop.kernel.evaluate import evaluate
from jaxloop.lower import lower
from jaxloop.lower.program import to_device
from tests.helpers import QUICK, fixed_design, random_mapping, stacked

LANES = 5
KINDS = [("matmul", 3), ("conv1d", 3)]
each_kind = pytest.mark.parametrize("kind, levels", KINDS)


@cache
def batch(kind: str, levels: int, conventions: jl.Conventions) -> tuple[jl.Program, jl.Mapping]:
    """Numpy leaves with a leading axis of `LANES`, hardware and mappings both different in every lane."""
    design, rng = fixed_design(kind, levels), random.Random(1)
    mappings = stacked([random_mapping(design, rng) for _ in range(LANES)])
    program = lower(design, conventions, exact=True).program
    scale = np.array([rng.uniform(0.5, 2.0) for _ in range(LANES)])
    wide = jax.tree.map(lambda leaf: np.stack([leaf] * LANES), program)
    energies = {n: getattr(wide, n) * scale.reshape(-1, *[1] * np.ndim(getattr(program, n))) for n in PRICES}
    leaves = {n: getattr(wide, n) for n in wide.__dataclass_fields__ if n != "structure"}
    return jl.Program(structure=program.structure, **(leaves | energies)), mappings


quick = jax.jit(evaluate, compiler_options=QUICK)
PRICES = ("action_energy", "compute_energy", "read_bandwidth")


def run(function: Callable[..., Any], trees: Any, dtype: Any = np.float64) -> Any:
    with jax.enable_x64(dtype == np.float64):
        return jax.device_get(function(*to_device(trees, dtype)))


def lane(trees: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], trees)


def lanes_last(trees: Any) -> Any:
    return jax.tree.map(lambda leaf: np.moveaxis(leaf, 0, -1), trees)


def assert_same_tree(ours: Any, expected: Any, rtol: float) -> None:
    for name in expected.__dataclass_fields__:
        value = getattr(expected, name)
        if value is not None:
            np.testing.assert_allclose(getattr(ours, name), value, rtol=rtol, atol=0.0, err_msg=name)


@pytest.mark.parametrize(
    "kind, levels, conventions",
    [("conv1d", 3, jl.TIMELOOP_2022), ("matmul", 3, jl.SMOOTH)],
    ids=["reference", "smooth"],
)
def test_lanes_and_vmap_are_a_loop(kind: str, levels: int, conventions: jl.Conventions):
    trees = batch(kind, levels, conventions)
    mapped = run(jax.jit(jax.vmap(evaluate), compiler_options=QUICK), trees)
    wide = run(jax.jit(evaluate), lanes_last(trees))
    for index in range(LANES):
        alone = run(quick, lane(trees, index))
        assert_same_tree(lane(mapped, index), alone, 1e-12)
        assert_same_tree(jax.tree.map(lambda leaf, i=index: leaf[..., i], wide), alone, 1e-12)


@each_kind
def test_shared_leaves_need_only_one_lane(kind: str, levels: int):
    """A leaf with a lane axis of 1 beside leaves of many lanes serves them all; results of such leaves alone have one
    lane as well."""
    program, mappings = batch(kind, levels, jl.SMOOTH)
    hardware = lane(program, 0)
    shared = jax.tree.map(lambda leaf: leaf[..., None], hardware), lanes_last(mappings)
    repeated = jax.tree.map(lambda leaf: np.repeat(leaf, LANES, axis=-1), shared[0]), shared[1]
    ours, expected = run(quick, shared), run(quick, repeated)
    assert_same_tree(jax.tree.map(lambda one, all: np.broadcast_to(one, all.shape), ours, expected), expected, 1e-12)


@pytest.mark.slow
def test_eager_is_compiled():
    trees = lane(batch("matmul", 1, jl.TIMELOOP_2022), 0)
    assert_same_tree(run(evaluate, trees), run(jax.jit(evaluate), trees), 1e-12)


@each_kind
def test_single_precision_is_close(kind: str, levels: int):
    trees = lanes_last(batch(kind, levels, jl.SMOOTH))
    double, single = run(quick, trees), run(quick, trees, np.float32)
    assert single.energy_pj.dtype == np.float32
    assert_same_tree(single, double, 1e-5)


@each_kind
@pytest.mark.parametrize("x64", [False, True])
def test_single_precision_stays_single(kind: str, levels: int, x64: bool):
    """No array of doubles in the lowered text, whatever the mode of the process (the scalar constants that 64-bit mode
    writes as f64 are converted where they stand)."""
    trees = lanes_last(batch(kind, levels, jl.SMOOTH))
    with jax.enable_x64(x64):
        text = jax.jit(evaluate).lower(*to_device(trees, np.float32)).as_text()
    assert "xf32>" in text
    assert not re.findall(r"tensor<\d+x[^>]*f64>", text)
    assert x64 or "f64" not in text


@each_kind
def test_no_implicit_promotion(kind: str, levels: int):
    trees = lanes_last(batch(kind, levels, jl.SMOOTH))
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        jax.jit(evaluate).lower(*to_device(trees, np.float32))
