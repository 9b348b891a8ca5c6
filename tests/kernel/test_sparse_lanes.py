"""The sparse kernel is written for one mapping: lanes, `jax.vmap`, single calls and both precisions agree."""

import random
import re
from typing import Any

import jax
import numpy as np
import pytest

import jaxloop as jl
from jaxloop.kernel.evaluate import evaluate
from jaxloop.lower import lower, lower_mapping
from jaxloop.lower.program import to_device
from tests.helpers import QUICK, assert_same_fields, row, stacked
from tests.sparse_examples import EXAMPLES
from tests.sparse_points import (
    LANES,
    Choice,
    Point,
    as_lanes,
    draw_all,
    evaluate_points,
    template,
    with_conventions,
)

REFERENCE = pytest.param(jl.TIMELOOP_2022, id="reference")
SMOOTH = pytest.param(jl.SMOOTH, id="smooth")

EVERYTHING = Choice(options=True)
"""All distributions, banded ones too, flattened formats, SAFs with alternatives."""


def points_of(conventions: jl.Conventions, seed: int = 1) -> list[Point]:
    return [with_conventions(point, conventions) for point in draw_all(seed, EVERYTHING)]


def mixed(lanes: Any, rng: random.Random, shared: float) -> tuple[Any, Any]:
    """Leaves with lanes, a share of them with the first lane alone; and the same with that lane repeated."""
    leaves, layout = jax.tree.flatten(lanes)
    few = [leaf[..., :1] if rng.random() < shared else leaf for leaf in leaves]
    many = [np.broadcast_to(leaf, full.shape) for leaf, full in zip(few, leaves, strict=True)]
    return jax.tree.unflatten(layout, few), jax.tree.unflatten(layout, many)


def fields(result: Any) -> dict[str, np.ndarray]:
    return {n: np.asarray(getattr(result, n)) for n in result.__dataclass_fields__ if getattr(result, n) is not None}


@pytest.mark.parametrize(
    "conventions",
    [pytest.param(jl.TIMELOOP_2022, id="reference", marks=pytest.mark.slow), pytest.param(jl.SMOOTH, id="smooth")],
)
def test_vmap_is_lanes(conventions: jl.Conventions):
    """Loops over occupancies end together under `jax.vmap` and in lanes alike."""
    points = points_of(conventions)
    expected = fields(evaluate_points(points, conventions))
    leading = jax.tree.map(lambda leaf: np.moveaxis(leaf, -1, 0), as_lanes(points))
    with jax.enable_x64(True):
        mapped = fields(jax.device_get(jax.jit(jax.vmap(evaluate), compiler_options=QUICK)(*to_device(leading, float))))
    assert_same_fields({name: np.moveaxis(leaf, 0, -1) for name, leaf in mapped.items()}, expected, rtol=1e-12)


@pytest.mark.parametrize("conventions", [REFERENCE, SMOOTH])
def test_lanes_do_not_depend_on_their_neighbors(conventions: jl.Conventions):
    """To the last digit, although loops run as long as the longest lane needs."""
    points = points_of(conventions)
    alone = [evaluate_points([points[lane]], conventions) for lane in range(8)]
    together = fields(evaluate_points(points, conventions))
    for lane, one in enumerate(alone):
        assert_same_fields(fields(one), {name: leaf[..., lane : lane + 1] for name, leaf in together.items()})


def test_shared_leaves_need_only_one_lane():
    rng = random.Random(2)
    few, many = mixed(as_lanes(points_of(jl.SMOOTH)), rng, 0.5)
    with jax.enable_x64(True):
        ours = jax.device_get(jax.jit(evaluate, compiler_options=QUICK)(*to_device(few, float)))
    points = [jax.tree.map(lambda leaf, i=i: leaf[..., i], many) for i in range(LANES)]
    expected = fields(evaluate_points(points, jl.SMOOTH))
    assert_same_fields({n: np.broadcast_to(v, expected[n].shape) for n, v in fields(ours).items()}, expected, 1e-12)


@pytest.mark.parametrize("conventions", [REFERENCE, SMOOTH])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "class"])
def test_any_mix_of_shared_leaves_can_be_traced(conventions: jl.Conventions, exact: bool):
    """Also with the lanes of a design's own cells, and of its size class."""
    rng, design = random.Random(3), template()
    assert design.nest is not None
    program = lower(design, conventions, exact=exact).program
    one = program, lower_mapping(design.nest, design.einsum, program.structure)
    lanes = jax.tree.map(lambda leaf: np.stack([leaf] * 2, axis=-1), one)
    for shared in (0.9, 0.5, 1.0):
        few, _ = mixed(lanes, rng, shared)
        with jax.enable_x64(True):
            shapes = jax.eval_shape(evaluate, *to_device(few, float))
        assert {leaf.shape[-1] for leaf in jax.tree.leaves(shapes)} <= ({1, 2} if shared < 1.0 else {1})


@pytest.mark.parametrize("x64", [False, True])
def test_single_precision_stays_single(x64: bool):
    """No array of doubles in the lowered text, whatever the mode of the process, as for dense designs."""
    lanes = as_lanes(points_of(jl.SMOOTH))
    with jax.enable_x64(x64):
        text = jax.jit(evaluate).lower(*to_device(lanes, np.float32)).as_text()
    assert "xf32>" in text
    assert not re.findall(r"tensor<\d+x[^>]*f64>", text)
    assert x64 or "f64" not in text


@pytest.mark.slow
def test_single_precision_is_close():
    points = points_of(jl.SMOOTH)
    double = fields(evaluate_points(points, jl.SMOOTH))
    single = jax.device_get(jax.jit(evaluate, compiler_options=QUICK)(*to_device(as_lanes(points), np.float32)))
    assert single.energy_pj.dtype == np.float32
    for name in ("cycles", "energy_pj", "accesses", "metadata_accesses", "computes_by_fate", "tile_empty"):
        np.testing.assert_allclose(
            np.broadcast_to(getattr(single, name), double[name].shape), double[name], rtol=1e-4, atol=1e-4, err_msg=name
        )


SWEPT = ("status", "cycles", "energy_pj", "accesses", "metadata_accesses", "computes_by_fate", "tile_empty")


def sweep() -> tuple[jl.Design, dict[str, Any]]:
    """The hierarchical example with other loop orders, densities, prices and bandwidths in each entry."""
    design, numbers, count = jl.loads(EXAMPLES["6 hierarchical"].texts()), np.random.default_rng(1), 12
    own = jl.mapping_of(design)
    orders = [numbers.permuted(own.temporal_order, axis=1) for _ in range(count)]
    mappings = [jl.Mapping(**(vars(own) | {"temporal_order": order.astype(np.int32)})) for order in orders]
    return design, {
        "mappings": stacked(mappings),
        "densities": {"A": numbers.uniform(0.0, 1.0, count), "B": np.linspace(0.0, 1.0, count)},
        "hardware": {
            "Backing.read_bandwidth": 10.0 ** numbers.uniform(-1.0, 1.0, count),
            "Buffer.gated_read_energy": numbers.uniform(0.0, 1.0, count),
            "Buffer.metadata_width": np.resize([8.0, 16.0, 64.0], count),
            "MAC.skipped_energy": numbers.uniform(0.0, 1.0, count),
        },
    }


@pytest.mark.slow
@pytest.mark.parametrize("conventions", [REFERENCE, pytest.param(jl.SMOOTH, id="smooth")])
def test_a_sweep_is_its_single_evaluations(conventions: jl.Conventions):
    """Arrays of the design's own sizes against those of its size class."""
    design, arguments = sweep()
    many = jl.evaluate(design, conventions=conventions, fields=SWEPT, **arguments)
    assert len(np.unique(many.energy_pj)) == len(many.energy_pj) > 10
    for index in range(len(many.energy_pj)):
        own = jax.tree.map(lambda leaf, i=index: leaf[i], arguments)
        expected = jl.evaluate(design, conventions=conventions, **own)
        assert_same_fields(row(many, index), {name: np.asarray(getattr(expected, name)) for name in SWEPT}, rtol=1e-12)
