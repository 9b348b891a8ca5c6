"""Shared by the tests of the kernel, the batches and the API: random mappings, views and comparisons of evaluations."""

import dataclasses
import random
from collections.abc import Mapping as Dict
from functools import cache
from typing import Any

import jax
import numpy as np

import jaxloop as jl
from benchmarks.cases import primes
from jaxloop.program import Activity
from jaxloop.result import Evaluation
from jaxloop.run.batch import BATCH_FIELDS
from jaxloop.spec.mapping import LevelNest
from tests.strategies import random_design

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Options for what is compiled for few evaluations."""


def random_mapping(design: jl.Design, rng: random.Random, bypass: float = 0.2) -> jl.Mapping:
    """A mapping that covers the workload and respects the fan-outs, as arrays of the design's own sizes. Capacities
    may be exceeded. Every tensor is kept by the outermost level."""
    own = jl.mapping_of(design)
    levels, ranks = own.temporal.shape
    temporal, spatial = np.ones((levels, ranks)), {axis: np.ones((levels, ranks)) for axis in "xy"}
    for rank, size in enumerate(design.einsum.sizes):
        for prime in primes(size):
            level, axis = rng.randrange(levels), rng.choice("xyt")
            room = dict(zip("xy", design.architecture.fanout(level), strict=True)).get(axis, 1)
            if axis != "t" and spatial[axis][level].prod() * prime <= room:
                spatial[axis][level, rank] *= prime
            else:
                temporal[level, rank] *= prime
    orders = [np.array([rng.sample(range(ranks), ranks) for _ in range(levels)], np.int32) for _ in range(2)]
    keep = np.array([[float(rng.random() >= bypass) for _ in design.einsum.tensors] for _ in range(levels)])
    keep[-1] = 1.0
    return dataclasses.replace(
        own,
        temporal=temporal,
        spatial_x=spatial["x"],
        spatial_y=spatial["y"],
        temporal_order=orders[0],
        spatial_order=orders[1],
        keep=keep,
    )


def stacked(mappings: list[jl.Mapping], *shape: int) -> jl.Mapping:
    """One `Mapping` with the leading batch axes `shape`, by default one axis."""
    return jax.tree.map(
        lambda *leaves: np.stack(leaves).reshape((*(shape or (len(leaves),)), *np.shape(leaves[0]))), *mappings
    )


def random_mappings(design: jl.Design, count: int, seed: int, bypass: float = 0.2) -> list[jl.Mapping]:
    rng = random.Random(seed)
    return [random_mapping(design, rng, bypass) for _ in range(count)]


SEEDS = {"conv1d": 7}
"""Chosen so that some random mappings of the design with three levels use links and some do not."""


@cache
def fixed_design(kind: str, levels: int) -> jl.Design:
    """A random design of `kind` with `levels` levels, at least 4 children in some fan-out and 48 operations."""
    rng = random.Random(SEEDS.get(kind, 0))
    while True:
        design = random_design(rng, kind, min_levels=levels, max_levels=levels, max_fanout=8)
        if design.einsum.computes >= 48 and design.architecture.compute.instances >= 4:
            return design


def row(evaluation: Evaluation, index: Any) -> dict[str, np.ndarray]:
    """The fields of one entry of a batch."""
    return {n: np.asarray(getattr(evaluation, n))[index] for n in BATCH_FIELDS if getattr(evaluation, n) is not None}


def assert_same_fields(ours: Dict[str, np.ndarray], expected: Dict[str, np.ndarray], rtol: float = 0.0) -> None:
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(ours[name], value, rtol=rtol, atol=0.0, err_msg=name)


def assert_all_finite(evaluation: Evaluation) -> None:
    """Every number is finite but for unlimited capacities."""
    for name in BATCH_FIELDS:
        value = np.asarray(getattr(evaluation, name))
        assert not np.isnan(value).any(), name
        assert name in ("capacity_words", "capacity_bits") or np.isfinite(value).all(), name


def assert_same_dict(ours: Any, expected: Any, rtol: float = 0.0, path: str = "") -> None:
    """Compares results of `Evaluation.to_dict()`: same keys, numbers within `rtol`."""
    if isinstance(expected, dict):
        assert ours.keys() == expected.keys(), path
        for key, value in expected.items():
            assert_same_dict(ours[key], value, rtol, f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(ours) == len(expected), path
        for index, value in enumerate(expected):
            assert_same_dict(ours[index], value, rtol, f"{path}[{index}]")
    elif isinstance(expected, float | int):
        np.testing.assert_allclose(ours, expected, rtol=rtol, atol=0.0, err_msg=path)
    else:
        assert ours == expected, path


def edit_levels(design: jl.Design, edit: Any) -> jl.Design:
    """The design with `edit(index, level_nest)` in place of each level of its mapping."""
    assert design.nest is not None
    levels: tuple[LevelNest, ...] = tuple(edit(index, level) for index, level in enumerate(design.nest.levels))
    return dataclasses.replace(design, nest=jl.LoopNest(levels))


def assert_activities_sum(one: Evaluation) -> None:
    """Energy by activity, with that of the compute units, is all energy; without addresses and networks it is that of
    the accesses to tensors."""
    of_levels = one.energy_pj_by_activity
    assert one.valid and one.context is not None
    assert of_levels.shape == (len(one.context.names.levels), len(Activity)) and (of_levels >= 0.0).all()
    np.testing.assert_allclose(of_levels.sum() + one.compute_energy_pj, one.energy_pj, rtol=1e-12)
    accesses = np.delete(of_levels, [Activity.ADDRESS, Activity.NETWORK], axis=1)
    np.testing.assert_allclose(accesses.sum(axis=1), one.energy_pj_by_tensor.sum(axis=1), rtol=1e-12)
