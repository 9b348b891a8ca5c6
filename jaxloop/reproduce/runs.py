"""Evaluating the shipped designs, and comparing them with the artifact number by number."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._api import evaluate, load
from .._errors import Diagnostic, Place, SpecError
from .._schema import ACTIONS, FATES
from ..conventions import MICRO22
from ..result import Evaluation
from .results import Difference, Row

COUNT_SLACK = 2.0
"""Words that a count may differ by: the model rounds several times in a row."""

SHARE_SLACK = 1e-6
"""The same as a share of the count."""

ENERGY_SLACK = 1e-4
"""Share that an energy may differ by."""

Advance = Callable[[], None]
"""Called after each evaluation, for a progress bar."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may choose. `masks`: folder of the masks of real tensors, None to draw them; `advance`."""

    masks: Path | None = None
    advance: Advance = lambda: None


def run(name: str, options: Options, masks: Mapping[str, Any] | None = None) -> Evaluation:
    """Evaluates a shipped design with the conventions of the artifact; `masks`: nonzeros of real tensors, arrays or
    paths.

    **Raises:** `SpecError` where it cannot be evaluated or its mapping is not valid.
    """
    evaluation = evaluate(load(name), masks=masks, conventions=MICRO22)
    if not evaluation.valid:
        raise SpecError([Diagnostic(Place(name), reason) for reason in evaluation.reasons])
    options.advance()
    return evaluation


def rows_of(name: str, what: str, answer: Mapping[str, Any], evaluation: Evaluation) -> tuple[Row, Row]:
    """Cycles and energy (pJ) of the artifact's `answer` beside ours."""
    return (
        Row(what, "cycles", "cycles", answer["cycles"], float(evaluation.cycles)),
        Row(what, "energy", "pJ", answer["energy_pj"], float(evaluation.energy_pj)),
    )


def compare(name: str, answer: Mapping[str, Any], evaluation: Evaluation) -> tuple[int, list[Difference]]:
    """Counts and energies of all levels: how many were compared, and those that differ by more than the slack."""
    ours, compared, found = _by_level(evaluation), 0, []
    for place in ours | answer["levels"]:
        one, other = answer["levels"].get(place, {}), ours.get(place, {})
        for what in other | one:
            theirs = np.atleast_1d(one.get(what, 0.0)).astype(float)
            mine = np.atleast_1d(other.get(what, 0.0)).astype(float)
            theirs, mine = np.broadcast_arrays(theirs, mine)
            least, share = (0.0, ENERGY_SLACK) if what == "energy_pj" else (COUNT_SLACK, SHARE_SLACK)
            compared += theirs.size
            for label, reference, value in zip(_labels(what), theirs, mine, strict=True):
                if abs(value - reference) > max(least, share * reference):
                    found.append(Difference(name, place, label, float(reference), float(value)))
    return compared, found


def _labels(what: str) -> list[str]:
    if what == "energy_pj":
        return [what]
    if what == "computes":
        return [f"{fate} computes" for fate in FATES]
    return [f"{what} {action}" for action in ACTIONS]


def _by_level(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Energies (pJ, all instances) and counts (per instance) in the layout of the reference files."""
    plain = evaluation.to_dict()
    units, *levels = plain["levels"]
    counts = [units[f"{fate}_computes"] for fate in FATES]
    found: dict[str, dict[str, Any]] = {units["name"]: {"energy_pj": units["energy_pj"], "computes": counts}}
    for level in levels:
        for tensor in level["keep"]:
            by_fate = {fate: [level[f"{fate}_{action}"][tensor] for action in ACTIONS] for fate in FATES}
            energy = level["energy_pj_total"][tensor]
            if energy or any(map(any, by_fate.values())):
                found[f"{level['name']}.{tensor}"] = {"energy_pj": energy, **by_fate}
    return found
