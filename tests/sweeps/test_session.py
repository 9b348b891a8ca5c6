"""A user's session: masks or coordinates, at which density? Over a thousand mappings of the examples' accelerator, with
xarray, and again by hand."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import jaxloop as jl
from benchmarks.cases import random_mappings
from tests.sweeps.base import assert_same_bytes, one_mapping
from tests.sweeps.processes import ROOT

COUNT = 1000
DENSITIES = (0.03, 0.07, 0.15, 0.3, 0.5, 0.7, 0.9)
HARDWARE = {"Buffer.read_bandwidth": 3.125, "Buffer.gated_read_energy": 0.1, "Buffer.gated_update_energy": 0.1}
FORMATS = {"masks": ("B", "gating"), "coordinates": ("CP", "skipping")}
SPARSE = """
sparse_optimizations:
  targets:
  - name: DRAM
    representation-format:
      data-spaces: [{{name: A, ranks: [{{format: UOP}}, {{format: UOP}}, {{format: UOP}}, {{format: {0}}}]}}]
  - name: Buffer
    representation-format: {{data-spaces: [{{name: A, ranks: [{{format: UOP}}, {{format: {0}}}]}}]}}
    action-optimization:
    - {{type: {1}, target: B, condition-on: [A]}}
    - {{type: {1}, target: Z, condition-on: [A]}}
"""


@cache
def design(name: str) -> jl.Design:
    hardware = (ROOT / "examples" / "spmm.yaml").read_text()
    return jl.loads({"spmm.yaml": hardware, "sparse.yaml": SPARSE.format(*FORMATS[name])})


@pytest.fixture(scope="module")
def batch() -> jl.Mapping:
    """The mapping of the files, and random ones, no two alike."""
    own, drawn = jl.mapping_of(design("masks")), random_mappings(design("masks"), 2 * COUNT, 11, whole=0.5)
    names = jl.Mapping.__dataclass_fields__
    rows = [
        b"".join(np.ascontiguousarray(getattr(drawn, name)[i]).tobytes() for name in names) for i in range(2 * COUNT)
    ]
    chosen = np.unique(rows, return_index=True)[1][: COUNT - 1]
    assert len(chosen) == COUNT - 1
    return jl.Mapping(**{n: np.concatenate([getattr(own, n)[None], getattr(drawn, n)[chosen]]) for n in names})


def swept(batch: jl.Mapping, **options: Any) -> Any:
    size = options.pop("size", None)
    over = {"density.A": DENSITIES, "sparse": {name: design(name) for name in FORMATS}}
    fixed = {name: [value] for name, value in (HARDWARE | ({"Buffer.size": size} if size is not None else {})).items()}
    return jl.sweep(design("masks"), over | fixed, mappings=batch, **options)


@pytest.fixture(scope="module")
def found(batch: jl.Mapping) -> xr.Dataset:
    return swept(batch).squeeze(list(HARDWARE))


def by_hand(batch: jl.Mapping, index: int, name: str, density: float) -> jl.Evaluation:
    mapping = one_mapping(batch, index)
    return jl.evaluate(design(name), mappings=mapping, densities={"A": density}, hardware=HARDWARE)


def test_the_best_mapping(found: xr.Dataset, batch: jl.Mapping):
    """At two densities, of two formats: chosen by label, counted, reduced; then looked at one by one."""
    few = found.sel({"density.A": [0.07, 0.7]})
    assert few.sizes == {"mapping": COUNT, "density.A": 2, "sparse": 2}
    assert 0.02 < float(few.valid.mean()) < 0.9
    energies = few.energy_pj.where(few.valid)
    best, at = energies.min("mapping"), energies.fillna(np.inf).argmin("mapping")
    rng = np.random.default_rng(0)
    for density in (0.07, 0.7):
        for name in FORMATS:
            chosen = {"density.A": density, "sparse": name}
            truth = by_hand(batch, int(at.sel(chosen)), name, density)
            assert truth.valid
            np.testing.assert_allclose(best.sel(chosen), truth.energy_pj, rtol=1e-12)
            for index in rng.integers(0, COUNT, 6):
                other, point = by_hand(batch, int(index), name, density), few.sel({**chosen, "mapping": index})
                assert (other.valid, other.cycles) == (point.valid, point.cycles)
                np.testing.assert_allclose(point.energy_pj, other.energy_pj, rtol=1e-12)
                assert not other.valid or other.energy_pj >= best.sel(chosen) * (1 - 1e-12)


def crossover(difference: np.ndarray) -> float:
    """The density at which a difference changes its sign, between two that were computed."""
    (at,) = np.flatnonzero(np.diff(np.sign(difference)))
    left, right = difference[at], difference[at + 1]
    return DENSITIES[at] + (DENSITIES[at + 1] - DENSITIES[at]) * left / (left - right)


@pytest.mark.parametrize("quantity", ["energy_pj", "cycles"])
def test_crossover(found: xr.Dataset, batch: jl.Mapping, quantity: str):
    """In the mapping of the files, coordinates are better while few are there."""
    own = found[quantity].sel(mapping=0)
    ours = (own.sel(sparse="coordinates") - own.sel(sparse="masks")).values
    theirs = np.zeros(len(DENSITIES))
    for place, density in enumerate(DENSITIES):
        lists, masks = (by_hand(batch, 0, name, density) for name in ("coordinates", "masks"))
        theirs[place] = getattr(lists, quantity) - getattr(masks, quantity)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert ours[0] < 0.0 < ours[-1]
    assert crossover(ours) == pytest.approx(crossover(theirs), rel=1e-9)


def test_the_best_of_all(found: xr.Dataset, batch: jl.Mapping):
    """A reduction finds what xarray finds in everything."""
    best = swept(batch, reduce=jl.Best("energy", per=("density.A", "sparse")))
    energies = found.energy_pj.where(found.valid)
    np.testing.assert_array_equal(best.energy_pj, energies.min("mapping"))
    np.testing.assert_array_equal(best.mapping, energies.fillna(np.inf).argmin("mapping"))


@pytest.mark.parametrize("size", [None, 0.0])
def test_reductions_with_names_on_disk(batch: jl.Mapping, tmp_path: Path, size: float | None):
    """Also where there is nothing: no mapping fits into a buffer without words."""
    reductions = {"best": jl.Best("energy", k=2), "front": jl.Pareto(per="density.A")}
    stored = swept(batch, reduce=reductions, out=tmp_path / "out.zarr", size=size)
    again = swept(batch, reduce=reductions, out=tmp_path / "out.zarr", size=size)
    for name, expected in swept(batch, reduce=reductions, size=size).items():
        assert (expected.sizes.get("point", 0) > len(DENSITIES)) == (name == "front" and size is None)
        for found in (stored[name], again[name]):
            assert_same_bytes(found, expected)
    assert bool(stored["best"].valid.all()) == (size is None)
