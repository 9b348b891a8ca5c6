"""`python -m tests.cases > docs/cases.md`: the reported problems, the hand-written spec sets and, where the folder
`../shared/wild` is at hand, the spec sets of real users: the reference's answers and ours."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jaxloop import MICRO22
from jaxloop.report import stats_text
from tests.spec_examples.examples import EXAMPLES
from tests.spec_examples.stats import figures, one_digit_off

from .answers import Answer, answer_to, cases, our_answer
from .table import CASES, Reference, Refused

WILD = Path(__file__).parents[3] / "shared/wild"
NOISE = "the reference reads 1 word more than without sparsity: noise of its probabilities (quirk Q13)"
WILD_SETS = {
    "01-arcana-dense-tc": ("dense tensor core, 4 levels", ""),
    "02-arcana-dstc": ("position skipping, known from the paper's artifact", ""),
    "04-arcana-nvstc": ("2:4 tensor core, spatial skipping", ""),
    "05-arcana-rmstc": ("position skipping beside spatial skipping; two kinds of skipping of Z at a level", ""),
    "06-mpeng-unstructured-alexnet": ("AlexNet conv1; sparse keys that nobody reads", ""),
    "07-mpeng-structured24-resnet": ("ResNet-50 conv1; sparse keys that nobody reads", ""),
    "08-benson-2x4pe-L09": ("pointwise convolution on 2 x 4 elements, skipping", ""),
    "11-benson-outsparse-0.1": ("the same with sparse outputs", ""),
    "12-benson-out-gating-conv_dw_2": ("depthwise convolution, gating, inputs of 800,000 words", NOISE),
    "13-benson-out-skipping-conv_pw_1": ("pointwise convolution, skipping", ""),
    "14-benson-out-dense-conv1": ("AlexNet conv1 on one unit, compressed but dense", "-nan pJ per access for its 0.00"),
    "15-abf-fig1-bitmask-0.4": ("a tile that exceeds its buffer", ""),
    "17-abf-auxinfer-csr-csc": ("CSR times CSC", ""),
    "18-abf-rowwise-1e-5": ("row-wise product, density 0.00001", ""),
    "19-saftool-eyerissv2_bidir_bitmask": ("Eyeriss v2, bitmask", ""),
    "20-saftool-eyerissv2_bidir_coordpayload": ("Eyeriss v2, coordinates", ""),
    "21-saftool-sparten_like": ("like SparTen", ""),
    "22-sparsenaas-best00": ("7 x 7 convolution of a network search", ""),
    "23-gamma-timeloop-report": ("about 50 format ranks, of which few have loops", ""),
    "26-cxyang-singlepe-os": ("one processing element, levels per tensor", ""),
    "27-cxyang-system-4x4-overflow": ("a mapping that needs 8 rows of 4", ""),
    "31-cxyang-system-2x8": ("the same mapping on 2 x 8 elements", ""),
    "33-sparsenaas-lowdensity": ("pointwise convolution of a network search", ""),
}
"""Folder -> what it is, and why some figures differ. Files whose names say NOTRUN are left out: they were not given to
the reference either."""

SUMMARY_AREA = ("Summary Stats", "", "Area")
"""The reference does not sum it."""

LONGEST = 120


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    cells = (tuple(cell.replace("|", "\\|") for cell in row) for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ("---",) * len(head), *cells))


def _numbers(cycles: Any, pj_per_compute: str) -> str:
    return f"{cycles} cycles, {pj_per_compute} pJ"


def _shortened(message: str) -> str:
    return message if len(message) <= LONGEST else message[: LONGEST - 4].rsplit(" ", 1)[0] + " ..."


def _theirs(reference: dict[str, Any]) -> str:
    if "error" not in reference:
        return _numbers(reference["cycles"], reference["pJ_per_compute"])
    if reference["status"] < 0:
        return "aborts"
    return _shortened(reference["error"].split(" | ")[0].removeprefix("ERROR: ")) or "ends without a message"


def _ours(answer: Answer) -> str:
    if answer.evaluation is None:
        return _shortened(answer.refusal.splitlines()[0])
    return _numbers(answer.cycles, answer.pj_per_compute)


def problems() -> str:
    """The section on reported problems."""
    rows = [
        (
            case_id,
            case.exercises + (", with a warning" if case.warns else ""),
            _theirs(cases()[case_id]["reference"]),
            _ours(our_answer(case_id)),
            "; ".join(filter(None, ("yes" if isinstance(case.right, Reference) else "", case.right.note))),
        )
        for case_id, case in CASES.items()
    ]
    return _table(("case", "what it exercises", "reference", "jaxloop", "agrees, or why not"), rows)


def spec_sets() -> str:
    """The section on the hand-written spec sets."""
    rows = []
    for name, example in EXAMPLES.items():
        answer = answer_to(example.files())
        if isinstance(example.right, Refused):
            theirs, agreement = "evaluates", example.right.note
        else:
            theirs, agreement = _against(answer, example.expected())
        rows.append((name, example.exercises, theirs, _ours(answer), agreement))
    return _table(("set", "what it exercises", "reference", "jaxloop", "figures of the stats file that agree"), rows)


def wild_sets() -> str:
    """The section on the spec sets of real users."""
    rows = []
    for name, (what, why) in WILD_SETS.items():
        answer = answer_to(_texts(name))
        error = WILD / name / "expected.error.txt"
        if error.exists():
            messages = [line for line in error.read_text().splitlines() if line.startswith("ERROR: ")]
            theirs = messages[0].removeprefix("ERROR: ") if messages else "aborts"
            same = bool(messages) and answer.refusal.startswith(theirs)
            ours = "numbers" if answer.evaluation is not None else "a message"
            agreement = "the same reason" if same else f"{ours} where the reference aborts{_artifact(name)}"
        else:
            theirs, agreement = _against(answer, (WILD / name / "expected.stats.txt").read_text())
        rows.append((name, what, theirs, _ours(answer), "; ".join(filter(None, (agreement, why)))))
    return _table(("set", "what it is", "reference", "jaxloop", "figures of the stats file that agree"), rows)


def _artifact(name: str) -> str:
    """How many figures that the authors' own build wrote are those of the conventions `MICRO22`."""
    path, answer = WILD / name / "authors.stats.txt", answer_to(_texts(name), MICRO22)
    if not path.exists() or answer.evaluation is None:
        return ""
    theirs, agreement = _against(answer, path.read_text())
    return f"; MICRO22: {_ours(answer)}, the authors' own build: {theirs}, {agreement} figures"


def _texts(name: str) -> dict[str, str]:
    paths = [path for path in sorted((WILD / name).glob("*.yaml")) if "NOTRUN" not in path.name]
    return {path.name: path.read_text() for path in paths}


def _against(answer: Answer, expected: str) -> tuple[str, str]:
    """The reference's answer in short, and how many figures that both files have are equal."""
    assert answer.evaluation is not None
    ours, theirs = figures(stats_text(answer.evaluation)), figures(expected)
    total = next(value for (block, _, label), value in theirs.items() if (block[:3], label) == ("pJ/", "Total"))
    shared = [key for key in ours if key in theirs and key != SUMMARY_AREA]
    equal = [key for key in shared if ours[key] == theirs[key] or one_digit_off(ours[key], theirs[key])]
    return _numbers(theirs["Summary Stats", "", "Cycles"], total), f"{len(equal)} of {len(shared)}"


HEAD = """# Cases

Written by `python -m tests.cases > docs/cases.md`; the tests in `tests/cases` and `tests/spec_examples` hold what is
right. "Reference" is the public program of August 2022; energies are pJ per compute. Where both give numbers and the
last column says yes, every count and energy of every level agrees within the tolerance of the golden data. Printed
figures agree if they are equal but for a tie of the last digit. Differences on purpose are explained in
[deviations.md](deviations.md).
"""


def main() -> None:
    sections = {"Reported problems": problems, "Hand-written spec sets": spec_sets}
    if WILD.is_dir():
        sections["Spec sets of real users"] = wild_sets
    sys.stdout.write(HEAD + "".join(f"\n## {title}\n\n{section()}" for title, section in sections.items()))


if __name__ == "__main__":
    main()
