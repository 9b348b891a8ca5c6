"""The cases and our answers to them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jaxloop as jl
from jaxloop.result import Evaluation
from tests.golden.compare import DENSE, Difference, differences, read_cases

CASES_FILE = Path(__file__).parent / "cases.jsonl.gz"


@dataclass(frozen=True)
class Answer:
    """An evaluation that is valid, or the text of the refusal: of the errors, or of the reason why the mapping is not
    valid."""

    evaluation: Evaluation | None = None
    refusal: str = ""

    @property
    def cycles(self) -> int:
        assert self.evaluation is not None
        return int(self.evaluation.cycles)

    @property
    def pj_per_compute(self) -> str:
        assert self.evaluation is not None
        return f"{self.evaluation.energy_pj / self.evaluation.computes:.2f}"


def answer_to(files: dict[str, str], conventions: jl.Conventions = jl.TIMELOOP_2022) -> Answer:
    """Our answer to files `{name: text}`."""
    try:
        evaluation = jl.evaluate(jl.loads(files), conventions=conventions)
    except jl.SpecError as error:
        return Answer(refusal=str(error))
    return Answer(evaluation) if evaluation.valid else Answer(refusal=evaluation.reasons[0])


@cache
def cases() -> dict[str, dict[str, Any]]:
    """`{id: {"files": {name: text}, "reference": answer or error}}`."""
    return {case["id"]: case for case in read_cases(CASES_FILE)}


@cache
def our_answer(case_id: str) -> Answer:
    return answer_to(cases()[case_id]["files"])


def differences_from(reference: dict[str, Any], answer: Answer) -> list[Difference]:
    """Levels, cycles, utilization and energy per compute of one case that differ from the reference's answer."""
    assert answer.evaluation is not None
    found = list(differences(reference, answer.evaluation.to_dict(), DENSE))
    printed = {
        "cycles": f"{answer.evaluation.cycles:.0f}",
        "utilization": f"{answer.evaluation.utilization:.2f}",
        "pJ_per_compute": answer.pj_per_compute,
    }
    return found + [Difference(k, reference[k], ours) for k, ours in printed.items() if ours != reference[k]]
