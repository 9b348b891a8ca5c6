"""Reductions on disk: finished ones, interrupted ones, damaged ones."""

import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.sweeps.checkpoint import Checkpoint
from tests.sweeps.base import GRID_POINTS, RESULTS, assert_same_bytes, grid, small_blocks
from tests.sweeps.disk import DAMAGES, again, contents


@pytest.fixture(autouse=True)
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


REDUCTIONS = {
    "best": jl.Best("edp", k=3),
    "front": jl.Pareto(per="Buffer.size"),
    "one": jl.Histogram("cycles", "1,9,1e9"),
}


def test_full_disk_under_a_reduction(tmp_path: Path, files_of_few_bytes: Any):
    files_of_few_bytes(30)
    try:
        with pytest.raises(OSError, match=r"cannot write .*out\.zarr: File too large \(check the path"):
            again(tmp_path / "out.zarr", reduce=REDUCTIONS)
    finally:
        files_of_few_bytes(resource.RLIM_INFINITY)
    assert not list(tmp_path.iterdir())


def test_stored_reductions(tmp_path: Path):
    path, memory = tmp_path / "out.zarr", jl.sweep(**grid(), reduce=REDUCTIONS)
    first, counting = again(path, reduce=REDUCTIONS)
    assert counting.computed == GRID_POINTS
    assert list(tmp_path.iterdir()) == [path]
    second, counting = again(path, reduce=REDUCTIONS)
    assert not counting.told or counting.computed == 0
    for name, expected in memory.items():
        for found in (first[name], second[name], jl.open_sweep(path, name)):
            assert_same_bytes(found, expected)
    before = contents(path)
    with pytest.raises(jl.SpecError, match=r"out\.zarr: there is another sweep: it differs in reduce \(give another"):
        again(path, reduce=REDUCTIONS | {"best": jl.Best("edp", k=2)})
    assert contents(path) == before


@pytest.mark.parametrize("damage", [None, "truncated", "empty", "zeros", "flipped"])
def test_reductions_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str | None):
    """From the last block that was written down; from the start where that is damaged."""
    path, memory = tmp_path / "out.zarr", jl.sweep(**grid(), reduce=REDUCTIONS)

    def interrupting(done: int, points: int) -> None:
        if done > points // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jl.sweep(**grid(), out=path, reduce=REDUCTIONS, progress=interrupting)
    (checkpoint,) = tmp_path.iterdir()
    if damage:
        checkpoint.write_bytes(DAMAGES[damage](checkpoint.read_bytes()))
    found, counting = again(path, reduce=REDUCTIONS)
    assert counting.old == 0 if damage else 0.3 * GRID_POINTS < counting.old <= 0.6 * GRID_POINTS
    for name, expected in memory.items():
        assert_same_bytes(found[name], expected)
    assert list(tmp_path.iterdir()) == [path]


def test_any_byte_of_a_checkpoint_may_be_wrong(tmp_path: Path):
    """Then it is whole (where nothing depends on the byte), or nothing."""
    checkpoint = Checkpoint.beside(tmp_path / "out", {"a": 1})
    states = {"best": {"index": np.arange(9), "objective": np.linspace(0.1, 1, 9)}}
    checkpoint.save(3, states)
    data = checkpoint.path.read_bytes()
    found = 0
    for place in range(0, len(data), 5):
        checkpoint.path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        loaded = checkpoint.load()
        if loaded is not None:
            found += 1
            assert loaded[0] == 3 and all(np.array_equal(loaded[1]["best"][n], a) for n, a in states["best"].items())
    assert found < len(data) / 10


def test_a_checkpoint_of_another_sweep_is_not_taken(tmp_path: Path):
    path = tmp_path / "out.zarr"

    def interrupting(done: int, points: int) -> None:
        if done > points // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jl.sweep(**grid(), out=path, reduce=jl.Best(k=2), progress=interrupting)
    best, counting = again(path, reduce=jl.Best(k=3))
    assert counting.old == 0
    assert_same_bytes(best, jl.sweep(**grid(), reduce=jl.Best(k=3)))


def _powers(exponent: float) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    return lambda values: values["energy_pj"] * values["cycles"] ** exponent / 1e12


def _weighted(values: dict[str, np.ndarray], weight: float = 1.0) -> np.ndarray:
    return values["energy_pj"] + weight * values["cycles"]


def test_other_functions_are_other_sweeps(tmp_path: Path):
    """Also those that differ in what they are bound to alone."""
    functions = [_powers(1.0), _powers(2.0), _weighted, partial(_weighted, weight=1.0), partial(_weighted, weight=2.0)]
    functions.append(lambda values: [cycles for cycles in values["cycles"]])
    functions.append(lambda values: [cycles for cycles in values["energy_pj"]])
    labels = [jl.Best(function).describe() for function in functions]
    assert len(set(labels)) == len(functions)
    assert jl.Best(_powers(2.0)).describe() == labels[1]
    assert not any("0x" in label for label in labels)
    path = tmp_path / "out.zarr"
    again(path, reduce=jl.Best(_powers(1.0), results=RESULTS))
    with pytest.raises(jl.SpecError, match="differs in reduce"):
        again(path, reduce=jl.Best(_powers(3.0), results=RESULTS))
    same, _ = again(path, reduce=jl.Best(_powers(1.0), results=RESULTS))
    assert same.objective == jl.sweep(**grid(), reduce=jl.Best("edp", results=RESULTS)).edp
