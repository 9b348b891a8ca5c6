"""What a search has seen: its best mapping, how it got there, and why others failed."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from ..program import Mapping
from ..result import Violation
from ..status import Status
from ..sweeps.fronts import non_dominated
from .objectives import improvements
from .result import Front
from .scorer import OVER_LIMIT, Scores

_WORDS = {OVER_LIMIT: "over a limit of the user's"} | {
    int(bit): str(bit.name).lower().replace("_", " ") for bit in Status if bit
}


@dataclass
class Tally:
    """**Attributes:** `levels`: names, the compute units first; `best`: scores [metric]; `nearest`: the invalid mapping
    with fewest reasons."""

    metrics: int
    levels: tuple[str, ...]
    evaluated: int = 0
    valid: int = 0
    relaxed: int = 0
    best: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mapping: Mapping | None = None
    choice: int = 0
    history: list[tuple[int, np.ndarray]] = field(default_factory=list)
    reasons: Counter[int] = field(default_factory=Counter)
    at_levels: Counter[tuple[str, int]] = field(default_factory=Counter)
    nearest: Mapping | None = None
    front: Front | None = None
    keeps_front: bool = False
    _nearest_reasons: int = 99
    since_best: int = 0

    def __post_init__(self) -> None:
        if not len(self.best):
            self.best = np.full(self.metrics, np.inf)

    def add(self, mapping: Mapping, scores: Scores) -> None:
        """A batch of evaluations, in the order in which they count."""
        found = improvements(scores.metrics, self.best)
        for at in found:
            self.history.append((self.evaluated + at + 1, scores.metrics[at]))
        if found:
            at = found[-1]
            self.best, self.choice = scores.metrics[at], int(scores.choice[at])
            self.mapping = one_of(mapping, at)
            self.since_best = int(scores.valid[at + 1 :].sum())
        else:
            self.since_best += int(scores.valid.sum())
        if self.keeps_front:
            self._add_to_front(mapping, scores)
        self.evaluated += len(scores.status)
        self.valid += int(scores.valid.sum())
        self._add_failures(mapping, scores)

    def _add_to_front(self, mapping: Mapping, scores: Scores) -> None:
        at = non_dominated(scores.metrics)
        found = Front(jax.tree.map(partial(_rows, at=at), mapping), scores.metrics[at], scores.choice[at])
        if self.front is not None:
            found: Front = jax.tree.map(_joined, self.front, found)
        best = non_dominated(np.asarray(found.scores))
        self.front = jax.tree.map(partial(_rows, at=best), found)

    def _add_failures(self, mapping: Mapping, scores: Scores) -> None:
        bad = np.flatnonzero(~scores.valid)
        if not len(bad):
            return
        statuses, counts = np.unique(scores.status[bad], return_counts=True)
        for status, count in zip(statuses.tolist(), counts.tolist(), strict=True):
            for bit in _WORDS:
                self.reasons[bit] += count if status & bit else 0
        for column, level in enumerate(self.levels):
            codes, counts = np.unique(scores.violation[bad, column], return_counts=True)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                self.at_levels[level, code] += count if code else 0
        reasons = np.stack([(scores.status[bad] & bit) != 0 for bit in _WORDS]).sum(axis=0)
        at = int(np.argmin(reasons))
        if reasons[at] < self._nearest_reasons:
            self._nearest_reasons, self.nearest = int(reasons[at]), one_of(mapping, int(bad[at]))

    def reason_counts(self) -> dict[str, int]:
        return {_WORDS[bit]: count for bit, count in self.reasons.most_common() if count}

    def level_counts(self) -> dict[tuple[str, str], int]:
        return {
            (level, Violation(code).name.lower().replace("_", " ")): count
            for (level, code), count in self.at_levels.most_common()
            if count
        }


def _rows(leaf: Any, at: np.ndarray) -> np.ndarray:
    return np.asarray(leaf)[at]


def _joined(old: Any, new: Any) -> np.ndarray:
    return np.concatenate([old, new])


def one_of(mapping: Mapping, at: int) -> Mapping:
    return jax.tree.map(lambda leaf: np.array(leaf[at]), mapping)


def some_of(mapping: Mapping, at: Any) -> Mapping:
    return jax.tree.map(lambda leaf: leaf[at], mapping)
