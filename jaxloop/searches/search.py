"""`jl.search`: the public function."""

from collections.abc import Callable, Mapping as Dict
from pathlib import Path
from typing import Any

import numpy as np
from jax.sharding import Mesh

from .._errors import nearest
from ..conventions import TIMELOOP_2022, Conventions
from ..spec.design import Design
from ..sweeps import Pareto
from ..sweeps.values import axis_error
from .driver import Budget, Checkpoint, Search, definition_of, drive
from .methods import METHODS
from .objectives import Metric, read_metrics
from .result import Failures, SearchResult
from .scorer import Scorer, evaluate_at, make_scorer
from .space import MapSpace
from .tally import Tally

SMALL = 10**5
"""A space of up to so many mappings is searched completely where no method is named."""

DEFAULT_BUDGET = 10**4


def search(
    design: Design,
    space: MapSpace | None = None,
    objective: Any = None,
    *,
    method: str | None = None,
    budget: int | Budget | None = None,
    seed: int = 0,
    choose: Dict[Any, Any] | None = None,
    over: Dict[Any, Any] | None = None,
    aggregate: str = "mean",
    limits: Dict[str, float] | None = None,
    conventions: Conventions = TIMELOOP_2022,
    dtype: Any = np.float64,
    batch: int = 4096,
    mesh: Mesh | None = None,
    checkpoint: str | Path | None = None,
    tell: Callable[[Search], None] | None = None,
) -> SearchResult:
    """The best mapping of a design.

    **Arguments:**

    - `space`: None for all mappings that the design's constraints allow.
    - `objective`: what to minimize: a name (`edp`, `energy`, `delay`, `ed2p`, `area`, `last-level-accesses`,
      `accesses-N`, `ordered-accesses`, any scalar result), a list of names of which the first that differs by more than
      0.1 % decides, a `Metric`, or a `Pareto` of names for a front; None for the `mapper` section's, or `edp`.
    - `method`: `exhaustive`, `random`, `population` or `gradient`; None for exhaustive if the space is small or the
      budget covers it, else population.
    - `budget`: evaluations, or a `Budget`. Results of a budget of evaluations do not depend on `batch` or `mesh`.
    - `choose`: axes as of `sweep` (formats, SAFs, hardware) of which the best combination is chosen for each mapping.
    - `over`: axes as of `sweep` (densities, layers as a tuple of axes with rows) over which one mapping must be good;
      `aggregate` combines their metrics: `mean`, `max` or `sum`. A mapping must be valid for all of them.
    - `limits`: `{result: upper bound}`; what exceeds one is not valid.
    - `batch`: mappings evaluated at once; `mesh`: devices, None for all.
    - `checkpoint`: a file that holds the state of the search; with it the same search goes on.
    - `tell`: is called with the `Search` after each batch.

    **Returns:** a `SearchResult`. Ctrl-C ends the search with the best so far.

    **Raises:** `SpecError` for what makes no sense or is not modeled; contradictory constraints by name.
    """
    space = MapSpace(design) if space is None else space
    metrics = _metrics(design, objective)
    name = _method(method, space, budget, isinstance(objective, Pareto), bool(choose))
    limit = _budget(budget, name)
    axes = {"choose": choose or {}, "over": over or {}, "aggregate": aggregate, "limits": limits or {}}
    axes |= {"conventions": conventions, "dtype": dtype, "mesh": mesh, "expected": limit.evaluations}
    scorer = make_scorer(design, space, metrics, **axes)
    levels = (design.architecture.compute.name, *(level.name for level in design.architecture.levels))
    tally = Tally(len(metrics), levels, keeps_front=isinstance(objective, Pareto))
    run = Search(scorer, tally, limit, batch, tell or (lambda _: None))
    chosen = METHODS[name](space, seed, len(metrics) if tally.keeps_front else 1)
    keeper = None if checkpoint is None else Checkpoint(Path(checkpoint), _definition(scorer, name, seed))
    found = None if keeper is None else keeper.load()
    if found is not None:
        chosen, run.tally, run.before = found
    stopped = drive(chosen, run, keeper)
    return _result(scorer, run, stopped, name)


def _metrics(design: Design, objective: Any) -> tuple[Metric, ...]:
    if isinstance(objective, Pareto):
        return read_metrics(design, objective.objectives)
    if objective is None:
        objective = "edp" if design.mapper is None else design.mapper.metrics
    return read_metrics(design, objective)


def is_searched_completely(space: MapSpace, evaluations: int | None) -> bool:
    """Whether all mappings are evaluated where no method is named: small spaces, and those that the budget covers."""
    return space.size <= (SMALL if evaluations is None else evaluations)


def _method(given: str | None, space: MapSpace, budget: int | Budget | None, is_front: bool, has_choice: bool) -> str:
    """**Raises:** `SpecError` for what no method does."""
    evaluations = budget.evaluations if isinstance(budget, Budget) else budget
    name = given or ("exhaustive" if is_searched_completely(space, evaluations) else "population")
    if name not in METHODS:
        raise axis_error("method", f'no method "{name}"', nearest(name, METHODS))
    if is_front and name == "gradient":
        raise axis_error("method", "gradients search for one objective, not for a front", "use the population")
    if is_front and has_choice:
        raise axis_error("choose", "a front is of mappings: alternatives are not told apart in it", "search each alone")
    return name


def _budget(given: int | Budget | None, method: str) -> Budget:
    if isinstance(given, Budget):
        return given
    if given is None:
        return Budget() if method == "exhaustive" else Budget(evaluations=DEFAULT_BUDGET)
    return Budget(evaluations=int(given))


def _definition(scorer: Scorer, method: str, seed: int) -> str:
    """What determines a search, its budget aside."""
    own = scorer.plan.definition()
    return definition_of(
        own
        | {
            "method": method,
            "seed": seed,
            "metrics": [metric.name for metric in scorer.metrics],
            "aggregate": scorer.aggregate,
            "limits": dict(scorer.limits),
            "space": scorer.space.size,
        }
    )


def _result(scorer: Scorer, run: Search, stopped: str, method: str) -> SearchResult:
    tally, space = run.tally, scorer.space
    nest, alternative = None, {}
    if tally.mapping is not None:
        nest = space.nest_of(tally.mapping)
        alternative = scorer.alternative(tally.choice)
    history = {
        "evaluations": np.asarray([count for count, _ in tally.history], int),
        "scores": np.asarray([scores for _, scores in tally.history]).reshape((-1, tally.metrics)),
    }
    nearest = None if tally.nearest is None else space.nest_of(tally.nearest)
    reasons: tuple[str, ...] = ()
    if tally.mapping is None and tally.nearest is not None:
        reasons = tuple(evaluate_at(scorer, tally.nearest, 0).reasons)
    failures = Failures(tally.reason_counts(), tally.level_counts(), reasons, nearest)
    return SearchResult(
        nest=nest,
        mapping=tally.mapping,
        front=tally.front,
        evaluate_best=lambda: evaluate_at(scorer, tally.mapping, tally.choice),
        scores=tally.best,
        metrics=tuple(metric.name for metric in scorer.metrics),
        alternative=alternative,
        evaluated=tally.evaluated,
        valid=tally.valid,
        relaxed=tally.relaxed,
        space_size=space.size,
        is_complete=method == "exhaustive" and stopped == "all mappings are evaluated",
        stopped=stopped,
        history=history,
        failures=failures,
        seconds=run.seconds,
    )
