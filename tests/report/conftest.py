"""Small designs in `data/` and their evaluations; `matmul`, `conv`, `strided` and `ispass` come with the stats file
that the reference program wrote for them. Sparse designs are those of other tests: see `sparse`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import jaxloop
from jaxloop.result import Evaluation
from tests.golden.compare import files_of as golden_files, read_cases
from tests.golden.sample import DATA as GOLDEN, file_of
from tests.sparse_examples import EXAMPLES as WORKED
from tests.spec_examples.examples import EXAMPLES

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


def sparse_texts(name: str) -> dict[str, str]:
    """The files of a sparse design: a worked example of spec/sparse.md (`"6 hierarchical"`), a golden case
    (`"advanced-1-60"`) or one of the spec sets (`"06"`)."""
    if name in WORKED:
        return WORKED[name].texts()
    if name in EXAMPLES:
        return EXAMPLES[name].files()
    cases = read_cases(GOLDEN / file_of(name.rpartition("-1-")[0]))
    return next(golden_files(case) for case in cases if case["id"] == name)


@cache
def _sparse_evaluation(name: str) -> Evaluation:
    return jaxloop.evaluate(jaxloop.loads(sparse_texts(name)))


@pytest.fixture
def sparse() -> Callable[[str], Evaluation]:
    """`sparse("06")`: the evaluation of a sparse design by its name."""
    return _sparse_evaluation
