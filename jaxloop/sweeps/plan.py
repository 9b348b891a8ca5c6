"""A sweep as a grid of points: which, in what blocks, and the arrays of each block."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import jax
import numpy as np

from .. import __version__
from .._errors import Diagnostics, Place
from ..conventions import Conventions
from ..lower import Lowered, check_mapping, check_nest, lower_mapping
from ..lower.override import override
from ..lower.variants import lower_variants
from ..program import Mapping, Program
from ..spec.design import Design
from ..spec.mapping import LoopNest
from .axes import MAPPING, Axis, Dimension, read_dimensions, variants
from .values import axis_error

BLOCK_POINTS = 2**17
BLOCK_BYTES = 2**24
"""Of one block's results: what is computed between two writes, and lost when the process dies."""

MOST_VARIANTS = 4096
_CHECKED = 2**16
"""Mappings of a source that are looked at before the first evaluation."""

GROUPS = 3

Box = tuple[slice, ...]


class MappingSource(Protocol):
    """Mappings by index, such as a `MapSpace`."""

    @property
    def size(self) -> int: ...

    def decode(self, indices: np.ndarray) -> Mapping:
        """Arrays with one leading batch axis."""
        ...


@dataclass(frozen=True, eq=False)
class Batch:
    """Mappings that lie in memory, with one leading batch axis."""

    mappings: Mapping

    @property
    def size(self) -> int:
        return max(np.shape(leaf)[0] for leaf in jax.tree.leaves(self.mappings) if np.ndim(leaf) == 3)

    def decode(self, indices: np.ndarray) -> Mapping:
        return jax.tree.map(lambda leaf: leaf[indices] if np.ndim(leaf) == 3 else leaf, self.mappings)


@dataclass(frozen=True, eq=False)
class Plan:
    """What a sweep computes.

    **Attributes:** `lowered`: the design, its variants along the lane axis; `choices`: the axes that tell variants
    apart; `source`: the mappings, or the one mapping; `lane_axes`: the dimensions that share each lane axis of the
    kernel, by index; `block`: points of a block along each dimension.
    """

    design: Design
    lowered: Lowered
    dimensions: tuple[Dimension, ...]
    choices: tuple[Axis, ...]
    source: MappingSource | Mapping
    conventions: Conventions
    dtype: np.dtype
    fields: tuple[str, ...]
    lane_axes: tuple[tuple[int, ...], ...]
    block: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def points(self) -> int:
        return math.prod(self.shape)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Their number along each dimension."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.block, strict=True))

    @property
    def lane_shape(self) -> tuple[int, ...]:
        """Points of a full block along each lane axis."""
        return tuple(math.prod(self.block[d] for d in dims) for dims in self.lane_axes)

    def box(self, number: int) -> Box:
        """The points of a block; blocks are numbered row by row."""
        at = np.unravel_index(number, self.blocks) if self.blocks else ()
        return tuple(
            slice(int(i) * b, min((int(i) + 1) * b, n)) for i, b, n in zip(at, self.block, self.shape, strict=True)
        )

    def arrays(self, box: Box, given: Mapping | None = None) -> tuple[Program, Mapping, tuple[int, ...]]:
        """Program and mapping with one trailing lane axis per entry of `lane_axes`, and the number of points along
        each. `given`: the mappings of the box, in place of those of the source."""
        indices, lanes = self._indices(box)
        values = {axis.name: axis.values[indices[d]] for d, dim in enumerate(self.dimensions) for axis in dim.axes}
        program = self._variants(indices, len(lanes))
        groups: dict[str, dict[str, np.ndarray]] = {"hardware": {}, "rank": {}, "density": {}}
        for axis in (axis for dimension in self.dimensions for axis in dimension.axes if axis.kind in groups):
            groups[axis.kind][axis.key] = values[axis.name]
        program = override(self.lowered, groups["hardware"], groups["rank"], lanes, groups["density"], start=program)
        shape = tuple(math.prod(box[d].stop - box[d].start for d in dims) for dims in self.lane_axes)
        return program, self._mappings(indices, box, len(lanes), given), shape

    def unflatten(self, values: np.ndarray, box: Box) -> np.ndarray:
        """[*lane axes, *own] -> [*dimensions, *own]"""
        order = [d for dims in self.lane_axes for d in dims]
        extents = [box[d].stop - box[d].start for d in order]
        own = values.shape[len(self.lane_axes) :]
        split = values.reshape((*extents, *own))
        return np.moveaxis(split, range(len(order)), order)

    def _indices(self, box: Box) -> tuple[dict[int, np.ndarray], tuple[int, ...]]:
        """The index along each dimension at every point, of 1 along the lane axes on which it does not depend, and the
        number of lanes along each. A single point at the edge of the grid counts twice: with one lane it would look
        like what does not vary, and need another executable."""
        count, indices, shape = len(self.lane_axes), {}, []
        for place, (dims, full) in enumerate(zip(self.lane_axes, self.lane_shape, strict=True)):
            extents = [box[d].stop - box[d].start for d in dims]
            shape.append(max(math.prod(extents), min(full, 2)))
            for d, along in zip(dims, np.indices(extents), strict=True):
                lanes = [shape[-1] if place == axis else 1 for axis in range(count)]
                indices[d] = (np.resize(along.reshape(-1), shape[-1]) + box[d].start).reshape(lanes)
        return indices, tuple(shape)

    def _variants(self, indices: dict[int, np.ndarray], axes: int) -> Program:
        number: Any = np.zeros((1,) * axes, int)
        for axis in self.choices:
            d = next(d for d, dimension in enumerate(self.dimensions) if axis in dimension.axes)
            number = number * len(axis.values) + indices[d]
        lanes = (1,) * axes
        return jax.tree.map(
            lambda leaf: leaf[..., number] if leaf.shape[-1] > 1 else leaf.reshape((*leaf.shape[:-1], *lanes)),
            self.lowered.program,
        )

    def _mappings(self, indices: dict[int, np.ndarray], box: Box, axes: int, given: Mapping | None) -> Mapping:
        if isinstance(self.source, Mapping):
            return jax.tree.map(lambda leaf: np.asarray(leaf)[(..., *(None,) * axes)], self.source)
        d = mapping_dimension(self.dimensions)
        found = given if given is not None else self.source.decode(np.arange(box[d].start, box[d].stop))
        at = indices[d] - box[d].start

        def lanes(leaf: Any) -> np.ndarray:
            leaf = np.asarray(leaf)
            return np.moveaxis(leaf, 0, -1)[..., at] if leaf.ndim == 3 else leaf[(..., *(None,) * axes)]

        return jax.tree.map(lanes, found)

    def definition(self) -> dict[str, Any]:
        """What determines the results, part by part, as JSON; long parts by their hash."""
        dims = [
            {"name": d.name, "size": d.size, "axes": {a.name: _told(a.values) for a in d.axes}} for d in self.dimensions
        ]
        source = self.source
        if isinstance(source, Batch | Mapping):
            mappings = _hash(
                [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(getattr(source, "mappings", source))]
            )
        else:
            mappings = f"{type(source).__name__} of {source.size} {_hash([repr(source).encode()])}"
        return {
            "jaxloop": __version__,
            "design": _design_hash(self),
            "dimensions": dims,
            "mappings": mappings,
            "conventions": {name: str(value) for name, value in sorted(asdict(self.conventions).items())},
            "dtype": self.dtype.name,
            "fields": list(self.fields),
        }


def mapping_dimension(dimensions: Sequence[Dimension]) -> int:
    return next(d for d, dimension in enumerate(dimensions) if MAPPING in dimension.name.split("+"))


def make_plan(
    design: Design,
    over: dict[Any, Any],
    mappings: Any,
    conventions: Conventions,
    dtype: Any,
    fields: tuple[str, ...],
    zipped: bool,
    bytes_per_point: int,
) -> Plan:
    """Checks everything that a sweep will do with a design.

    **Raises:** `SpecError` for axes and values that make no sense, and for what is not modeled.
    """
    nest = design.nest if mappings is None else mappings
    if nest is None:
        raise axis_error(MAPPING, "the files hold no mapping", "add one or pass mappings=")
    batch = None if isinstance(nest, LoopNest) else _source(nest)
    number = batch.size if batch is not None and not isinstance(batch, Mapping) else None
    dimensions = read_dimensions(design, over, zipped, number)
    choices, designs = variants(design, dimensions)
    if len(designs) > MOST_VARIANTS:
        raise axis_error("sparse", f"{len(designs)} combinations of formats and SAFs", f"vary {MOST_VARIANTS} at most")
    values = {kind: _values(dimensions, kind) for kind in ("hardware", "rank", "density")}
    for rank, sizes in values["rank"].items():
        if not (np.isfinite(sizes) & (sizes == np.floor(sizes)) & (sizes >= 1.0)).all():
            raise axis_error(f"rank.{rank}", "a size is no whole number of at least 1", "give whole numbers")
    largest = {rank: int(sizes.max()) for rank, sizes in values["rank"].items()}
    lowered = lower_variants(designs, conventions, dtype=dtype, largest=largest, densities=values["density"])
    _check_values(lowered, values)
    if isinstance(nest, LoopNest):
        source: MappingSource | Mapping = lower_mapping(nest, design.einsum, lowered.own)
    else:
        assert batch is not None
        source = batch
    sample = source if isinstance(source, Mapping) else source.decode(np.arange(min(source.size, _CHECKED)))
    check_mapping(sample, lowered.own)
    report = Diagnostics()
    for variant in designs:
        check_nest(nest if isinstance(nest, LoopNest) else sample, variant, conventions, report)
    report.raise_if_errors()
    if values["density"] and not any(variant.sparse.has_effect for variant in designs):
        report.warn(Place("", 0, "over"), "densities have no effect: the design has no sparse optimizations")
    lowered = replace(lowered, warnings=(*lowered.warnings, *dict.fromkeys(report.warnings)))
    block = _block(tuple(d.size for d in dimensions), max(1, min(BLOCK_POINTS, BLOCK_BYTES // bytes_per_point)))
    lanes = _lane_axes(dimensions, block)
    return Plan(design, lowered, dimensions, tuple(choices), source, conventions, np.dtype(dtype), fields, lanes, block)


def _source(given: Any) -> MappingSource | Mapping:
    """**Raises:** `ValueError` for batches with more than one axis."""
    if not isinstance(given, Mapping):
        return given
    axes = max(np.ndim(leaf) for leaf in jax.tree.leaves(given)) - 2
    if axes > 1:
        raise ValueError("a sweep takes mappings with one batch axis")
    return Batch(given) if axes else given


def _values(dimensions: Sequence[Dimension], kind: str) -> dict[str, np.ndarray]:
    return {axis.key: axis.values for dimension in dimensions for axis in dimension.axes if axis.kind == kind}


def _check_values(lowered: Lowered, values: dict[str, dict[str, np.ndarray]]) -> None:
    """Each axis alone, so that an error comes before the first evaluation. Banded tensors need both their sizes at
    once and are checked block by block."""
    one = replace(lowered, program=jax.tree.map(lambda leaf: leaf[..., 0], lowered.program))
    for key, array in values["hardware"].items():
        override(one, {key: array}, None, (len(array),))


def _block(shape: tuple[int, ...], points: int) -> tuple[int, ...]:
    """Points along each dimension of a block of about `points`: the dimensions grow together."""
    block = [1] * len(shape)
    while True:
        growing = [d for d, n in enumerate(shape) if block[d] < n]
        if not growing:
            return tuple(block)
        d = min(growing, key=lambda d: block[d])
        grown = min(2 * block[d], shape[d])
        if math.prod(block) // block[d] * grown > points:
            return tuple(block)
        block[d] = grown


def _lane_axes(dimensions: Sequence[Dimension], block: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Dimensions by what they make necessary to compute anew; the lane axis with most points comes last."""
    groups = [tuple(d for d, dim in enumerate(dimensions) if dim.group == group) for group in range(GROUPS)]
    present = [dims for dims in groups if dims] or [()]
    return tuple(sorted(present, key=lambda dims: math.prod(block[d] for d in dims)))


def _told(values: np.ndarray) -> Any:
    if len(values) <= 64:
        return values.tolist()
    return f"{len(values)} from {values[0]} to {values[-1]}, {_hash([repr(values.tolist()).encode()])}"


def _design_hash(plan: Plan) -> str:
    """Of all arrays that the kernel will see, and their names: what a change of the files must change."""
    leaves = jax.tree.leaves(plan.lowered.program)
    parts = [np.ascontiguousarray(leaf).tobytes() + repr(np.shape(leaf)).encode() for leaf in leaves]
    return _hash([repr(plan.lowered.names).encode(), repr(plan.lowered.own).encode(), *parts])


def _hash(parts: list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:32]


def definition_text(definition: dict[str, Any]) -> str:
    return json.dumps(definition, indent=1, sort_keys=True)
