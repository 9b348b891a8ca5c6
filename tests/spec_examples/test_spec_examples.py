"""The spec sets against the reference's stats files, line by line; those of tests/report/data are tested there."""

import re

import pytest

from jaxloop.report import stats_text
from tests.cases.answers import answer_to
from tests.cases.table import Reference, Refused

from .examples import EXAMPLES, REPORT
from .stats import different_lines, figures, one_digit_off

EVALUATED = [name for name, e in EXAMPLES.items() if isinstance(e.right, Reference) and e.folder.parent != REPORT]
REFUSED = [name for name, e in EXAMPLES.items() if isinstance(e.right, Refused)]


@pytest.mark.parametrize("name", EVALUATED)
def test_equals_the_reference(name: str):
    example = EXAMPLES[name]
    evaluation = answer_to(example.files()).evaluation
    assert evaluation is not None
    different = different_lines(stats_text(evaluation), example.expected())
    assert len(different) <= example.ties
    assert all(one_digit_off(own, other) for own, other in different)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str):
    right = EXAMPLES[name].right
    assert isinstance(right, Refused)
    assert re.search(right.message, answer_to(EXAMPLES[name].files()).refusal)


def test_differences_are_noticed():
    theirs = EXAMPLES["09"].expected()
    assert different_lines(theirs, theirs) == []
    assert len(different_lines(theirs.replace("Cycles: 4320", "Cycles: 4321"), theirs)) == 1
    assert different_lines(theirs + "more\n", theirs) == [("more", "")]
    assert one_digit_off("Energy : 0.32 pJ", "Energy : 0.33 pJ")
    assert not one_digit_off("Energy : 0.32 pJ", "Energy : 0.34 pJ")
    assert not one_digit_off("Energy : 0.32 pJ", "Energy : 0.32 nJ")
    assert not one_digit_off("Energy : 9.99 pJ", "Energy : 9.9 pJ")


def test_figures_of_a_stats_file():
    found = figures(EXAMPLES["09"].expected())
    assert found["Summary Stats", "", "Cycles"] == "4320"
    assert found["TileRegs", "", "Word bits"]
    assert found["TileRegs", "Left", "Scalar reads (per-instance)"].isdecimal()
    assert found["MainMem <==> SharedBuf", "Left", "Fanout"] == "1"
    assert found["pJ/Compute", "", "Total"] == "7.66"
    sparse = "=== Reg ===\n    A:\n        Algorithmic scalar reads (per-instance)  : 7\n"
    assert figures(sparse) == {("Reg", "A", "Scalar reads (per-instance)"): "7"}
