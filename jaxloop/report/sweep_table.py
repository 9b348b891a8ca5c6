"""A sweep on the screen: its points if they are few, else what lies between which bounds."""

from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

MOST_ROWS = 40


def print_sweep(dataset: xr.Dataset, name: str = "", console: Console | None = None) -> None:
    """Prints the scalars of all points, or the bounds of each result over the valid ones where there are too many.

    **Arguments:** `dataset`: of `jaxloop.sweep`; read block by block where it lies on the disk.
    """
    console = console or Console()
    dims = _point_dimensions(dataset)
    points = int(np.prod([dataset.sizes[dim] for dim in dims]))
    title = f"{name or 'sweep'}: {points:,} points" if dims else name
    scalars = [str(n) for n, variable in dataset.data_vars.items() if set(variable.dims) <= set(dims)]
    console.print(_rows(dataset, dims, scalars, title) if points <= MOST_ROWS else _bounds(dataset, scalars, title))


def _point_dimensions(dataset: xr.Dataset) -> list[str]:
    """Those of `valid`, else those that all results share."""
    first = dataset["valid"] if "valid" in dataset else min(dataset.data_vars.values(), key=lambda v: v.ndim)
    return [str(dim) for dim in first.dims]


def _rows(dataset: xr.Dataset, dims: list[str], scalars: list[str], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    coords = [
        str(name) for name, c in dataset.coords.items() if set(c.dims) <= set(dims) and name not in _hidden(dataset)
    ]
    for column in (*coords, *scalars):
        table.add_column(_head(dataset[column]), justify="right", overflow="fold")
    shape = {dim: dataset.sizes[dim] for dim in dims}
    columns = [
        dataset[column].load().broadcast_like(xr.DataArray(np.zeros(tuple(shape.values())), dims=dims))
        for column in (*coords, *scalars)
    ]
    flat = [column.transpose(*dims).values.reshape(-1) for column in columns]
    for row in zip(*flat, strict=True):
        table.add_row(*map(_text, row))
    return table


def _hidden(dataset: xr.Dataset) -> set[str]:
    """Indices of dimensions along which several axes vary: the values say more."""
    return {str(dim) for dim in dataset.dims if "+" in str(dim)}


def _bounds(dataset: xr.Dataset, scalars: list[str], title: str) -> Table:
    table = Table("result", "least", "mean", "most", title=title, title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    valid = dataset["valid"] if "valid" in dataset else None
    if valid is not None:
        table.caption = f"{float(valid.mean()):.1%} of the points are valid; bounds are of these"
    for name in scalars:
        values = dataset[name]
        if values.dtype == bool:
            continue
        among = values if valid is None else values.where(valid)
        found = (float(among.min()), float(among.mean()), float(among.max()))
        table.add_row(_head(values), *map(_text, found))
    return table


def _head(variable: xr.DataArray) -> str:
    units = variable.attrs.get("units", "")
    return f"{variable.name} [{units}]".replace("[", r"\[") if units else str(variable.name)


def _text(value: Any) -> str:
    if isinstance(value, str | np.str_):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    number = float(value)
    is_plain = abs(number) < 1e15 and (number.is_integer() or abs(number) >= 1e5)
    return f"{number:,.0f}" if is_plain else f"{number:.6g}"
