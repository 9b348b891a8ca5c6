"""The user's own values in place of those of the files: hardware figures, rank sizes, densities, for one evaluation or
a batch."""

from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from .._errors import Diagnostics, Place, nearest
from ..program import DENSITY_KINDS, Action, Conversion, Fate, Names, Program
from ..spec.density import Distribution
from .costs import operation
from .program import LEVEL_LEAVES, Lowered

# an index starts with what stands before the level axis
_Leaf = tuple[str, tuple[int, ...]]

LEVEL_ATTRIBUTES: dict[str, _Leaf] = {
    **{name: (name, ()) for name in (*LEVEL_LEAVES, "address_energy", "area", "wire_energy")},
    **{f"{operation(Fate.ACTUAL, action)}_energy": ("action_energy", (action,)) for action in Action},
}
SPARSE_LEVEL_ATTRIBUTES: dict[str, _Leaf] = {
    **{
        name: (name, ())
        for name in ("metadata_width", "metadata_size", "decompression_supported", "compression_supported")
    },
    **{f"{operation(Fate.GATED, action)}_energy": ("gated_energy", (action,)) for action in Action},
    **{f"{operation(Fate.SKIPPED, action)}_energy": ("skipped_energy", (action,)) for action in Action},
    **{
        f"{operation(fate, action, metadata=True)}_energy": ("metadata_energy", (fate, action))
        for fate in Fate
        for action in Action
    },
    **{f"{conversion.name.lower()}_energy": ("conversion_energy", (conversion,)) for conversion in Conversion},
}
COMPUTE_ATTRIBUTES: dict[str, _Leaf] = {
    "energy": ("compute_energy", ()),
    "area": ("compute_area", ()),
    "mesh_x": ("compute_mesh_x", ()),
    "mesh_y": ("compute_mesh_y", ()),
}
SPARSE_COMPUTE_ATTRIBUTES: dict[str, _Leaf] = {
    "gated_energy": ("gated_compute_energy", ()),
    "skipped_energy": ("skipped_compute_energy", ()),
}
"""Attribute of `hardware=` -> leaf of `Program` or, where so named, of its sparse part, and where in it."""

POSITIVE = (
    "read_bandwidth",
    "write_bandwidth",
    "shared_bandwidth",
    "multiple_buffering",
    "word_bits",
    "block_size",
    "cluster_size",
    "mesh_x",
    "mesh_y",
)
"""Attributes that make no sense at 0."""


def to_lanes(value: Any, batch: tuple[int, ...], own_axes: int = 0) -> np.ndarray:
    """Leading batch axes become one trailing lane axis of B; without batch axes the lane axis is 1."""
    array = np.asarray(value)
    own = array.shape[array.ndim - own_axes :]
    if array.ndim == own_axes:
        return array[..., None]
    return np.moveaxis(np.broadcast_to(array, batch + own).reshape((-1, *own)), 0, -1)


def override(
    lowered: Lowered,
    hardware: Dict[str, Any] | None,
    sizes: Dict[str, Any] | None,
    batch: tuple[int, ...],
    densities: Dict[str, Any] | None = None,
    start: Program | None = None,
) -> Program:
    """The program with a trailing lane axis on every leaf, and the user's values in their places.

    **Arguments:** `hardware` maps `"Level.attribute"`, `sizes` rank names and `densities` tensors (which `lower` has
    checked), to scalars or arrays over `batch`. A dense program has no place for densities. `start`: a program whose
    leaves have one trailing lane axis per axis of `batch`, each of 1 or the batch's size, to put the values into; they
    then keep these axes apart and are of 1 along those on which they do not depend.

    **Raises:** `SpecError` naming every level, attribute and rank that does not exist, and banded tensors that the
    sizes leave without their square form.
    """
    names, report = lowered.names, Diagnostics()
    if start is None:
        lanes = _Lanes(jax.tree.map(lambda leaf: np.asarray(leaf)[..., None], lowered.program), batch, 1)
    else:
        lanes = _Lanes(start, batch, len(batch))
    for rank, value in (sizes or {}).items():
        place = Place("", 0, f"sizes[{rank!r}]")
        if rank not in names.ranks:
            report.error(place, f'no rank "{rank}"', nearest(rank, names.ranks))
        elif _sound(place, "rank size", value, 1.0, report):
            lanes.put("rank_sizes", (names.ranks.index(rank),), value)
    _check_square(lanes.program, names, report)
    for key, value in (hardware or {}).items():
        level, _, attribute = key.rpartition(".")
        place = Place("", 0, f"hardware[{key!r}]")
        found = _find(level, attribute, place, lanes.program, names, report)
        if found is not None and _sound(place, attribute, value, 0.0, report):
            lanes.put(*found, value)
    for tensor, value in (densities or {}).items() if lanes.program.sparse is not None else ():
        lanes.put("sparse.density", (names.tensors.index(tensor),), value)
    report.raise_if_errors()
    return lanes.program


def leaf_of(lowered: Lowered, key: str) -> tuple[str, tuple[int, ...]]:
    """Where the program keeps `LEVEL.ATTRIBUTE` or `density.TENSOR`: a leaf (`sparse.x` of the sparse part) and the
    index of the entry, along all axes that it leaves open.

    **Raises:** `SpecError` for what does not exist.
    """
    names, report = lowered.names, Diagnostics()
    level, _, attribute = key.rpartition(".")
    if level == "density":
        place = Place("", 0, key)
        if attribute not in names.tensors:
            report.error(place, f'no tensor "{attribute}"', nearest(attribute, names.tensors))
        elif lowered.program.sparse is None:
            report.error(place, "densities have no effect: the design has no sparse optimizations", "leave it out")
        report.raise_if_errors()
        return "sparse.density", (names.tensors.index(attribute),)
    found = _find(level, attribute, Place("", 0, key), lowered.program, names, report)
    report.raise_if_errors()
    assert found is not None
    return found


@dataclass
class _Lanes:
    """A program with lanes, and writing into it. `axes`: trailing lane axes of a leaf."""

    program: Program
    batch: tuple[int, ...]
    axes: int

    def put(self, leaf: str, index: tuple[int, ...], value: Any) -> None:
        """Replaces an entry, along all axes that `index` leaves open. A name `sparse.x` is a leaf of the sparse
        part."""
        part, _, name = leaf.rpartition(".")
        owner = getattr(self.program, part) if part else self.program
        old, lanes = getattr(owner, name), np.asarray(value, float)
        if self.axes == 1:
            lanes = to_lanes(lanes, self.batch)
        shape = np.broadcast_shapes(old.shape[-self.axes :], lanes.shape)
        new = np.array(np.broadcast_to(old, old.shape[: -self.axes] + shape))
        new[index] = lanes
        changed = replace(owner, **{name: new})
        self.program = replace(self.program, **{part: changed}) if part else changed


def _check_square(program: Program, names: Names, report: Diagnostics) -> None:
    if program.sparse is None or program.structure.sparse is None or program.structure.sparse.band < 0:
        return
    extents = 1.0 + (program.projection_extent * (program.rank_sizes - 1.0)).sum(axis=2)
    for t, tensor in enumerate(names.tensors):
        height, width = extents[t, 0], extents[t, 1]
        if program.sparse.density_kind[t].flat[0] == DENSITY_KINDS[Distribution.BANDED] and (height != width).any():
            lane = np.argmax(height != width)
            report.error(
                Place("", 0, "sizes"),
                f'tensor "{tensor}" is {height.flat[lane]:g} x {width.flat[lane]:g}; a banded tensor must be square',
                "change the sizes of both its ranks",
            )


def _find(
    level: str, attribute: str, place: Place, program: Program, names: Names, report: Diagnostics
) -> tuple[str, tuple[int, ...]] | None:
    """The leaf of an attribute and the index of its entry; None with an error where there is none."""
    if level == names.compute:
        dense, sparse, at = COMPUTE_ATTRIBUTES, SPARSE_COMPUTE_ATTRIBUTES, ()
    elif level in names.levels:
        dense, sparse, at = LEVEL_ATTRIBUTES, SPARSE_LEVEL_ATTRIBUTES, (names.levels.index(level),)
    else:
        report.error(place, f'no level "{level}"', nearest(level, (*names.levels, names.compute)))
        return None
    if attribute in dense:
        leaf, before = dense[attribute]
        return leaf, (*before, *at)
    if attribute in sparse and program.sparse is not None:
        leaf, before = sparse[attribute]
        return f"sparse.{leaf}", (*before, *at)
    if attribute in sparse:
        report.error(place, f'"{attribute}" has no effect: the design has no sparse optimizations', "leave it out")
    else:
        valid = dense if program.sparse is None else dense | sparse
        report.error(place, f'"{level}" has no attribute "{attribute}"', nearest(attribute, valid))
    return None


def _sound(place: Place, attribute: str, value: Any, least: float, report: Diagnostics) -> bool:
    array = np.asarray(value, float)
    good = (array > 0.0) if attribute in POSITIVE else (array >= least)
    if not good.all():
        wanted = "above 0" if attribute in POSITIVE else f"of at least {least:g}"
        report.error(place, f"{array[~good].reshape(-1)[0]:g} is no {attribute}", f"give numbers {wanted}")
    return bool(good.all())
