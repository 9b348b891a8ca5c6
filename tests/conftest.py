"""What all tests share: the hypothesis profile. Warnings are errors (pyproject.toml).

Examples are drawn anew in every local run; under CI they are fixed, so that a pull request fails for its own reasons.
"""

import os
from collections.abc import Iterator

import jax
import pytest
from hypothesis import HealthCheck, settings

from jaxloop.run.executables import let_go
from jaxloop.run.room import is_crowded

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # the first example compiles

settings.register_profile("local", **COMMON)
settings.register_profile("ci", derandomize=True, print_blob=True, **COMMON)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(autouse=True)
def room_for_executables() -> Iterator[None]:
    """Tests compile functions of their own too."""
    yield
    if is_crowded():
        let_go()
        jax.clear_caches()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long sweeps run on request only: `pytest -m slow`."""
    if not config.getoption("-m"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
