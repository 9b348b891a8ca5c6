import os

import pytest

from jaxloop.report import write_atomically


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "out.json"
    write_atomically(path, "old")
    path.chmod(0o640)
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["out.json"]


def test_new_files_have_the_permissions_of_ordinary_ones(tmp_path):
    write_atomically(tmp_path / "ours", "")
    (tmp_path / "ordinary").write_text("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    path.write_text("old")

    def no_space(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.json"]


def test_refuses_folders(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, "text")
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "absent" / "out.json", "text")
