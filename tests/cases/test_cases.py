"""What is right, case by case (table.py), and that docs/cases.md says the same."""

import re
from pathlib import Path

import pytest

from .__main__ import problems, spec_sets
from .answers import cases, differences_from, our_answer
from .table import CASES, Accepted, Reference, Refused

DOCUMENT = Path(__file__).parents[2] / "docs/cases.md"


def ids_of(kind: type) -> list[str]:
    return [case_id for case_id, case in CASES.items() if isinstance(case.right, kind)]


def test_the_table_has_all_cases():
    assert list(CASES) == list(cases())


@pytest.mark.parametrize("case_id", ids_of(Reference))
def test_numbers_of_the_reference(case_id: str):
    assert differences_from(cases()[case_id]["reference"], our_answer(case_id)) == []


@pytest.mark.parametrize("case_id", ids_of(Accepted))
def test_accepted_where_the_reference_refuses_or_overlooks(case_id: str):
    right, ours, theirs = CASES[case_id].right, our_answer(case_id), cases()[case_id]["reference"]
    assert isinstance(right, Accepted)
    assert "error" in theirs or theirs["pJ_per_compute"] != right.pj_per_compute
    assert (ours.cycles, ours.pj_per_compute) == (right.cycles, right.pj_per_compute)


@pytest.mark.parametrize("case_id", ids_of(Refused))
def test_refused(case_id: str):
    right = CASES[case_id].right
    assert isinstance(right, Refused)
    assert re.search(right.message, our_answer(case_id).refusal)


@pytest.mark.parametrize("case_id", ids_of(Reference) + ids_of(Accepted))
def test_warnings(case_id: str):
    evaluation, pattern = our_answer(case_id).evaluation, CASES[case_id].warns
    assert evaluation is not None
    found = [str(warning) for warning in evaluation.warnings]
    assert any(re.search(pattern, warning) for warning in found) if pattern else found == []


def test_an_altered_answer_is_noticed():
    reference = dict(cases()["c00-dense-base"]["reference"])
    ours = our_answer("c00-dense-base")
    for field, value in {"cycles": "257", "utilization": "0.99", "pJ_per_compute": "12.79"}.items():
        assert [d.field for d in differences_from(reference | {field: value}, ours)] == [field]
    assert differences_from(cases()["c12-bw-throttle"]["reference"], ours)


@pytest.mark.parametrize("section", [problems, spec_sets])
def test_the_document_is_current(section):
    """Else: `python -m tests.cases > docs/cases.md`."""
    assert section() in DOCUMENT.read_text()
