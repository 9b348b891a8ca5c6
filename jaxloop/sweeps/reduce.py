"""What to keep of a sweep whose points need not be stored: the best ones, fronts, counts.

A reduction holds its state as arrays, so that it can be written down and taken up again. Ties go to the point that
comes first, so that no result depends on blocks, devices or interruptions.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FunctionType
from typing import Any, Protocol

import numpy as np
import xarray as xr

from .._errors import nearest
from .dataset import along
from .fields import DERIVED, SHORT, attributes, axes_of, check_fields
from .fronts import non_dominated
from .plan import Box, Plan
from .values import axis_error, numbers, read_values

State = dict[str, np.ndarray]
Values = dict[str, np.ndarray]
Objective = str | Callable[[Values], np.ndarray]


class Reduction(Protocol):
    """**Attributes:** `fields`: what it needs of each point."""

    @property
    def fields(self) -> tuple[str, ...]: ...

    def describe(self) -> str:
        """What determines its result."""
        ...

    def start(self, plan: Plan) -> State: ...

    def add(self, plan: Plan, state: State, box: Box, values: Values) -> State:
        """The state with the points of a block."""
        ...

    def result(self, plan: Plan, state: State) -> xr.Dataset: ...


@dataclass(frozen=True)
class Best:
    """The best valid points by an objective, for each value of the dimensions `per`.

    **Attributes:**

    - `objective`: a result such as `"edp"`, `"energy"`, `"cycles"`, `"area"`, of which less is better; or a function of
      `{field: array}`, whose `fields` must be named.
    - `per`: dimensions that stay, one name or several; all others are searched.
    - `k`: how many points; more than 1 add a dimension `place`.
    - `fields`: results to give of each point.
    """

    objective: Objective = "edp"
    per: str | tuple[str, ...] = ()
    k: int = 1
    results: tuple[str, ...] = ("cycles", "energy_pj")

    @property
    def fields(self) -> tuple[str, ...]:
        own = (self.objective,) if isinstance(self.objective, str) else ()
        return check_fields((*self.results, *own, "valid"))

    @property
    def _named(self) -> tuple[str, ...]:
        return tuple(name for name in self.fields if name != "valid")

    def describe(self) -> str:
        return f"best {self.k} by {_label(self.objective)} per {_per(self.per)} of {', '.join(self.fields)}"

    def start(self, plan: Plan) -> State:
        _check_scalars(self.fields)
        if self.k < 1:
            raise axis_error("reduce", f"k={self.k} keeps nothing", "keep at least 1")
        shape = (math.prod(plan.shape[d] for d in _kept(plan, self.per)), self.k)
        state: State = {"objective": np.full(shape, np.inf), "index": np.full(shape, -1)}
        return state | {f"of_{name}": np.full(shape, np.nan) for name in self._named}

    def add(self, plan: Plan, state: State, box: Box, values: Values) -> State:
        cells, index, flat = _by_cell(plan, self.per, box, values)
        score = np.where(flat["valid"], _score(self.objective, flat), np.inf)
        k = min(self.k, score.shape[1])
        chosen = score.argmin(axis=1)[:, None] if k == 1 else np.argsort(score, axis=1, kind="stable")[:, :k]
        found: State = {"objective": np.take_along_axis(score, chosen, axis=1), "index": index[chosen]}
        found |= {f"of_{name}": np.take_along_axis(flat[name], chosen, axis=1) for name in self._named}
        both = {name: np.concatenate([state[name][cells], found[name]], axis=1) for name in state}
        order = np.lexsort((both["index"], both["objective"]), axis=1)[:, : self.k]
        for name, array in state.items():
            array[cells] = np.take_along_axis(both[name], order, axis=1)
        return state

    def result(self, plan: Plan, state: State) -> xr.Dataset:
        kept = _kept(plan, self.per)
        shape = tuple(plan.shape[d] for d in kept)
        there = np.isfinite(state["objective"])
        names = tuple(plan.dimensions[d].name for d in kept)
        dims, extents = (names, shape) if self.k == 1 else ((*names, "place"), (*shape, self.k))

        def laid_out(array: np.ndarray, absent: Any) -> np.ndarray:
            return np.where(there, array, absent).reshape(extents)

        found = {name: (dims, laid_out(state[f"of_{name}"], np.nan), attributes(name)) for name in self._named}
        if not isinstance(self.objective, str):
            found["objective"] = (dims, laid_out(state["objective"], np.nan), {"units": "", "long_name": "objective"})
        found["valid"] = (dims, there.reshape(extents), attributes("valid"))
        where = _at(plan, self.per, np.maximum(state["index"], 0).reshape(-1))
        coords: dict[str, Any] = {n: c for d in kept for n, c in along(plan.dimensions[d]).items()}
        coords |= {name: (dims, array.reshape(extents), notes) for name, (array, notes) in where.items()}
        return xr.Dataset(found, coords)


@dataclass(frozen=True)
class Pareto:
    """The valid points that no other valid point beats in every objective, along a dimension `point`.

    **Attributes:** `objectives`: results of which less is better, two or more; `per`: as of `Best`, a front for each of
    their values; `results`: more results to give of each point.
    """

    objectives: tuple[str, ...] = ("cycles", "energy_pj")
    per: str | tuple[str, ...] = ()
    results: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        return check_fields((*self.objectives, *self.results, "valid"))

    def describe(self) -> str:
        return f"front of {', '.join(self.objectives)} per {_per(self.per)} with {', '.join(self.fields)}"

    def start(self, plan: Plan) -> State:
        _check_scalars(self.fields)
        _kept(plan, self.per)
        return {"cell": np.zeros(0, int), "index": np.zeros(0, int)} | {name: np.zeros(0) for name in self._named}

    @property
    def _named(self) -> tuple[str, ...]:
        return tuple(name for name in self.fields if name != "valid")

    def add(self, plan: Plan, state: State, box: Box, values: Values) -> State:
        cells, index, flat = _by_cell(plan, self.per, box, values)
        names = [SHORT.get(name, name) for name in self.objectives]
        parts = [{name: leaf[~np.isin(state["cell"], cells)] for name, leaf in state.items()}]
        for row, cell in enumerate(cells):
            points = np.stack([flat[name][row] for name in names], axis=1)
            inside = non_dominated(np.where(flat["valid"][row][:, None], points, np.inf))
            mine = state["cell"] == cell
            both = {name: np.concatenate([state[name][mine], flat[name][row][inside]]) for name in self._named}
            both["index"] = np.concatenate([state["index"][mine], index[inside]])
            both["cell"] = np.full(len(both["index"]), cell)
            first = np.argsort(both["index"], kind="stable")
            both = {name: leaf[first] for name, leaf in both.items()}
            front = non_dominated(np.stack([both[name] for name in names], axis=1))
            parts.append({name: leaf[front] for name, leaf in both.items()})
        joined = {name: np.concatenate([part[name] for part in parts]) for name in state}
        order = np.lexsort((joined["index"], *(joined[name] for name in reversed(names)), joined["cell"]))
        return {name: leaf[order] for name, leaf in joined.items()}

    def result(self, plan: Plan, state: State) -> xr.Dataset:
        found = {name: (("point",), state[name], attributes(name)) for name in self._named}
        found["valid"] = (("point",), np.ones(len(state["index"]), bool), attributes("valid"))
        kept = _kept(plan, self.per)
        at = np.unravel_index(state["cell"], tuple(plan.shape[d] for d in kept)) if kept else ()
        where = _at(plan, self.per, state["index"])
        for d, index in zip(kept, at, strict=True):
            where |= {n: (c.values, c.attrs) for n, c in along(plan.dimensions[d], index).items()}
        return xr.Dataset(found, {name: (("point",), array, notes) for name, (array, notes) in where.items()})


@dataclass(frozen=True)
class Histogram:
    """How many valid points have a result within each bin, along a dimension `bin`; `below` and `above` count the rest.

    **Attributes:** `result`: of which; `edges`: of the bins, numbers or text such as `"logspace(1, 1e9, 91)"`; the last
    edge belongs to the last bin. `per`: as of `Best`.
    """

    of: str
    edges: Any
    per: str | tuple[str, ...] = ()
    _edges: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        edges = numbers("edges", read_values("edges", self.edges))
        if len(edges) < 2 or (np.diff(edges) <= 0).any():
            raise axis_error("edges", "a histogram needs two or more ascending edges")
        object.__setattr__(self, "_edges", edges)

    @property
    def fields(self) -> tuple[str, ...]:
        return check_fields((self.of, "valid"))

    def describe(self) -> str:
        return f"histogram of {self.of} per {_per(self.per)} over {self._edges.tolist()}"

    def start(self, plan: Plan) -> State:
        _check_scalars(self.fields)
        cells = math.prod(plan.shape[d] for d in _kept(plan, self.per))
        return {"counts": np.zeros((cells, len(self._edges) + 1), np.int64)}

    def add(self, plan: Plan, state: State, box: Box, values: Values) -> State:
        cells, _, flat = _by_cell(plan, self.per, box, values)
        of = flat[self.fields[0]]
        bins = np.searchsorted(self._edges, of, side="right")
        bins[of == self._edges[-1]] = len(self._edges) - 1
        for row, cell in enumerate(cells):
            inside = bins[row][flat["valid"][row]]
            state["counts"][cell] += np.bincount(inside, minlength=len(self._edges) + 1)
        return state

    def result(self, plan: Plan, state: State) -> xr.Dataset:
        kept = _kept(plan, self.per)
        dims, shape = tuple(plan.dimensions[d].name for d in kept), tuple(plan.shape[d] for d in kept)
        counts = state["counts"].reshape((*shape, -1))
        notes = attributes(self.fields[0])
        coords: dict[str, Any] = {n: c for d in kept for n, c in along(plan.dimensions[d]).items()}
        coords |= {"left": (("bin",), self._edges[:-1], notes), "right": (("bin",), self._edges[1:], notes)}
        count = {"units": "", "long_name": f"points by {notes['long_name']}"}
        return xr.Dataset(
            {
                "count": ((*dims, "bin"), counts[..., 1:-1], count),
                "below": (dims, counts[..., 0], count),
                "above": (dims, counts[..., -1], count),
            },
            coords,
        )


def _by_cell(plan: Plan, per: str | tuple[str, ...], box: Box, values: Values) -> tuple[np.ndarray, np.ndarray, Values]:
    """A block with its points in rows by cell, that is by index along the dimensions `per`: the numbers of the cells,
    those of the points along the others (ascending), and the values [cell, point]."""
    kept = _kept(plan, per)
    searched = [d for d in range(len(plan.dimensions)) if d not in kept]
    flat = {
        name: np.transpose(leaf, (*kept, *searched)).reshape((math.prod(leaf.shape[d] for d in kept), -1))
        for name, leaf in values.items()
    }
    return _numbers(plan, kept, box), _numbers(plan, searched, box), flat


def _numbers(plan: Plan, dims: list[int], box: Box) -> np.ndarray:
    """Numbers of a box' points along some dimensions, row by row in the whole grid."""
    number = np.zeros(1, int)
    for d in dims:
        along = np.arange(box[d].start, box[d].stop)
        number = (number[:, None] * plan.shape[d] + along).reshape(-1)
    return number


def _kept(plan: Plan, per: str | tuple[str, ...]) -> list[int]:
    names = [dimension.name for dimension in plan.dimensions]
    wanted = (per,) if isinstance(per, str) else per
    for name in wanted:
        if name not in names:
            raise axis_error("reduce", f'no dimension "{name}" to keep', nearest(name, names))
    return [d for d, name in enumerate(names) if name in wanted]


def _at(plan: Plan, per: str | tuple[str, ...], index: np.ndarray) -> dict[str, tuple[np.ndarray, dict[str, Any]]]:
    """The coordinates of points along the dimensions searched."""
    kept = _kept(plan, per)
    searched = [d for d in range(len(plan.dimensions)) if d not in kept]
    if not searched:
        return {}
    found = {}
    for d, at in zip(searched, np.unravel_index(index, tuple(plan.shape[d] for d in searched)), strict=True):
        found |= {n: (c.values, c.attrs) for n, c in along(plan.dimensions[d], at).items()}
    return found


def _check_scalars(fields: tuple[str, ...]) -> None:
    for name in fields:
        if name not in DERIVED and axes_of(name):
            raise axis_error("reduce", f'"{name}" is not one number per point', "reduce by others")


def _score(objective: Objective, values: Values) -> np.ndarray:
    if not isinstance(objective, str):
        return np.asarray(objective(values), float)
    return values[SHORT.get(objective, objective)]


def _label(objective: Objective) -> str:
    if isinstance(objective, str):
        return objective
    name = getattr(objective, "__qualname__", type(objective).__name__)
    return f"{name} {hashlib.sha256(_told(objective).encode()).hexdigest()[:16]}"


def _told(value: Any) -> str:
    """What determines a function: its code, and the values that it is bound to (not the globals that it reads)."""
    if isinstance(value, CodeType):
        constants = [_told(constant) for constant in value.co_consts]
        return repr((value.co_code, value.co_names, value.co_varnames, constants))
    if isinstance(value, FunctionType):
        bound = [cell.cell_contents for cell in value.__closure__ or ()]
        bound += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).items()]
        return repr([_told(value.__code__), *map(_told, bound)])
    if isinstance(value, partial):
        return repr([_told(value.func), *map(_told, value.args), *map(_told, value.keywords.items())])
    if isinstance(value, np.ndarray):
        return repr((value.dtype, value.shape, value.tobytes()))
    return repr(value)


def _per(per: str | tuple[str, ...]) -> str:
    return per if isinstance(per, str) else ", ".join(per) or "sweep"
