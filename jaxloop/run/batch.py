"""Runs the kernel over many lanes, chunk by chunk, on all cores.

Two executables serve a design. The first holds the closed form and takes a chunk of lanes; it also reports the lanes in
which link transfers might matter. Only those go through the second, which enumerates the children of fan-outs.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..kernel.evaluate import Enumerated, enumerate_links, evaluate
from ..kernel.records import Records
from ..lower.classes import element_class
from ..lower.program import to_device
from ..program import Mapping, Program, Structure
from ..result import Evaluation
from .executables import count_trace, make_room, on_crowding, quick_options

RECORD_FIELDS = ("record_multicast", "record_scatter", "record_accesses")
BATCH_FIELDS = tuple(
    name for name in Evaluation.__dataclass_fields__ if name != "context" and name not in RECORD_FIELDS
)
"""Fields that a batch can give: records differ in number from mapping to mapping."""

CHUNK_BYTES = 2**21
"""Temporaries of one chunk by the estimate of `lane_bytes`, of which about half is alive at once: they stay in a core's
second-level cache. Measured: twice or half as many lanes is slower (benchmarks/README.md)."""

ENUMERATED_LANES = 64
"""Lanes per call of the enumerating executable."""

SINGLE_ELEMENTS = 64
"""Smallest enumeration of a single evaluation: fewer executables count more than speed there."""

SINGLE_RECORDS = 64
"""Places for enumerated records of a single evaluation; more of them take another executable."""

Leaves = dict[str, np.ndarray]
_T = TypeVar("_T")


def lane_bytes(structure: Structure, itemsize: int) -> int:
    """Rough size of the temporaries of one lane: a few arrays over loops, tensors and axes dominate."""
    loops = structure.levels * structure.ranks * structure.tensors * structure.axes
    return itemsize * (3 * loops + structure.levels * structure.tensors * (40 + 4 * structure.multicast))


def chunk_lanes(structure: Structure, itemsize: int) -> int:
    """Lanes per chunk: a power of two whose temporaries stay in cache."""
    lanes = CHUNK_BYTES // lane_bytes(structure, itemsize)
    return int(min(max(2 ** int(np.log2(max(lanes, 1))), 32), 4096))


def _closed_form_lanes(leaves: list[jax.Array], layout: Any, fields: tuple[str, ...]) -> dict[str, jax.Array]:
    """`leaves` and `layout`: a flattened (program, mapping) or (program, mapping, enumerated): flat lists cost less per
    call than modules do."""
    count_trace("closed_form")
    result = evaluate(*jax.tree.unflatten(layout, leaves))
    lanes = max(leaf.shape[-1] for leaf in leaves)
    values = {name: getattr(result, name) for name in fields}
    # what does not depend on any batched leaf has one lane
    return {name: jnp.broadcast_to(value, (*value.shape[:-1], lanes)) for name, value in values.items()}


def _links_of_one(leaves: list[jax.Array], layout: Any, fields: tuple[str, ...]) -> dict[str, jax.Array]:
    """The records of one mapping without lanes, as the fields of `Records` and `uncounted`."""
    count_trace("enumerating")
    found = enumerate_links(*jax.tree.unflatten(layout, leaves))
    values = {name: getattr(found.records, name) for name in Records.__dataclass_fields__}
    return {name: (values | {"uncounted": found.uncounted})[name] for name in fields}


def _enumerating_lanes(leaves: list[jax.Array], layout: Any, fields: tuple[str, ...]) -> dict[str, jax.Array]:
    """Leaves with a leading lane axis of 1 (shared) or B."""
    count_trace("enumerating")
    axes = [0 if leaf.shape[0] > 1 else None for leaf in leaves]
    own = [leaf[0] if axis is None else leaf for leaf, axis in zip(leaves, axes, strict=True)]
    lanes = max(leaf.shape[0] for leaf in leaves)
    result = jax.vmap(lambda own: evaluate(*jax.tree.unflatten(layout, own)), (axes,), axis_size=lanes)(own)
    return {name: getattr(result, name) for name in fields}


def _compiled(function: Callable[..., dict[str, jax.Array]], once: bool) -> Callable[..., dict[str, jax.Array]]:
    """A jitted `function`. Lets go of all executables first if the process can hold few more."""
    make_room()
    return _jitted(function, once)


@cache
def _jitted(function: Callable[..., dict[str, jax.Array]], once: bool) -> Callable[..., dict[str, jax.Array]]:
    """On CPUs, single evaluations (`once`) spend their time in the compiler, which is told to be
    quick; batches run on all cores chunk by chunk, so that no operation needs to be split."""
    options = quick_options() if once else None
    if not once and jax.default_backend() == "cpu":
        options = {"xla_cpu_multi_thread_eigen": False}
    jitted: Any = jax.jit(function, static_argnames=("layout", "fields"), compiler_options=options)
    on_crowding(jitted.clear_cache)
    return jitted


def precision(dtype: np.dtype):
    """float64 needs jax's 64-bit mode: switched on around the call and for this thread only."""
    return jax.enable_x64(np.dtype(dtype).itemsize == 8)


def _with_elements(program: Program, elements: int) -> Program:
    return replace(program, structure=program.structure.with_elements(elements))


def _widest(mapping: Mapping) -> np.ndarray:
    """Children in use below one instance, of the level where they are most; per trailing lane if there are any."""
    return np.max(np.prod(mapping.spatial_x * mapping.spatial_y, axis=1), axis=0)


def evaluate_one(program: Program, mapping: Mapping, dtype: np.dtype) -> Evaluation:
    """One mapping with every field. Leaves of arguments and result are numpy arrays without lanes.

    The closed form is one executable for all mappings: if links may matter, they are enumerated by another, and it runs
    again with the records found."""
    fields = (*BATCH_FIELDS, *RECORD_FIELDS)

    def run(enumerated: Enumerated) -> Leaves:
        leaves, layout = jax.tree.flatten((program, mapping, enumerated))
        lanes = to_device([np.asarray(leaf)[..., None] for leaf in leaves], dtype)
        return jax.device_get(_compiled(_closed_form_lanes, once=True)(lanes, layout, fields))

    with precision(dtype):
        values = run(_enumerated(program, {}))
        if values["needs_enumeration"][..., 0]:
            # only the dense part matters, so that sparse designs share the executable of dense ones
            dense = replace(program, structure=replace(program.structure, sparse=None), sparse=None)
            wider = _with_elements(dense, max(element_class(int(_widest(mapping))), SINGLE_ELEMENTS))
            leaves, layout = jax.tree.flatten((wider, mapping))
            names = (*Records.__dataclass_fields__, "uncounted")
            device = to_device([np.asarray(leaf) for leaf in leaves], dtype)
            found = jax.device_get(_compiled(_links_of_one, once=True)(device, layout, names))
            values = run(_enumerated(program, found))
    without_lanes: dict[str, Any] = {name: leaf[..., 0] for name, leaf in values.items()}
    return Evaluation(**without_lanes)


def _enumerated(program: Program, found: Leaves) -> Enumerated:
    """Records as the closed form takes them: those that hold anything, in few different numbers; none at first."""
    structure = program.structure
    shape = (structure.levels, structure.tensors)
    counts = found.get("accesses", np.zeros((0, *shape)))
    filled = np.flatnonzero((counts > 0.0).any(axis=(1, 2)))
    rows = SINGLE_RECORDS * 2 ** max(0, int(np.ceil(np.log2(max(len(filled), 1) / SINGLE_RECORDS))))
    leaves: dict[str, Any] = {name: np.zeros((rows, *shape)) for name in ("multicast", "scatter", "accesses")}
    for name, leaf in leaves.items():
        leaf[: len(filled)] = found[name][filled] if found else 0.0
    leaves |= {"links": found.get("links", np.zeros(shape)), "fanout": found.get("fanout", np.ones(structure.levels))}
    flags: dict[str, Any] = {"applies": np.asarray(bool(found)), "uncounted": found.get("uncounted", np.asarray(False))}
    return Enumerated(Records(**leaves), **flags)


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
    leaves, layout = jax.tree.flatten((program, mapping))
    lanes = max(leaf.shape[-1] for leaf in leaves)
    size = min(chunk or chunk_lanes(program.structure, np.dtype(dtype).itemsize), lanes)
    wanted = (*fields, "needs_enumeration") if "needs_enumeration" not in fields else fields
    with precision(dtype):
        shared = [to_device(leaf, dtype) if leaf.shape[-1] == 1 else None for leaf in leaves]
    chunks = [
        _chunks(leaf, size, dtype) if resident is None else None for leaf, resident in zip(leaves, shared, strict=True)
    ]
    call = _compiled(_closed_form_lanes, once=False)

    def run(index: int) -> Leaves:
        with precision(dtype):
            own = [piece[index] if piece is not None else kept for piece, kept in zip(chunks, shared, strict=True)]
            return {name: np.asarray(value) for name, value in call(own, layout, wanted).items()}

    parts = _on_all_cores(run, range(-(-lanes // size)))
    joined = {name: np.concatenate([part[name] for part in parts], axis=-1)[..., :lanes] for name in wanted}
    results = {name: np.ascontiguousarray(np.moveaxis(leaf, -1, 0)) for name, leaf in joined.items()}
    correct_links(program, mapping, dtype, results)
    return {name: results[name] for name in fields}


def _chunks(leaf: np.ndarray, size: int, dtype: np.dtype) -> np.ndarray:
    """[..., B] -> contiguous [chunk, ..., size]; the last chunk is filled up with the last lane."""
    missing = -leaf.shape[-1] % size
    if missing:
        leaf = np.concatenate([leaf, np.repeat(leaf[..., -1:], missing, axis=-1)], axis=-1)
    split = leaf.reshape((*leaf.shape[:-1], -1, size))
    return np.ascontiguousarray(np.moveaxis(split, -2, 0), dtype=_kind(leaf, dtype))


def _lane_major(leaf: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """[..., B] -> contiguous [B, ...]"""
    return np.ascontiguousarray(np.moveaxis(leaf, -1, 0), dtype=_kind(leaf, dtype))


def _kind(leaf: np.ndarray, dtype: np.dtype) -> Any:
    return np.int32 if np.issubdtype(leaf.dtype, np.integer) else dtype


def correct_links(program: Program, mapping: Mapping, dtype: np.dtype, results: Leaves) -> None:
    """Replaces, in place, the results of lanes in which links may matter, those of similar fan-out together. `results`:
    as `evaluate_lanes` gives them, `needs_enumeration` among them."""
    unsure = np.flatnonzero(results["needs_enumeration"])
    widest = np.broadcast_to(_widest(mapping), results["needs_enumeration"].shape)[unsure]
    classes = np.array([element_class(int(fanout)) for fanout in widest])
    for elements in np.unique(classes):
        _correct_lanes(_with_elements(program, int(elements)), mapping, dtype, results, unsure[classes == elements])


def _correct_lanes(program: Program, mapping: Mapping, dtype: np.dtype, results: Leaves, unsure: np.ndarray) -> None:
    leaves, layout = jax.tree.flatten((program, mapping))
    fields, call = tuple(results), _compiled(_enumerating_lanes, once=False)
    with precision(dtype):
        shared = [to_device(np.moveaxis(leaf, -1, 0), dtype) if leaf.shape[-1] == 1 else None for leaf in leaves]

    def correct(index: int) -> None:
        chosen = unsure[index * ENUMERATED_LANES : (index + 1) * ENUMERATED_LANES]
        padded = np.resize(chosen, ENUMERATED_LANES)
        own = [
            kept if kept is not None else _lane_major(leaf[..., padded], dtype)
            for leaf, kept in zip(leaves, shared, strict=True)
        ]
        with precision(dtype):
            corrected = jax.device_get(call(own, layout, fields))
        for name, leaf in corrected.items():
            results[name][chosen] = leaf[: len(chosen)]

    _on_all_cores(correct, range(-(-len(unsure) // ENUMERATED_LANES)))


def _on_all_cores(work: Callable[[int], _T], starts: range) -> list[_T]:
    """`work` at each start; the first alone, since it may compile."""
    if not starts:
        return []
    first = work(starts[0])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [first, *pool.map(work, starts[1:])]
