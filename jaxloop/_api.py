"""The front door: load files, evaluate designs. The only module that sees every layer."""

import os
from collections.abc import Mapping as Dict
from dataclasses import replace
from typing import Any

import numpy as np

from ._errors import Diagnostic, Diagnostics, Place, SpecError, nearest
from .conventions import TIMELOOP_2022, Conventions
from .designs import files as design_files, is_shipped
from .frontend import read_files, read_texts
from .lower import Lowered, lower, lower_mapping
from .lower.program import LEVEL_LEAVES, crop
from .program import Action, Mapping, Program
from .result import Context, Evaluation
from .run.batch import BATCH_FIELDS, evaluate_lanes, evaluate_one
from .spec.design import Design
from .spec.mapping import LoopNest


def load(*files: str | os.PathLike[str]) -> Design:
    """Reads a design from YAML files, or a shipped one by its name such as `"eyeriss:alexnet_conv2"`.

    **Raises:** `SpecError` with every error of the files: place, value, remedy.
    """
    if len(files) == 1 and is_shipped(os.fspath(files[0])):
        name = os.fspath(files[0])
        return replace(read_texts(design_files(name)), name=name)
    return read_files(files)


def loads(texts: Dict[str, str]) -> Design:
    """Reads a design from YAML texts, `{name: text}`; the names stand for the files in messages.

    **Raises:** `SpecError` as `load`.
    """
    return read_texts(texts)


def evaluate(
    design: Design,
    *,
    mappings: Mapping | LoopNest | None = None,
    hardware: Dict[str, Any] | None = None,
    sizes: Dict[str, Any] | None = None,
    conventions: Conventions = TIMELOOP_2022,
    fields: tuple[str, ...] | None = None,
    dtype: Any = np.float64,
    throw: bool = False,
) -> Evaluation:
    """Evaluates one mapping, or a batch.

    **Arguments:**

    - `mappings`: arrays of the design's own sizes, as `mapping_of(design)` gives them, with or without leading batch
      axes; a `LoopNest`; or None for the mapping of the files.
    - `hardware`: `{"Level.attribute": value}` with scalars or arrays over the batch axes; attributes are the leaves of
      `Program` (`size` in words, `read_bandwidth`, `read_energy`, `fill_energy`, `update_energy`, `area`, ...) and
      `energy`, `area`, `mesh_x`, `mesh_y` of the compute units.
    - `sizes`: `{"rank": size}`, likewise. Batch axes broadcast against each other.
    - `conventions`: which reading of the model.
    - `fields`: for batches, the names of the fields of `Evaluation` to compute; the others are None. Few fields are
      faster.
    - `dtype`: float64, or float32 for the smooth conventions.
    - `throw`: raise `ValueError` with the reasons if the one mapping is not valid.

    **Returns:** an `Evaluation` of numpy arrays with the batch axes in front; without batch axes one with its `context`.

    **Raises:** `SpecError` for what is not modeled and for names that do not exist; `ValueError` for shapes.
    """
    if np.dtype(dtype) == np.float32 and conventions.integer_counts:
        raise ValueError("conventions with integer counts need float64: single precision cannot hold the counts")
    nest = design.nest if mappings is None else mappings
    if nest is None:
        raise SpecError([Diagnostic(Place("", 0, "mapping"), "the files hold no mapping", "add one or pass mappings=")])
    exact = _batch_shape(nest, hardware, sizes) != ()
    lowered = lower(design, conventions, exact=exact)
    if exact:
        return _evaluate_batch(design, lowered, nest, hardware, sizes, fields, dtype)
    one = _evaluate_one(design, lowered, nest, hardware, sizes, dtype)
    if throw and not one.valid:
        raise ValueError("; ".join(one.reasons))
    return one


def mapping_of(design: Design, nest: LoopNest | None = None) -> Mapping:
    """The design's mapping (or `nest`) as numpy arrays of the design's own sizes: a start for building batches.

    **Raises:** `SpecError` if there is no mapping or its factors are imperfect.
    """
    chosen = design.nest if nest is None else nest
    if chosen is None:
        raise SpecError([Diagnostic(Place("", 0, "mapping"), "the files hold no mapping", "add one or pass nest=")])
    return lower_mapping(chosen, design.einsum, lower(design, TIMELOOP_2022, exact=True).program.structure)


def _batch_shape(nest: Mapping | LoopNest, hardware: Dict[str, Any] | None, sizes: Dict[str, Any] | None):
    shapes = [np.shape(value) for value in [*(hardware or {}).values(), *(sizes or {}).values()]]
    if isinstance(nest, Mapping):
        shapes += [np.shape(getattr(nest, name))[:-2] for name in nest.__dataclass_fields__]
    return np.broadcast_shapes(*shapes)


def _evaluate_one(
    design: Design,
    lowered: Lowered,
    nest: Mapping | LoopNest,
    hardware: Dict[str, Any] | None,
    sizes: Dict[str, Any] | None,
    dtype: Any,
) -> Evaluation:
    program = _override(lowered, hardware, sizes)
    structure = program.structure
    exact = lower(design, structure.conventions, exact=True).program.structure
    if isinstance(nest, LoopNest):
        mapping, own = (lower_mapping(nest, design.einsum, s) for s in (structure, exact))
    else:
        mapping, own = _padded(nest, lowered), nest
    result = evaluate_one(program, mapping, np.dtype(dtype))
    context = Context(design, lowered.names, crop(program, lowered.sizes, exact), own, lowered.provenance)
    return _cropped(result, lowered, context)


def _evaluate_batch(
    design: Design,
    lowered: Lowered,
    nest: Mapping | LoopNest,
    hardware: Dict[str, Any] | None,
    sizes: Dict[str, Any] | None,
    fields: tuple[str, ...] | None,
    dtype: Any,
) -> Evaluation:
    wanted = tuple(fields) if fields is not None else BATCH_FIELDS
    unknown = [name for name in wanted if name not in BATCH_FIELDS]
    if unknown:
        raise ValueError(f"no field {unknown[0]!r} in a batch: {nearest(unknown[0], BATCH_FIELDS)}")
    batch = _batch_shape(nest, hardware, sizes)
    structure = lowered.program.structure
    if isinstance(nest, LoopNest):
        nest = lower_mapping(nest, design.einsum, structure)
    program = _override(lowered, hardware, sizes, batch)
    mapping = Mapping(**{n: _lanes(getattr(nest, n), batch, 2) for n in nest.__dataclass_fields__})
    results = evaluate_lanes(program, mapping, np.dtype(dtype), wanted)
    named = {name: leaf.reshape(batch + leaf.shape[1:]) for name, leaf in results.items()}
    return Evaluation(**{n: named.get(n) for n in Evaluation.__dataclass_fields__})


def _lanes(leaf: Any, batch: tuple[int, ...], own_axes: int) -> np.ndarray:
    """Leading batch axes -> one trailing lane axis; 1 lane when the leaf has no batch axes."""
    array = np.asarray(leaf)
    own = array.shape[array.ndim - own_axes :]
    if array.ndim == own_axes:
        return array[..., None]
    flat = np.broadcast_to(array, batch + own).reshape((-1, *own))
    return np.moveaxis(flat, 0, -1)


COMPUTE_ATTRIBUTES = {
    "energy": "compute_energy",
    "area": "compute_area",
    "mesh_x": "compute_mesh_x",
    "mesh_y": "compute_mesh_y",
}
ENERGY_ATTRIBUTES = {f"{action.name.lower()}_energy": action for action in Action}
LEVEL_ATTRIBUTES = (*LEVEL_LEAVES, "address_energy", "area", "wire_energy", *ENERGY_ATTRIBUTES)


def _override(
    lowered: Lowered,
    hardware: Dict[str, Any] | None,
    sizes: Dict[str, Any] | None,
    batch: tuple[int, ...] | None = None,
) -> Program:
    """The program with the user's values in its leaves; with trailing lanes when `batch` is given."""
    program, names, report = lowered.program, lowered.names, Diagnostics()
    leaves = {n: getattr(program, n) for n in program.__dataclass_fields__ if n != "structure"}
    if batch is not None:
        leaves = {n: leaf[..., None] for n, leaf in leaves.items()}

    def put(name: str, index: Any, value: Any) -> None:
        array = np.asarray(value, float)
        if batch is not None:
            array = np.broadcast_to(array, batch).reshape(-1) if array.ndim else array[None]
        leaf = np.broadcast_to(leaves[name], leaves[name].shape[:-1] + array.shape) if batch is not None else leaves[name]
        leaf = np.array(leaf) if leaf.shape[-1:] != (1,) or batch is None else np.repeat(leaf, array.size, axis=-1)
        leaf[index] = array
        leaves[name] = leaf

    for rank, value in (sizes or {}).items():
        if rank in names.ranks:
            put("rank_sizes", names.ranks.index(rank), value)
        else:
            report.error(Place("", 0, f"sizes[{rank!r}]"), f'no rank "{rank}"', nearest(rank, names.ranks))
    for key, value in (hardware or {}).items():
        level, _, attribute = key.rpartition(".")
        place = Place("", 0, f"hardware[{key!r}]")
        if level == names.compute and attribute in COMPUTE_ATTRIBUTES:
            put(COMPUTE_ATTRIBUTES[attribute], (), value)
        elif level in names.levels and attribute in ENERGY_ATTRIBUTES:
            put("action_energy", (ENERGY_ATTRIBUTES[attribute], names.levels.index(level)), value)
        elif level in names.levels and attribute in LEVEL_ATTRIBUTES:
            put(attribute, names.levels.index(level), value)
        elif level in names.levels or level == names.compute:
            valid = LEVEL_ATTRIBUTES if level in names.levels else COMPUTE_ATTRIBUTES
            report.error(place, f'"{level}" has no attribute "{attribute}"', nearest(attribute, valid))
        else:
            report.error(place, f'no level "{level}"', nearest(level, (*names.levels, names.compute)))
    report.raise_if_errors()
    return Program(structure=program.structure, **leaves)


def _padded(nest: Mapping, lowered: Lowered) -> Mapping:
    """A mapping of the design's own sizes in the arrays of its size class."""
    structure, sizes = lowered.program.structure, lowered.sizes
    more_levels, more_ranks = structure.levels - sizes.levels, structure.ranks - sizes.ranks

    def factors(leaf: Any) -> np.ndarray:
        return np.pad(np.asarray(leaf, float), ((0, more_levels), (0, more_ranks)), constant_values=1.0)

    def order(leaf: Any) -> np.ndarray:
        rows = np.tile(np.arange(structure.ranks, dtype=np.int32), (structure.levels, 1))
        rows[: sizes.levels, : sizes.ranks] = leaf
        return rows

    def mask(leaf: Any) -> np.ndarray:
        return np.pad(np.asarray(leaf, float), ((0, more_levels), (0, structure.tensors - sizes.tensors)))

    return Mapping(
        **{n: factors(getattr(nest, n)) for n in ("temporal", "spatial_x", "spatial_y")},
        **{n: order(getattr(nest, n)) for n in ("temporal_order", "spatial_order")},
        **{n: mask(getattr(nest, n)) for n in ("keep", "no_temporal_reuse", "no_link_transfer", "no_multicast")},
    )


def _cropped(result: Evaluation, lowered: Lowered, context: Context) -> Evaluation:
    """Without the padding of the size class."""
    levels, tensors = lowered.sizes.levels, lowered.sizes.tensors
    cut = {}
    for name in result.__dataclass_fields__:
        leaf = getattr(result, name)
        if name == "context":
            continue
        if name == "violation":
            cut[name] = leaf[: levels + 1]
        elif name.startswith("record_"):
            cut[name] = leaf[:, :levels, :tensors]
        elif leaf.ndim == 2:
            cut[name] = leaf[:levels, :tensors]
        elif leaf.ndim == 1:
            cut[name] = leaf[:levels]
        else:
            cut[name] = leaf
    return Evaluation(**cut, context=context)
