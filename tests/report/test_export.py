import csv
import json
import math
import os
import sys

import numpy as np
import pytest
import xarray as xr
from pyarrow import parquet

from jaxloop._errors import SpecError
from jaxloop.report import export as exporting
from jaxloop.report.export import export
from tests.sweep_datasets import a_sweep

SUFFIXES = (".parquet", ".csv", ".nc")
each_suffix = pytest.mark.parametrize("suffix", SUFFIXES)


@pytest.fixture
def dataset() -> xr.Dataset:
    axes = {
        "density.A+density.B": [(0.1, 0.2), (0.5, 0.3)],
        "format.Buffer.A": ["UOP-CP", 'a "b", c'],
        "mapping": range(5),
    }
    made = a_sweep(axes, share_invalid=0.2)
    made["energy_pj"][1, 1, :4] = [0.1 + 0.2, 5e-324, np.inf, np.finfo(float).max]
    return made


def rows_of(dataset: xr.Dataset) -> dict[str, list]:
    """What the columns should hold, worked out by xarray."""
    first = ["density.A+density.B", "density.A", "density.B", "format.Buffer.A", "mapping"]
    points = dataset["cycles"].stack(point=dataset["cycles"].dims).reset_index("point")
    columns = {name: points[name].values.tolist() for name in first}
    for name, variable in dataset.data_vars.items():
        extra = [dim for dim in variable.dims if dim not in dataset["cycles"].dims]
        for place in np.ndindex(*(dataset.sizes[dim] for dim in extra)):
            at = dict(zip(extra, place, strict=True))
            labels = [str(dataset[dim].values[i]) for dim, i in at.items()]
            columns[".".join([str(name), *labels])] = variable.isel(at).values.reshape(-1).tolist()
    return columns


def test_parquet_has_all_columns_and_units(dataset, tmp_path):
    path = export(dataset, tmp_path / "sweep.parquet")
    table = parquet.read_table(path)
    expected = rows_of(dataset)
    assert table.column_names == list(expected)
    for name, values in expected.items():
        assert list(map(repr, table[name].to_pylist())) == list(map(repr, values)), name
    assert str(table.schema.field("valid").type) == "bool" and str(table.schema.field("status").type) == "int64"
    metadata = table.schema.metadata
    assert json.loads(metadata[b"units"])["energy_pj_by_activity.DRAM.read"] == "pJ"
    assert metadata[b"design"] == b"demo" and metadata[b"definition"] == b'{"axes": []}'
    assert table.schema.field("cycles").metadata == {b"units": b"cycle", b"long_name": b"cycles"}


def test_csv_keeps_all_digits(dataset, tmp_path):
    path = export(dataset, tmp_path / "sweep.csv")
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    expected = rows_of(dataset)
    assert head == list(expected)
    for name, texts, values in zip(head, zip(*rows, strict=True), expected.values(), strict=True):
        read_one = (lambda text: text == "True") if isinstance(values[0], bool) else type(values[0])
        read = [read_one(text) for text in texts]
        assert list(map(repr, read)) == list(map(repr, values)), name


def test_netcdf_is_the_dataset(dataset, tmp_path):
    path = export(dataset, tmp_path / "sweep.nc", block_rows=4)
    with xr.open_dataset(path, engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), dataset)
        assert back["valid"].dtype == bool and back["status"].dtype == np.int64


@pytest.mark.parametrize("block_rows", [1, 3, 7, 10, 1000])
def test_blocks_do_not_change_what_is_written(dataset, tmp_path, block_rows):
    """Read lazily from a file."""
    with xr.open_dataset(export(dataset, tmp_path / "lazy.nc"), engine="h5netcdf") as lazy:
        for suffix in SUFFIXES:
            export(lazy, tmp_path / f"blocks{suffix}", block_rows)
            export(dataset, tmp_path / f"whole{suffix}")
    assert (tmp_path / "blocks.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    with parquet.ParquetFile(tmp_path / "blocks.parquet") as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        assert sum(sizes) == 20 and max(sizes) <= block_rows
    blocks = parquet.read_table(tmp_path / "blocks.parquet").to_pylist()
    assert repr(blocks) == repr(parquet.read_table(tmp_path / "whole.parquet").to_pylist())
    with xr.open_dataset(tmp_path / "blocks.nc", engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), dataset)


@each_suffix
def test_many_rows_in_default_blocks(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(exporting, "CELLS_PER_BLOCK", 2**14)
    dataset = a_sweep({"density.A": np.linspace(0.1, 1.0, 7), "mapping": range(3000)}, parts=False)
    path = export(dataset, tmp_path / f"sweep{suffix}")
    if suffix == ".csv":
        cycles = np.loadtxt(path, delimiter=",", skiprows=1, usecols=2)
    elif suffix == ".nc":
        with xr.open_dataset(path, engine="h5netcdf") as back:
            cycles = back["cycles"].values.reshape(-1)
    else:
        with parquet.ParquetFile(path) as file:
            assert file.num_row_groups > 7
        cycles = parquet.read_table(path)["cycles"].to_numpy()
    np.testing.assert_array_equal(cycles, dataset["cycles"].values.reshape(-1))


def test_no_chunk_of_a_store_is_read_twice(monkeypatch):
    monkeypatch.setattr(exporting, "CELLS_PER_BLOCK", 600)
    dataset = a_sweep({"density.A": range(1, 5), "Buffer.size": range(1, 9), "mapping": range(50)}, parts=False)
    columns = 3 + 6
    rows = [math.prod(part.stop - part.start for part in slab.values()) for slab in exporting._slabs(dataset, None)]
    assert sum(rows) == 4 * 8 * 50 and max(rows) * columns <= 600
    dataset["cycles"].encoding["chunks"] = (1, 3, 10)
    slabs = list(exporting._slabs(dataset, None))
    assert [(s["density.A"].start, s["Buffer.size"].start, s["Buffer.size"].stop) for s in slabs] == [
        (i, start, min(start + 3, 8)) for i in range(4) for start in (0, 3, 6)
    ]
    assert {(s["mapping"].start, s["mapping"].stop) for s in slabs} == {(0, 50)}
    monkeypatch.setattr(exporting, "MOST_CELLS_PER_BLOCK", 600)
    assert max(s["mapping"].stop - s["mapping"].start for s in exporting._slabs(dataset, None)) == 50


@each_suffix
def test_an_interrupt_leaves_the_old_file_and_nothing_else(dataset, tmp_path, monkeypatch, suffix):
    path = tmp_path / f"sweep{suffix}"
    path.write_text("old")
    slabs = exporting._slabs

    def interrupted(*arguments):
        yield next(slabs(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "_slabs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(dataset, path, block_rows=5)
    assert os.listdir(tmp_path) == [path.name] and path.read_text() == "old"


@each_suffix
def test_a_reduced_sweep_of_one_point(tmp_path, suffix):
    dataset = a_sweep({"mapping": range(3)}).isel(mapping=1)
    path = export(dataset, tmp_path / f"sweep{suffix}")
    if suffix == ".nc":
        with xr.open_dataset(path, engine="h5netcdf") as back:
            xr.testing.assert_identical(back.load(), dataset)
    elif suffix == ".csv":
        head, row = path.read_text().splitlines()
        assert head.startswith("mapping,cycles,energy_pj") and row.startswith(f"1,{float(dataset['cycles'])}")
    else:
        assert parquet.read_table(path)["energy_pj"].to_pylist() == [float(dataset["energy_pj"])]


@pytest.mark.parametrize(("suffix", "module"), [(".parquet", "pyarrow"), (".nc", "h5netcdf"), (".nc", "h5py")])
def test_a_missing_library_is_named(dataset, tmp_path, monkeypatch, suffix, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SpecError, match=r"pip install 'jaxloop\[export\]'"):
        export(dataset, tmp_path / f"sweep{suffix}")
    assert os.listdir(tmp_path) == []


def test_refusals(dataset, tmp_path):
    with pytest.raises(SpecError, match=r'suffix "\.parket".*did you mean "\.parquet"'):
        export(dataset, tmp_path / "sweep.parket")
    with pytest.raises(SpecError, match="no variable cycles"):
        export(dataset.drop_vars("cycles"), tmp_path / "sweep.csv")
    with pytest.raises(SpecError, match='"/": size/A'):
        export(dataset.assign({"size/A": dataset["cycles"]}), tmp_path / "sweep.nc")
    with pytest.raises(SpecError, match="two columns energy_pj_by_tensor.DRAM.A"):
        export(dataset.assign({"energy_pj_by_tensor.DRAM.A": dataset["cycles"]}), tmp_path / "sweep.csv")
    with pytest.raises(FileNotFoundError):
        export(dataset, tmp_path / "absent" / "sweep.csv")
    assert os.listdir(tmp_path) == []
