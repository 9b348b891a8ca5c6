"""The copied golden cases (README.md), and what the comparison notices.

All cases are evaluated once, in one fresh process, so that its compilations are those of the cases alone.
"""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .compare import compare_case, read_cases
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


def test_the_sample_has_all_kinds():
    assert {name: len(cases) for name, cases in CASES.items()} == dict(zip(FILES, (53, 53, 59), strict=True))
    assert sum(not case["ok"] for case in CASES["hardware.jsonl.gz"]) == 13


# What follows: an altered answer is noticed, else the tests above would pass whatever happens.

ACCEPTED = next(case for case in CASES["hardware.jsonl.gz"] if case["ok"] and case["expected"]["networks"])
REFUSED = next(case for case in CASES["hardware.jsonl.gz"] if not case["ok"])


def altered(case: dict[str, Any], edit: Callable[[dict[str, Any]], None]) -> list[str]:
    """The fields that the comparison reports once `edit` has changed the case."""
    changed = copy.deepcopy(case)
    edit(changed)
    assert changed != case
    return [difference.field for difference in compare_case(changed)]


def test_the_unaltered_cases_pass():
    assert compare_case(ACCEPTED) == compare_case(REFUSED) == []


PER_TENSOR = [
    *("partition_size", "utilized_capacity", "utilized_instances", "utilized_clusters", "temporal_reductions"),
    *(f"{kind}{action}" for kind in ("", "random_", "gated_", "skipped_") for action in ("reads", "fills", "updates")),
]


@pytest.mark.parametrize("field", PER_TENSOR)
def test_a_count_two_off_is_noticed(field: str):
    level = ACCEPTED["expected"]["levels"][1]
    tensor = next(iter(level[field]))

    def edit(case: dict[str, Any]) -> None:
        case["expected"]["levels"][1][field][tensor] += 2

    assert altered(ACCEPTED, edit) == [f"{level['name']}.{field}.{tensor}"]


@pytest.mark.parametrize("field", ["energy", "temporal_reduction_energy"])
def test_an_energy_slightly_off_is_noticed(field: str):
    level = ACCEPTED["expected"]["levels"][1]
    tensor = max(level[field], key=level[field].__getitem__)

    def edit(case: dict[str, Any]) -> None:
        energies = case["expected"]["levels"][1][field]
        energies[tensor] += 1e-5 * (energies[tensor] or 1.0)

    assert altered(ACCEPTED, edit) == [f"{level['name']}.{field}.{tensor}"]


@pytest.mark.parametrize(
    ("field", "factor", "offset"),
    [("energy", 1 + 1e-5, 0.0), ("area", 1 + 1e-5, 1e-5), ("cycles", 1, 2), ("algorithmic_computes", 1, 2)],
)
def test_compute_units_slightly_off_are_noticed(field: str, factor: float, offset: float):
    name = ACCEPTED["expected"]["levels"][0]["name"]

    def edit(case: dict[str, Any]) -> None:
        compute = case["expected"]["levels"][0]
        compute[field] = factor * compute[field] + offset

    assert altered(ACCEPTED, edit) == [f"{name}.{field}"]


@pytest.mark.parametrize("field", ["Fanout", "Ingresses", "Link transfers", "Spatial reductions", "Energy (total)"])
def test_a_network_two_off_is_noticed(field: str):
    network, tensors = next(iter(ACCEPTED["expected"]["networks"].items()))
    tensor = next(iter(tensors))

    def edit(case: dict[str, Any]) -> None:
        case["expected"]["networks"][network][tensor][field] += 2

    assert altered(ACCEPTED, edit) == [f"{network}.{tensor}.{field.removesuffix(' (total)').replace('E', 'E')}"]


def test_a_level_of_another_name_is_noticed():
    def edit(case: dict[str, Any]) -> None:
        case["expected"]["levels"][1]["name"] += "2"

    assert "levels" in altered(ACCEPTED, edit)


def test_a_flipped_refusal_is_noticed():
    def refuse(case: dict[str, Any]) -> None:
        case |= {"ok": False, "error": REFUSED["error"]}

    def accept(case: dict[str, Any]) -> None:
        case |= {"ok": True, "error": "", "expected": ACCEPTED["expected"]}

    assert altered(ACCEPTED, refuse) == ["accepted"]
    assert altered(REFUSED, accept) == ["refused"]


def test_another_reason_is_noticed():
    def edit(case: dict[str, Any]) -> None:
        case["error"] = case["error"].replace("level ", "level other")

    assert altered(REFUSED, edit) == ["reason"]
