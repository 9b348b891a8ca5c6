import dataclasses
import math

import pytest

from jaxloop.report import stats_text
from jaxloop.report.stats_format import count, fixed, ratio


# The reference prints no area in its summary although it prints the areas of all levels.
@pytest.mark.parametrize(
    ("name", "area_mm2"),
    [
        ("matmul", (8 * 140 + 8 * 60 + 900 + 12000) / 1e6),
        ("conv", (12 * 50 + 12 * 25 + 12 * 30 + 700 + 6400) / 1e6),
        ("strided", (30 + 20 + 400 + 5000) / 1e6),
        ("ispass", 0.0),
    ],
)
def test_equals_the_reference(name, area_mm2, evaluated, expected_stats):
    expected = expected_stats(name)
    assert expected.count("Area: 0.00 mm^2") == 1
    text = stats_text(evaluated(name))
    assert text.splitlines() == expected.replace("Area: 0.00", f"Area: {area_mm2:.2f}").splitlines()
    assert text.endswith("\n\n") == expected.endswith("\n\n")


def _block(text: str, start: str, end: str) -> list[str]:
    """The lines from `start` up to `end`, without their labels' padding."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    first = lines.index(start)
    return lines[first : lines.index(end, first)]


def test_wires_and_bandwidth(evaluated):
    """The first worked example of spec/dense.md section 14."""
    text = stats_text(evaluated("wired"))
    register_file = _block(text, "=== RF ===", "=== GB ===")
    assert "Read bandwidth : 2.00" in register_file
    assert "Bandwidth throttling : 0.70" in register_file
    assert "Cycles : 184" in register_file
    assert "Vector access energy : 0.70 pJ" in register_file
    output = register_file[register_file.index("Z:") :]
    assert "Energy (per-instance) : 106.40 pJ" in output
    assert "Energy (total) : 425.60 pJ" in output
    assert f"Read Bandwidth (per-instance) : {2 / 2.875 * 112 / 128:.2f} words/cycle" in output
    assert f"Write Bandwidth (total) : {4 * 2 / 2.875 * 192 / 128:.2f} words/cycle" in output

    network = _block(text, "GB <==> RF", "Network 2")
    assert "Router energy : 0.01 pJ" in network
    assert "Wire energy : 0.10 pJ/b/mm" in network
    first = network[network.index("A:") : network.index("B:")]
    assert "@multicast 4 @scatter 1: 64.00" in first
    assert "Average number of hops : 3.50" in first
    assert "Energy (per-hop) : 1600.00 fJ" in first
    assert "Energy (total) : 361.28 pJ" in first

    summary = _block(text, "Summary Stats", "Computes = 512")
    assert summary[2:] == [
        "GFLOPs (@1GHz): 5.22",
        "Utilization: 0.70",
        "Cycles: 184",
        "Energy: 0.01 uJ",
        "EDP(J*cycle): 1.82e-06",
        "Area: 0.00 mm^2",
        "",
    ]
    assert f"Total = {9910.72 / 512:.2f}" in " ".join(text.split())


def test_hop_length_from_areas(evaluated):
    """Without a tile width a hop crosses the square that holds one child: here a unit of 3 and a register file of 0."""
    text = stats_text(evaluated("wired", ("        tile-width: 1000\n", "")))
    hop = 16 * 0.1 * math.sqrt(3) / 1000
    assert f"Energy (per-hop) : {1000 * hop:.2f} fJ" in _block(text, "GB <==> RF", "Network 2")


def test_hop_energy_wins_over_wires(evaluated):
    text = stats_text(evaluated("wired", ("tile-width: 1000", "energy-per-hop: 0.25")))
    assert "Energy (per-hop) : 250.00 fJ" in _block(text, "GB <==> RF", "Network 2")


def test_refuses_an_invalid_mapping(evaluated):
    with pytest.raises(ValueError, match="valid mapping: couldn't map level RF: mapped tile size 8 exceeds"):
        stats_text(evaluated("wired", ("entries: 64", "entries: 6")))


def test_refuses_a_batch(evaluated):
    batch = dataclasses.replace(evaluated("wired"), context=None)
    with pytest.raises(ValueError, match="one evaluation"):
        stats_text(batch)


def test_numbers_as_the_reference_prints_them():
    assert fixed(ratio(0.0, 0.0)) == "-nan"
    assert fixed(ratio(1.0, 0.0)) == "inf"
    assert fixed(0.125) == "0.12"
    assert count(8589934592.0) == "8589934592"
    assert count(1.5) == "1.50"
