"""jaxloop: an analytical model of sparse tensor accelerators as one compiled, batched, differentiable function."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._api import evaluate as evaluate, load as load, loads as loads, mapping_of as mapping_of
    from ._errors import SpecError as SpecError
    from .conventions import (
        MICRO22 as MICRO22,
        SMOOTH as SMOOTH,
        TIMELOOP_2022 as TIMELOOP_2022,
        Conventions as Conventions,
    )
    from .program import Mapping as Mapping, Program as Program
    from .result import Evaluation as Evaluation, Status as Status, Violation as Violation
    from .searches import (
        Budget as Budget,
        MapSpace as MapSpace,
        Metric as Metric,
        SearchResult as SearchResult,
        TuneResult as TuneResult,
        search as search,
        tune as tune,
    )
    from .spec.design import Design as Design
    from .spec.mapping import LevelNest as LevelNest, Loop as Loop, LoopNest as LoopNest
    from .sweeps import (
        Best as Best,
        Histogram as Histogram,
        Pareto as Pareto,
        open_sweep as open_sweep,
        sweep as sweep,
    )

__version__ = "0.1.0"

_HOMES = {
    "evaluate": "._api",
    "load": "._api",
    "loads": "._api",
    "mapping_of": "._api",
    "SpecError": "._errors",
    "MICRO22": ".conventions",
    "SMOOTH": ".conventions",
    "TIMELOOP_2022": ".conventions",
    "Conventions": ".conventions",
    "Mapping": ".program",
    "Program": ".program",
    "Evaluation": ".result",
    "Status": ".result",
    "Violation": ".result",
    "Design": ".spec.design",
    "LevelNest": ".spec.mapping",
    "Loop": ".spec.mapping",
    "LoopNest": ".spec.mapping",
    "Budget": ".searches",
    "MapSpace": ".searches",
    "Metric": ".searches",
    "SearchResult": ".searches",
    "TuneResult": ".searches",
    "search": ".searches",
    "tune": ".searches",
    "Best": ".sweeps",
    "Histogram": ".sweeps",
    "Pareto": ".sweeps",
    "open_sweep": ".sweeps",
    "sweep": ".sweeps",
}


def __getattr__(name: str) -> Any:
    """Loads JAX when a public name is first used, so that `jaxloop --help` does not wait for it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'jaxloop' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
