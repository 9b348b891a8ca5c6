"""Searches in the map space of Fig. 1 against its enumeration (jaxloop/reproduce/map_space.py)."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.reproduce.map_space import LEVELS, LEVELS_OF, map_space
from jaxloop.spec.constraints import Constraints, KeepConstraint, OrderConstraint
from tests.searches.designs import TEMPORAL, factor

DENSITIES = [0.01171875, 0.02, 0.04, 0.08, 0.1015625, 0.19921875, 0.3984375, 0.80078125]
DESIGNS = ("bitmask", "coordinate_list")


@cache
def space(name: str) -> jl.MapSpace:
    """Orders and bypass of the shipped mapping, factors of each rank at the levels that `map_space` deals it to."""
    design = jl.load(f"{name}:matmul-0.1")
    nest, ranks = design.nest, design.einsum.ranks
    assert nest is not None
    tensors = [tensor.name for tensor in design.einsum.tensors]
    orders = [
        OrderConstraint(level.level, TEMPORAL, tuple(loop.rank for loop in level.temporal)) for level in nest.levels
    ]
    keeps = [KeepConstraint(level.level, tensor, tensor in level.keep) for level in nest.levels for tensor in tensors]
    factors = [
        factor(level, TEMPORAL, rank, "=", 1)
        for at, level in enumerate(LEVELS)
        for rank in ranks
        if at not in LEVELS_OF[rank]
    ]
    constraints = Constraints(factors=tuple(factors), orders=tuple(orders), keeps=tuple(keeps))
    return jl.MapSpace(replace(design, constraints=constraints))


@cache
def enumerated(name: str) -> np.ndarray:
    """Energy-delay products [density, mapping], infinite where invalid."""
    design, shares = space(name).design, np.asarray(DENSITIES)[:, None]
    fields = ("status", "cycles", "energy_pj")
    densities = {"A": shares, "B": shares}
    found = jl.evaluate(design, mappings=map_space(design), densities=densities, conventions=jl.MICRO22, fields=fields)
    return np.where(found.valid, np.asarray(found.cycles) * np.asarray(found.energy_pj) / 1e12, np.inf)


def best(name: str, density: float, method: str, budget: int | None = None) -> jl.SearchResult:
    over = {("density.A", "density.B"): [(density, density)]}
    own = space(name)
    return jl.search(own.design, own, "edp", over=over, method=method, budget=budget, conventions=jl.MICRO22)


@pytest.mark.parametrize(
    "density", [d if d in (0.02, 0.80078125) else pytest.param(d, marks=pytest.mark.slow) for d in DENSITIES]
)
@pytest.mark.parametrize("name", DESIGNS)
def test_the_least_of_the_enumeration(name: str, density: float):
    wanted = enumerated(name)[DENSITIES.index(density)]
    assert space(name).size == len(wanted) == 2304
    exhaustive = best(name, density, "exhaustive")
    assert exhaustive.is_complete and exhaustive.valid == np.isfinite(wanted).sum()
    np.testing.assert_allclose(exhaustive.scores[0], wanted.min(), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_populations_reach_it_at_most_densities(name: str):
    """As many evaluations as there are mappings; where one in thousands is valid a population may settle on another."""
    ratios = [best(name, d, "population", 2304).scores[0] / best(name, d, "exhaustive").scores[0] for d in DENSITIES]
    assert min(ratios) == 1.0 and sum(ratio == 1.0 for ratio in ratios) >= len(ratios) - 1


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_gradients_reach_it_too(name: str):
    for density in DENSITIES[::7]:
        assert best(name, density, "gradient", 6000).scores[0] == best(name, density, "exhaustive").scores[0]
