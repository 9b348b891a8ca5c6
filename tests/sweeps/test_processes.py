"""Sweeps that are killed, interrupted, and shared by devices and processes; compilations that are not made twice."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import jaxloop as jl
from tests.sweeps.base import GRID_POINTS, assert_same_bytes, grid, small_blocks
from tests.sweeps.child import REDUCTIONS
from tests.sweeps.processes import ROOT, finish, free_port, start

CHILD = ("-m", "tests.sweeps.child")
IN_FLIGHT = 3 * 24
"""Points of the blocks that may be lost: in work, on their way to the disk, waiting."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compilations")


@pytest.fixture(autouse=True)
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


@pytest.fixture(scope="module")
def truth() -> Iterator[xr.Dataset]:
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch)
        yield jl.sweep(**grid()).load()


def test_the_second_process_compiles_nothing(tmp_path: Path, cache: Path):
    """First of this module: it fills the cache."""
    counts = []
    for number in range(2):
        written = finish(start(*CHILD, tmp_path / f"{number}.zarr", cache=cache))
        counts.append([int(word) for word in written.splitlines()[-1].split()])
    executables, hits, misses = zip(*counts, strict=True)
    assert executables == (1, 1)
    assert misses[0] > 0 and misses[1] == 0 and hits[1] >= misses[0]


def stopped(how: signal.Signals, after: int, delay: float, *arguments: object, cache: Path) -> tuple[int, float, int]:
    """Sends a signal to a sweep after some lines of its output: the points it has told of, the seconds to its end, and
    its exit status."""
    child = start(*CHILD, *arguments, "--pause", 0.03, cache=cache)
    told = [0]
    assert child.stdout is not None
    for line in child.stdout:
        told.append(int(line.split()[0]))
        if len(told) > after:
            break
    time.sleep(delay)
    began = time.monotonic()
    child.send_signal(how)
    rest, _ = child.communicate(timeout=60)
    ended = time.monotonic() - began
    told += [int(line.split()[0]) for line in rest.splitlines() if len(line.split()) == 2]
    return told[-1], ended, child.returncode


def assert_sound(path: Path, truth: xr.Dataset) -> int:
    """What reads as computed is right; how many points are valid."""
    if not path.exists():
        return 0
    found = jl.open_sweep(path).load()
    for name in ("cycles", "energy_pj", "area_um2"):
        there = np.isfinite(found[name].values)
        assert (there | ~found.valid.values).all()
        assert np.array_equal(found[name].values[there], truth[name].values[there])
    assert (found.valid.values <= truth.valid.values).all()
    return int(found.valid.sum())


def test_killed(tmp_path: Path, cache: Path, truth: xr.Dataset, kills: int = 3, seed: int = 0):
    rng, path = random.Random(seed), tmp_path / "out.zarr"
    done = 0
    for _ in range(kills):
        told, _, status = stopped(signal.SIGKILL, rng.randrange(1, 5), rng.uniform(0.0, 0.06), path, cache=cache)
        assert status == -signal.SIGKILL
        assert_sound(path, truth)
        old: list[int] = []
        with pytest.raises(_Enough):
            jl.sweep(**grid(), out=path, progress=_first(old))
        assert old[0] >= max(done, told - IN_FLIGHT)
        done = old[0]
    assert 0 < done < GRID_POINTS
    assert_same_bytes(jl.sweep(**grid(), out=path), truth)


class _Enough(Exception):
    """Told how many points were there, a sweep can end."""


def _first(told: list[int]) -> Any:
    def tell(done: int, points: int) -> None:
        told.append(done)
        raise _Enough

    return tell


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7))
def test_killed_often(tmp_path: Path, cache: Path, truth: xr.Dataset, seed: int):
    test_killed(tmp_path, cache, truth, 3, seed + 1)


@pytest.mark.slow
def test_killed_at_any_time(tmp_path: Path, cache: Path, truth: xr.Dataset):
    """Also while the process starts, compiles and creates the group."""
    rng, path = random.Random(0), tmp_path / "out.zarr"
    for _ in range(20):
        child = start(*CHILD, path, "--pause", 0.05, cache=cache)
        time.sleep(rng.uniform(0.5, 6.0))
        child.kill()
        child.communicate(timeout=60)
        assert_sound(path, truth)
    assert_same_bytes(jl.sweep(**grid(), out=path), truth)


def test_killed_reductions(tmp_path: Path, cache: Path, kills: int = 1, seed: int = 3):
    rng, path = random.Random(seed), tmp_path / "out.zarr"
    for _ in range(kills):
        told, _, status = stopped(signal.SIGKILL, rng.randrange(3, 6), 0.02, path, "--reduce", cache=cache)
        assert status == -signal.SIGKILL and not path.exists()
        old: list[int] = []
        with pytest.raises(_Enough):
            jl.sweep(**grid(), out=path, reduce=REDUCTIONS, progress=_first(old))
        assert old[0] >= told - IN_FLIGHT
    found, expected = jl.sweep(**grid(), out=path, reduce=REDUCTIONS), jl.sweep(**grid(), reduce=REDUCTIONS)
    for name in REDUCTIONS:
        assert_same_bytes(found[name], expected[name])
    assert [left.name for left in tmp_path.iterdir() if "partial" not in left.name] == [path.name]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_killed_reductions_often(tmp_path: Path, cache: Path, seed: int):
    test_killed_reductions(tmp_path, cache, 2, seed)


@pytest.mark.parametrize("arguments", [(), ("--reduce",)], ids=["stored", "reduced"])
def test_interrupted(tmp_path: Path, cache: Path, truth: xr.Dataset, arguments: tuple[str, ...]):
    """By Ctrl-C: ends at once, keeps what is done."""
    path = tmp_path / "out.zarr"
    told, seconds, status = stopped(signal.SIGINT, 6, 0.0, path, *arguments, cache=cache)
    assert status != 0 and told < GRID_POINTS
    assert seconds < 3.0
    reduce = REDUCTIONS if arguments else None
    old: list[int] = []
    with pytest.raises(_Enough):
        jl.sweep(**grid(), out=path, reduce=reduce, progress=_first(old))
    assert old[0] >= max(1, told - IN_FLIGHT)
    if not arguments:
        assert assert_sound(path, truth) > 0


def test_several_devices(tmp_path: Path, cache: Path, truth: xr.Dataset):
    """Four devices, whose number no extent is a multiple of, give the bytes of one."""
    path = tmp_path / "out.zarr"
    finish(start(*CHILD, path, cache=cache, devices=4))
    assert_same_bytes(jl.open_sweep(path), truth)


@pytest.mark.slow
def test_several_devices_and_other_blocks(tmp_path: Path, cache: Path, truth: xr.Dataset):
    for devices, points in ((3, 24), (4, 100), (2, 100000)):
        path = tmp_path / f"{devices}.zarr"
        finish(start(*CHILD, path, "--blocks", points, cache=cache, devices=devices))
        assert_same_bytes(jl.open_sweep(path), truth)


EXAMPLE = ROOT / "examples" / "distributed_sweep.py"
SMALL = f"import runpy, sys; from jaxloop.sweeps import plan; plan.BLOCK_POINTS = 64; sys.argv[0] = {str(EXAMPLE)!r}; "
SMALL += "runpy.run_path(sys.argv[0], run_name='__main__')"
"""The example with blocks so small that each process has several."""


def _shared(out: Path, cache: Path) -> list["subprocess.Popen[str]"]:
    options = ("--coordinator", f"localhost:{free_port()}", "--number", 2, "--out", out)
    return [start("-c", SMALL, *options, "--id", number, cache=cache) for number in range(2)]


def test_several_processes(tmp_path: Path, cache: Path):
    """Each waits for the other and prints everything; the store is that of one process, byte by byte."""
    alone = finish(start("-c", SMALL, "--out", tmp_path / "one.zarr", cache=cache))
    together = [finish(process) for process in _shared(tmp_path / "two.zarr", cache)]
    lines = [[line for line in text.splitlines() if line.startswith("DRAM")] for text in (alone, *together)]
    assert len(lines[0]) == 7 and lines[0] == lines[1] == lines[2]
    one, two = (
        {str(found.relative_to(path)): found.read_bytes() for found in path.rglob("*") if found.is_file()}
        for path in (tmp_path / "one.zarr", tmp_path / "two.zarr")
    )
    assert len([name for name in one if name.startswith("cycles/c/")]) >= 6
    assert one == two
    assert sorted(os.listdir(tmp_path)) == ["one.zarr", "two.zarr"]


@pytest.mark.slow
def test_several_processes_after_one_is_lost(tmp_path: Path, cache: Path):
    out = tmp_path / "two.zarr"
    first, second = _shared(out, cache)
    while not (out / "zarr.json").exists():
        time.sleep(0.02)
    second.kill()
    first.kill()
    for process in (first, second):
        process.communicate(timeout=60)
    again = [finish(process) for process in _shared(out, cache)]
    alone = finish(start("-c", SMALL, "--out", tmp_path / "one.zarr", cache=cache))
    assert alone.splitlines()[-7:] == again[0].splitlines()[-7:]
    assert_same_bytes(jl.open_sweep(out), jl.open_sweep(tmp_path / "one.zarr"))
