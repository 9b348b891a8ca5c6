"""What a search gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import numpy as np

from ..program import Mapping
from ..result import Evaluation
from ..spec.mapping import LoopNest


@dataclass(frozen=True)
class Failures:
    """Why mappings were not valid. `reasons`: mappings by reason, most frequent first (a mapping may have several);
    `levels`: by level and what was wrong with it; `nearest`: of the mapping that came closest, `nearest_nest`, every
    reason in words."""

    reasons: dict[str, int]
    levels: dict[tuple[str, str], int]
    nearest: tuple[str, ...] = ()
    nearest_nest: LoopNest | None = None


class Front(eqx.Module):
    """Mappings that no other beats in every objective. `mappings`: with a leading batch axis; `scores`: [mapping,
    metric], ascending along the first; `choices`: numbers of their alternatives."""

    mappings: Mapping
    scores: np.ndarray
    choices: np.ndarray


class SearchResult(eqx.Module):
    """The best mapping that a search found.

    **Attributes:**

    - `nest`, `mapping`: the mapping, as loops and as arrays; None if no mapping was valid.
    - `scores`: its metrics, in the order of the objective; over scenarios as they were aggregated.
    - `metrics`: their names.
    - `alternative`: the values chosen for the axes of `choose`.
    - `evaluated`, `valid`: mappings evaluated under the exact model, and how many of them are valid; `relaxed`:
      evaluations of the relaxed model, which count against the budget too.
    - `space_size`: mappings in the space; `is_complete`: all of them were evaluated, so that the result is the optimum.
    - `stopped`: why the search ended.
    - `history`: `evaluations` and `scores` [improvement, metric] of each improvement.
    - `front`: for an objective of `Pareto`, its mappings with their scores; else None.
    - `failures`: why mappings were not valid.
    - `seconds`.
    """

    nest: LoopNest | None = eqx.field(static=True)
    mapping: Mapping | None
    scores: np.ndarray
    metrics: tuple[str, ...] = eqx.field(static=True)
    alternative: dict[str, Any] = eqx.field(static=True)
    evaluated: int = eqx.field(static=True)
    valid: int = eqx.field(static=True)
    relaxed: int = eqx.field(static=True)
    space_size: int = eqx.field(static=True)
    is_complete: bool = eqx.field(static=True)
    stopped: str = eqx.field(static=True)
    history: dict[str, np.ndarray]
    failures: Failures = eqx.field(static=True)
    seconds: float = eqx.field(static=True)
    evaluate_best: Callable[[], Evaluation] = eqx.field(static=True)
    front: "Front | None" = None

    def evaluation(self) -> Evaluation:
        """Every number of the best mapping under the exact model; of the first scenario, where there are several.

        **Raises:** `ValueError` if no mapping was valid.
        """
        if self.nest is None:
            raise ValueError("no valid mapping was found: see `failures`")
        return self.evaluate_best()
