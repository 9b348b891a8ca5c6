"""Sweeps on disk: what is stored, what is computed again, and what is refused."""

import json
import os
import resource
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import jaxloop as jl
from jaxloop.sweeps import store
from tests.sweeps.base import (
    FIELDS,
    GRID_POINTS,
    SPARSE,
    assert_same_bytes,
    dense_design,
    grid,
    small_blocks,
    without_sparse,
)
from tests.sweeps.disk import DAMAGES, Counting, again, chunks, contents


@pytest.fixture(autouse=True)
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


@pytest.fixture(scope="module")
def truth() -> Iterator[xr.Dataset]:
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch)
        yield jl.sweep(**grid()).load()


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "out.zarr"
    jl.sweep(**grid(), out=path)
    return path


def test_stored_is_what_is_returned(truth: xr.Dataset, tmp_path: Path):
    found, counting = again(tmp_path / "out.zarr")
    assert counting.told[0] == (0, GRID_POINTS) and counting.told[-1] == (GRID_POINTS, GRID_POINTS)
    assert len(chunks(tmp_path / "out.zarr")) > 10
    assert_same_bytes(found, truth)
    assert list(tmp_path.iterdir()) == [tmp_path / "out.zarr"]


def test_others_can_read_it(truth: xr.Dataset, stored: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = xr.open_zarr(stored, chunks=None, consolidated=False)
    assert_same_bytes(plain, truth)
    assert_same_bytes(jl.open_sweep(stored), truth)
    units = {name: plain[name].attrs["units"] for name in plain.variables}
    assert units == {
        "cycles": "cycle",
        "energy_pj": "pJ",
        "area_um2": "um^2",
        "valid": "",
        "mapping": "",
        "Buffer.size": "word",
        "Buffer.read_bandwidth": "word/cycle",
        "Backing.read_energy": "pJ",
    }
    assert all(plain[name].attrs["long_name"] for name in plain.variables)
    assert plain.valid.dtype == bool and json.loads(plain.attrs["definition"])["fields"] == list(FIELDS)


def test_fields_with_axes_and_choices(tmp_path: Path):
    """Labels, texts and fields with axes of their own come back as they were."""
    over = {"format.Buffer.A": ["file", "none"], ("density.A", "density.B"): [(0.1, 0.2), (0.3, 0.3), (0.5, 0.1)]}
    options: dict[str, Any] = {"over": over, "fields": ("reads", "status", "valid")}
    design = jl.loads(SPARSE.texts())
    memory, disk = jl.sweep(design, **options), jl.sweep(design, **options, out=tmp_path / "out.zarr")
    assert memory.reads.dims == ("format.Buffer.A", "density.A+density.B", "level", "tensor")
    assert list(memory["density.B"].values) == [0.2, 0.3, 0.1]
    assert_same_bytes(disk, memory)


def test_nothing_is_computed_twice(truth: xr.Dataset, stored: Path):
    before = {path: path.stat().st_mtime_ns for path in stored.rglob("*")}
    found, counting = again(stored)
    assert counting.old == GRID_POINTS and counting.computed == 0
    assert_same_bytes(found, truth)
    assert {path: path.stat().st_mtime_ns for path in stored.rglob("*")} == before


def _points(path: Path, chunk: Path) -> int:
    """Of the block that a chunk belongs to."""
    notes = json.loads((path / "cycles" / "zarr.json").read_text())
    block, shape = notes["chunk_grid"]["configuration"]["chunk_shape"], notes["shape"]
    at = [int(part) for part in chunk.parts[-len(shape) :]]
    points = 1
    for index, size, extent in zip(at, block, shape, strict=True):
        points *= min(size, extent - index * size)
    return points


def test_missing_chunks_alone_are_computed(truth: xr.Dataset, stored: Path):
    lost = [chunks(stored, "cycles")[3], chunks(stored, "valid")[0], chunks(stored, "energy_pj")[-1]]
    for chunk in lost:
        chunk.unlink()
    found, counting = again(stored)
    assert counting.computed == sum(_points(stored, chunk) for chunk in lost)
    assert_same_bytes(found, truth)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("field", ["cycles", "valid"])
def test_damaged_chunks_are_computed_again(truth: xr.Dataset, stored: Path, damage: str, field: str):
    chunk = chunks(stored, field)[5]
    chunk.write_bytes(DAMAGES[damage](chunk.read_bytes()))
    found, counting = again(stored)
    assert counting.computed == _points(stored, chunk)
    assert_same_bytes(found, truth)


def _other_hardware() -> jl.Design:
    texts = without_sparse(SPARSE)
    energies = texts["energies"].replace("name: write, arguments: null, energy: 110", "name: write, energy: 111")
    assert energies != texts["energies"]
    return jl.loads(texts | {"energies": energies})


def _other_mappings() -> jl.Mapping:
    given = grid()["mappings"]
    return replace(given, temporal_order=given.temporal_order[:, :, ::-1].copy())


OTHERS: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "values": (lambda: {"over": grid()["over"] | {"Buffer.size": [25.0, 100.0, 4096.0]}}, "dimensions"),
    "number of values": (lambda: {"over": grid()["over"] | {"Buffer.size": [24.0, 100.0]}}, "dimensions"),
    "order": (lambda: {"over": dict(reversed(grid()["over"].items()))}, "dimensions"),
    "hardware": (lambda: {"design": _other_hardware()}, "design"),
    "mappings": (lambda: {"mappings": _other_mappings()}, "mappings"),
    "fields": (lambda: {"fields": ("cycles",)}, "fields"),
    "conventions": (lambda: {"conventions": jl.SMOOTH}, "conventions"),
    "zipped": (lambda: {"over": {"Buffer.size": [24.0] * 7}, "zipped": True}, "dimensions"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_sweep_is_refused(stored: Path, other: str):
    before = contents(stored)
    change, named = OTHERS[other]
    with pytest.raises(jl.SpecError, match=rf"out\.zarr.*another sweep: .*{named}.*\(give another path") as caught:
        again(stored, **change())
    assert len(caught.value.errors) == 1
    assert contents(stored) == before


def test_densities_are_named_where_they_differ(tmp_path: Path):
    design = jl.loads(SPARSE.texts())
    options: dict[str, Any] = {"fields": ("reads", "status", "valid"), "out": tmp_path / "out.zarr"}
    formats = {"format.Buffer.A": ["file", "none"]}
    jl.sweep(design, formats | {("density.A", "density.B"): [0.1, 0.2, 0.3]}, **options)
    with pytest.raises(jl.SpecError, match="differs in dimensions.*density"):
        jl.sweep(design, formats | {("density.A", "density.B"): [0.1, 0.2, 0.4]}, **options)
    files = replace(design, densities=design.densities | {"A": replace(design.densities["A"], density=0.3)})
    with pytest.raises(jl.SpecError, match="differs in design"):
        jl.sweep(files, formats | {("density.A", "density.B"): [0.1, 0.2, 0.3]}, **options)


def _file(path: Path) -> None:
    path.write_text("mine")


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("mine")


def _other_group(path: Path) -> None:
    xr.Dataset({"x": ("y", [1.0, 2.0])}).to_zarr(path, zarr_format=3, consolidated=False)


def _strange_definition(path: Path) -> None:
    xr.Dataset({"x": ("y", [1.0, 2.0])}, attrs={"definition": "[1]"}).to_zarr(path, zarr_format=3, consolidated=False)


@pytest.mark.parametrize("make", [_file, _folder, _other_group, _strange_definition])
@pytest.mark.parametrize("reduce", [None, jl.Best()])
def test_other_things_are_left_alone(tmp_path: Path, make: Callable[[Path], None], reduce: Any):
    path = tmp_path / "out.zarr"
    make(path)
    before = contents(tmp_path)
    with pytest.raises(jl.SpecError, match=r"out\.zarr: .*\((give another path|delete it)"):
        again(path, reduce=reduce)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("reduce", [None, jl.Best()])
@pytest.mark.parametrize("below", ["file", "/proc"])
def test_places_where_nothing_can_be_written(tmp_path: Path, below: str, reduce: Any):
    """Told before anything is computed."""
    (tmp_path / "file").write_text("mine")
    path = {"file": tmp_path / "file", "/proc": Path("/proc")}[below] / "out.zarr"
    counting = Counting()
    with pytest.raises(OSError, match=r"cannot write .*out\.zarr: .*\(check the path"):
        jl.sweep(**grid(), out=path, reduce=reduce, progress=counting)
    assert not counting.told or counting.told[-1][0] == 0
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


@pytest.mark.parametrize("reduce", [None, jl.Best()])
def test_folders_are_made(tmp_path: Path, reduce: Any):
    path = tmp_path / "new" / "deep" / "out.zarr"
    found, _ = again(path, reduce=reduce)
    assert_same_bytes(found, jl.sweep(**grid(), reduce=reduce))


def test_an_empty_folder_is_filled(truth: xr.Dataset, tmp_path: Path):
    (tmp_path / "out.zarr").mkdir()
    assert_same_bytes(again(tmp_path / "out.zarr")[0], truth)


def test_open_nothing(tmp_path: Path):
    with pytest.raises(jl.SpecError, match=r"nothing\.zarr: no sweep can be read there.*\(delete it, or"):
        jl.open_sweep(tmp_path / "nothing.zarr")


def test_full_disk(truth: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_of_few_bytes: Any):
    """In the middle of a sweep: one error, whole chunks alone, and a rerun that completes."""
    path, write = tmp_path / "out.zarr", store.Store.write

    def filling(self: Any, number: int, *rest: Any) -> None:
        if number == 6:
            files_of_few_bytes(30)
        write(self, number, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(store.Store, "write", filling)
        with pytest.raises(OSError, match=r"cannot write .*out\.zarr: File too large \(what is done is kept: run the"):
            again(path)
    files_of_few_bytes(resource.RLIM_INFINITY)
    assert len(chunks(path, "valid")) == 6
    assert all(found.name.isdigit() or found.name == "zarr.json" for found in path.rglob("*") if found.is_file())
    partly = jl.open_sweep(path).load()
    xr.testing.assert_equal(partly.where(partly.valid), truth.where(truth.valid & partly.cycles.notnull()))
    found, counting = again(path)
    assert counting.old == sum(_points(path, chunk) for chunk in chunks(path)[:6])
    assert_same_bytes(found, truth)


def test_full_disk_at_the_start(tmp_path: Path, files_of_few_bytes: Any):
    files_of_few_bytes(30)
    try:
        with pytest.raises(OSError, match=r"cannot write .*out\.zarr: File too large \("):
            again(tmp_path / "out.zarr")
    finally:
        files_of_few_bytes(resource.RLIM_INFINITY)
    assert not list(tmp_path.iterdir())


def test_what_a_dead_process_has_left_is_in_nobodys_way(truth: xr.Dataset, tmp_path: Path):
    """A half-made group, and the temporary file of a chunk."""
    left = tmp_path / f".out.zarr.{os.getpid()}.partial"
    left.mkdir()
    (left / "zarr.json").write_text("{")
    assert_same_bytes(again(tmp_path / "out.zarr")[0], truth)
    chunk = chunks(tmp_path / "out.zarr")[0]
    shutil.copy(chunk, chunk.with_name(f"{chunk.name}.0123456789abcdef.partial"))
    found, counting = again(tmp_path / "out.zarr")
    assert counting.computed == 0
    assert_same_bytes(found, truth)
    assert dense_design() == grid()["design"]
