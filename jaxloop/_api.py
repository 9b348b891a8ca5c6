"""The front door: load files, evaluate designs. The only module that sees every layer."""

import os
import warnings
from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax
import numpy as np

from ._errors import Diagnostic, Diagnostics, Place, SpecError, nearest
from .conventions import TIMELOOP_2022, Conventions
from .designs import files as design_files, is_shipped
from .frontend import read_files, read_texts
from .lower import Lowered, check_mapping, check_nest, lower, lower_mapping, pad_mapping, with_masks
from .lower.override import override, to_lanes
from .lower.program import crop
from .program import Mapping, Program
from .result import Context, Evaluation, own_axes
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
    densities: Dict[str, Any] | None = None,
    masks: Dict[str, Any] | None = None,
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
      `energy`, `area`, `mesh_x`, `mesh_y` of the compute units. Sparse designs also have `metadata_width`,
      `metadata_size` (bits), `gated_read_energy`, `skipped_read_energy`, `metadata_read_energy`,
      `gated_metadata_read_energy`, ..., `decompression_energy`, `compression_energy`, and `gated_energy`,
      `skipped_energy` of the compute units.
      Energies that come from built-in figures stay those of the files' sizes; those that fall back on another entry of
      the energy table keep that entry's value.
    - `sizes`: `{"rank": size}`, likewise. Batch axes broadcast against each other.
    - `densities`: `{"tensor": share of nonzeros}`, likewise, in [0, 1]. A tensor keeps its distribution; one without
      is fixed-structured. Without sparse optimizations densities change nothing, which a `UserWarning` says.
    - `masks`: `{"tensor": nonzeros}` in place of a distribution: an array (numpy, scipy.sparse) of the projection's
      extents, or the path of a .npy file or of a text of 0 and 1, first axis fastest (docs/model.md 25). No batch axes.
    - `conventions`: which reading of the model.
    - `fields`: for batches, the fields of `Evaluation` to compute; the others are None. Few fields are faster.
    - `dtype`: float64, or float32 for the smooth conventions.
    - `throw`: raise `ValueError` with the reasons if the one mapping is not valid.

    **Returns:** an `Evaluation` of numpy arrays with the batch axes in front; without batch axes one with its
    `context`.

    **Raises:** `SpecError` for what is not modeled, for names that do not exist and for densities that make no sense;
    `ValueError` for shapes.
    """
    _check_dtype(dtype, conventions)
    design = with_masks(design, masks or {})
    nest = _nest(design, mappings, "mappings=")
    if densities and not design.sparse.has_effect:
        warnings.warn("densities= has no effect: the design has no sparse optimizations", stacklevel=2)
    overrides = _Overrides(hardware or {}, sizes or {}, densities or {})
    lowered, batch = _lower(design, nest, overrides, conventions, dtype)
    if batch != ():
        if throw:
            raise ValueError("throw= is for one mapping: look at `valid` of a batch")
        return _evaluate_batch(design, lowered, nest, overrides, fields, dtype)
    if fields is not None:
        raise ValueError("fields= is for batches: one evaluation has them all")
    one = _evaluate_one(design, lowered, nest, overrides, dtype)
    if throw and not one.valid:
        raise ValueError("; ".join(one.reasons))
    return one


def mapping_of(design: Design, nest: LoopNest | None = None) -> Mapping:
    """The design's mapping (or `nest`) as numpy arrays of the design's own sizes: a start for building batches.

    **Raises:** `SpecError` if there is no mapping or its factors are imperfect.
    """
    chosen = _nest(design, nest, "nest=")
    return lower_mapping(chosen, design.einsum, lower(design, TIMELOOP_2022, exact=True).program.structure)


_Nest = TypeVar("_Nest", LoopNest, Mapping | LoopNest)


@dataclass(frozen=True)
class _Overrides:
    """The user's values in place of those of the files."""

    hardware: Dict[str, Any]
    sizes: Dict[str, Any]
    densities: Dict[str, Any]

    @property
    def values(self) -> list[Any]:
        return [*self.hardware.values(), *self.sizes.values(), *self.densities.values()]

    def apply(self, lowered: Lowered, batch: tuple[int, ...]) -> Program:
        """The program with them in place and with lanes."""
        return override(lowered, self.hardware, self.sizes, batch, self.densities)


def _check_dtype(dtype: Any, conventions: Conventions) -> None:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype {np.dtype(dtype)} is not supported: use float64, or float32 for smooth conventions")
    if np.dtype(dtype) == np.float32 and conventions.integer_counts:
        raise ValueError("conventions with integer counts need float64: single precision cannot hold the counts")


def _nest(design: Design, given: _Nest | None, argument: str) -> _Nest | LoopNest:
    """The user's mapping, or that of the files."""
    nest = design.nest if given is None else given
    if nest is None:
        place = Place("", 0, "mapping")
        raise SpecError([Diagnostic(place, "the files hold no mapping", f"add one or pass {argument}")])
    return nest


def _lower(
    design: Design, nest: Mapping | LoopNest, overrides: _Overrides, conventions: Conventions, dtype: Any
) -> tuple[Lowered, tuple[int, ...]]:
    """The design as arrays, of its own sizes for a batch, and the batch axes."""
    batch = _batch_shape(nest, overrides)
    largest = {rank: int(np.max(size)) for rank, size in overrides.sizes.items() if rank in design.einsum.ranks}
    lowered = lower(design, conventions, exact=batch != (), dtype=dtype, largest=largest, densities=overrides.densities)
    if isinstance(nest, Mapping):
        check_mapping(nest, lowered.own)
    report = Diagnostics()
    check_nest(nest, design, conventions, report)
    report.raise_if_errors()
    return replace(lowered, warnings=(*lowered.warnings, *report.warnings)), batch


def _batch_shape(nest: Mapping | LoopNest, overrides: _Overrides) -> tuple[int, ...]:
    shapes = [np.shape(value) for value in overrides.values]
    if isinstance(nest, Mapping):
        shapes += [np.shape(getattr(nest, name))[:-2] for name in nest.__dataclass_fields__]
    return np.broadcast_shapes(*shapes)


def _evaluate_one(
    design: Design, lowered: Lowered, nest: Mapping | LoopNest, overrides: _Overrides, dtype: Any
) -> Evaluation:
    program: Program = jax.tree.map(lambda leaf: leaf[..., 0], overrides.apply(lowered, ()))
    structure = program.structure
    if isinstance(nest, LoopNest):
        mapping, own = (lower_mapping(nest, design.einsum, s) for s in (structure, lowered.own))
    else:
        mapping, own = pad_mapping(nest, structure, lowered.own), nest
    result = evaluate_one(program, mapping, np.dtype(dtype))
    design = replace(design, warnings=(*design.warnings, *lowered.warnings))
    context = Context(design, lowered.names, crop(program, lowered.own), own, lowered.provenance)
    return _cropped(result, lowered, context)


def _evaluate_batch(
    design: Design,
    lowered: Lowered,
    nest: Mapping | LoopNest,
    overrides: _Overrides,
    fields: tuple[str, ...] | None,
    dtype: Any,
) -> Evaluation:
    wanted = tuple(fields) if fields is not None else BATCH_FIELDS
    unknown = [name for name in wanted if name not in BATCH_FIELDS]
    if unknown:
        raise ValueError(f"no field {unknown[0]!r} in a batch: {nearest(unknown[0], BATCH_FIELDS)}")
    batch = _batch_shape(nest, overrides)
    structure = lowered.program.structure
    if isinstance(nest, LoopNest):
        nest = lower_mapping(nest, design.einsum, structure)
    program = overrides.apply(lowered, batch)
    mapping = Mapping(**{n: to_lanes(getattr(nest, n), batch, 2) for n in nest.__dataclass_fields__})
    results = evaluate_lanes(program, mapping, np.dtype(dtype), wanted)
    named: dict[str, Any] = {name: leaf.reshape(batch + leaf.shape[1:]) for name, leaf in results.items()}
    absent: dict[str, Any] = dict.fromkeys(Evaluation.__dataclass_fields__)
    return Evaluation(**(absent | named))


def _cropped(result: Evaluation, lowered: Lowered, context: Context) -> Evaluation:
    """Without the padding of the size class."""
    own = lowered.own
    sizes = {"level": own.levels, "level1": own.levels + 1, "tensor": own.tensors}
    sizes["format_rank"] = own.sparse.format_ranks if own.sparse is not None else 0
    cut = {}
    for name in result.__dataclass_fields__:
        if name != "context":
            cut[name] = getattr(result, name)[tuple(slice(sizes.get(axis)) for axis in own_axes(name))]
    return Evaluation(**cut, context=context)
