"""Results with names: dimensions, coordinates, units."""

import json
from typing import Any

import numpy as np
import xarray as xr

from .axes import MAPPING, Dimension
from .fields import attributes, axes_of, labels
from .plan import Plan, definition_text


def coordinates(plan: Plan, fields: tuple[str, ...]) -> dict[str, xr.Variable]:
    """Of all dimensions of the sweep, and of those that `fields` have at each point."""
    found: dict[str, xr.Variable] = {}
    for dimension in plan.dimensions:
        found |= along(dimension)
    sparse = plan.lowered.own.sparse
    named = labels(plan.lowered.names, 0 if sparse is None else sparse.format_ranks)
    for axis in dict.fromkeys(axis for field in fields for axis in axes_of(field)):
        found[axis] = xr.Variable(
            (axis,), _plain(np.asarray(named[axis])), {"units": "", "long_name": axis.replace("_", " ")}
        )
    return found


def along(dimension: Dimension, at: np.ndarray | None = None) -> dict[str, xr.Variable]:
    """The coordinates of a dimension, of the points `at` or all. A dimension of one axis has its values; one of several
    counts, unless they are all alike, and each axis is a coordinate along it."""
    dims = (dimension.name,)

    def variable(values: np.ndarray, units: str, name: str) -> xr.Variable:
        return xr.Variable(dims, _plain(values if at is None else values[at]), {"units": units, "long_name": name})

    values = {axis.name: variable(axis.values, axis.units, axis.long_name) for axis in dimension.axes}
    if dimension.name in values:
        return values
    alike = dimension.axes and all(np.array_equal(axis.values, dimension.axes[0].values) for axis in dimension.axes)
    if alike and MAPPING not in dimension.name.split("+"):
        first = dimension.axes[0]
        name = " and ".join(axis.long_name for axis in dimension.axes)
        return {dimension.name: variable(first.values, first.units, name), **values}
    # counted only where it is needed: there may be very many mappings
    index = np.arange(dimension.size) if at is None else at
    name = "index of the mapping" if dimension.name == MAPPING else "index"
    return {dimension.name: xr.Variable(dims, index, {"units": "", "long_name": name}), **values}


def _plain(values: np.ndarray) -> np.ndarray:
    """Texts as objects, which Zarr stores as `string`: it has no standard for texts of fixed length."""
    return values.astype(object) if values.dtype.kind == "U" else values


def attrs(plan: Plan) -> dict[str, Any]:
    return {
        "design": plan.design.name,
        "dtype": plan.dtype.name,
        "definition": definition_text(plan.definition()),
    }


def labelled(plan: Plan, values: dict[str, np.ndarray]) -> xr.Dataset:
    """`values`: [*dimensions, *own axes] by field."""
    dims = tuple(dimension.name for dimension in plan.dimensions)
    variables = {name: xr.Variable((*dims, *axes_of(name)), leaf, attributes(name)) for name, leaf in values.items()}
    return xr.Dataset(variables, coordinates(plan, tuple(values)), attrs(plan))


def storable(dataset: xr.Dataset) -> xr.Dataset:
    """Texts as objects: of fixed length they have no specification in Zarr."""
    texts = {n: (c.dims, c.values.astype(object), c.attrs) for n, c in dataset.coords.items() if c.dtype.kind == "U"}
    return dataset.assign_coords(texts)


def ordered(dataset: xr.Dataset) -> xr.Dataset:
    """Variables as the sweep lists them, texts as it holds them: both are lost on a disk.

    **Raises:** `ValueError` for what no sweep has written.
    """
    told = json.loads(dataset.attrs.get("definition", "{}"))
    if not isinstance(told, dict):
        raise ValueError("its definition is that of no sweep")
    dimensions = [dimension["name"] for dimension in told.get("dimensions", ())]
    names = [name for dimension in dimensions for name in (dimension, *dimension.split("+"))]
    place = {name: i for i, name in reversed([*enumerate((*names, *told.get("fields", ())))])}
    texts = {n: (c.dims, c.values.astype(object), c.attrs) for n, c in dataset.coords.items() if c.dtype.kind == "T"}
    dataset = dataset.assign_coords({n: (dims, text.astype(str), notes) for n, (dims, text, notes) in texts.items()})
    return dataset[sorted(map(str, dataset.variables), key=lambda name: (place.get(name, len(place)), name))]
