"""Is the installed JAX one that computes right? (jaxlib 0.10.2 returned wrong rows on CPU: docs/deviations.md)."""

import tomllib
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
ROWS = {np.float64: 16_385, np.float32: 32_769}
"""Least number of rows that showed the miscompilation."""


@pytest.mark.parametrize("dtype", ROWS, ids=["double", "single"])
@pytest.mark.parametrize("extra", [-1, 0, 1, 4096])
def test_product_and_reduction_under_vmap(dtype: type, extra: int):
    rng = np.random.default_rng(0)
    matrix, rows = rng.random((8, 8)).astype(dtype), rng.random((ROWS[dtype] + extra, 8)).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        result = jax.jit(jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2)))(rows)
        assert result.dtype == dtype
    expected = ((rows.astype(np.float64) @ matrix.T.astype(np.float64)) ** 2).sum(axis=1)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("requirement", [*map(Requirement, PROJECT["dependencies"])], ids=lambda r: r.name)
def test_installed_versions_satisfy_the_pins(requirement: Requirement):
    assert metadata.version(requirement.name) in requirement.specifier


@pytest.mark.parametrize("name", ["jax", "jaxlib"])
def test_the_pins_exclude_the_wrong_release(name: str):
    (pin,) = (r for r in map(Requirement, PROJECT["dependencies"]) if r.name == name)
    assert "0.10.2" not in pin.specifier
    assert "0.10.1" in pin.specifier
