"""`jl.tune`: hardware numbers and densities by gradient."""

import math
from collections.abc import Callable, Mapping as Dict
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._api import evaluate, mapping_of
from ..conventions import SMOOTH, TIMELOOP_2022, Conventions
from ..kernel.evaluate import evaluate as evaluate_arrays
from ..lower import Lowered, check_mapping, lower
from ..lower.override import leaf_of
from ..lower.program import to_device
from ..program import Mapping, Program
from ..result import Evaluation
from ..run.batch import precision
from ..run.executables import count_trace, quick_options
from ..spec.design import Design
from ..spec.mapping import LoopNest
from ..sweeps.fields import DERIVED, SHORT, axes_of, check_fields, derive, kernel_fields
from ..sweeps.values import axis_error
from .objectives import Metric, read_metrics
from .relaxed import excess

WHOLE = ("size", "metadata_size", "word_bits", "block_size", "cluster_size", "mesh_x", "mesh_y", "metadata_width")
"""Attributes that are whole numbers in the end."""

SPREAD = 2.0
"""Start parameters are drawn from -2 to 2, of which the logistic function gives shares of 0.12 to 0.88."""

STIFFNESS = 10.0
"""Weight of what exceeds a limit at the start; it grows tenfold until the end."""

Values = dict[str, Any]
Model = Callable[[Values], Values]


class TuneResult(eqx.Module):
    """The best numbers found.

    **Attributes:**

    - `values`: of what was varied. `hardware`, `densities`: all that the design takes from them, the model's attributes
      included; whole where only whole numbers make sense. Both fit `evaluate`.
    - `score`: the metric under the exact model; `metric`: its name; `start`: that of the files' own numbers, nan if
      these are not valid.
    - `limits`: `{result: (value, bound)}`.
    - `elasticity`: relative change of the relaxed metric per relative change of each number, at the end.
    - `history`: score of the relaxed model of the best start, [step].
    - `is_valid`: the mapping runs and all limits hold.
    """

    values: dict[str, float] = eqx.field(static=True)
    hardware: dict[str, float] = eqx.field(static=True)
    densities: dict[str, float] = eqx.field(static=True)
    score: float = eqx.field(static=True)
    metric: str = eqx.field(static=True)
    start: float = eqx.field(static=True)
    limits: dict[str, tuple[float, float]] = eqx.field(static=True)
    elasticity: dict[str, float] = eqx.field(static=True)
    history: np.ndarray
    is_valid: bool = eqx.field(static=True)
    evaluation: Evaluation


def tune(
    design: Design,
    vary: Dict[str, tuple[float, float]],
    objective: Any = "edp",
    *,
    model: Model | None = None,
    limits: Dict[str, float] | None = None,
    mapping: Mapping | LoopNest | None = None,
    steps: int = 200,
    starts: int = 16,
    rate: float = 0.1,
    optimizer: Any = None,
    seed: int = 0,
    conventions: Conventions = TIMELOOP_2022,
) -> TuneResult:
    """The numbers of a design, within bounds, at which a mapping is best.

    **Arguments:**

    - `vary`: `{name: (least, most)}`, both above 0: `LEVEL.ATTRIBUTE`, `density.TENSOR`, or a name of the user's that
      only `model` reads.
    - `objective`: one metric, as of `search`.
    - `model`: what else follows from the numbers, as prices follow from sizes: a function of `{name: value}` to
      `{LEVEL.ATTRIBUTE: value}` in `jax.numpy`. Without one, prices stay those of the files.
    - `limits`: `{result: upper bound}`, such as `{"area": 1e6}`.
    - `mapping`: None for that of the files. It must be valid somewhere within the bounds.
    - `steps`, `starts`, `rate`, `optimizer`: of an optax optimizer (Adam) on the numbers' logarithms, from random
      starts.
    - `conventions`: of the exact model that has the last word; gradients are those of `SMOOTH`.

    **Returns:** a `TuneResult`.

    **Raises:** `SpecError` for names and bounds that make no sense, and for what is not modeled.
    """
    metrics = read_metrics(design, objective)
    if len(metrics) != 1:
        raise axis_error("objective", "gradients follow one metric", "name one")
    problem = _problem(design, dict(vary), metrics[0], model, dict(limits or {}), mapping)
    chosen = optimizer if optimizer is not None else optax.adam(rate)
    found, history = _descend(problem, chosen, steps, starts, seed)
    return _best(problem, found, history, conventions)


@dataclass(frozen=True, eq=False)
class _Problem:
    """**Attributes:** `low`, `high`: logarithms of the bounds [number]; `limits`: by full name; `program`, `mapping`:
    with one lane."""

    design: Design
    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    metric: Metric
    model: Model
    limits: dict[str, float]
    lowered: Lowered
    program: Program
    mapping: Mapping

    def values(self, parameters: Any) -> Values:
        """By name, [lane] of parameters [number, lane]."""
        share = jax.nn.sigmoid(parameters)
        logs = self.low[:, None] + share * (self.high - self.low)[:, None]
        return {name: jnp.exp(logs[i]) for i, name in enumerate(self.names)}

    def attributes(self, values: Values) -> Values:
        """All that the design takes: the numbers that it knows, and the model's."""
        own = {name: value for name, value in values.items() if "." in name}
        return own | dict(self.model(values))

    def scores(self, values: Values, program: Program, mapping: Mapping, stiffness: Any) -> tuple[Any, Any]:
        """Logarithms of the metric and of the same with what exceeds the hardware and the limits, [lane]."""
        for key, value in self.attributes(values).items():
            program = _with(program, *leaf_of(self.lowered, key), value)
        result = evaluate_arrays(program, mapping)
        wanted = (*self.metric.fields, *self.limits)
        found = {n: _lane_first(getattr(result, n), len(axes_of(n))) for n in kernel_fields(wanted)}
        found |= derive(found, tuple(name for name in wanted if name in DERIVED))
        score = jnp.log(jnp.maximum(self.metric.of(found), 1e-30))
        over = excess(program, result)
        for name, bound in self.limits.items():
            over = over + jax.nn.relu(jnp.log(jnp.maximum(found[name], 1e-30) / bound))
        return score, score + stiffness * over


def _problem(
    design: Design,
    vary: dict[str, tuple[float, float]],
    metric: Metric,
    model: Model | None,
    limits: dict[str, float],
    mapping: Mapping | LoopNest | None,
) -> _Problem:
    for name, (low, high) in vary.items():
        if not (0.0 < low < high < math.inf):
            raise axis_error(name, f"{low:g} to {high:g} are no bounds", "give two numbers above 0, the least first")
    if not vary:
        raise axis_error("vary", "nothing varies", 'give {"LEVEL.ATTRIBUTE": (least, most)}')
    lowered = lower(design, SMOOTH, exact=True)
    own = mapping if isinstance(mapping, Mapping) else mapping_of(design, mapping)
    check_mapping(own, lowered.own)
    given = model or (lambda values: {})
    middle = {name: math.sqrt(low * high) for name, (low, high) in vary.items()}
    known = [name for name in vary if "." in name]
    if model is None and len(known) < len(vary):
        alone = next(name for name in vary if "." not in name)
        raise axis_error(alone, "no model reads it", "name LEVEL.ATTRIBUTE or density.TENSOR, or give a model")
    for key in (*known, *given(middle)):
        leaf_of(lowered, key)
    bounds = {check_fields((SHORT.get(name, name),))[0]: bound for name, bound in limits.items()}
    for name in bounds:
        if axes_of(name):
            raise axis_error("limits", f'"{name}" is not one number', "limit others")
    lanes = jax.tree.map(lambda leaf: np.asarray(leaf)[..., None], (lowered.program, own))
    logs = np.log(np.asarray(list(vary.values()), float))
    return _Problem(design, tuple(vary), logs[:, 0], logs[:, 1], metric, given, bounds, lowered, *lanes)


def _with(program: Program, leaf: str, index: tuple[int, ...], value: Any) -> Program:
    """The program with an entry of each lane replaced; the lane axis is last."""
    part, _, name = leaf.rpartition(".")
    owner = getattr(program, part) if part else program
    old = getattr(owner, name)
    lanes = jnp.broadcast_to(old, (*old.shape[:-1], max(old.shape[-1], jnp.size(value))))
    changed = replace(owner, **{name: lanes.at[index].set(value)})
    return replace(program, **{part: changed}) if part else changed


def _lane_first(value: Any, own: int) -> Any:
    return jnp.moveaxis(value, own, 0)


def _descend(problem: _Problem, optimizer: Any, steps: int, starts: int, seed: int) -> tuple[Any, np.ndarray]:
    """Parameters [number, lane] after all steps, and scores [step, lane]."""
    with precision(np.dtype(np.float64)):
        program, mapping = to_device((problem.program, problem.mapping), np.float64)
        drawn = np.random.default_rng(seed).uniform(-SPREAD, SPREAD, (len(problem.names), starts))
        drawn[:, 0] = 0.0
        found = jnp.asarray(drawn)
        state = optimizer.init(found)

        def loss(parameters: Any, stiffness: Any) -> Any:
            score, whole = problem.scores(problem.values(parameters), program, mapping, stiffness)
            return whole.sum(), score

        def step(parameters: Any, state: Any, stiffness: Any) -> Any:
            count_trace("relaxed")
            slope, score = jax.grad(loss, has_aux=True)(parameters, stiffness)
            change, state = optimizer.update(jnp.where(jnp.isfinite(slope), slope, 0.0), state, parameters)
            return optax.apply_updates(parameters, change), state, score

        compiled = jax.jit(step, compiler_options=quick_options())
        history = []
        for number in range(steps):
            stiffness = jnp.asarray(STIFFNESS * 10.0 ** (number / max(steps - 1, 1)))
            found, state, score = compiled(found, state, stiffness)
            history.append(np.broadcast_to(np.asarray(score), (starts,)))
        return np.asarray(found), np.exp(np.asarray(history).reshape((steps, starts)))


def _best(problem: _Problem, parameters: np.ndarray, history: np.ndarray, conventions: Conventions) -> TuneResult:
    """Every start's end, made whole, under the exact model; the best valid one within the limits."""
    with precision(np.dtype(np.float64)):
        values = {name: np.asarray(value) for name, value in problem.values(jnp.asarray(parameters)).items()}
        values = {name: _whole(name, value) for name, value in values.items()}
        given = {
            k: np.broadcast_to(np.asarray(v, float), (parameters.shape[1],))
            for k, v in problem.attributes(values).items()
        }
    hardware = {key: _whole(key, value) for key, value in given.items() if not key.startswith("density.")}
    densities = {key.partition(".")[2]: value for key, value in given.items() if key.startswith("density.")}
    wanted = tuple(dict.fromkeys((*problem.metric.fields, *problem.limits)))
    fields = tuple(dict.fromkeys((*kernel_fields(wanted), "status")))
    options: Any = {"mappings": jax.tree.map(lambda leaf: leaf[..., 0], problem.mapping), "conventions": conventions}
    many = evaluate(problem.design, hardware=hardware, densities=densities, fields=fields, **options)
    found = {name: np.asarray(getattr(many, name)) for name in fields}
    found |= derive(found, tuple(name for name in wanted if name in DERIVED))
    valid = found["status"] == 0
    for name, bound in problem.limits.items():
        valid = valid & (found[name] <= bound)
    scores = np.broadcast_to(problem.metric.of(found), valid.shape)
    at = int(np.lexsort((np.arange(len(valid)), scores, ~valid))[0])
    own_hardware = {key: float(value[at]) for key, value in hardware.items()}
    own_densities = {key: float(value[at]) for key, value in densities.items()}
    one = evaluate(problem.design, hardware=own_hardware, densities=own_densities, **options)
    return TuneResult(
        values={name: float(value[at]) for name, value in values.items()},
        hardware=own_hardware,
        densities=own_densities,
        score=float(scores[at]),
        metric=problem.metric.name,
        start=_start(problem, options),
        limits={name: (float(np.broadcast_to(found[name], valid.shape)[at]), b) for name, b in problem.limits.items()},
        elasticity=_elasticity(problem, {name: value[at] for name, value in values.items()}),
        history=history[:, at],
        is_valid=bool(valid[at]),
        evaluation=one,
    )


def _whole(name: str, value: np.ndarray) -> np.ndarray:
    return np.floor(value + 1e-9) if name.rpartition(".")[2] in WHOLE else value


def _start(problem: _Problem, options: Any) -> float:
    """The metric of the design as it is."""
    own = evaluate(problem.design, **options)
    values = {name: np.asarray(getattr(own, name)) for name in kernel_fields(problem.metric.fields)}
    values |= derive(values, tuple(name for name in problem.metric.fields if name in DERIVED))
    return float(problem.metric.of(values)) if own.valid else math.nan


def _elasticity(problem: _Problem, values: dict[str, float]) -> dict[str, float]:
    with precision(np.dtype(np.float64)):
        program, mapping = to_device((problem.program, problem.mapping), np.float64)

        def score(logs: dict[str, Any]) -> Any:
            numbers = {name: jnp.exp(log)[None] for name, log in logs.items()}
            return problem.scores(numbers, program, mapping, 0.0)[0].sum()

        logs = {name: jnp.log(jnp.asarray(value, float)) for name, value in values.items()}
        slopes = jax.jit(jax.grad(score), compiler_options=quick_options())(logs)
        return {name: float(slope) for name, slope in slopes.items()}
