import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jaxloop.__main__ import main


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def _copy(paths: list[str], folder, old: str = "", new: str = "") -> list[str]:
    """Copies of input files with a text replaced."""
    copies = []
    for path in paths:
        text = Path(path).read_text()
        copy = folder / Path(path).name
        copy.write_text(text.replace(old, new) if old else text)
        copies.append(str(copy))
    return copies


def _is_finite(value) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def test_table(files_of):
    result = _run("evaluate", *files_of("wired"))
    assert result.exit_code == 0
    assert "valid mapping" in result.stdout
    assert "9.911 nJ" in result.stdout


def test_json_and_stats_files(files_of, expected_stats, tmp_path):
    json_path, stats_path = tmp_path / "out.json", tmp_path / "out.stats.txt"
    result = _run("evaluate", *files_of("matmul"), "--json", str(json_path), "--stats", str(stats_path))
    assert result.exit_code == 0
    assert "valid mapping" in result.stdout
    numbers = json.loads(json_path.read_text())
    assert numbers["valid"] and numbers["reasons"] == []
    assert numbers["cycles"] == 4320
    assert [level["name"] for level in numbers["levels"]] == ["MulAcc", "TileRegs", "SharedBuf", "MainMem"]
    assert [level["kind"] for level in numbers["levels"]] == ["compute", "storage", "storage", "storage"]
    assert stats_path.read_text().splitlines()[:40] == expected_stats("matmul").splitlines()[:40]
    assert sorted(os.listdir(tmp_path)) == ["out.json", "out.stats.txt"]


def test_json_follows_the_schema_of_the_golden_data(files_of):
    result = _run("evaluate", *files_of("wired"), "--json", "-")
    numbers = json.loads(result.stdout)
    assert list(numbers) == [
        "valid",
        "reasons",
        "cycles",
        "energy_pj",
        "utilization",
        "edp",
        "area_um2",
        "levels",
        "networks",
    ]
    assert numbers["energy_pj"] == pytest.approx(9910.72)
    compute, register_file = numbers["levels"][:2]
    assert {"energy_pj", "cycles", "algorithmic_computes", "actual_computes", "gated_computes"} <= set(compute)
    for field in ("keep", "partition_size", "occupancy_words", "utilized_instances", "algorithmic_reads", "energy_pj"):
        assert set(register_file[field]) == {"A", "B", "Z"}
    assert register_file["actual_updates"] == {"A": 0, "B": 0, "Z": 128}
    assert numbers["networks"]["GB <==> RF"]["A"]["Energy (total)"] == pytest.approx(361.28)
    assert _is_finite(numbers)


def test_stats_on_the_standard_output(files_of, expected_stats):
    stdout = _run("evaluate", *files_of("ispass"), "--stats", "-").stdout
    assert stdout.splitlines() == expected_stats("ispass").splitlines()
    both = _run("evaluate", *files_of("ispass"), "--stats", "-", "--json", "-")
    assert both.exit_code == 2
    assert both.stdout == ""


def test_other_conventions(files_of):
    exact = json.loads(_run("evaluate", *files_of("wired"), "--json", "-", "--conventions", "smooth").stdout)
    assert exact["cycles"] == pytest.approx(128 / (2 / 2.875))
    result = _run("evaluate", *files_of("wired"), "--conventions", "rough")
    assert result.exit_code == 2
    assert "'timeloop_2022', 'micro22', 'smooth'" in result.stderr


def test_invalid_mapping_is_reported_with_status_1(files_of, tmp_path):
    files = _copy(files_of("wired"), tmp_path, "entries: 64", "entries: 6")
    json_path, stats_path = tmp_path / "out.json", tmp_path / "out.stats.txt"
    result = _run("evaluate", *files, "--json", str(json_path), "--stats", str(stats_path))
    assert result.exit_code == 1
    assert "INVALID" in result.stdout
    assert "ERROR: couldn't map level RF: mapped tile size 8 exceeds buffer capacity 6" in result.stderr
    numbers = json.loads(json_path.read_text())
    assert not numbers["valid"]
    assert numbers["reasons"][0].startswith("couldn't map level RF")
    assert not stats_path.exists()
    assert "no stats file is written" in result.stderr


def test_bad_input_gives_all_messages_and_writes_nothing(files_of, tmp_path):
    files = _copy(files_of("wired"), tmp_path, "entries: 64", "entries: many")
    files = _copy(files, tmp_path, "{target: RF,", "{target: RG,")
    before = sorted(os.listdir(tmp_path))
    json_path, stats_path = tmp_path / "out.json", tmp_path / "out.stats.txt"
    result = _run("evaluate", *files, "--json", str(json_path), "--stats", str(stats_path))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())
    assert "arch.yaml" in result.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_missing_files(files_of, tmp_path):
    absent = str(tmp_path / "absent.yaml")
    result = _run("evaluate", *files_of("wired"), absent)
    assert result.exit_code == 2
    assert result.stderr == f"error: {absent}: cannot read the file: No such file or directory (check the path)\n"
    result = _run("evaluate", "eyeriss:alexnet_conv2", files_of("wired")[0])
    assert result.exit_code == 2
    assert result.stderr == "error: eyeriss:alexnet_conv2: no such file (a shipped design is given alone)\n"


def test_outputs_that_cannot_be_written(files_of, tmp_path):
    files = _copy(files_of("wired"), tmp_path)
    before = [Path(path).read_text() for path in files]
    stats_path = tmp_path / "out.stats.txt"
    for target, message in (
        (str(tmp_path), "is a folder"),
        (str(tmp_path / "absent" / "out.json"), "there is no folder"),
        (files[0], "one of the input files"),
    ):
        result = _run("evaluate", *files, "--stats", str(stats_path), "--json", target)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"error: cannot write {target}: ")
        assert message in result.stderr
        assert result.stdout == ""
    assert not stats_path.exists()
    assert [Path(path).read_text() for path in files] == before


def test_failure_while_writing(files_of, tmp_path, monkeypatch):
    def no_space(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    result = _run("evaluate", *files_of("wired"), "--json", str(tmp_path / "out.json"))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and "No space left" in result.stderr
    assert os.listdir(tmp_path) == []


def test_shipped_designs():
    listing = _run("designs")
    assert listing.exit_code == 0
    assert "eyeriss:alexnet_conv2" in listing.stdout
    result = _run("evaluate", "eyeriss:alexnet_conv2", "--json", "-")
    assert result.exit_code == 0
    numbers = json.loads(result.stdout)
    assert numbers["cycles"] == 6881280
    assert numbers["energy_pj"] == pytest.approx(4402.457e6, rel=1e-6)
    table = _run("evaluate", "eyeriss:alexnet_conv2").stdout
    assert table.startswith("eyeriss:alexnet_conv2: valid mapping")


def test_shipped_designs_with_dots_in_their_names():
    result = _run("evaluate", "bitmask:matmul-0.1", "--conventions", "micro22", "--json", "-")
    assert result.exit_code == 0 and json.loads(result.stdout)["cycles"] == pytest.approx(2113536, abs=2)
    result = _run("evaluate", "bitmask:matmul-0.7")
    assert result.exit_code == 2 and 'did you mean "bitmask:matmul-0.' in result.stderr


def test_unknown_design():
    result = _run("evaluate", "eyeriss:alexnet_conv22")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert 'did you mean "eyeriss:alexnet_conv2"' in result.stderr


def test_help_explains_the_commands():
    text = _run("--help").stdout
    assert "evaluate" in text and "designs" in text
    evaluate = _run("evaluate", "--help").stdout
    for option in ("--json", "--stats", "--explain", "--conventions", "Exit status"):
        assert option in evaluate
    assert _run("evaluate").exit_code == 2


def test_help_does_not_load_jax():
    code = "import sys, jaxloop.__main__; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_strict_makes_warnings_errors(files_of, tmp_path):
    """Without tables every price is a built-in figure: a warning, or under --strict an error and nothing written."""
    files = [name for name in files_of("matmul") if "ERT" not in name and "ART" not in name]
    assert _run("evaluate", *files).exit_code == 0
    target = tmp_path / "out.json"
    result = _run("evaluate", *files, "--strict", "--json", str(target))
    assert result.exit_code == 2
    assert result.stdout == "" and not target.exists()
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())
    assert "there is no energy table to price level" in result.stderr
