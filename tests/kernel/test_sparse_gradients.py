"""Derivatives of the sparse model by densities, prices and bandwidths: in the smooth reading those of central
differences, in the reference's finite everywhere.

Points are those of tests/sparse_points.py, evaluated in lanes: lanes do not depend on each other, so that the gradient
of a sum over lanes holds the gradient of each.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxloop as jl
from jaxloop.kernel.evaluate import evaluate
from tests.helpers import QUICK
from tests.sparse_points import (
    BANDWIDTHS,
    PRICES,
    SPARSE_PRICES,
    STRUCTURED,
    UNIFORM,
    WORDS,
    Choice,
    Point,
    draw_all,
    evaluate_points,
    in_lanes,
    with_conventions,
    with_sparse,
)

OUTPUTS = ("cycles", "energy_pj")
OF_SPARSE = ("density", *SPARSE_PRICES)
VARIED = (*PRICES, *BANDWIDTHS, *OF_SPARSE)
SOFT = replace(jl.SMOOTH, soft_maximum=8.0)
STEP, TOLERANCE = 1e-5, 1e-4
"""Relative ones."""

Slopes = dict[str, dict[str, np.ndarray]]
"""By output and leaf, [*axes of the leaf, lane]."""


def leaves_of(program: Any) -> dict[str, Any]:
    return {name: getattr(program.sparse if name in OF_SPARSE else program, name) for name in VARIED}


def with_leaves(program: Any, leaves: dict[str, Any]) -> Any:
    sparse = replace(program.sparse, **{name: leaves[name] for name in leaves if name in OF_SPARSE})
    return replace(program, **{name: leaves[name] for name in leaves if name not in OF_SPARSE}, sparse=sparse)


@partial(jax.jit, compiler_options=QUICK)
def _slopes(program: jl.Program, mapping: jl.Mapping, weights: jax.Array) -> dict[str, jax.Array]:
    """Derivatives of the outputs' sum with these weights."""

    def value(leaves: dict[str, jax.Array]) -> jax.Array:
        result = evaluate(with_leaves(program, leaves), mapping)
        return sum(weight * jnp.sum(getattr(result, n)) for weight, n in zip(weights, OUTPUTS, strict=True))  # pyright: ignore[reportReturnType]

    return jax.grad(value)(leaves_of(program))


def slopes(points: list[Point], conventions: jl.Conventions) -> Slopes:
    points = [with_conventions(point, conventions) for point in points]
    return {output: in_lanes(_slopes, points, np.eye(2)[i]) for i, output in enumerate(OUTPUTS)}


@dataclass(frozen=True)
class Direction:
    """Relative changes of the entries of one leaf."""

    leaf: str
    change: np.ndarray

    def moved(self, point: Point, amount: float) -> Point:
        program, mapping = point
        leaf = leaves_of(program)[self.leaf]
        return with_leaves(program, {self.leaf: leaf * (1.0 + amount * self.change)}), mapping


def directions(rng: np.random.Generator, point: Point) -> Iterator[Direction]:
    """Each density alone; of every other leaf one, along which all entries change."""
    for name, leaf in leaves_of(point[0]).items():
        if name == "density":
            yield from (Direction(name, change) for change in np.eye(len(WORDS)))
        else:
            yield Direction(name, rng.uniform(-1.0, 1.0, np.shape(leaf)))


def disagreeing(points: list[Point], conventions: jl.Conventions) -> list[tuple[int, str, str, float, float]]:
    """Point, output, leaf, derivative and central difference where they differ. Beside the relative tolerance there is
    the roundoff of the difference."""
    rng, found = np.random.default_rng(0), slopes(points, conventions)
    ways = [list(directions(rng, point)) for point in points]
    wrong = []
    for k in range(len(ways[0])):
        ahead, behind = (
            evaluate_points([w[k].moved(p, side * STEP) for p, w in zip(points, ways, strict=True)], conventions)
            for side in (1.0, -1.0)
        )
        name = ways[0][k].leaf
        change = np.stack([w[k].change * leaves_of(p[0])[name] for p, w in zip(points, ways, strict=True)], axis=-1)
        for output in OUTPUTS:
            ours = (found[output][name] * change).reshape(-1, len(points)).sum(axis=0)
            values = [np.asarray(getattr(result, output)) for result in (ahead, behind)]
            expected = (values[0] - values[1]) / (2.0 * STEP)
            off = np.abs(ours - expected) > TOLERANCE * np.abs(expected) + 1e-9 * np.abs(values[0])
            wrong += [(int(i), output, name, float(ours[i]), float(expected[i])) for i in np.flatnonzero(off)]
    return wrong


def assert_finite(found: Slopes) -> None:
    for output, leaves in found.items():
        for name, leaf in leaves.items():
            assert np.isfinite(leaf).all(), (output, name)


INTERIOR = Choice((STRUCTURED, UNIFORM, UNIFORM), limited=1.0)
"""Bandwidths that are all limited; densities that have derivatives."""


def check(seed: int, count: int, conventions: jl.Conventions) -> None:
    """99 of 100 points agree in all their derivatives; the others lie next to a kink (a tile's share of exactly one
    word, a choice between two SAFs)."""
    points = draw_all(seed, INTERIOR, count)
    assert_finite(slopes(points, conventions))
    wrong = disagreeing(points, conventions)
    assert len({i for i, *_ in wrong}) <= count // 100, wrong


def test_slopes_are_those_of_central_differences():
    check(1, 200, SOFT)


@pytest.mark.slow
@pytest.mark.parametrize("conventions", [SOFT, jl.SMOOTH], ids=["soft", "hard"])
def test_many_slopes(conventions: jl.Conventions):
    """The hard maximum has kinks where two levels are equally slow, which random points do not meet."""
    check(2, 2000, conventions)


def at_limits(seed: int) -> list[Point]:
    """Densities of 0, of one nonzero, of one zero and of 1; unlimited bandwidths; all formats, bands and SAFs."""
    rng = random.Random(seed)
    points = []
    for point in draw_all(seed, Choice(options=True)):
        limits = np.array([0.0 * WORDS, 1.0 / WORDS, 1.0 - 1.0 / WORDS, WORDS / WORDS, 0.5 + 0.0 * WORDS])
        points.append(with_sparse(point, density=limits[[rng.randrange(5) for _ in WORDS], range(len(WORDS))]))
    return points


def test_slopes_at_limits_are_finite():
    """Where chances are 0 or 1, tiles have no words, operations vanish."""
    for seed in range(4):
        assert_finite(slopes(at_limits(seed), SOFT))


def test_slopes_of_the_reference_are_finite():
    """Through roundings the derivative passes straight."""
    for points in (draw_all(1), at_limits(1), at_limits(2)):
        found = slopes(points, jl.TIMELOOP_2022)
        assert_finite(found)
        assert found["energy_pj"]["density"].any() and found["cycles"]["density"].any()
