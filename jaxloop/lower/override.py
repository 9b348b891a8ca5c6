"""The user's own values in place of those of the files: hardware figures, rank sizes; for one evaluation or a batch."""

from collections.abc import Mapping as Dict
from typing import Any

import numpy as np

from .._errors import Diagnostics, Place, nearest
from ..program import Action, Program, leaf_names
from .program import LEVEL_LEAVES, Lowered

COMPUTE_ATTRIBUTES = {
    "energy": "compute_energy",
    "area": "compute_area",
    "mesh_x": "compute_mesh_x",
    "mesh_y": "compute_mesh_y",
}
ENERGY_ATTRIBUTES = {f"{action.name.lower()}_energy": action for action in Action}
LEVEL_ATTRIBUTES = (*LEVEL_LEAVES, "address_energy", "area", "wire_energy", *ENERGY_ATTRIBUTES)


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
    lowered: Lowered, hardware: Dict[str, Any] | None, sizes: Dict[str, Any] | None, batch: tuple[int, ...]
) -> Program:
    """The program with a trailing lane axis on every leaf, and the user's values in their places.

    **Arguments:** `hardware` maps `"Level.attribute"`, `sizes` rank names, to scalars or arrays over `batch`.

    **Raises:** `SpecError` naming every level, attribute and rank that does not exist.
    """
    program, names, report = lowered.program, lowered.names, Diagnostics()
    leaves = {n: getattr(program, n)[..., None] for n in leaf_names(program)}

    def put(name: str, index: Any, value: Any) -> None:
        lanes = to_lanes(np.asarray(value, float), batch)
        count = max(leaves[name].shape[-1], lanes.size)
        leaves[name] = np.array(np.broadcast_to(leaves[name], (*leaves[name].shape[:-1], count)))
        leaves[name][index] = lanes

    def sound(place: Place, attribute: str, value: Any) -> bool:
        array = np.asarray(value, float)
        least = 1.0 if place.path.startswith("sizes") else 0.0
        good = (array > 0.0) if attribute in POSITIVE else (array >= least)
        if not good.all():
            wanted = "above 0" if attribute in POSITIVE else f"of at least {least:g}"
            report.error(place, f"{array[~good].reshape(-1)[0]:g} is no {attribute}", f"give numbers {wanted}")
        return bool(good.all())

    for rank, value in (sizes or {}).items():
        if rank in names.ranks:
            sound(Place("", 0, f"sizes[{rank!r}]"), "rank size", value)
            put("rank_sizes", names.ranks.index(rank), value)
        else:
            report.error(Place("", 0, f"sizes[{rank!r}]"), f'no rank "{rank}"', nearest(rank, names.ranks))
    for key, value in (hardware or {}).items():
        level, _, attribute = key.rpartition(".")
        place = Place("", 0, f"hardware[{key!r}]")
        if not sound(place, attribute, value):
            continue
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
