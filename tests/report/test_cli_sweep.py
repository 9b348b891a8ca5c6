"""`jaxloop sweep`. Most tests sweep the same 2 x 3 points, so that they share one executable."""

import csv
import io
import os
from pathlib import Path

import pytest
import xarray as xr
from click.testing import CliRunner, Result
from rich.console import Console

import jaxloop
from jaxloop.__main__ import main
from jaxloop.report.sweep_table import print_sweep
from jaxloop.sweeps.dataset import storable

SPMM = str(Path(__file__).parents[2] / "examples" / "spmm.yaml")
GRID = ("--over", "density.A=0.1,0.2", "--over", "Buffer.size=100,2048,8192")
"""A buffer of 100 words is too small."""


def _run(*arguments: str, files: tuple[str, ...] = (SPMM,)) -> Result:
    return CliRunner().invoke(main, ["sweep", *files, *arguments])


def _grid(*arguments: str) -> Result:
    result = _run(*GRID, *arguments)
    assert result.exit_code == 0, result.stderr
    return result


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_holds_every_point():
    lines = _grid().stdout.splitlines()
    assert lines[0].strip() == "sweep: 6 points"
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]
    assert [row[:2] for row in cells] == [
        [share, size] for share in ("0.1", "0.2") for size in ("100", "2,048", "8,192")
    ]
    one = jaxloop.evaluate(jaxloop.load(SPMM))
    assert [row[2:] for row in cells] == [
        [f"{one.cycles:,.0f}", f"{one.energy_pj:,.0f}", v] for v in ("no", "yes", "yes") * 2
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".nc"])
def test_tables_in_files(suffix, tmp_path):
    path = tmp_path / f"sweep{suffix}"
    assert f"wrote {path}" in _grid("--to", str(path)).stdout
    assert os.listdir(tmp_path) == [path.name]
    if suffix == ".csv":
        rows = _rows(path)
        assert len(rows) == 6 and list(rows[0]) == ["density.A", "Buffer.size", "cycles", "energy_pj", "valid"]
    elif suffix == ".parquet":
        assert path.read_bytes()[:4] == b"PAR1"
    else:
        with xr.open_dataset(path, engine="h5netcdf") as back:
            assert dict(back.sizes) == {"density.A": 2, "Buffer.size": 3}


def test_the_best_for_each_value_and_the_front(tmp_path):
    _grid("--best", "edp:density.A", "--to", str(tmp_path / "best.csv"))
    rows = _rows(tmp_path / "best.csv")
    assert [(row["density.A"], row["Buffer.size"]) for row in rows] == [("0.1", "2048.0"), ("0.2", "2048.0")]
    _grid("--pareto", "cycles,energy", "--to", str(tmp_path / "front.csv"), "--plot", str(tmp_path / "plots"))
    (row,) = _rows(tmp_path / "front.csv")
    assert (row["density.A"], row["Buffer.size"], row["valid"]) == ("0.1", "2048.0", "True")
    assert sorted(os.listdir(tmp_path / "plots")) == ["bars.png", "bars.svg"]
    both = _grid("--best", "cycles", "--pareto", "cycles,energy", "--to", str(tmp_path / "both.csv")).stdout
    assert "best" in both and "pareto: 1 points" in both
    assert {"both-best.csv", "both-pareto.csv"} <= set(os.listdir(tmp_path))


def test_stored_sweeps_go_on_and_are_drawn_later(tmp_path):
    out = tmp_path / "sweep.zarr"
    first = _grid("--out", str(out))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = _grid("--out", str(out), "--plot", str(tmp_path / "plots"))
    assert first.stdout.splitlines()[:10] == again.stdout.splitlines()[:10]
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before
    assert {"lines.png", "map.png", "pareto.png"} <= set(os.listdir(tmp_path / "plots"))
    stored = jaxloop.open_sweep(out)
    assert stored["valid"].values.tolist() == [[False, True, True]] * 2
    other = _run("--over", "density.A=0.1,0.3", *GRID[2:], "--out", str(out))
    assert other.exit_code == 2 and other.stderr.count("error: ") == 1
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before


def test_reductions_on_disk(tmp_path):
    out = tmp_path / "best.zarr"
    stored, again = (_grid("--best", "edp", "--out", str(out)).stdout for _ in range(2))
    assert stored == again and f"wrote {out}" in again
    assert os.listdir(tmp_path) == ["best.zarr"]
    other = _run(*GRID, "--best", "energy", "--out", str(out))
    assert other.exit_code == 2 and "there is another sweep" in other.stderr


def test_axes_that_vary_together(tmp_path):
    arguments = ("--over", "density.A=linspace(0.1,0.3,3)", "--over", "Buffer.size=range(2000,2200,100)", "--zip")
    assert _run(*arguments, "--to", str(tmp_path / "zip.csv")).exit_code == 0
    rows = _rows(tmp_path / "zip.csv")
    assert [(float(row["density.A"]), float(row["Buffer.size"])) for row in rows] == [
        (pytest.approx(0.1), 2000.0),
        (pytest.approx(0.2), 2100.0),
        (pytest.approx(0.3), 2200.0),
    ]


def test_sparse_alternatives_and_where_their_energy_goes(tmp_path):
    result = _run(
        *("--over", "density.A,density.B=logspace(0.01,1,3)"),
        *("--over", "sparse=bitmask:matmul-0.1,coordinate_list:matmul-0.1"),
        *("--plot", str(tmp_path / "plots"), "--to", str(tmp_path / "points.csv")),
        files=("coordinate_list:matmul-0.1",),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    names = {f"{name}.{kind}" for name in ("lines", "pareto", "energy") for kind in ("png", "svg")}
    assert set(os.listdir(tmp_path / "plots")) == names
    legends = (tmp_path / "plots" / "energy.svg").read_text()
    assert all(word in legends for word in ("activity", "metadata", "compute"))
    rows = _rows(tmp_path / "points.csv")
    assert [float(row["density.A"]) for row in rows] == pytest.approx([0.01, 0.01, 0.1, 0.1, 1.0, 1.0])
    assert all(row["density.A"] == row["density.B"] for row in rows)
    assert [row["sparse"] for row in rows[:2]] == ["bitmask:matmul-0.1", "coordinate_list:matmul-0.1"]
    cycles = [float(row["cycles"]) for row in rows]
    assert cycles[1] < cycles[0] and cycles[5] > cycles[4]
    for row in rows:
        parts = [float(value) for name, value in row.items() if name.startswith("energy_pj_by_activity.")]
        assert sum(parts) + float(row["compute_energy_pj"]) == pytest.approx(float(row["energy_pj"]), rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--over", "Bufer.size=1,2"), 'no axis "Bufer.size" (did you mean "Buffer.size"?'),
        (("--over", "Buffer.siz=1,2"), '"Buffer" has no attribute "siz" (did you mean "size"?)'),
        (("--over", "density.C=0.1"), 'no tensor "C"'),
        (("--over", "Buffer.size"), "there is no `=` (write AXIS=VALUES"),
        (("--over", "=1,2"), "there is no axis (write AXIS=VALUES"),
        (("--over", "Buffer.size="), "the axis has no values"),
        (("--over", "Buffer.size=1,two"), "'two' is no number"),
        (("--over", "Buffer.size=linspace(1,2,inf)"), "needs finite numbers"),
        (("--over", "Buffer.size=1", "--over", "Buffer.size=2"), "the axis is given twice"),
        (("--over", "density.A=0.1,0.2", "--over", "Buffer.size=1,2,3", "--zip"), "different lengths"),
        (("--over", "sparse=absent.yaml"), "absent.yaml: cannot read the file"),
        ((*GRID, "--fields", "joules"), 'no result "joules"'),
        ((*GRID, "--best", "speed"), 'no result "speed"'),
        ((*GRID, "--best", "edp:Buffer.area"), 'no dimension "Buffer.area" to keep'),
        ((*GRID, "--pareto", "cycles,reads"), '"reads" is not one number per point'),
        ((*GRID, "--float32"), "add --conventions smooth"),
        ((*GRID, "--to", "points.xlsx"), "cannot write points.xlsx: tables are .parquet, .csv, .nc"),
        ((*GRID, "--to", "absent/points.csv"), "there is no folder absent"),
        ((*GRID, "--out", "absent/sweep.zarr"), "there is no folder absent"),
        ((*GRID, "--plot", "absent/plots"), "there is no folder absent"),
    ],
)
def test_bad_input_is_one_message_and_nothing_written(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outputs = {"--out": "sweep.zarr", "--to": "table.csv", "--plot": "plots"}
    others = [text for option, name in outputs.items() if option not in arguments for text in (option, name)]
    result = _run(*arguments, *others)
    assert result.exit_code == 2
    assert result.stdout == "" and result.stderr.count("error: ") == 1 and message in result.stderr
    assert os.listdir(tmp_path) == []


def test_an_output_that_is_no_sweep(tmp_path):
    out = tmp_path / "notes"
    out.mkdir()
    (out / "text").write_text("mine")
    result = _run(*GRID, "--out", str(out))
    assert result.exit_code == 2 and result.stderr.count("error: ") == 1 and str(out) in result.stderr
    assert os.listdir(out) == ["text"] and os.listdir(tmp_path) == ["notes"]
    plots = _run(*GRID, "--plot", str(out / "text"))
    assert plots.exit_code == 2 and "it is no folder" in plots.stderr


def test_numbers_of_the_table_line_up():
    values = {"whole": 2.0**53, "large": 7882967.008, "small": 0.123456789, "huge": 1e20, "none": float("nan")}
    console = Console(width=200, record=True, file=io.StringIO())
    print_sweep(xr.Dataset({name: ("point", [value]) for name, value in values.items()}), console=console)
    cells = [line for line in console.export_text().splitlines() if line.startswith("│")]
    assert [cell.strip() for cell in cells[0].strip("│").split("│")] == [
        "9.0072e+15", "7,882,967", "0.123457", "1e+20", "nan",
    ]  # fmt: skip


def test_texts_survive_the_disk(tmp_path):
    """Without a warning of Zarr's, which would fail the test."""
    texts = xr.Dataset({"cycles": ("sparse", [1.0, 2.0])}, {"sparse": ("sparse", ["b", "coordinates"], {"units": ""})})
    storable(texts).to_zarr(tmp_path / "s.zarr", zarr_format=3, consolidated=False)
    back = jaxloop.open_sweep(tmp_path / "s.zarr")
    assert back.identical(texts) and back["sparse"].dtype == texts["sparse"].dtype


def test_the_help_explains_every_option():
    text = _run("--help", files=()).stdout
    for option in ("--over", "--zip", "--best", "--pareto", "--out", "--to", "--plot", "Exit status"):
        assert option in text
