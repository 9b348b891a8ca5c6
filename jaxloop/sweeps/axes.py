"""The axes of a sweep: names, values, and what they change."""

from collections.abc import Iterable, Mapping as Dict, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._errors import nearest
from ..spec.design import Design
from .choices import Change, compute_change, format_change, saf_change
from .values import axis_error, numbers, read_values

MAPPING = "mapping"
"""The dimension of a batch of mappings."""

_UNITS = {
    "size": "word",
    "read_bandwidth": "word/cycle",
    "write_bandwidth": "word/cycle",
    "shared_bandwidth": "word/cycle",
    "word_bits": "bit",
    "metadata_width": "bit",
    "metadata_size": "bit",
    "network_word_bits": "bit",
    "area": "um^2",
    "latency": "cycle",
    "tile_width": "um",
    "block_size": "word",
    "energy_per_hop": "pJ",
    "energy": "pJ",
}
_KINDS = "density.TENSOR, rank.RANK, format.LEVEL.TENSOR, saf.LEVEL.TENSOR, saf.COMPUTE, sparse, LEVEL.ATTRIBUTE"
_ROWS = "write rows with as many values as there are names"
_EVERYTHING_TILED = ("mesh_x", "mesh_y")
"""Hardware that tiles may depend on; all other hardware comes after them."""


@dataclass(frozen=True, eq=False)
class Axis:
    """One quantity that varies.

    **Attributes:** `kind`: "density", "rank", "hardware" or "choice"; `key`: the tensor, the rank or `Level.attribute`;
    `values`: numbers, or the texts of a choice; `changes`: of a choice, what each value does to the sparse
    optimizations.
    """

    name: str
    kind: str
    key: str
    values: np.ndarray
    changes: tuple[Change, ...] = ()

    @property
    def units(self) -> str:
        attribute = self.key.rpartition(".")[2]
        if self.kind == "hardware":
            return _UNITS.get(attribute, "pJ" if attribute.endswith("_energy") else "")
        return ""

    @property
    def long_name(self) -> str:
        names = {"density": f"density of {self.key}", "rank": f"size of rank {self.key}"}
        return names.get(self.kind, self.name.replace("_", " "))

    @property
    def group(self) -> int:
        """What a change of this quantity makes necessary: 0 new tiles, 1 new chances, 2 new prices and speeds."""
        if self.kind == "rank" or self.key.rpartition(".")[2] in _EVERYTHING_TILED:
            return 0
        return 1 if self.kind in ("density", "choice") else 2


@dataclass(frozen=True, eq=False)
class Dimension:
    """Axes that vary together; none for the dimension of the mappings, which varies by index."""

    name: str
    size: int
    axes: tuple[Axis, ...] = ()
    group: int = field(default=0)


def read_dimensions(design: Design, over: Dict[Any, Any], zipped: bool, mappings: int | None) -> tuple[Dimension, ...]:
    """The dimensions of a sweep, in the order given, that of `mappings` (their number, if there is a batch) first.

    **Arguments:** `over`: `{name: values}`; a tuple of names varies together: its values are one list for all, or rows
    with a value for each name. `zipped`: everything varies together, mappings included.

    **Raises:** `SpecError` for unknown names, values that do not fit, lengths that differ.
    """
    dimensions = [] if mappings is None else [Dimension(MAPPING, mappings)]
    seen: set[str] = set()
    for names, given in over.items():
        own = _axes(design, (names,) if isinstance(names, str) else tuple(names), given)
        for axis in own:
            if axis.name in seen:
                raise axis_error(axis.name, "the axis is given twice", "merge the two")
            seen.add(axis.name)
        dimensions.append(_dimension(own))
    if zipped and len(dimensions) > 1:
        dimensions = [_zipped(dimensions)]
    return tuple(dimensions)


def _dimension(axes: Sequence[Axis]) -> Dimension:
    name = "+".join(axis.name for axis in axes)
    return Dimension(name, len(axes[0].values), tuple(axes), min(axis.group for axis in axes))


def _zipped(dimensions: list[Dimension]) -> Dimension:
    sizes = {dimension.name: dimension.size for dimension in dimensions}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise axis_error("+".join(sizes), f"axes that vary together have different lengths ({told})", "make them equal")
    axes = tuple(axis for dimension in dimensions for axis in dimension.axes)
    return Dimension("+".join(sizes), next(iter(sizes.values())), axes, min(d.group for d in dimensions))


def _axes(design: Design, names: tuple[str, ...], given: Any) -> list[Axis]:
    if not names:
        raise axis_error("()", "the axis has no name", f"kinds: {_KINDS}")
    if len(names) == 1:
        return [_axis(design, names[0], given)]
    values = [given] * len(names) if isinstance(given, str) else list(given)
    rows = not isinstance(given, str) and len(values) > 0 and not np.isscalar(values[0])
    if not rows:
        return [_axis(design, name, given) for name in names]
    for row in values:
        if np.isscalar(row) or len(row) != len(names):
            raise axis_error("+".join(names), f"{row!r} has not one value for each of {', '.join(names)}", _ROWS)
    return [_axis(design, name, column) for name, column in zip(names, zip(*values, strict=True), strict=True)]


def _axis(design: Design, name: str, given: Any) -> Axis:
    kind, _, key = name.partition(".")
    levels = [level.name for level in design.architecture.levels]
    compute = design.architecture.compute.name
    tensors, ranks = [tensor.name for tensor in design.einsum.tensors], list(design.einsum.ranks)
    if name == "sparse":
        return _sparse_axis(design, name, given)
    values = read_values(name, given)
    if kind == "density":
        _known(name, key, tensors, "tensor")
        return Axis(name, kind, key, numbers(name, values))
    if kind == "rank":
        _known(name, key, ranks, "rank")
        return Axis(name, kind, key, numbers(name, values))
    if kind in ("format", "saf"):
        texts = [str(value).strip() for value in values]
        level, _, tensor = key.rpartition(".") if "." in key else (key, "", "")
        if kind == "saf" and not tensor:
            _known(name, level, [compute], "compute unit")
            changes = [compute_change(name, compute, text) for text in texts]
        else:
            _known(name, level, levels, "level")
            _known(name, tensor, tensors, "tensor")
            make = format_change if kind == "format" else saf_change
            changes = [make(name, design, level, tensor, text) for text in texts]
        return Axis(name, "choice", key, np.asarray(texts, object), tuple(changes))
    level, _, attribute = name.rpartition(".")
    if not level or level not in (*levels, compute):
        known = [
            *(f"density.{t}" for t in tensors),
            *(f"rank.{r}" for r in ranks),
            *(f"{level}.size" for level in levels),
        ]
        raise axis_error(name, f'no axis "{name}"', f"{nearest(name, known)}; kinds: {_KINDS}")
    return Axis(name, "hardware", name, numbers(name, values))


def _sparse_axis(design: Design, name: str, given: Any) -> Axis:
    """Whole alternatives of the sparse optimizations: `{name: Design}`, of which each gives its own."""
    if not isinstance(given, Dict) or not given:
        raise axis_error(name, "the axis needs designs by name", 'give {"name": design, ...}')
    for label, other in given.items():
        same = other.einsum.ranks == design.einsum.ranks and [level.name for level in other.architecture.levels] == [
            level.name for level in design.architecture.levels
        ]
        if not same or [t.name for t in other.einsum.tensors] != [t.name for t in design.einsum.tensors]:
            raise axis_error(name, f'"{label}" has other levels, tensors or ranks', "vary designs of one architecture")
    changes = tuple((lambda sparse, found=other.sparse: found) for other in given.values())
    return Axis(name, "choice", name, np.asarray(list(given), object), changes)


def _known(name: str, found: str, valid: Iterable[str], what: str) -> None:
    valid = list(valid)
    if found not in valid:
        raise axis_error(name, f'no {what} "{found}"', nearest(found, valid))


def variants(design: Design, dimensions: Sequence[Dimension]) -> tuple[list[Axis], list[Design]]:
    """The axes of choices, and a design for each of their combinations, the last axis fastest."""
    choices = [axis for dimension in dimensions for axis in dimension.axes if axis.kind == "choice"]
    # whole alternatives first: formats and SAFs of single tensors change what these say
    order = sorted(range(len(choices)), key=lambda i: choices[i].name != "sparse")
    found = []
    for index in np.ndindex(*(len(axis.changes) for axis in choices)):
        sparse = design.sparse
        for position in order:
            sparse = choices[position].changes[index[position]](sparse)
        found.append(replace(design, sparse=sparse))
    return choices, found
