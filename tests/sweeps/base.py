"""Shared by the tests of sweeps: small designs, grids over them, and the truth one evaluation at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr

import jaxloop as jl
from benchmarks.cases import random_mappings
from jaxloop.run.executables import compilations
from jaxloop.sweeps import plan
from tests.sparse_examples import EXAMPLES, INNER, OUTER, QUARTER_AND_HALF, ROWS, Example

RESULTS = ("cycles", "energy_pj", "area_um2")
FIELDS = (*RESULTS, "valid")
"""Of the sweeps of `grid`: one executable serves them and their reductions."""

SPARSE = Example(OUTER, INNER, QUARTER_AND_HALF, formats=ROWS, actions={"Buffer": ("skipping B<-A",)}, compute="gating")
BOTH = EXAMPLES["6 hierarchical"]
MAPPINGS = 7


def without_sparse(example: Example) -> dict[str, str]:
    return {name: text for name, text in example.texts().items() if name != "sparse"}


@cache
def sparse_design() -> jl.Design:
    return jl.loads(SPARSE.texts())


@cache
def dense_design() -> jl.Design:
    return jl.loads(without_sparse(SPARSE))


@cache
def mappings() -> jl.Mapping:
    return random_mappings(dense_design(), MAPPINGS, 3)


def grid() -> dict[str, Any]:
    """A dense sweep of 7 x 3 x 5 x 2 points with two lane axes; a buffer of 24 words is too small for some mappings."""
    over = {
        "Buffer.size": [24.0, 100.0, 4096.0],
        "Buffer.read_bandwidth": [0.5, 1.0, 2.0, 4.0, 8.0],
        "Backing.read_energy": [100.0, 7.0],
    }
    return {"design": dense_design(), "over": over, "mappings": mappings(), "fields": FIELDS}


GRID_POINTS = MAPPINGS * 3 * 5 * 2


def small_blocks(monkeypatch: pytest.MonkeyPatch, points: int = 24) -> None:
    monkeypatch.setattr(plan, "BLOCK_POINTS", points)


@contextmanager
def compiling(number: int) -> Iterator[None]:
    """Asserts how many executables are made inside."""
    before = compilations()["grid"]
    yield
    assert compilations()["grid"] - before == number


def one_mapping(batch: jl.Mapping, index: int) -> jl.Mapping:
    return jl.Mapping(**{name: getattr(batch, name)[index] for name in batch.__dataclass_fields__})


def assert_same_point(found: xr.Dataset, expected: jl.Evaluation) -> None:
    """Bit by bit, but for the order of the sum that an energy is."""
    for name in found.data_vars:
        ours, theirs = found[name].values, np.asarray(getattr(expected, str(name)))
        rtol = 1e-14 if str(name).endswith("_pj") else 0.0
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=0.0, err_msg=f"{name} at {dict(found.coords)}")


def assert_same_bytes(found: xr.Dataset, expected: xr.Dataset) -> None:
    xr.testing.assert_identical(found.load(), expected.load())
    for name in expected.variables:
        if expected[name].dtype != object:
            assert np.asarray(found[name].values).tobytes() == np.asarray(expected[name].values).tobytes(), name


def in_format(example: Example, ranks: str, level: str = "Buffer", tensor: str = "A") -> Example:
    """The example with another representation of a tensor; none for an empty text."""
    formats = {key: value for key, value in example.formats.items() if key != (level, tensor)}
    return replace(example, formats=formats | ({(level, tensor): ranks} if ranks else {}))
