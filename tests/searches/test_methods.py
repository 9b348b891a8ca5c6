"""What a search gives does not depend on batches, devices or interruptions; budgets are kept.

All on one small design, so that few executables are compiled.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.searches import Budget
from tests.searches.mapper_cases import design, space

CASE = "m08-mapper-prime"
METHODS = ("exhaustive", "random", "population", "gradient")
BUDGET = {"exhaustive": 3136, "random": 1500, "population": 1500, "gradient": 3200}
"""Evaluations: two phases of each method."""


def run(method: str, budget: Any = None, **options: Any) -> jl.SearchResult:
    given = BUDGET[method] if budget is None else budget
    return jl.search(design(CASE), space(CASE), "edp", method=method, budget=given, **options)


def told(found: jl.SearchResult) -> dict[str, Any]:
    """All that must be equal, as JSON; numbers exactly."""
    return {
        "scores": [float(score).hex() for score in found.scores],
        "nest": repr(found.nest),
        "evaluations": found.history["evaluations"].tolist(),
        "history": [float(score).hex() for score in found.history["scores"].reshape(-1)],
        "counts": [found.evaluated, found.valid, found.relaxed],
        "failures": [found.failures.reasons, sorted(map(repr, found.failures.levels.items()))],
    }


@pytest.mark.parametrize("method", METHODS)
def test_batches_do_not_matter(method: str):
    one = run(method)
    assert told(run(method, batch=256)) == told(one)
    assert one.evaluated + one.relaxed == BUDGET[method]
    assert (np.diff(one.history["scores"][:, 0]) < 0.0).all()


@pytest.mark.parametrize("method", METHODS[1:])
def test_seeds_matter(method: str):
    assert told(run(method, seed=1, budget=300)) != told(run(method, seed=2, budget=300))


PROGRAM = """
import json
import jax
from tests.searches.test_methods import METHODS, run, told
assert jax.device_count() == 4
print(json.dumps({method: told(run(method)) for method in METHODS}))
"""


def test_devices_do_not_matter():
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "PYTHONPATH": root}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=root, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    for method, theirs in json.loads(found.stdout.splitlines()[-1]).items():
        assert theirs == json.loads(json.dumps(told(run(method)))), method


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "first", [1040, pytest.param(130, marks=pytest.mark.slow), pytest.param(1250, marks=pytest.mark.slow)]
)
def test_goes_on_after_a_budget(method: str, first: int, tmp_path: Path):
    """Also where the budget ends within a generation, a descent, or the first draw."""
    path = tmp_path / "state"
    assert run(method, budget=first, checkpoint=path).evaluated <= first
    assert told(run(method, checkpoint=path)) == told(run(method))
    assert list(tmp_path.iterdir()) == [path]


class Failure(Exception):
    pass


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, Failure])
def test_goes_on_after_an_exception(method: str, kind: type[BaseException], tmp_path: Path):
    def tell(search: Any) -> None:
        if search.spent >= 1100:
            raise kind

    path = tmp_path / "state"
    options: dict[str, Any] = {"batch": 64, "checkpoint": path}
    if kind is KeyboardInterrupt:
        stopped = run(method, tell=tell, **options)
        assert stopped.stopped == "stopped by the user" and not stopped.is_complete
        assert stopped.nest is not None and 1100 <= stopped.evaluated + stopped.relaxed < BUDGET[method]
        assert jl.evaluate(design(CASE), mappings=stopped.nest).valid
    else:
        with pytest.raises(Failure):
            run(method, tell=tell, **options)
    assert told(run(method, checkpoint=path)) == told(run(method))


def test_checkpoints_of_other_searches_are_refused(tmp_path: Path):
    path = tmp_path / "state"
    run("random", budget=100, checkpoint=path)
    for method, options in (("exhaustive", {}), ("random", {"seed": 1}), ("random", {"limits": {"energy": 1e9}})):
        with pytest.raises(jl.SpecError, match="the checkpoint of another search"):
            run(method, budget=200, checkpoint=path, **options)
    assert run("random", budget=200, checkpoint=path).evaluated == 200


def test_damaged_checkpoints_are_refused(tmp_path: Path):
    path = tmp_path / "state"
    run("random", budget=100, checkpoint=path)
    whole = path.read_bytes()
    for data in (b"", b"\n", b"not a checkpoint", *(whole[: len(whole) * part // 7] for part in range(1, 7))):
        path.write_bytes(data)
        with pytest.raises(jl.SpecError, match="no checkpoint can be read there"):
            run("random", budget=200, checkpoint=path)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [1, 77, 1001, 1100])
def test_budgets_of_evaluations_are_kept(method: str, count: int):
    found = run(method, budget=count)
    assert count - 48 < found.evaluated + found.relaxed <= count
    assert not found.is_complete


def test_budgets_of_valid_mappings_and_of_patience():
    """Looked at before each batch of a step: exceeded by less than one."""
    found = run("population", budget=Budget(valid=1200))
    assert found.stopped == "enough valid mappings" and 1200 <= found.valid <= 1300
    found = run("population", budget=Budget(patience=500))
    assert found.stopped == "no improvement for as long as was asked"
    assert found.evaluated < 10**4


def test_budgets_of_seconds():
    found = run("random", budget=Budget(seconds=0.5))
    assert found.stopped == "the time is up" and 0.5 <= found.seconds < 30.0 and found.evaluated > 0


def test_a_finished_search_stays_finished(tmp_path: Path):
    path = tmp_path / "state"
    found = run("exhaustive", budget=Budget(), checkpoint=path)
    assert found.is_complete and found.stopped == "all mappings are evaluated"
    again = run("exhaustive", budget=Budget(), checkpoint=path)
    assert told(again) == told(found) and again.is_complete
