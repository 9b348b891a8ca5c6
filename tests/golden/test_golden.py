"""The copied golden cases (README.md), and what the comparison notices.

Dense and sparse cases are evaluated once each, in one fresh process, so that its compilations are those of the cases
alone.
"""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .compare import (
    COMPUTE_COUNTS,
    COUNTS,
    METADATA,
    NETWORK_COUNTS,
    SPARSE as SPARSE_TOLERANCE,
    compare_case,
    read_cases,
)
from .sample import DATA, DENSE, SHARES, SPARSE, file_of

CASES = {name: list(read_cases(DATA / file_of(name))) for name in SHARES}
GROUPS = {"dense": DENSE, "sparse": SPARSE}
MOST_COMPILATIONS = {"dense": 8, "sparse": 8}
ROOT = Path(__file__).parents[2]


@cache
def swept(group: str) -> dict[str, Any]:
    files = [str(DATA / file_of(name)) for name in GROUPS[group]]
    command = [sys.executable, "-W", "error", "-m", "tests.golden.sweep", *files]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


@pytest.mark.parametrize(
    ("group", "case_id"), [(group, case["id"]) for group, names in GROUPS.items() for n in names for case in CASES[n]]
)
def test_equals_the_reference(group: str, case_id: str):
    assert swept(group)["differences"][case_id] == []


@pytest.mark.parametrize("group", GROUPS)
def test_few_compilations_serve_all(group: str):
    assert 0 < sum(swept(group)["compilations"].values()) <= MOST_COMPILATIONS[group]


def test_the_sample_has_accepted_and_refused_cases():
    accepted = [sum(case["ok"] for case in CASES[name]) for name in SHARES]
    refused = [sum(not case["ok"] for case in CASES[name]) for name in SHARES]
    assert accepted == [53, 53, 46, 39, 32, 34, 32, 34, 32, 26]
    assert refused == [0, 0, 13, 0, 3, 3, 3, 3, 3, 10]


# What follows: an altered answer is noticed, else the tests above would pass whatever happens.

ACCEPTED = next(case for case in CASES["hardware"] if case["ok"])
REFUSED = next(case for case in CASES["hardware"] if not case["ok"])
COMPRESSED = next(case for case in CASES["sparse"] if case["id"] == "sparse-1-21")
"""Its innermost level reads and skips metadata of `A`."""


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


@pytest.mark.parametrize("field", METADATA)
@pytest.mark.parametrize(("rank", "unit"), [(0, 0), (1, 1)])
def test_altered_metadata_is_noticed(field: str, rank: int, unit: int):
    expected: Any = copy.deepcopy(COMPRESSED["expected"])
    level = expected["levels"][1]
    level[field]["A"][rank][unit] += SPARSE_TOLERANCE.count
    assert reported(COMPRESSED, expected=expected) == []
    level[field]["A"][rank][unit] += 1
    assert reported(COMPRESSED, expected=expected) == [f"{level['name']}.{field}.A"]


def test_a_missing_format_rank_is_noticed():
    expected: Any = copy.deepcopy(COMPRESSED["expected"])
    del expected["levels"][1]["random_format_fills"]["A"][-1]
    assert reported(COMPRESSED, expected=expected) == [f"{expected['levels'][1]['name']}.random_format_fills.A"]


def test_an_unaltered_case_passes():
    assert reported(ACCEPTED) == reported(REFUSED) == reported(COMPRESSED) == []


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
