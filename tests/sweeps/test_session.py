"""A user's session: which of two formats, at which density? The shipped bitmask and coordinate list of the MICRO'22
paper's Fig. 1, in a thousand mappings."""

from collections.abc import Iterator

import numpy as np
import pytest
import xarray as xr

import jaxloop as jl
from benchmarks.cases import random_mappings
from tests.sweeps.base import one_mapping

COUNT = 1000
DENSITIES = (0.02, 0.08, 0.2, 0.4, 0.6, 0.8, 0.95)
FORMATS = ("bitmask", "coordinate_list")
BOTH = ("density.A", "density.B")


def design(name: str) -> jl.Design:
    return jl.load(f"{name}:matmul-0.1")


@pytest.fixture(scope="module")
def batch() -> jl.Mapping:
    """The mapping of the files, and random ones, no two alike."""
    own, drawn = jl.mapping_of(design("bitmask")), random_mappings(design("bitmask"), 2 * COUNT, 11, whole=0.7)
    names = jl.Mapping.__dataclass_fields__
    rows = [
        b"".join(np.ascontiguousarray(getattr(drawn, name)[i]).tobytes() for name in names) for i in range(2 * COUNT)
    ]
    chosen = np.unique(rows, return_index=True)[1][: COUNT - 1]
    assert len(chosen) == COUNT - 1
    return jl.Mapping(**{n: np.concatenate([getattr(own, n)[None], getattr(drawn, n)[chosen]]) for n in names})


def swept(batch: jl.Mapping, reduce: jl.Best | None = None) -> xr.Dataset:
    over = {BOTH: list(DENSITIES), "sparse": {name: design(name) for name in FORMATS}}
    with pytest.warns(UserWarning, match='no component "Reg": using the built-in'):
        return jl.sweep(design("bitmask"), over, mappings=batch, reduce=reduce)


@pytest.fixture(scope="module")
def found(batch: jl.Mapping) -> Iterator[xr.Dataset]:
    yield swept(batch)


def by_hand(batch: jl.Mapping, index: int, name: str, density: float) -> jl.Evaluation:
    return jl.evaluate(design(name), mappings=one_mapping(batch, index), densities=dict.fromkeys("AB", density))


def test_the_best_mapping(found: xr.Dataset, batch: jl.Mapping):
    """At two densities, of two formats: chosen by label, counted, reduced; then looked at one by one."""
    few = found.sel({"density.A+density.B": [0.08, 0.6]})
    assert few.sizes == {"mapping": COUNT, "density.A+density.B": 2, "sparse": 2}
    assert 0.02 < float(few.valid.mean()) < 0.9
    energies = few.energy_pj.where(few.valid)
    best, at = energies.min("mapping"), energies.fillna(np.inf).argmin("mapping")
    rng = np.random.default_rng(0)
    for density in (0.08, 0.6):
        for name in FORMATS:
            chosen = {"density.A+density.B": density, "sparse": name}
            truth = by_hand(batch, int(at.sel(chosen)), name, density)
            assert truth.valid and truth.energy_pj == best.sel(chosen)
            for index in rng.integers(0, COUNT, 6):
                other, point = by_hand(batch, int(index), name, density), few.sel({**chosen, "mapping": index})
                assert (other.valid, other.energy_pj, other.cycles) == (point.valid, point.energy_pj, point.cycles)
                assert not other.valid or other.energy_pj >= best.sel(chosen)


def crossover(difference: np.ndarray) -> float:
    """The density at which a difference changes its sign, between two that were computed."""
    (at,) = np.flatnonzero(np.diff(np.sign(difference)))
    left, right = difference[at], difference[at + 1]
    return DENSITIES[at] + (DENSITIES[at + 1] - DENSITIES[at]) * left / (left - right)


@pytest.mark.parametrize("quantity", ["energy_pj", "cycles"])
def test_crossover(found: xr.Dataset, batch: jl.Mapping, quantity: str):
    """In the mapping of the files, coordinates are better while few are there."""
    own = found[quantity].sel(mapping=0)
    ours = (own.sel(sparse="coordinate_list") - own.sel(sparse="bitmask")).values
    theirs = np.zeros(len(DENSITIES))
    for place, density in enumerate(DENSITIES):
        lists, masks = (by_hand(batch, 0, name, density) for name in ("coordinate_list", "bitmask"))
        theirs[place] = getattr(lists, quantity) - getattr(masks, quantity)
    np.testing.assert_array_equal(ours, theirs)
    assert ours[0] < 0.0
    assert crossover(ours) == crossover(theirs)


def test_the_best_of_all(found: xr.Dataset, batch: jl.Mapping):
    """A reduction finds what xarray finds in everything, with the executable that is there."""
    over = {BOTH: list(DENSITIES), "sparse": {name: design(name) for name in FORMATS}}
    best = jl.sweep(
        design("bitmask"), over, mappings=batch, reduce=jl.Best("energy", per=("density.A+density.B", "sparse"))
    )
    energies = found.energy_pj.where(found.valid)
    np.testing.assert_array_equal(best.energy_pj, energies.min("mapping"))
    np.testing.assert_array_equal(best.mapping, energies.fillna(np.inf).argmin("mapping"))
