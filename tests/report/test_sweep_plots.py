import os
import sys
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxloop._errors import SpecError
from jaxloop.report.figures import COLORS, render
from jaxloop.report.sweep_plots import pareto_front, plots_of, write_plots
from jaxloop.report.sweep_points import axis_of, number_text, points_of
from tests.sweep_datasets import OF_ACCESSES, a_sweep

DENSITIES = np.geomspace(0.001, 1.0, 7)
FORMATS = ["UOP-CP", "B", "RLE"]


def drawn(dataset: xr.Dataset, name: str) -> Any:
    figure = Figure(layout="constrained")
    plots_of(dataset)[name](figure)
    figure.draw_without_rendering()
    return figure


def title(figure: Any) -> str:
    return figure.get_suptitle().replace("\n", " ")


def texts_of_legend(figure: Any) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def best_of_mappings(dataset: xr.Dataset, name: str) -> xr.DataArray:
    edp = dataset["edp"].where(dataset["valid"])
    return dataset[name].isel(mapping=edp.fillna(np.inf).argmin("mapping")).where(edp.notnull().any("mapping"))


def test_lines_are_the_best_mappings():
    dataset = a_sweep({"density.A": DENSITIES, "format.Buffer.A": FORMATS, "mapping": range(9)}, 0.2)
    figure = drawn(dataset, "lines")
    assert title(figure) == "demo (best of 9 mappings)"
    assert texts_of_legend(figure) == FORMATS
    cycles, energy, edp = figure.axes
    assert [panel.get_ylabel() for panel in figure.axes] == ["cycles", "energy [µJ]", "EDP [mJ·cycle]"]
    assert {panel.get_xlabel() for panel in figure.axes} == {"density.A"}
    assert {panel.get_xscale() for panel in figure.axes} == {"log"}
    for panel, name, scale in ((cycles, "cycles", 1.0), (energy, "energy_pj", 1e6), (edp, "edp", 1e9)):
        expected = best_of_mappings(dataset, name)
        assert len(panel.lines) == len(FORMATS)
        for line, kind in zip(panel.lines, FORMATS, strict=True):
            np.testing.assert_array_equal(line.get_xdata(), DENSITIES)
            values = expected.sel({"format.Buffer.A": kind}).values / scale
            np.testing.assert_allclose(np.asarray(line.get_ydata(), float), values)
    styles = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in cycles.lines}
    assert len(styles) == 3 and all(len({style[i] for style in styles}) == 3 for i in range(3))


def test_points_that_are_not_valid_are_gaps():
    dataset = a_sweep({"Buffer.size": [1024, 2048, 4096, 8192]})
    dataset["valid"][1] = False
    dataset["cycles"][2] = np.nan
    (line,) = drawn(dataset, "lines").axes[0].lines
    assert np.isfinite(np.asarray(line.get_ydata(), float)).tolist() == [True, False, False, True]
    (panel, *_) = drawn(dataset, "lines").axes
    assert panel.get_xlabel() == "Buffer.size [word]"
    assert [label.get_text() for label in panel.get_xticklabels()] == ["1 Ki", "2 Ki", "4 Ki", "8 Ki"]


def test_too_many_lines_are_reduced_to_the_best_choice():
    dataset = a_sweep({"density.A": np.linspace(0.1, 1.0, 10), "Buffer.size": [2**k for k in range(10, 19)]})
    figure = drawn(dataset, "lines")
    assert title(figure) == "demo (best of 9 Buffer.size)"
    (line,) = figure.axes[0].lines
    at = dataset["edp"].argmin("Buffer.size")
    np.testing.assert_array_equal(line.get_ydata(), dataset["cycles"].isel({"Buffer.size": at}))
    assert figure.axes[0].get_xscale() == "linear"


def test_workloads_are_not_reduced_to_the_easiest():
    dataset = a_sweep({"density.A": np.linspace(0.1, 1.0, 11), "density.B": np.linspace(0.1, 1.0, 10)})
    figure = drawn(dataset, "lines")
    assert title(figure) == "demo (4 of 10 density.B)"
    assert texts_of_legend(figure) == ["0.1", "0.4", "0.7", "1"]
    assert "density.B 0.5" in title(drawn(dataset, "energy"))


def test_area_is_drawn_where_it_varies():
    dataset = a_sweep({"Buffer.size": [1, 2, 3]})
    assert len(drawn(dataset, "lines").axes) == 3
    dataset["area_um2"][:] = [1e4, 2e4, 3e4]
    panel = drawn(dataset, "lines").axes[3]
    assert panel.get_ylabel() == "area [mm²]"
    np.testing.assert_allclose(panel.lines[0].get_ydata(), [0.01, 0.02, 0.03])


def test_zipped_axes():
    same = a_sweep({"density.A+density.B": [(0.1, 0.1), (0.5, 0.5), (0.9, 0.9)]})
    panel = drawn(same, "lines").axes[0]
    assert panel.get_xlabel() == "density.A = density.B"
    np.testing.assert_array_equal(panel.lines[0].get_xdata(), [0.1, 0.5, 0.9])
    differing = a_sweep({"density.A+density.B": [(0.1, 0.2), (0.5, 0.3)]})
    assert axis_of(differing, "density.A+density.B").label == "density.A (with density.B 0.2 to 0.3)"
    mixed = a_sweep({"format.Buffer.A+Buffer.size": [("B", 8), ("RLE", 4)]})
    assert axis_of(mixed, "format.Buffer.A+Buffer.size").texts == ("B, 8", "RLE, 4")
    assert "bars" in plots_of(mixed) and "lines" not in plots_of(mixed)


def test_where_the_best_was_found_is_no_axis():
    best = a_sweep({"Buffer.size": [16, 64, 256]}).assign_coords(mapping=("Buffer.size", [7, 7, 3]))
    axis = axis_of(best, "Buffer.size")
    assert axis.numeric and axis.label == "Buffer.size [word]" and axis.texts == ("16", "64", "256")


def test_points_of_a_front_are_told_by_their_axes():
    front = a_sweep({"point": range(3)}, parts=False).drop_vars("point")
    sizes = {"density.A": ("point", [0.1, 0.2, 0.3]), "Buffer.size": ("point", [16, 64, 16])}
    axis = axis_of(front.assign_coords(sizes), "point")
    assert not axis.numeric and axis.texts == ("0.1, 16", "0.2, 64", "0.3, 16")
    assert "bars" in plots_of(front.assign_coords(sizes))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([16, 64, 256], True),
        ([0.01, 0.05, 0.1, 0.5, 1.0], True),
        (np.linspace(0.01, 1.0, 20), False),
        ([0.0, 0.001, 1.0], False),
        ([1.0, 100.0], True),
        ([1, 2], False),
    ],
)
def test_which_axes_are_logarithmic(values, expected):
    assert axis_of(a_sweep({"Buffer.size": values}), "Buffer.size").log is expected


def test_map_has_cells_around_the_points():
    dataset = a_sweep({"density.A": [0.01, 0.1, 1.0], "Buffer.size": [10, 20, 30, 40]}, 0.1)
    figure = drawn(dataset, "map")
    left, right, *bars = figure.axes
    assert left.get_xlabel() == "density.A" and left.get_ylabel() == "Buffer.size [word]"
    assert [bar.get_xlabel() for bar in bars] == ["cycles", "energy [µJ]"]
    corners = np.asarray(left.collections[0].get_coordinates())
    np.testing.assert_allclose(corners[0, :, 0], 10.0 ** np.array([-2.5, -1.5, -0.5, 0.5]))
    np.testing.assert_allclose(corners[:, 0, 1], [5, 15, 25, 35, 45])
    shown = np.ma.filled(right.collections[0].get_array(), np.nan).reshape(4, 3)
    np.testing.assert_allclose(shown, dataset["energy_pj"].values.T / 1e6)
    assert np.isnan(shown).sum() == 2
    assert texts_of_legend(figure) == ["lowest EDP", "not valid"]
    (star,) = left.lines
    i, j = np.unravel_index(np.nanargmin(dataset["edp"]), (3, 4))
    assert (star.get_xdata()[0], star.get_ydata()[0]) == ([0.01, 0.1, 1.0][i], [10, 20, 30, 40][j])


def test_map_has_a_column_for_each_choice():
    dataset = a_sweep(
        {"density.A": [0.1, 0.4, 1.0], "rank.M": [16, 32], "format.Buffer.A": FORMATS, "mapping": range(3)}
    )
    figure = drawn(dataset, "map")
    assert title(figure) == "demo (best of 3 mappings; columns: format.Buffer.A)"
    assert [panel.get_title() for panel in figure.axes[:3]] == FORMATS
    assert len(figure.axes) == 6 + 2


def test_bars_where_no_axis_is_numeric():
    dataset = a_sweep({"format.Buffer.A": FORMATS, "saf.Buffer.B": ["skip", "none"]}, 0.2)
    figure = drawn(dataset, "bars")
    cycles, energy, edp = figure.axes
    assert [panel.get_xlabel() for panel in (cycles, energy, edp)] == ["cycles", "energy [µJ]", "EDP [mJ·cycle]"]
    assert title(figure) == "demo (rows: format.Buffer.A, saf.Buffer.B)"
    kept = dataset["cycles"].values.reshape(-1)[2:]
    np.testing.assert_array_equal([bar.get_width() for bar in cycles.patches], kept)
    texts = [label.get_text() for label in cycles.get_yticklabels()]
    assert texts == ["B, skip", "B, none", "RLE, skip", "RLE, none"]


def test_of_many_bars_the_best_are_drawn():
    dataset = a_sweep({"format.Buffer.A": [f"F{i}" for i in range(30)]}, 0.1)
    figure = drawn(dataset, "bars")
    assert title(figure) == "demo (the best 12 of 27; rows: format.Buffer.A)"
    texts = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    best = np.sort(np.argsort(dataset["edp"].values)[:12])
    assert texts == [f"F{i}" for i in best]


def test_a_single_point_is_drawn():
    dataset = a_sweep({"mapping": range(3)}).isel(mapping=0)
    assert set(plots_of(dataset)) == {"bars", "energy"}
    assert render(plots_of(dataset)["bars"])["png"]


def test_front_is_that_of_all_pairs():
    draw = np.random.default_rng(0)
    for _ in range(20):
        cycles, energy = draw.integers(0, 12, (2, 40)).astype(float)
        beaten = (cycles[:, None] >= cycles) & (energy[:, None] >= energy)
        beaten &= (cycles[:, None] > cycles) | (energy[:, None] > energy)
        expected = {(c, e) for c, e, lost in zip(cycles, energy, beaten.any(1), strict=True) if not lost}
        front = pareto_front(cycles, energy)
        assert {(cycles[i], energy[i]) for i in front} == expected and len(front) == len(expected)
        assert (np.diff(cycles[front]) > 0).all()


def test_scatter_has_all_valid_points_and_their_front():
    dataset = a_sweep({"format.Buffer.A": FORMATS, "mapping": range(50)}, 0.1)
    figure = drawn(dataset, "pareto")
    (panel,) = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("cycles", "energy [µJ]")
    *dots, front, star = panel.lines
    valid = dataset["valid"].values
    assert [len(line.get_xdata()) for line in dots] == valid.sum(1).tolist()
    cycles, energy = dataset["cycles"].values[valid], dataset["energy_pj"].values[valid]
    chosen = pareto_front(cycles, energy)
    np.testing.assert_array_equal(front.get_xdata(), cycles[chosen])
    np.testing.assert_allclose(front.get_ydata(), energy[chosen] / 1e6)
    assert star.get_xdata() == cycles[(cycles * energy).argmin()]
    assert title(figure) == "demo (135 valid points)"
    assert texts_of_legend(figure) == [*FORMATS, f"Pareto front ({len(chosen)})", "lowest EDP"]


def test_large_scatter_is_thinned_but_not_its_front():
    dataset = a_sweep({"density.A": [0.1, 0.2], "mapping": range(15_000)}, parts=False)
    (panel,) = drawn(dataset, "pareto").axes
    dots, front, _ = panel.lines
    assert len(dots.get_xdata()) == 20_000 and dots.get_rasterized()
    cycles, energy = dataset["cycles"].values.reshape(-1), dataset["energy_pj"].values.reshape(-1)
    np.testing.assert_array_equal(front.get_xdata(), cycles[pareto_front(cycles, energy)])


def test_energy_adds_up():
    dataset = a_sweep({"density.A": np.linspace(0.05, 1.0, 20), "format.Buffer.A": FORMATS, "mapping": range(4)})
    figure = drawn(dataset, "energy")
    assert title(figure) == "demo (best of 4 mappings; best of 3 format.Buffer.A; 12 of 20 density.A)"
    assert [panel.get_legend().get_title().get_text() for panel in figure.axes] == ["level", "activity", "tensor"]
    flat = dataset["edp"].stack(rest=["format.Buffer.A", "mapping"]).argmin("rest")
    energy = dataset["energy_pj"].stack(rest=["format.Buffer.A", "mapping"]).isel(rest=flat).values
    kept = np.linspace(0, 19, 12).round().astype(int)
    for panel, parts, share in zip(figure.axes, (4, 4, 2), (1.0, 1.0, OF_ACCESSES), strict=True):
        names = [text.get_text() for text in panel.get_legend().get_texts()]
        assert ("compute" in names) == (parts == 4)
        heights = np.array([bar.get_height() for bar in panel.patches]).reshape(parts, 12)
        np.testing.assert_allclose(heights.sum(0), share * energy[kept] / 1e3)
        assert panel.get_ylabel() == "energy [nJ]"
        assert len({bars[0].get_hatch() for bars in panel.containers}) == parts


def test_energies_far_apart_are_shares():
    dataset = a_sweep({"rank.M": [1, 10, 100]})
    for name in ("energy_pj", "compute_energy_pj", "energy_pj_by_tensor", "energy_pj_by_activity"):
        dataset[name] = dataset[name] * xr.DataArray([1.0, 1e3, 1e6], dims="rank.M")
    panel, _, tensors = drawn(dataset, "energy").axes
    assert panel.get_ylabel() == "share of energy [%]"
    assert np.array([bar.get_height() for bar in panel.patches]).reshape(4, 3).sum(0) == pytest.approx([100.0] * 3)
    of_tensors = np.array([bar.get_height() for bar in tensors.patches]).reshape(2, 3).sum(0)
    assert of_tensors == pytest.approx([100.0 * OF_ACCESSES] * 3)
    assert len(panel.texts) == 3 and "energy [" in panel.get_title("left")


def test_small_parts_are_put_together():
    dataset = a_sweep({"rank.M": [1, 2]}).drop_dims(["level", "tensor", "activity"]).drop_vars("compute_energy_pj")

    def legend(parts: int) -> list[str]:
        labels = {"level": [f"L{i}" for i in range(parts)], "tensor": ["A"]}
        many = xr.DataArray(np.arange(1.0, parts + 1.0)[:, None], dims=("level", "tensor"), coords=labels)
        panel, _ = drawn(dataset.assign(energy_pj_by_tensor=dataset["cycles"] * many), "energy").axes
        return [text.get_text() for text in panel.get_legend().get_texts()][::-1]

    assert legend(10) == [f"L{i}" for i in range(9, 2, -1)] + ["3 others"]
    assert legend(8) == [f"L{i}" for i in range(7, -1, -1)]


def test_files_are_the_same_again(tmp_path):
    dataset = a_sweep({"density.A": [0.1, 0.3], "Buffer.size": [1, 2]}).drop_vars("energy_pj_by_activity")
    paths = write_plots(dataset, tmp_path)
    names = [f"{name}.{kind}" for name in ("lines", "map", "pareto", "energy") for kind in ("png", "svg")]
    assert [path.name for path in paths] == names and sorted(os.listdir(tmp_path)) == sorted(names)
    again = write_plots(dataset, tmp_path / "demo.png")
    assert [path.name for path in again] == [f"demo-{name}" for name in names]
    for first, second in zip(paths, again, strict=True):
        content = first.read_bytes()
        assert content == second.read_bytes()
        if first.suffix == ".png":
            assert content.startswith(b"\x89PNG\r\n") and content.rstrip().endswith(b"IEND\xaeB`\x82")
        else:
            assert ET.fromstring(content).tag.endswith("svg")


def test_nothing_to_draw_is_said(tmp_path, monkeypatch):
    dataset = a_sweep({"mapping": range(4)}, share_invalid=1.0)
    with pytest.raises(SpecError, match="sweep of demo: none of the 4 points is valid"):
        write_plots(dataset, tmp_path)
    with pytest.raises(SpecError, match="no variable energy_pj, valid"):
        plots_of(dataset.drop_vars(["energy_pj", "valid"]))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SpecError, match=r"figures need matplotlib.*pip install 'jaxloop\[plot\]'"):
        write_plots(a_sweep({"mapping": range(4)}), tmp_path)
    assert os.listdir(tmp_path) == []


def test_quantities_may_lack_dimensions():
    dataset = a_sweep({"density.A": [0.1, 0.2], "Buffer.size": [1, 2, 3]})
    dataset["area_um2"] = ("Buffer.size", [1.0, 2.0, 3.0])
    points = points_of(dataset.drop_vars("edp"))
    np.testing.assert_array_equal(points.quantities["area_um2"], [[1, 2, 3]] * 2)
    np.testing.assert_array_equal(points.quantities["edp"], dataset["edp"])


def test_numbers_and_colors():
    texts = [number_text(value) for value in (0.0, 0.015, 999.0, 1500.0, 2.5e9, -3e6)]
    assert texts == ["0", "0.015", "999", "1.5k", "2.5G", "-3M"]
    assert len(set(COLORS)) == 8
