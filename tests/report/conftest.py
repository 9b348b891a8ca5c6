"""Small designs in `data/` and their evaluations; `matmul`, `conv`, `strided` and `ispass` come with the stats file
that the reference program wrote for them."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import jaxloop
from jaxloop.result import Evaluation

DATA = Path(__file__).parent / "data"


@cache
def _evaluation(name: str, replaced: tuple[tuple[str, str], ...]) -> Evaluation:
    files = {path.name: path.read_text() for path in sorted((DATA / name).glob("*.yaml"))}
    for old, new in replaced:
        assert any(old in text for text in files.values())
        files = {file: text.replace(old, new) for file, text in files.items()}
    return jaxloop.evaluate(jaxloop.loads(files))


@pytest.fixture
def evaluated() -> Callable[..., Evaluation]:
    """`evaluated("wired", ("energy: 1", "energy: 2"))`: the evaluation of a design, its text changed as given."""
    return lambda name, *replaced: _evaluation(name, replaced)


@pytest.fixture
def files_of() -> Callable[[str], list[str]]:
    """The paths of a design's input files."""
    return lambda name: [str(path) for path in sorted((DATA / name).glob("*.yaml"))]


@pytest.fixture
def expected_stats() -> Callable[[str], str]:
    """The reference's stats file of a design."""
    return lambda name: (DATA / name / "expected.stats.txt").read_text()
