"""The results of the Sparseloop paper: figures that it and its artifact state, and the command that computes them."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from jaxloop import SpecError, load
from jaxloop.__main__ import main
from jaxloop.reproduce import RESULTS, Options, Outcome, Row, chosen
from jaxloop.reproduce.fig1 import crossing
from jaxloop.reproduce.masks import check_masks, masks_of
from jaxloop.reproduce.page import deliver, page
from jaxloop.reproduce.runs import compare, run

CYCLES, ENERGY = 2.0, 1e-3


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {name: result.reproduce(Options()) for name, result in RESULTS.items()}


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["reproduce", *arguments])


def _rows(outcome: Outcome, quantity: str) -> dict[str, Row]:
    return {row.what: row for row in outcome.rows if row.quantity == quantity}


@pytest.mark.parametrize(("name", "runs"), [("fig1", 16), ("fig12", 8), ("fig15", 96), ("table7", 10)])
def test_cycles_and_energies_are_those_of_the_artifact(outcomes, name, runs):
    cycles, energies = _rows(outcomes[name], "cycles"), _rows(outcomes[name], "energy")
    assert len(cycles) == len(energies) == runs
    assert [row for row in cycles.values() if abs(row.ours - row.reference) > CYCLES] == []
    assert [row for row in energies.values() if abs(row.error) > ENERGY] == []


@pytest.mark.parametrize("name", ["fig1", "fig12", "fig15", "table7"])
def test_counts_of_every_level_are_those_of_the_artifact(outcomes, name):
    assert outcomes[name].compared > 400
    assert outcomes[name].differences == ()


def test_fig1_changes_sides(outcomes):
    """Absolute figures and both crossings as the paper tells them."""
    cycles, energies = (_rows(outcomes["fig1"], quantity) for quantity in ("cycles", "energy"))
    assert cycles["coordinate_list 0.01"].ours == pytest.approx(34056, abs=CYCLES)
    assert cycles["bitmask 0.4"].ours == pytest.approx(2113536, abs=CYCLES)
    assert energies["bitmask 0.04"].ours > energies["coordinate_list 0.04"].ours
    assert energies["bitmask 0.08"].ours < energies["coordinate_list 0.08"].ours
    assert cycles["bitmask 0.4"].ours > cycles["coordinate_list 0.4"].ours
    assert cycles["bitmask 0.8"].ours < cycles["coordinate_list 0.8"].ours
    assert "energy at a density of 0.066 and the same time at 0.57" in outcomes["fig1"].findings[0]


def test_fig1_map_space(outcomes):
    sheet = outcomes["fig1"].sheets[1]
    assert len(sheet.rows) == 16
    best = "Where Buffer holds one row of each operand the shipped mapping is the best by energy-delay product"
    assert all("2,304 mappings" in finding and best in finding for finding in outcomes["fig1"].findings[1:])


def test_fig12_uniform_error(outcomes):
    (finding,) = outcomes["fig12"].findings
    assert "mean absolute error 3.46 %, largest -6.46 % (L07), of the sum -3.40 %" in finding


def test_fig12_drawn_masks_are_near_the_uniform_model(outcomes):
    """The model of random nonzeros predicts the mean of draws, so one draw of thousands of words lies close to it."""
    sheet = outcomes["fig12"].sheets[0]
    assert "one random draw" in sheet.heads
    uniform, drawn = sheet.heads.index("uniform"), sheet.heads.index("one random draw")
    for row in sheet.rows:
        expected, found = (float(row[i].replace(",", "")) for i in (uniform, drawn))
        assert found == pytest.approx(expected, rel=0.01) and found != expected


def test_fig13_bars(outcomes):
    bars = _rows(outcomes["fig13"], "bar of two digits")
    assert [row.ours for row in bars.values()] == [0.9, 0.48, 0.72, 0.38, 0.54, 0.29, 0.36, 0.19]
    assert "6.92 %" in outcomes["fig13"].findings[1] and "7.55 %" in outcomes["fig13"].findings[1]
    assert "592,553,914 cycles" in outcomes["fig13"].findings[2]


def test_fig15_sums(outcomes):
    """The table of the normalized sums, as published to four digits."""
    published = {
        "DSTC": ".6384/1.610 .4116/.8306 .3558/.6571 .2694/.5137",
        "STC": "1.0/.9095 .5/.6028 .5/.6028 .5/.6028",
        "STC-flexible": "1.0/.9095 .5/.6028 .5049/.5223 .4524/.4383",
        "STC-flexible-RLE": "1.0/.9095 .5/.6028 .4881/.5170 .4524/.4383",
        "STC-flexible-RLE-dualCompress": "1.0/.7741 .5/.4887 .3874/.4073 .3228/.3455",
    }
    found: dict[str, list[float]] = {}
    for design, _, cycles, _, energy, *_ in outcomes["fig15"].sheets[0].rows:
        found.setdefault(design, []).extend((float(cycles), float(energy)))
    for design, texts in published.items():
        expected = [float(text) for pair in texts.split() for text in pair.split("/")]
        assert found[design] == pytest.approx(expected, abs=5e-4)


def test_table7_ratios(outcomes):
    ratios = _rows(outcomes["table7"], "ratio of three digits")
    assert [round(row.ours, 1) for row in ratios.values()] == [1.2, 1.4, 1.7, 1.9, 1.9]
    assert [round(row.ours, 3) for row in ratios.values()] == [1.243, 1.355, 1.698, 1.867, 1.938]


def test_a_wrong_number_is_listed():
    name = "eyeriss_table7:conv5"
    answer = json.loads((resources.files("jaxloop.reproduce.reference") / "table7.json").read_text())["designs"][name]
    evaluation = run(name, Options())
    total, found = compare(name, answer, evaluation)
    assert total > 50 and found == []
    answer["levels"]["DRAM.Weights"]["actual"][0] += 3
    answer["levels"]["MACs"]["energy_pj"] *= 1.001
    del answer["levels"]["psum_spad.Outputs"]["actual"]
    _, found = compare(name, answer, evaluation)
    assert {(d.place, d.what) for d in found} == {
        ("DRAM.Weights", "actual reads"),
        ("MACs", "energy_pj"),
        *(("psum_spad.Outputs", f"actual {action}") for action in ("reads", "fills", "updates")),
    }


def test_crossing_of_power_laws():
    densities = [0.01, 0.1, 1.0]
    assert crossing(densities, [3.0, 3.0, 3.0], [100.0 * d for d in densities]) == pytest.approx(0.03)
    with pytest.raises(ValueError, match="0 times"):
        crossing(densities, [1.0] * 3, [2.0] * 3)


def test_page_and_figures(outcomes, tmp_path):
    folder = tmp_path / "new" / "results"
    paths = deliver(list(outcomes.values()), folder)
    expected = ["README.md", *(f"{name}.{kind}" for name in sorted(RESULTS) for kind in ("png", "svg"))]
    assert [path.name for path in paths] == sorted(expected)
    assert sorted(os.listdir(tmp_path / "new")) == ["results"]
    text = (folder / "README.md").read_text()
    for outcome in outcomes.values():
        assert outcome.claim in text and f"({outcome.name}.png)" in text
        assert (folder / f"{outcome.name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"</svg>" in (folder / f"{outcome.name}.svg").read_bytes()
    assert "not the real layers" in text
    assert text == page(list(outcomes.values()), figures=True)


def test_nothing_is_left_where_a_figure_fails(outcomes, tmp_path):
    class Broken(Exception):
        pass

    def fail(_):
        raise Broken

    outcome = outcomes["table7"]
    with pytest.raises(Broken):
        deliver([outcome, replace(outcome, draw=fail)], tmp_path / "results")
    assert os.listdir(tmp_path) == []


def test_command(tmp_path):
    result = _run("table7", "--out", str(tmp_path / "results"))
    assert result.exit_code == 0
    assert "1.2 1.4 1.7 1.9 1.9" in result.stdout
    assert sorted(os.listdir(tmp_path / "results")) == ["README.md", "table7.png", "table7.svg"]


def test_unknown_result():
    result = _run("fig16", "table7")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1 and 'fig16: no such result (did you mean "fig1' in result.stderr


def test_names_are_taken_once_and_in_order():
    assert chosen(()) == chosen(("fig13", "all")) == tuple(RESULTS)
    assert chosen(("table7", "fig1", "table7")) == ("fig1", "table7")


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    result = _run("table7", "--out", str(tmp_path / "file" / "results"))
    assert result.exit_code == 2
    assert f"{tmp_path / 'file'} is a file" in result.stderr


def _masks() -> Iterator[tuple[str, np.ndarray]]:
    design = load("eyeriss_v2_pe:L25")
    yield from masks_of("L25", design, None).items()


def test_masks_have_the_densities_of_the_design_and_come_again():
    design = load("eyeriss_v2_pe:L25")
    first, second = dict(_masks()), dict(_masks())
    for tensor, mask in first.items():
        assert mask.mean() == pytest.approx(design.densities[tensor].density, abs=1 / mask.size)
        assert (mask == second[tensor]).all()


def test_masks_of_a_folder(tmp_path):
    with pytest.raises(SpecError) as error:
        check_masks(["L25"], tmp_path)
    assert [Path(e.place.file).name for e in error.value.errors] == ["L25_iacts.txt", "L25_weights.txt"]
    for name in ("L25_iacts.txt", "L25_weights.txt"):
        (tmp_path / name).write_text("01")
    check_masks(["L25"], tmp_path)
    design = load("eyeriss_v2_pe:L25")
    assert masks_of("L25", design, tmp_path)["Inputs"] == str(tmp_path / "L25_iacts.txt")


@pytest.mark.parametrize(("names", "message"), [(["table7"], "uses masks"), (["fig12"], "L07_iacts.txt: there is no")])
def test_masks_that_are_not_there_or_not_used(tmp_path, names, message):
    result = _run(*names, "--masks", str(tmp_path))
    assert result.exit_code == 2 and message in result.stderr
