"""The relaxed model against the exact one at whole factors, and its derivatives against central differences."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxloop as jl
from jaxloop.kernel.evaluate import evaluate
from jaxloop.lower.program import to_device
from jaxloop.run.batch import precision
from jaxloop.searches.genes import Genes
from jaxloop.searches.objectives import read_metrics
from jaxloop.searches.relaxed import Relaxed
from jaxloop.sweeps.plan import make_plan
from tests.helpers import QUICK
from tests.searches.mapper_cases import design, space

DENSE, SPARSE = "m01-mapper-plain", "m07-mapper-sparse"
SOFT = replace(jl.SMOOTH, soft_maximum=8.0)
LANES = 300
STEP, TOLERANCE = 1e-6, 1e-4


@dataclass(frozen=True, eq=False)
class Point:
    """The relaxed model at `LANES` skeletons of random mappings.

    **Attributes:** `rows`: genes; `given`: program and skeleton on the device; `loss`, `slope`: of parameters [rank,
    slot, lane].
    """

    relaxed: Relaxed
    rows: np.ndarray
    given: tuple[Any, ...]
    loss: Callable[[Any], Any]
    slope: Callable[[Any], Any]


def points(name: str, conventions: jl.Conventions, dtype: Any, seed: int = 0) -> Point:
    found, rng = space(name), np.random.default_rng(seed)
    (metric,) = read_metrics(design(name), "edp")
    plan = make_plan(design(name), {}, found, conventions, dtype, ("edp", "status"), False, 1)
    relaxed = Relaxed(found, replace(plan, lane_axes=((0,),)), metric, jnp.mean)
    genes = Genes(found)
    rows = genes.random(rng, LANES)
    base, orders = genes.mapping(rows), genes.parts(rows)[1]
    along = np.ones(orders.shape, bool)
    for t, slot in enumerate(found.freedom.slots):
        if slot.is_spatial:
            along[:, t] = slot.axis == "X"
    skeleton = relaxed.skeleton(orders, along, base)
    program, lanes, _ = relaxed.plan.arrays((slice(0, LANES),), skeleton)
    with precision(np.dtype(dtype)):
        given = to_device((relaxed.limits, program, lanes), np.dtype(dtype))
    loss = jax.jit(relaxed.loss, compiler_options=QUICK)
    slope = jax.jit(jax.grad(lambda p, *rest: relaxed.loss(p, *rest).sum()), compiler_options=QUICK)
    return Point(relaxed, rows, given, lambda p: loss(p, *given), lambda p: slope(p, *given))


def factors_of(point: Point) -> np.ndarray:
    """[lane, rank, slot]"""
    choices = Genes(point.relaxed.space).parts(point.rows)[0]
    tables = point.relaxed.space.factorizations
    return np.stack([table[choices[:, rank]] for rank, table in enumerate(tables)], axis=1).astype(float)


@pytest.mark.parametrize(
    "dtype, tolerance", [(np.float64, 1e-9), pytest.param(np.float32, 1e-4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", [DENSE, pytest.param(SPARSE, marks=pytest.mark.slow)])
def test_whole_factors_give_the_exact_model(name: str, dtype: Any, tolerance: float):
    """Factors of 1 are exact: a sparse model tells a loop of bound 1 from one of slightly more. Single precision: the
    exponential of the logarithm of a factor is off by some 1e-6, and results multiply several of them."""
    point = points(name, jl.SMOOTH, dtype)
    mapping = Genes(point.relaxed.space).mapping(point.rows)
    exact = jl.evaluate(design(name), mappings=mapping, conventions=jl.SMOOTH, fields=("cycles", "energy_pj", "status"))
    with precision(np.dtype(dtype)):
        _, program, skeleton = point.given
        if name == SPARSE:
            # where loops of bound 1 stand in the innermost level makes a difference there
            order = np.moveaxis(np.asarray(mapping.temporal_order), 0, -1)
            skeleton = replace(skeleton, temporal_order=jnp.asarray(order))
        logs = jnp.asarray(np.moveaxis(np.log(factors_of(point)), 0, -1), dtype)
        ours = jax.jit(
            lambda logs: evaluate(program, point.relaxed.mapping(logs, skeleton, 1)), compiler_options=QUICK
        )(logs)
    for field in ("cycles", "energy_pj"):
        theirs = np.asarray(getattr(exact, field))
        known = np.isfinite(theirs) & np.asarray(exact.valid)
        assert known.sum() > LANES / 20
        np.testing.assert_allclose(np.asarray(getattr(ours, field))[known], theirs[known], rtol=tolerance)


def test_factors_multiply_to_sizes_and_keep_limits():
    point = points("09", jl.SMOOTH, np.float64)
    least, _ = point.relaxed.bounds
    rng = np.random.default_rng(1)
    with precision(np.dtype(np.float64)):
        logs = np.asarray(point.given[0].log_factors(jnp.asarray(rng.normal(0.0, 3.0, (*least.shape, LANES)))))
    sizes = np.asarray(design("09").einsum.sizes, float)
    np.testing.assert_allclose(np.exp(logs.sum(axis=1)), np.repeat(sizes[:, None], LANES, axis=1), rtol=1e-9)
    assert (logs >= least[..., None] - 1e-12).all()


def test_parameters_of_factors():
    point = points("09", jl.SMOOTH, np.float64)
    wanted = factors_of(point)
    with precision(np.dtype(np.float64)):
        for blur, largest in ((0.0, 1e-9), (0.15, np.inf)):
            logs = point.given[0].log_factors(jnp.asarray(point.relaxed.parameters(wanted, blur)))
            off = np.abs(np.moveaxis(np.asarray(logs), -1, 0) - np.log(wanted)).max()
            assert off <= largest and (off > 0.1) == (blur > 0.0)


@cache
def disagreeing(name: str, conventions: jl.Conventions, rounds: int) -> float:
    """The share of random points whose derivative along a random direction is not that of central differences, relative
    to the norm of the gradient. All must be finite."""
    wrong = 0
    rng = np.random.default_rng(5)
    point = points(name, conventions, np.float64)
    with precision(np.dtype(np.float64)):
        for _ in range(rounds):
            where = rng.normal(0.0, 1.5, (*point.relaxed.bounds[0].shape, LANES))
            direction = rng.normal(size=where.shape)
            direction /= np.sqrt((direction**2).sum(axis=(0, 1)))
            slope = np.asarray(point.slope(jnp.asarray(where)))
            values = [np.asarray(point.loss(jnp.asarray(where + side * STEP * direction))) for side in (1.0, -1.0)]
            assert np.isfinite(slope).all() and np.isfinite(values).all()
            expected = (values[0] - values[1]) / (2.0 * STEP)
            norm = np.sqrt((slope**2).sum(axis=(0, 1)))
            off = np.abs((slope * direction).sum(axis=(0, 1)) - expected) > TOLERANCE * norm + 1e-7
            wrong += int(off.sum())
    return wrong / (rounds * LANES)


@pytest.mark.parametrize("name", [DENSE, pytest.param(SPARSE, marks=pytest.mark.slow)])
def test_slopes_are_those_of_central_differences(name: str):
    assert disagreeing(name, jl.SMOOTH, 1) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("conventions", [jl.SMOOTH, SOFT], ids=["hard", "soft"])
@pytest.mark.parametrize("name", [DENSE, SPARSE])
def test_many_slopes(name: str, conventions: jl.Conventions):
    assert disagreeing(name, conventions, 34) <= 0.01
