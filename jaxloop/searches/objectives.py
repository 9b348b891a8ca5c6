"""What a search minimizes (spec/inputs.md sections 5.1 and 5.6)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import nearest
from ..spec.design import Design
from ..sweeps.fields import DERIVED, SHORT, axes_of, check_fields
from ..sweeps.values import axis_error

CLEAR = 1e-3
"""Relative difference from which on a metric of a list decides (spec/inputs.md 5.6)."""

_ACCESSES = re.compile(r"accesses[-_](\d+)")
_ALIASES = {"last_level_accesses": "last-level-accesses", "ordered_accesses": "ordered-accesses"}
_COUNTS = ("reads", "fills", "updates", "instances")

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Metric:
    """One number per point, of which less is better. `fields`: results that it follows from; `of`: from their arrays
    [*points, *own axes]."""

    name: str
    fields: tuple[str, ...]
    of: Callable[[Values], np.ndarray]


def read_metrics(design: Design, objective: Any) -> tuple[Metric, ...]:
    """The metrics of an objective, most important first.

    **Arguments:** `objective`: a name (`edp`, `energy`, `delay`, `ed2p`, `area`, any scalar result of `evaluate`,
    `last-level-accesses`, `accesses-N` of storage level N, `ordered-accesses`), a list of names, or a `Metric`.

    **Raises:** `SpecError` for names that do not exist.
    """
    given = [objective] if isinstance(objective, str | Metric) else list(objective)
    if not given:
        raise axis_error("objective", "there is none", 'name one, such as "edp"')
    found: list[Metric] = []
    for one in given:
        found += [one] if isinstance(one, Metric) else _named(design, one)
    return tuple(found)


def _named(design: Design, name: str) -> list[Metric]:
    name = _ALIASES.get(name, name)
    levels = len(design.architecture.levels)
    if name == "ordered-accesses":
        return [_accesses(f"accesses-{level}", level) for level in reversed(range(levels))]
    if name == "last-level-accesses":
        return [_accesses(name, levels - 1)]
    match = _ACCESSES.fullmatch(name)
    if match:
        if int(match[1]) >= levels:
            raise axis_error("objective", f'"{name}": there are the levels 0 to {levels - 1}')
        return [_accesses(f"accesses-{match[1]}", int(match[1]))]
    (field,) = check_fields((name,))
    if axes_of(field):
        raise axis_error("objective", f'"{field}" is not one number', nearest(field, [*DERIVED, *SHORT]))
    return [Metric(name, (field,), lambda values: values[field])]


def _accesses(name: str, level: int) -> Metric:
    """Words read, filled and updated by all instances of a level."""

    def of(values: Values) -> np.ndarray:
        reads, fills, updates, instances = (values[field][..., level, :] for field in _COUNTS)
        return ((reads + fills + updates) * instances).sum(-1)

    return Metric(name, _COUNTS, of)


def better(candidate: np.ndarray, incumbent: np.ndarray) -> np.ndarray:
    """Whether candidates [point, metric] beat an incumbent [metric]: the first metric that differs clearly decides; if
    none does, any gain in the first (spec/inputs.md 5.6). A single metric is compared exactly."""
    with np.errstate(invalid="ignore", divide="ignore"):
        at_zero = np.where(candidate == 0.0, 0.0, -1.0)
        gain = np.where(incumbent == 0.0, at_zero, (incumbent - candidate) / np.where(incumbent == 0.0, 1.0, incumbent))
    gain = np.where(np.isinf(incumbent) & np.isfinite(candidate), 1.0, gain)
    clear = np.abs(gain) > CLEAR
    first = np.argmax(clear, axis=1)
    decided = clear.any(axis=1)
    return np.where(decided, gain[np.arange(len(gain)), first] > 0.0, gain[:, 0] > 0.0)


def improvements(scores: np.ndarray, incumbent: np.ndarray) -> list[int]:
    """The points, in their order, each of which beats what was best before it.

    **Arguments:** `scores`: [point, metric], infinite where a point does not count; `incumbent`: [metric].
    """
    found: list[int] = []
    start = 0
    while start < len(scores):
        wins = better(scores[start:], incumbent) & np.isfinite(scores[start:]).all(axis=1)
        if not wins.any():
            break
        start += int(np.argmax(wins))
        incumbent = scores[start]
        found.append(start)
        start += 1
    return found


def required(metrics: Sequence[Metric]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(field for metric in metrics for field in metric.fields))
