"""Reductions against the same computed from all points, in plain numpy; fronts against their definition."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

import jaxloop as jl
from jaxloop.sweeps.fronts import non_dominated
from tests.sweeps.base import RESULTS, compiling, grid, small_blocks

BLOCKS = (24, 100000)
SEARCHES = [
    (),
    "Buffer.size",
    ("Backing.read_energy", "mapping"),
    ("mapping", "Buffer.size", "Buffer.read_bandwidth", "Backing.read_energy"),
]
each_per = pytest.mark.parametrize("per", SEARCHES, ids=str)


@pytest.fixture(params=BLOCKS)
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    small_blocks(monkeypatch, request.param)
    return request.param


@pytest.fixture(scope="module")
def points() -> Iterator[xr.Dataset]:
    """Everything, not all of it valid, with ties."""
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch, BLOCKS[0])
        found = jl.sweep(**grid()).load()
    assert 0.1 < float(found.valid.mean()) < 0.9
    assert len(np.unique(found.cycles)) < found.cycles.size / 2
    found["edp"] = found.energy_pj * found.cycles / 1e12
    yield found


def cells(points: xr.Dataset, per: Any) -> Iterator[tuple[dict[str, int], list[dict[str, Any]]]]:
    """For each index along `per`, in the order of the dimensions: the valid points there, first ones first."""
    wanted = (per,) if isinstance(per, str) else per
    dims = [str(dim) for dim in points.cycles.dims]
    kept = [dim for dim in dims if dim in wanted]
    searched = [dim for dim in dims if dim not in wanted]
    leaves = {str(name): leaf.values for name, leaf in points.variables.items()}
    for at in product(*(range(points.sizes[dim]) for dim in kept)):
        found = []
        for index in product(*(range(points.sizes[dim]) for dim in searched)):
            place = dict(zip((*kept, *searched), (*at, *index), strict=True))
            where = tuple(place[dim] for dim in dims)
            if leaves["valid"][where]:
                values = {str(name): float(leaves[str(name)][where]) for name in points.data_vars}
                found.append(values | {dim: leaves[dim][place[dim]] for dim in dims})
        yield dict(zip(kept, at, strict=True)), found


@each_per
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("objective", ["edp", "cycles"])
def test_best(points: xr.Dataset, blocks: int, per: Any, k: int, objective: str):
    """Of equal points the first; `cycles` has many."""
    best = jl.sweep(**grid(), reduce=jl.Best(objective, per, k, RESULTS))
    dims = [dim for dim in points.cycles.dims if dim in ((per,) if isinstance(per, str) else per)]
    assert best.cycles.dims == (*dims, *(("place",) if k > 1 else ()))
    for at, there in cells(points, per):
        expected = sorted(there, key=lambda point: point[objective])[:k]
        for place in range(k):
            found = best.isel(at | ({"place": place} if k > 1 else {}))
            assert bool(found.valid) == (place < len(expected))
            if place < len(expected):
                for name in {*RESULTS, objective, *points.cycles.dims}:
                    assert found[name].values == expected[place][name], name
            else:
                assert np.isnan(found.cycles) and np.isnan(found[objective])


def test_some_cells_have_no_valid_point(points: xr.Dataset):
    counts = {len(there) for _, there in cells(points, SEARCHES[-1])}
    assert counts == {0, 1}


def _product(values: dict[str, np.ndarray]) -> np.ndarray:
    return values["energy_pj"] * values["cycles"] / 1e12


def _strange(values: dict[str, np.ndarray]) -> np.ndarray:
    """Not a number for some points, which then take no part."""
    return np.where(values["cycles"] > 600, np.nan, -values["energy_pj"])


def test_functions_as_objectives(points: xr.Dataset, blocks: int):
    named = jl.sweep(**grid(), reduce=jl.Best("edp", "Buffer.size", 2, RESULTS))
    own = jl.sweep(**grid(), reduce=jl.Best(_product, "Buffer.size", 2, RESULTS))
    xr.testing.assert_equal(own.drop_vars("objective"), named.drop_vars("edp"))
    np.testing.assert_array_equal(own.objective, named.edp)
    strange = jl.sweep(**grid(), reduce=jl.Best(_strange, (), 3, RESULTS))
    few = [point for _, there in cells(points, ()) for point in there if point["cycles"] <= 600]
    assert 3 <= len(few) < sum(len(there) for _, there in cells(points, ()))
    expected = sorted(few, key=lambda point: -point["energy_pj"])[:3]
    assert list(strange.energy_pj.values) == [point["energy_pj"] for point in expected]
    assert list(strange.mapping.values) == [point["mapping"] for point in expected]


def test_nothing_valid(blocks: int):
    options = grid()
    options["over"] = options["over"] | {"Buffer.size": [0.0, 1.0, 2.0]}
    reductions = {
        "best": jl.Best("edp", (), 1, RESULTS),
        "front": jl.Pareto(RESULTS, "mapping"),
        "counts": jl.Histogram("cycles", [0, 1e9]),
    }
    found = jl.sweep(**options, reduce=reductions)
    assert not found["best"].valid and np.isnan(found["best"].edp)
    assert found["front"].sizes["point"] == 0
    assert found["counts"]["count"].sum() == found["counts"].below == found["counts"].above == 0


def dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and one != other


def front(rows: list[tuple[float, ...]]) -> list[int]:
    """By the definition: what nothing dominates, of equal ones the first, ascending."""
    kept = [
        index
        for index, row in enumerate(rows)
        if not any(dominates(other, row) for other in rows) and rows.index(row) == index
    ]
    return sorted(kept, key=lambda index: rows[index])


@each_per
@pytest.mark.parametrize(
    "objectives", [("cycles", "energy_pj"), ("energy_pj", "cycles"), ("edp", "cycles", "energy_pj")]
)
def test_fronts(points: xr.Dataset, blocks: int, per: Any, objectives: tuple[str, ...]):
    found = jl.sweep(**grid(), reduce=jl.Pareto(objectives, per, RESULTS))
    expected = []
    for _, there in cells(points, per):
        expected += [there[index] for index in front([tuple(point[name] for name in objectives) for point in there])]
    assert found.sizes == {"point": len(expected)}
    for name in (*RESULTS, *points.cycles.dims):
        assert list(found[name].values) == [point[name] for point in expected], name


@each_per
def test_histograms(points: xr.Dataset, blocks: int, per: Any):
    """The edges are values that occur: each belongs to the bin above it, the last one to the last bin."""
    values = np.unique(points.energy_pj.values[points.valid.values])
    edges = values[[2, 4, len(values) // 2, -2]]
    found = jl.sweep(
        **grid(), reduce={"": jl.Histogram("energy", edges, per), "same executable": jl.Best("edp", (), 1, RESULTS)}
    )[""]
    for at, there in cells(points, per):
        energies = np.asarray([point["energy_pj"] for point in there])
        count, _ = np.histogram(energies, edges)
        here = found.isel(at)
        assert list(here["count"].values) == list(count)
        assert here.below == (energies < edges[0]).sum() and here.above == (energies > edges[-1]).sum()
        assert int(here["count"].sum() + here.below + here.above) == len(there)
    assert found["count"].sum() > 0 and found.below.sum() > 0 and found.above.sum() > 0
    np.testing.assert_array_equal(found.left, edges[:-1])
    np.testing.assert_array_equal(found.right, edges[1:])


def test_one_executable(points: xr.Dataset, monkeypatch: pytest.MonkeyPatch):
    """For a sweep, other values in it, and its reductions."""
    small_blocks(monkeypatch, BLOCKS[0])
    options = grid()
    with compiling(0):
        options["over"] = {name: list(2.5 * np.asarray(values)) for name, values in options["over"].items()}
        jl.sweep(**options)
        jl.sweep(**options, reduce=jl.Best("ed2p", results=RESULTS))


coordinates = st.one_of(st.integers(0, 3).map(float), st.floats(0, 4), st.sampled_from([np.inf, np.nan, -np.inf]))


@settings(max_examples=300)
@given(arrays(float, st.tuples(st.integers(0, 12), st.integers(1, 4)), elements=coordinates))
def test_non_dominated(rows: np.ndarray):
    finite = [index for index in range(len(rows)) if np.isfinite(rows[index]).all()]
    kept = front([tuple(rows[index]) for index in finite])
    assert list(non_dominated(rows)) == [finite[index] for index in kept]


@pytest.mark.parametrize("objectives", [2, 3])
def test_a_large_front(objectives: int):
    rows = np.random.default_rng(0).integers(0, 60, (3000, objectives)).astype(float)
    kept = non_dominated(rows)
    others = (rows[:, None] <= rows[kept]).all(2) & (rows[:, None] < rows[kept]).any(2)
    assert not others.any()
    beaten = (rows[kept][:, None] <= rows).all(2).any(0)
    assert beaten.all()
