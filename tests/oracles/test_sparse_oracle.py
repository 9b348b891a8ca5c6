"""The sparse oracle against the copied golden cases, whose dense counts it takes: every field of every case."""

import copy
from typing import Any

import pytest

from tests.golden.compare import read_cases
from tests.golden.sample import DATA, SPARSE, file_of

from .sparse_golden import compare, differences, run_case

CASES = {name: list(read_cases(DATA / file_of(name))) for name in SPARSE}


@pytest.mark.parametrize("name", SPARSE)
def test_equals_the_reference(name: str):
    found = {case["id"]: differences(case) for case in CASES[name]}
    assert found == {case["id"]: [] for case in CASES[name]}


def test_counts_are_equal_to_the_unit():
    """The noise of exact ceilings (quirk Q13) is reproduced."""
    for case in (case for name in SPARSE for case in CASES[name] if case["ok"]):
        for field, theirs, ours in compare(case["expected"], run_case(case)):
            if any(word in field for word in ("reads", "fills", "updates", "reductions", "capacity", "computes")):
                assert theirs == ours, (case["id"], field)


def test_differences_are_noticed():
    case: dict[str, Any] = copy.deepcopy(next(case for case in CASES["sparse"] if case["id"] == "sparse-1-21"))
    case["expected"]["levels"][1]["skipped_format_reads"]["A"][0][0] += 3
    assert [row[0] for row in differences(case)] == ["Reg.A.skipped_format_reads"]
    refused = next(case for case in CASES["sparse"] if not case["ok"])
    assert [row[0] for row in differences(refused | {"error": refused["error"] + "0"})] == ["reason"]
    assert [row[0] for row in differences(case | {"ok": False, "error": refused["error"]})] == ["accepted"]
    assert [row[0] for row in differences(case | {"spec": refused["spec"]})] == ["refused"]
