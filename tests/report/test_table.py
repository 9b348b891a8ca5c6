import io

import pytest
from rich.console import Console

from jaxloop.report import print_table
from jaxloop.report.numbers import area_text, count_text, energy_text, percent


def _lines(evaluation, width: int) -> list[str]:
    screen = io.StringIO()
    print_table(evaluation, Console(file=screen, width=width))
    return screen.getvalue().splitlines()


def _words(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["matmul", "conv", "strided", "ispass", "wired"])
def test_fits_the_screen_and_loses_no_digit(name, width, evaluated):
    evaluation = evaluated(name)
    lines = _lines(evaluation, width)
    assert max(map(len, lines)) <= width
    words = _words(lines)
    kept = evaluation.context.mapping.keep
    counts = {"tile": evaluation.tile_words, "reads": evaluation.reads, "fills": evaluation.fills}
    for s in range(kept.shape[0]):
        for label, values in counts.items():
            numbers = [f"{int(c):,}" for c, k in zip(values[s], kept[s], strict=True) if k]
            assert any(label in line and [w for w in line if w in numbers] == numbers for line in words)


def test_summary(evaluated):
    text = " ".join(" ".join(_lines(evaluated("wired"), 100)).split())
    assert "valid mapping" in text
    for fact in ("cycles 184", "energy 9.911 nJ", "utilization 69.6 %", "computes 512", "area 12.0 um^2"):
        assert fact in text
    assert "limited by bandwidth of RF" in text
    assert "dynamic only" in text


def test_levels_outermost_first_and_shares_sum_to_all(evaluated):
    words = [line for line in _words(_lines(evaluated("wired"), 100)) if line]
    first, last = (next(i for i, line in enumerate(words) if line[0] == name) for name in ("DRAM", "total"))
    rows = words[first : last + 1]
    assert [row[0] for row in rows] == ["DRAM", "to", "GB", "to", "RF", "to", "MAC", "total"]
    assert sum(float(row[-1]) for row in rows[:-1]) == pytest.approx(100, abs=0.4)
    assert rows[-1][-2:] == ["9.911", "100.0"]


def test_marks_what_bandwidth_slows_down(evaluated):
    lines = _lines(evaluated("wired"), 100)
    assert any(line.split()[:3] == ["RF", "184", "0.70*"] for line in lines)
    assert "* RF reads 2.875 words/cycle per instance at full speed, its bandwidth is 2" in lines
    assert "* RF writes 2.5 words/cycle per instance at full speed, its bandwidth is 2" in lines


def test_says_why_networks_take_no_energy(evaluated):
    assert "Networks take no energy: no wire, router or hop energy is given." in _lines(evaluated("matmul"), 100)
    flat = (("tile-width: 1000", "tile-width: 0"), ("router-energy: 0.01", "router-energy: 0"))
    assert any("hops have no length" in line for line in _lines(evaluated("wired", *flat), 100))
    assert not any("Networks take no energy" in line for line in _lines(evaluated("wired"), 100))


def test_invalid_mapping_gives_its_reason(evaluated):
    lines = _lines(evaluated("wired", ("entries: 64", "entries: 6")), 100)
    assert "INVALID mapping" in lines[0]
    assert lines[1].strip().startswith("couldn't map level RF: mapped tile size 8 exceeds buffer capacity 6")
    assert any(line.startswith("RF") and "133.3" in line for line in lines)


def test_tensors_that_do_not_fit_side_by_side_go_below_each_other(evaluated):
    names = [f"{tensor}ctivationsOfTheLayer" for tensor in "ABZ"]
    replaced = [(f"{{name: {name[0]},", f"{{name: {name},") for name in names]
    lines = _lines(evaluated("wired", *replaced), 80)
    assert max(map(len, lines)) <= 80
    assert [line.split()[1:] for line in lines if line.startswith("words")] == [names[:1], names[1:]]
    assert not any("…" in line for line in lines)


def test_numbers_for_people():
    assert count_text(12345.0) == "12,345"
    assert count_text(2.5) == "2.5"
    assert count_text(123456.75) == "123,457"
    assert count_text(1.25e15) == "1.250e+15"
    assert energy_text(4.402457e9) == "4.402 mJ"
    assert energy_text(0.5) == "0.500 pJ"
    assert area_text(2.5e6) == "2.500 mm^2"
    assert area_text(12) == "12.0 um^2"
    assert percent(0.25) == "25.0"
