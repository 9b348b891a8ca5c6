"""The copied golden cases (README.md), and what the comparison notices.

All cases are evaluated once, in one fresh process, so that its compilations are those of the cases alone.
"""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .compare import COMPUTE_COUNTS, COUNTS, NETWORK_COUNTS, compare_case, read_cases
from .sample import DATA, FILES

CASES = {name: list(read_cases(DATA / name)) for name in FILES}
MOST_COMPILATIONS = 8
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def swept() -> dict[str, Any]:
    command = [sys.executable, "-W", "error", "-m", "tests.golden.sweep", *(str(DATA / name) for name in FILES)]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


@pytest.mark.parametrize("case_id", [case["id"] for cases in CASES.values() for case in cases])
def test_equals_the_reference(case_id: str, swept: dict[str, Any]):
    assert swept["differences"][case_id] == []


def test_few_compilations_serve_all(swept: dict[str, Any]):
    assert 0 < sum(swept["compilations"].values()) <= MOST_COMPILATIONS


def test_the_sample_is_a_third_of_each_kind():
    accepted = [sum(case["ok"] for case in cases) for cases in CASES.values()]
    refused = [sum(not case["ok"] for case in cases) for cases in CASES.values()]
    assert (accepted, refused) == ([53, 53, 46], [0, 0, 13])


# What follows: an altered answer is noticed, else the tests above would pass whatever happens.

ACCEPTED = next(case for case in CASES["hardware.jsonl.gz"] if case["ok"])
REFUSED = next(case for case in CASES["hardware.jsonl.gz"] if not case["ok"])


def reported(case: dict[str, Any], **changes: Any) -> list[str]:
    """The fields that the comparison reports once the case has `changes`."""
    return [difference.field for difference in compare_case(case | changes)]


def alterations() -> Iterator[tuple[tuple[str | int, ...], float, str]]:
    """Where in the expected answer, by how much it is altered, and which field must then be reported."""
    compute, storage = ACCEPTED["expected"]["levels"][:2]
    network, tensors = next(iter(ACCEPTED["expected"]["networks"].items()))
    tensor = next(iter(tensors))
    for field in COMPUTE_COUNTS:
        yield ("levels", 0, field), 2, f"{compute['name']}.{field}"
    for field in ("energy", "area"):
        yield ("levels", 0, field), 1e-5 * compute[field], f"{compute['name']}.{field}"
    for field in COUNTS:
        yield ("levels", 1, field, tensor), 2, f"{storage['name']}.{field}.{tensor}"
    yield ("levels", 1, "energy", tensor), 1e-5 * storage["energy"][tensor], f"{storage['name']}.energy.{tensor}"
    field = "temporal_reduction_energy"
    yield ("levels", 1, field, tensor), 1e-5, f"{storage['name']}.{field}.{tensor}"
    yield ("levels", 1, "cycles"), 2, f"{storage['name']}.cycles"
    yield ("levels", 1, "slowdown"), 1e-5, f"{storage['name']}.slowdown"
    for field in NETWORK_COUNTS:
        yield ("networks", network, tensor, field), 2, f"{network}.{tensor}.{field}"
    yield ("networks", network, tensor, "Average number of hops"), 0.01, f"{network}.{tensor}.Average number of hops"
    yield ("networks", network, tensor, "Energy (total)"), 0.01, f"{network}.{tensor}.energy"
    yield ("summary", "cycles"), 2, "cycles"
    for field in ("utilization", "energy_uJ"):
        yield ("summary", field), 0.02, field
    yield ("summary", "edp"), 0.02 * ACCEPTED["expected"]["summary"]["edp"], "edp"


@pytest.mark.parametrize(("path", "amount", "field"), [pytest.param(*a, id=a[-1]) for a in alterations()])
def test_an_altered_number_is_noticed(path: tuple[str | int, ...], amount: float, field: str):
    expected: Any = copy.deepcopy(ACCEPTED["expected"])
    place = expected
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] += amount
    assert amount and reported(ACCEPTED, expected=expected) == [field]


def test_an_unaltered_case_passes():
    assert reported(ACCEPTED) == reported(REFUSED) == []


def test_a_level_of_another_name_is_noticed():
    expected = copy.deepcopy(ACCEPTED["expected"])
    expected["levels"][-1]["name"] = "Elsewhere"
    assert reported(ACCEPTED, expected=expected) == ["levels"]


def test_a_bypass_is_noticed():
    expected = copy.deepcopy(ACCEPTED["expected"])
    keep = expected["levels"][1]["keep"]
    keep[next(iter(keep))] ^= 1
    assert reported(ACCEPTED, expected=expected) == [f"{expected['levels'][1]['name']}.keep"]


def test_a_flipped_refusal_is_noticed():
    assert reported(ACCEPTED, ok=False, error=REFUSED["error"]) == ["accepted"]
    assert reported(REFUSED, ok=True, expected=ACCEPTED["expected"]) == ["refused"]


def test_another_reason_is_noticed():
    assert reported(REFUSED, error=REFUSED["error"].replace("exceeds", "is less than")) == ["reason"]
