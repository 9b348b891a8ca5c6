"""`jl.sweep`: the public function."""

import json
import math
import os
import warnings
from collections.abc import Callable, Mapping as Dict
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from .._errors import Diagnostic, Place, SpecError
from ..conventions import TIMELOOP_2022, Conventions
from ..program import Activity
from ..spec.design import Design
from .checkpoint import Checkpoint
from .dataset import attrs, labelled, ordered, storable
from .engine import compute
from .fields import DEFAULT_FIELDS, axes_of, check_fields, kind_of, labels
from .partials import partial_of, remove
from .plan import Box, Plan, make_plan
from .progress import Progress, silent
from .reduce import Reduction, State
from .store import bytes_per_point, open_store, open_sweep, refuse_another
from .values import axis_error

_KEPT = "what is done is kept: run the same command again"
_UNWRITABLE = "check the path, the permissions and the room on the disk"

MOST_POINTS = 10**12
"""More would take months."""


def sweep(
    design: Design,
    over: Dict[Any, Any] | None = None,
    *,
    mappings: Any = None,
    fields: tuple[str, ...] = DEFAULT_FIELDS,
    conventions: Conventions = TIMELOOP_2022,
    dtype: Any = np.float64,
    zipped: bool = False,
    reduce: Reduction | Dict[str, Reduction] | None = None,
    out: str | os.PathLike[str] | None = None,
    mesh: Mesh | None = None,
    progress: bool | Callable[[int, int], None] = False,
) -> Any:
    """Evaluates a design at every point of a grid (or of a list, `zipped`).

    **Arguments:**

    - `over`: `{axis: values}`. Axes are `density.TENSOR`; `rank.RANK`; `LEVEL.ATTRIBUTE` with the attributes of
      `evaluate`'s `hardware`; `format.LEVEL.TENSOR` with values such as `"UOP-CP"` (rank formats outermost first, word
      bits in parentheses where they are not the level's default); `saf.LEVEL.TENSOR` with `"skipping(B)"`,
      `"gating(A,B)"`, ..., `saf.COMPUTE` with `"gating"` or `"skipping"`; all of these take `"none"` and `"file"`; and
      `sparse` with `{name: design}`, of which each gives its sparse optimizations. Values are lists, arrays or text:
      `"0.1,0.2"`, `"linspace(first, last, number)"`, `"logspace(...)"` likewise, `"range(first, last, step)"`.
      A tuple of axes varies together: one list for all of them, or rows with a value for each.
    - `mappings`: a batch of mappings (one leading axis), a source of them with `size` and `decode` such as a
      `MapSpace`, one mapping, or None for that of the files. A batch is the first dimension, `mapping`.
    - `fields`: results to give, of `Evaluation` or of `valid`, `edp`, `ed2p`. Few are faster.
    - `dtype`: float64, or float32 for the smooth conventions.
    - `zipped`: all axes, mappings included, vary together: one dimension.
    - `reduce`: `Best`, `Pareto`, `Histogram`: what to keep in place of all points; several by name.
    - `out`: a Zarr group to write, block by block. The same sweep again computes what is missing in it.
    - `mesh`: devices along one axis; None for all of this process. Results do not depend on it. Under
      `jax.distributed` each process computes and writes its own blocks of `out`, and waits for the others.
    - `progress`: True for a bar on the standard error; or a function of the points done and of all points.

    **Returns:** an `xarray.Dataset` with a dimension per axis (`a+b` for axes that vary together), coordinates and
    units; of `out`, read from the disk where it is used; for several reductions, a dictionary of them.

    **Raises:** `SpecError` for axes and values that make no sense, for what is not modeled, for an `out` that holds
    something else; `OSError` if `out` cannot be written. What is done is kept.
    """
    if np.dtype(dtype) == np.float32 and conventions.integer_counts:
        raise ValueError("conventions with integer counts need float64: single precision cannot hold the counts")
    reductions = _reductions(reduce)
    if reduce is not None and not reductions:
        raise ValueError("reduce= names no reduction")
    wanted = check_fields(tuple(n for r in reductions.values() for n in r.fields) if reductions else tuple(fields))
    if not wanted:
        raise ValueError("fields= names no result")
    size = _bytes_per_point(design, wanted, np.dtype(dtype))
    plan = make_plan(design, dict(over or {}), mappings, conventions, dtype, wanted, zipped, size)
    for warning in plan.lowered.warnings:
        warnings.warn(str(warning), stacklevel=2)
    path = None if out is None else Path(out)
    with Progress(plan.points) if progress is True else silent(plan.points, progress or None) as bar:
        if not reductions:
            return _all_points(plan, path, mesh, bar)
        results = _reduced(plan, reductions, path, mesh, bar)
    return results if isinstance(reduce, Dict) else results[""]


def _reductions(given: Reduction | Dict[str, Reduction] | None) -> dict[str, Reduction]:
    if given is None:
        return {}
    return dict(given) if isinstance(given, Dict) else {"": given}


def _bytes_per_point(design: Design, fields: tuple[str, ...], dtype: np.dtype) -> int:
    sizes = {"level": len(design.architecture.levels), "tensor": len(design.einsum.tensors), "format_rank": 4}
    sizes |= {
        "unit": sizes["level"] + 1,
        "leader": sizes["tensor"],
        "activity": len(Activity),
        "action": 3,
        "fate": 3,
        "metadata_part": 2,
    }
    return bytes_per_point(fields, sizes, dtype)


def _all_points(plan: Plan, path: Path | None, mesh: Mesh | None, bar: Any) -> xr.Dataset:
    numbers = _numbers(plan)
    if path is None:
        _refuse_many_processes("give out=, into which each process writes its part")
        values = _empty(plan)

        def keep(number: int, box: Box, found: dict[str, np.ndarray]) -> None:
            for name, leaf in found.items():
                values[name][box] = leaf

        compute(plan, numbers, keep, mesh, bar.advance)
        return labelled(plan, values)
    with _explained(path, _UNWRITABLE):
        store = open_store(path, plan, creates=jax.process_index() == 0)
    mine = [number for number in numbers if number % jax.process_count() == jax.process_index()]
    missing = [number for number in mine if not store.is_done(number)]
    waiting = set(missing)
    bar.advance(sum(_points(plan, number) for number in numbers if number not in waiting), True)
    with _explained(path, _KEPT):
        compute(plan, missing, store.write, mesh, bar.advance)
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(f"{path} is complete")
    return store.open()


def _numbers(plan: Plan) -> range:
    """Of all blocks."""
    if plan.points > MOST_POINTS:
        remedy = f"{MOST_POINTS:.0e} at most: sample the mappings"
        raise axis_error("over", f"{plan.points:.3g} points are too many", remedy)
    return range(math.prod(plan.blocks))


def _points(plan: Plan, number: int) -> int:
    return math.prod(part.stop - part.start for part in plan.box(number))


def _empty(plan: Plan) -> dict[str, np.ndarray]:
    sparse = plan.lowered.own.sparse
    named = labels(plan.lowered.names, 0 if sparse is None else sparse.format_ranks)
    return {
        name: np.empty((*plan.shape, *(len(named[axis]) for axis in axes_of(name))), kind_of(name, plan.dtype))
        for name in plan.fields
    }


def _reduced(
    plan: Plan, reductions: dict[str, Reduction], path: Path | None, mesh: Mesh | None, bar: Any
) -> dict[str, xr.Dataset]:
    _refuse_many_processes("reduce in one process, or reduce the stored sweep afterwards")
    definition = plan.definition() | {"reduce": {name: r.describe() for name, r in reductions.items()}}
    states: dict[str, State] = {name: reduction.start(plan) for name, reduction in reductions.items()}
    done = 0
    checkpoint = None
    if path is not None:
        if path.exists():
            return _finished(path, definition, reductions)
        checkpoint = Checkpoint.beside(path, definition)
        found = checkpoint.load()
        if found is not None:
            done, states = found
        else:
            with _explained(path, _UNWRITABLE):
                path.parent.mkdir(parents=True, exist_ok=True)
                checkpoint.save(0, states)

    def add(number: int, box: Box, values: dict[str, np.ndarray]) -> None:
        for name, reduction in reductions.items():
            own = {n: values[n] for n in reduction.fields}
            states[name] = reduction.add(plan, states[name], box, own)
        if checkpoint is not None:
            checkpoint.save(number + 1, states)

    bar.advance(sum(_points(plan, number) for number in range(done)), True)
    with _explained(path, _KEPT):
        compute(plan, _numbers(plan)[done:], add, mesh, bar.advance)
        notes = attrs(plan) | {"definition": json.dumps(definition, sort_keys=True)}
        results = {n: ordered(r.result(plan, states[n]).assign_attrs(notes)) for n, r in reductions.items()}
        if path is not None and checkpoint is not None:
            _write_results(path, results)
            checkpoint.remove()
    return results


def _write_results(path: Path, results: dict[str, xr.Dataset]) -> None:
    partial = partial_of(path)
    try:
        for name, found in results.items():
            storable(found).to_zarr(partial, group=name or None, mode="a", zarr_format=3, consolidated=False)
        os.replace(partial, path)
    finally:
        remove(partial)


def _finished(path: Path, definition: dict[str, Any], reductions: dict[str, Reduction]) -> dict[str, xr.Dataset]:
    found = {name: open_sweep(path, name or None) for name in reductions}
    for dataset in found.values():
        refuse_another(path, json.loads(dataset.attrs.get("definition", "{}")), definition)
    return found


def _refuse_many_processes(remedy: str) -> None:
    if jax.process_count() > 1:
        raise SpecError([Diagnostic(Place(), "several processes cannot return one result", remedy)])


class _explained:
    """Tells which output an `OSError` speaks of, and what to do."""

    def __init__(self, path: Path | None, remedy: str):
        self._path, self._remedy = path, remedy

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError) and self._path is not None:
            reason = error.strerror or str(error)
            raise OSError(f"cannot write {self._path}: {reason} ({self._remedy})") from error
