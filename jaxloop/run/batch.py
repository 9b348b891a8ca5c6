"""Runs the kernel over many lanes, chunk by chunk, on all cores.

Two executables serve a design. The first holds the closed form and takes a chunk of lanes; it also reports the lanes in
which link transfers might matter. Only those go through the second, which enumerates the children of fan-outs.
"""

import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..kernel.evaluate import evaluate
from ..lower.classes import ELEMENTS, element_class
from ..lower.program import to_device
from ..program import Mapping, Program, Structure, leaf_names
from ..result import Evaluation

RECORD_FIELDS = ("record_multicast", "record_scatter", "record_accesses")
BATCH_FIELDS = tuple(
    name for name in Evaluation.__dataclass_fields__ if name != "context" and name not in RECORD_FIELDS
)
"""Fields that a batch can give: records differ in number from mapping to mapping."""

CHUNK_BYTES = 2**20
"""Temporaries of one chunk: half of a core's second-level cache."""

ENUMERATED_LANES = 32
"""Lanes per call of the enumerating executable."""

Leaves = dict[str, np.ndarray]
_T = TypeVar("_T")

_TRACES: Counter[str] = Counter()


def lane_bytes(structure: Structure, itemsize: int) -> int:
    """Rough size of the temporaries of one lane: a few arrays over loops, tensors and axes dominate."""
    loops = structure.levels * structure.ranks * structure.tensors * structure.axes
    return itemsize * (3 * loops + structure.levels * structure.tensors * (40 + 4 * structure.multicast))


def chunk_lanes(structure: Structure, itemsize: int) -> int:
    """Lanes per chunk: a power of two whose temporaries stay in cache."""
    lanes = CHUNK_BYTES // lane_bytes(structure, itemsize)
    return int(min(max(2 ** int(np.log2(max(lanes, 1))), 32), 4096))


def _closed_form_lanes(program: Program, mapping: Mapping, fields: tuple[str, ...]) -> dict[str, jax.Array]:
    _TRACES["closed_form"] += 1
    result = evaluate(program, mapping)
    lanes = max(leaf.shape[-1] for leaf in jax.tree.leaves((program, mapping)))
    values = {name: getattr(result, name) for name in fields}
    # what does not depend on any batched leaf has one lane
    return {name: jnp.broadcast_to(value, (*value.shape[:-1], lanes)) for name, value in values.items()}


def _enumerating_lanes(program: Program, mapping: Mapping, fields: tuple[str, ...]) -> dict[str, jax.Array]:
    _TRACES["enumerating"] += 1
    result = jax.vmap(evaluate)(program, mapping)
    return {name: getattr(result, name) for name in fields}


_closed_form = jax.jit(_closed_form_lanes, static_argnames="fields")
_enumerating = jax.jit(_enumerating_lanes, static_argnames="fields")


def _for_one(function: Callable[..., dict[str, jax.Array]]) -> Callable[..., Any]:
    """A jitted `function` for single evaluations: those spend their time in the compiler, not in what it makes."""
    if jax.default_backend() != "cpu":
        return jax.jit(function, static_argnames="fields")
    quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return jax.jit(function, static_argnames="fields", compiler_options=quick)


@cache
def _closed_form_once() -> Callable[..., Any]:
    return _for_one(_closed_form_lanes)


@cache
def _enumerating_once() -> Callable[..., Any]:
    return _for_one(_enumerating_lanes)


def compilations() -> dict[str, int]:
    """Executables that this process has made, by kind: what the tests count."""
    return {kind: _TRACES[kind] for kind in ("closed_form", "enumerating")}


def _precision(dtype: np.dtype):
    """float64 needs jax's 64-bit mode: switched on around the call and for this thread only."""
    return jax.enable_x64(np.dtype(dtype).itemsize == 8)


def _with_elements(program: Program, elements: int) -> Program:
    structure = program.structure.with_elements(elements)
    return Program(structure=structure, **{n: getattr(program, n) for n in leaf_names(program)})


def _compute_units(program: Program) -> int:
    return int(np.max(program.compute_mesh_x * program.compute_mesh_y))


def evaluate_one(program: Program, mapping: Mapping, dtype: np.dtype) -> Evaluation:
    """One mapping with every field. Leaves of arguments and result are numpy arrays without lanes."""
    fields = (*BATCH_FIELDS, *RECORD_FIELDS)
    with _precision(dtype):
        one, only = to_device(jax.tree.map(lambda leaf: np.asarray(leaf)[..., None], (program, mapping)), dtype)
        result = jax.device_get(_closed_form_once()(one, only, fields))
        values = {name: leaf[..., 0] for name, leaf in result.items()}
        if values["needs_enumeration"]:
            wider = _with_elements(program, element_class(_compute_units(program)))
            one, only = to_device(jax.tree.map(lambda leaf: np.asarray(leaf)[None], (wider, mapping)), dtype)
            result = jax.device_get(_enumerating_once()(one, only, fields))
            values = {name: leaf[0] for name, leaf in result.items()}
    return Evaluation(**values)


def evaluate_lanes(
    program: Program,
    mapping: Mapping,
    dtype: np.dtype,
    fields: tuple[str, ...] = BATCH_FIELDS,
    chunk: int | None = None,
) -> Leaves:
    """Many evaluations.

    **Arguments:** leaves are numpy arrays with a trailing lane axis of 1 or B; at least one has B.

    **Returns:** `{field: array}` with a leading axis of B.
    """
    lanes = max(leaf.shape[-1] for leaf in jax.tree.leaves((program, mapping)))
    size = min(chunk or chunk_lanes(program.structure, np.dtype(dtype).itemsize), lanes)
    wanted = (*fields, "needs_enumeration") if "needs_enumeration" not in fields else fields
    with _precision(dtype):
        shared = to_device(jax.tree.map(lambda leaf: leaf if leaf.shape[-1] == 1 else None, (program, mapping)), dtype)

    def run(start: int) -> Leaves:
        stop = min(start + size, lanes)

        def cut(leaf: np.ndarray, resident: jax.Array | None) -> np.ndarray | jax.Array:
            if resident is not None:
                return resident
            part = leaf[..., start:stop]
            missing = size - (stop - start)
            part = np.concatenate([part, np.repeat(part[..., -1:], missing, axis=-1)], axis=-1) if missing else part
            return part.astype(np.int32 if np.issubdtype(part.dtype, np.integer) else dtype)

        with _precision(dtype):
            pieces = jax.tree.map(cut, (program, mapping), shared, is_leaf=lambda leaf: leaf is None)
            result = jax.device_get(_closed_form(*pieces, wanted))
        return {name: np.moveaxis(leaf, -1, 0)[: stop - start] for name, leaf in result.items()}

    parts = _on_all_cores(run, range(0, lanes, size))
    results = {name: np.concatenate([part[name] for part in parts]) for name in wanted}
    _correct_links(program, mapping, dtype, results)
    return {name: results[name] for name in fields}


def _correct_links(program: Program, mapping: Mapping, dtype: np.dtype, results: Leaves) -> None:
    """Replaces, in place, the results of lanes in which links may matter."""
    unsure = np.flatnonzero(results["needs_enumeration"])
    fields, wider = tuple(results), _with_elements(program, min(_compute_units(program), ELEMENTS[-1]))

    def correct(begin: int) -> None:
        chosen = unsure[begin : begin + ENUMERATED_LANES]
        padded = np.resize(chosen, ENUMERATED_LANES)

        def gather(leaf: np.ndarray) -> np.ndarray:
            return np.moveaxis(leaf[..., padded if leaf.shape[-1] > 1 else np.zeros_like(padded)], -1, 0)

        with _precision(dtype):
            some, theirs = to_device(jax.tree.map(gather, (wider, mapping)), dtype)
            corrected = jax.device_get(_enumerating(some, theirs, fields))
        for name, leaf in corrected.items():
            results[name][chosen] = leaf[: len(chosen)]

    _on_all_cores(correct, range(0, len(unsure), ENUMERATED_LANES))


def _on_all_cores(work: Callable[[int], _T], starts: range) -> list[_T]:
    """`work` at each start; the first alone, since it may compile."""
    if not starts:
        return []
    first = work(starts[0])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [first, *pool.map(work, starts[1:])]
