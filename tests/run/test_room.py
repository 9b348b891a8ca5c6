"""Processes can hold few executables."""

from pathlib import Path

import pytest

import jaxloop as jl
from jaxloop.run import executables, room
from jaxloop.run.executables import compilations
from tests.sparse_examples import EXAMPLES


def crowded(monkeypatch: pytest.MonkeyPatch, folder: Path, maps: int) -> None:
    (folder / "maps").write_text("a map\n" * maps)
    (folder / "limit").write_text("100\n")
    monkeypatch.setattr(room, "MAPS", folder / "maps")
    monkeypatch.setattr(room, "LIMIT", folder / "limit")


def test_executables_are_let_go_when_maps_run_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    design = jl.loads(EXAMPLES["6 hierarchical"].texts())
    crowded(monkeypatch, tmp_path, 50)
    first = jl.evaluate(design)
    before = compilations()["closed_form"]
    jl.evaluate(design)
    assert compilations()["closed_form"] == before
    crowded(monkeypatch, tmp_path, 70)
    monkeypatch.setitem(executables._TRACES, "known", -1)  # as after another executable
    again = jl.evaluate(design)
    assert compilations()["closed_form"] == before + 1
    assert again.to_dict() == first.to_dict()


def test_systems_that_do_not_tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(room, "MAPS", tmp_path / "none")
    assert not room.is_crowded()
