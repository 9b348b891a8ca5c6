"""Scores of mappings: one batch of the kernel, over all scenarios and alternatives."""

from collections.abc import Callable, Mapping as Dict
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from .._api import evaluate
from ..conventions import SMOOTH, Conventions
from ..program import Mapping
from ..result import Evaluation
from ..run.grid import GridRunner, make_runner
from ..spec.design import Design
from ..status import Status
from ..sweeps.axes import MAPPING
from ..sweeps.fields import DERIVED, SHORT, check_fields, derive, kernel_fields
from ..sweeps.plan import Plan, make_plan
from ..sweeps.values import axis_error
from .objectives import Metric, required
from .relaxed import Descent, Relaxed
from .space import MapSpace

LANES = 4096
"""Mappings for which chunks are cut: results must not depend on how many come at once."""

RELAXED_AGGREGATES: dict[str, Callable[..., Any]] = {"mean": jnp.mean, "max": jnp.max, "sum": jnp.mean}
"""The same of logarithms."""

AGGREGATES: dict[str, Callable[..., np.ndarray]] = {"mean": np.mean, "max": np.max, "sum": np.sum}


@dataclass(frozen=True, eq=False)
class Scores:
    """Of a batch of mappings. `metrics`: [mapping, metric], infinite where it is not valid, the best of all
    alternatives; `choice`: number of that alternative; `status`: `Status` bits of its worst scenario; `violation`:
    codes of its levels in that scenario [mapping, level1]."""

    metrics: np.ndarray
    choice: np.ndarray
    status: np.ndarray
    violation: np.ndarray

    @property
    def valid(self) -> np.ndarray:
        return self.status == 0

    @property
    def against(self) -> np.ndarray:
        """How many reasons and levels speak against a mapping: the fewer, the nearer is it to a valid one. [mapping]"""
        reasons = np.asarray([int(status).bit_count() for status in self.status], int)
        return reasons + (self.violation != 0).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Scorer:
    """Evaluates mappings of a space.

    **Attributes:** `plan`: mappings, alternatives (`choose`) and scenarios (`over`) as dimensions; `choices`,
    `scenarios`: the numbers of the latter two; `aggregate`: over scenarios; `limits`: upper bounds of results;
    `make_smooth`: the plan under conventions without rounding; `expected`: mappings that will be evaluated at most.
    """

    space: MapSpace
    plan: Plan
    metrics: tuple[Metric, ...]
    choices: tuple[int, ...]
    scenarios: tuple[int, ...]
    aggregate: str
    limits: Dict[str, float]
    mesh: Mesh | None
    make_smooth: Callable[[], Plan]
    expected: int

    @cached_property
    def descent(self) -> Descent:
        """The relaxed model of the same mappings and scenarios; compiled once."""
        others = tuple(range(1, len(self.plan.dimensions)))
        plan = replace(self.make_smooth(), lane_axes=((0,), others) if others else ((0,),))
        return Descent(Relaxed(self.space, plan, self.metrics[0], RELAXED_AGGREGATES[self.aggregate]))

    @cached_property
    def _runner(self) -> GridRunner:
        lanes = [int(np.prod([self._extent(d, LANES) for d in dims])) for dims in self.plan.lane_axes]
        wanted = kernel_fields(self.plan.fields)
        structure, few = self.plan.lowered.program.structure, min(self.expected, self.space.size)
        points = few * int(np.prod(self.plan.shape[1:], dtype=float))
        return make_runner(structure, self.plan.dtype, wanted, tuple(lanes), self.mesh, points)

    def _extent(self, d: int, mappings: int) -> int:
        dimension = self.plan.dimensions[d]
        return mappings if dimension.name == MAPPING else dimension.size

    def __call__(self, mapping: Mapping) -> Scores:
        """The scores of mappings, with one leading batch axis."""
        count = len(mapping.temporal)
        dims = self.plan.dimensions
        box = tuple(slice(0, self._extent(d, count)) for d in range(len(dims)))
        program, lanes, shape = self.plan.arrays(box, mapping)
        found = self._runner.run(program, lanes, shape)
        values = {name: self.plan.unflatten(leaf, box) for name, leaf in found.items()}
        values |= {n: v for n, v in derive(values, self._derived).items()}
        return self._scores(values, mapping)

    @property
    def _derived(self) -> tuple[str, ...]:
        return tuple(name for name in self.plan.fields if name in DERIVED)

    def _scores(self, values: dict[str, np.ndarray], mapping: Mapping) -> Scores:
        order = (0, *self.choices, *self.scenarios)
        axes = len(order)
        alternatives = int(np.prod([self.plan.dimensions[d].size for d in self.choices]))

        def arranged(array: np.ndarray) -> np.ndarray:
            """[mapping, alternative, scenario, *own]"""
            moved = np.transpose(array, (*order, *range(axes, array.ndim)))
            return moved.reshape((array.shape[0], alternatives, -1, *array.shape[axes:]))

        values = {name: arranged(array) for name, array in values.items()}
        status = np.where(self.space.admissible(mapping)[:, None, None], values["status"], _TOO_MUCH | values["status"])
        within = np.ones(status.shape, bool)
        for name, limit in self.limits.items():
            within &= values[name] <= limit
        status = np.where(within, status, status | OVER_LIMIT)
        worst = np.argmax(status != 0, axis=2)[..., None]
        bad = np.take_along_axis(status, worst, axis=2)[..., 0]  # [mapping, alternative]
        combine = AGGREGATES[self.aggregate]
        scores = np.stack([combine(metric.of(values), axis=2) for metric in self.metrics], axis=-1)
        scores = np.where((bad == 0)[..., None], scores, np.inf)
        choice = np.lexsort(tuple(scores[..., m] for m in reversed(range(len(self.metrics)))), axis=1)[:, 0]
        rows = np.arange(len(choice))
        violation = values["violation"][rows, choice, worst[rows, choice, 0]]
        return Scores(scores[rows, choice], choice, bad[rows, choice], violation)

    def alternative(self, choice: int) -> dict[str, Any]:
        """The values of the axes of an alternative, by name."""
        if not self.choices:
            return {}
        at = np.unravel_index(choice, [self.plan.dimensions[d].size for d in self.choices])
        return {
            axis.name: axis.values[int(i) : int(i) + 1].tolist()[0]
            for d, i in zip(self.choices, at, strict=True)
            for axis in self.plan.dimensions[d].axes
        }


OVER_LIMIT = 1 << 30
"""Beside the bits of `Status`: a result exceeds the user's limit."""

_TOO_MUCH = int(Status.OVER_INSTANCES)


def make_scorer(
    design: Design,
    space: MapSpace,
    metrics: tuple[Metric, ...],
    *,
    choose: Dict[Any, Any],
    over: Dict[Any, Any],
    aggregate: str,
    limits: Dict[str, float],
    conventions: Conventions,
    dtype: Any,
    mesh: Mesh | None,
    expected: int | None = None,
) -> Scorer:
    """**Raises:** `SpecError` for axes and values that make no sense, and for what is not modeled."""
    if aggregate not in AGGREGATES:
        raise axis_error("aggregate", f'"{aggregate}" is none of {", ".join(AGGREGATES)}')
    for name in choose:
        if name in over:
            raise axis_error(str(name), "the axis is chosen and varied at once", "give it once")
    limits = {SHORT.get(name, name): bound for name, bound in limits.items()}
    fields = check_fields((*required(metrics), *limits, "status", "violation"))
    plan = make_plan(design, {**choose, **over}, space, conventions, dtype, fields, False, 1)
    smooth = partial(make_plan, design, {**choose, **over}, space, SMOOTH, np.float32, fields, False, 1)
    expected = space.size if expected is None else expected
    chosen = tuple(range(1, 1 + len(choose)))
    varied = tuple(range(1 + len(choose), len(plan.dimensions)))
    return Scorer(space, plan, metrics, chosen, varied, aggregate, limits, mesh, smooth, expected)


def evaluate_at(scorer: Scorer, mapping: Mapping | None, choice: int) -> Evaluation:
    """Every number of one mapping with one alternative, in the first scenario."""
    plan, sparse = scorer.plan, scorer.plan.design.sparse
    at = dict.fromkeys(range(len(plan.dimensions)), 0)
    if scorer.choices:
        sizes = [plan.dimensions[d].size for d in scorer.choices]
        at |= {d: int(i) for d, i in zip(scorer.choices, np.unravel_index(choice, sizes), strict=True)}
    values: dict[str, dict[str, Any]] = {"hardware": {}, "rank": {}, "density": {}}
    for d, dimension in enumerate(plan.dimensions):
        for axis in dimension.axes:
            if axis.kind in values:
                values[axis.kind][axis.key] = axis.values[at[d]]
    for axis in plan.choices:
        d = next(d for d, dimension in enumerate(plan.dimensions) if axis in dimension.axes)
        sparse = axis.changes[at[d]](sparse)
    return evaluate(
        replace(plan.design, sparse=sparse),
        mappings=mapping,
        hardware=values["hardware"],
        sizes=values["rank"],
        densities=values["density"],
        conventions=plan.conventions,
        dtype=plan.dtype,
    )
