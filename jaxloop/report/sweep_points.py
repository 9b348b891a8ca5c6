"""What plots and exports read of a sweep's dataset: its axes, and its valid points as arrays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .._errors import Diagnostic, Place, SpecError

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

MAPPING, FRONT = "mapping", "point"
_OF_WORKLOADS = ("density.", "rank.")
NEEDED = ("cycles", "energy_pj", "valid")
DECADES_OF_LOG_AXES = 1.5
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((2**30, " Gi"), (2**20, " Mi"), (2**10, " Ki"))


@dataclass(frozen=True)
class Axis:
    """One dimension of the sweep.

    - `name`: of the dimension. `label`: for people, with its unit.
    - `values`: where its points lie on a numeric axis, else 0, 1, ... `texts`: how each of them reads.
    - `numeric`, `log`: whether it has a scale, and whether that is logarithmic.
    """

    name: str
    label: str
    values: np.ndarray
    texts: tuple[str, ...]
    numeric: bool
    log: bool

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def is_chosen(self) -> bool:
        """Whether a designer chooses along this axis, so that its best point can stand for it. Densities and sizes of
        ranks are the workload's."""
        return not any(part.startswith(_OF_WORKLOADS) for part in self.name.split("+"))


@dataclass(frozen=True)
class Points:
    """The points of a sweep, or of a reduced one.

    - `axes`: in the order of the dimensions of all arrays.
    - `quantities`: name -> float64 values, NaN at points that are not valid.
    - `index`: number of each point among all of the dataset's, which are counted with the last dimension fastest.
    - `notes`: what was reduced, in words.
    """

    axes: tuple[Axis, ...]
    quantities: dict[str, np.ndarray]
    index: np.ndarray
    notes: tuple[str, ...] = ()

    @cached_property
    def valid(self) -> np.ndarray:
        return np.isfinite(self.quantities["edp"])

    def best(self, names: Sequence[str]) -> "Points":
        """The valid points of lowest EDP along the axes of these names, the first of equals."""
        gone = [i for i, axis in enumerate(self.axes) if axis.name in names]
        kept = [i for i in range(len(self.axes)) if i not in gone]
        if not gone:
            return self
        shape = [len(self.axes[i]) for i in kept]
        rows = {k: v.transpose(kept + gone).reshape(*shape, -1) for k, v in self.quantities.items()}
        at = np.where(np.isfinite(rows["edp"]), rows["edp"], np.inf).argmin(-1)[..., None]
        index = self.index.transpose(kept + gone).reshape(*shape, -1)
        notes = tuple(_note(self.axes[i]) for i in gone if len(self.axes[i]) > 1)
        return Points(
            tuple(self.axes[i] for i in kept),
            {k: np.take_along_axis(v, at, -1)[..., 0] for k, v in rows.items()},
            np.take_along_axis(index, at, -1)[..., 0],
            self.notes + notes,
        )

    def reduced(self, axis: Axis, most: int) -> "Points":
        """With at most `most` places along an axis: its best points where a designer chooses, else evenly spread ones
        with valid points, of one that with most of them, nearest to the middle."""
        if axis.is_chosen or len(axis) <= 1:
            return self.best([axis.name])
        i = [other.name for other in self.axes].index(axis.name)
        counts = self.valid.sum(tuple(k for k in range(len(self.axes)) if k != i))
        places = np.flatnonzero(counts)
        if most == 1:
            middle = np.abs(places - (len(axis) - 1) / 2)
            at = [int(places[np.lexsort((middle, -counts[places]))[0]])]
        else:
            at = sorted({int(k) for k in places[np.linspace(0, len(places) - 1, most).round().astype(int)]})
        fewer = replace(axis, values=axis.values[at], texts=tuple(axis.texts[k] for k in at))
        kept = replace(
            self,
            axes=(*self.axes[:i], fewer, *self.axes[i + 1 :]),
            quantities={k: v.take(at, i) for k, v in self.quantities.items()},
            index=self.index.take(at, i),
            notes=(
                *self.notes,
                f"{axis.label} {fewer.texts[0]}" if most == 1 else f"{len(at)} of {len(axis):,} {axis.name}",
            ),
        )
        return kept.best([axis.name]) if most == 1 else kept

    def ordered(self, names: Sequence[str]) -> "Points":
        """With the axes of these names first, in this order, and those of length 1 dropped where not named."""
        places = {axis.name: i for i, axis in enumerate(self.axes)}
        rest = [i for i, axis in enumerate(self.axes) if axis.name not in names]
        order = [places[name] for name in names] + [i for i in rest if len(self.axes[i]) > 1]
        shape = [len(self.axes[i]) for i in order]
        everything = order + [i for i in rest if len(self.axes[i]) == 1]
        return replace(
            self,
            axes=tuple(self.axes[i] for i in order),
            quantities={k: v.transpose(everything).reshape(shape) for k, v in self.quantities.items()},
            index=self.index.transpose(everything).reshape(shape),
        )


def points_of(dataset: "Dataset") -> Points:
    """The valid points of a sweep.

    **Raises:** `SpecError` where the dataset is none of a sweep or no point of it is valid.
    """
    missing = [name for name in NEEDED if name not in dataset]
    if missing:
        refuse(dataset, f"has no variable {', '.join(missing)}", "plots and exports need the result of jl.sweep")
    dims = [str(dim) for dim in dataset["cycles"].dims]
    names = ["cycles", "energy_pj", *(["area_um2"] if "area_um2" in dataset else [])]
    shape = tuple(dataset.sizes[dim] for dim in dims)
    arrays = {n: np.broadcast_to(_array(dataset[n], dims, shape), shape) for n in names}
    arrays["edp"] = arrays["cycles"] * arrays["energy_pj"]
    valid = np.asarray(dataset["valid"].transpose(*dims).values, bool)
    valid = valid & np.isfinite(arrays["cycles"]) & np.isfinite(arrays["energy_pj"]) & np.isfinite(arrays["edp"])
    if not valid.any():
        message = f"none of the {valid.size:,} points is valid, so there is nothing to draw"
        refuse(dataset, message, "the variable status tells why each point is not")
    quantities = {name: np.where(valid, array, np.nan) for name, array in arrays.items()}
    index = np.arange(valid.size).reshape(shape)
    return Points(tuple(axis_of(dataset, dim) for dim in dims), quantities, index)


def refuse(dataset: "Dataset", message: str, remedy: str) -> NoReturn:
    """**Raises:** `SpecError` about the dataset, under the name of its design."""
    place = Place(f"sweep of {dataset.attrs.get('design') or 'a design'}")
    raise SpecError([Diagnostic(place, message, remedy)])


def axis_of(dataset: "Dataset", dim: str) -> Axis:
    """The axis of a dimension. Zipped axes are numeric where the first of them is and grows or falls all along."""
    length = dataset.sizes[dim]
    along = [c for c in dataset.coords.values() if c.dims == (dim,) and c.name != dim]
    # where a dimension has a name of its own, other coordinates tell where the best along others was found
    zipped = [c for c in along if c.name in dim.split("+") or dim not in dataset.coords]
    coords = zipped or ([dataset.coords[dim]] if dim in dataset.coords else [])
    if not coords:
        return Axis(dim, dim, np.arange(length, dtype=float), tuple(map(str, range(length))), False, False)
    same = all(np.array_equal(coord.values, coords[0].values) for coord in coords[1:])
    label = _label(coords[0])
    if same and len(coords) > 1:
        label = " = ".join(_long_name(coord) for coord in coords) + _unit(coords[0])
    elif len(coords) > 1:
        label = ", ".join(_label(coord) for coord in coords)
    columns = [_texts(coord.values) for coord in (coords[:1] if same else coords)]
    texts = tuple(", ".join(row) for row in zip(*columns, strict=True))
    numeric = dim not in (MAPPING, FRONT) and _is_scale(coords[0].values)
    if not numeric:
        return Axis(dim, label, np.arange(length, dtype=float), texts, False, False)
    if len(coords) > 1 and not same:
        others = (f"{_long_name(c)} {t[0]} to {t[-1]}" for c, t in zip(coords[1:], columns[1:], strict=True))
        label = f"{_label(coords[0])} (with {', '.join(others)})"
    values = np.asarray(coords[0].values, float)
    return Axis(dim, label, values, texts, True, _is_even_in_log(values))


def is_log(values: np.ndarray) -> bool:
    """Whether these values want a logarithmic axis: all positive, and more than a decade and a half between them."""
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() <= 0:
        return False
    return math.log10(finite.max() / finite.min()) > DECADES_OF_LOG_AXES


def number_text(value: float) -> str:
    """`12.5k`, `0.01`: with an SI prefix from 1,000 up."""
    for scale, prefix in _SI:
        if abs(value) >= scale:
            return f"{value / scale:.5g}{prefix}"
    return f"{value:.4g}"


def _is_scale(values: np.ndarray) -> bool:
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        return False
    steps = np.diff(values.astype(float))
    return bool((steps > 0).all() or (steps < 0).all())


def _is_even_in_log(values: np.ndarray) -> bool:
    """Whether an axis is logarithmic: spaced by ratio, or wide, unless its values are spaced evenly."""
    steps = np.diff(values)
    if len(values) < 3 or values.min() <= 0:
        return is_log(values)
    ratios = values[1:] / values[:-1]
    if np.allclose(steps, steps[0], rtol=0.05):
        return False
    return bool(np.allclose(ratios, ratios[0], rtol=0.05)) or is_log(values)


def _texts(values: np.ndarray) -> list[str]:
    if values.dtype.kind not in "iuf":
        return [str(value) for value in values]
    scale, prefix = next(((s, p) for s, p in _BINARY if values.min() >= s and not (values % s).any()), (1, ""))
    return [f"{value / scale:.6g}{prefix}" if prefix else _value_text(float(value)) for value in values]


def _value_text(value: float) -> str:
    """As `number_text`, but integers that are short enough stay exact."""
    return f"{int(value):,}" if value.is_integer() and abs(value) < 1e6 else number_text(value)


def _long_name(coord: "DataArray") -> str:
    return str(coord.attrs.get("long_name") or coord.name)


def _unit(coord: "DataArray") -> str:
    return f" [{coord.attrs['units']}]" if coord.attrs.get("units") else ""


def _label(coord: "DataArray") -> str:
    return _long_name(coord) + _unit(coord)


def _note(axis: Axis) -> str:
    if axis.name == MAPPING:
        return f"best of {len(axis):,} mappings"
    return f"best of {len(axis):,} {axis.name}"


def _array(variable: "DataArray", dims: Sequence[str], shape: tuple[int, ...]) -> Any:
    """Some quantities, the area for one, may lack dimensions that do not change them."""
    own = [dim for dim in dims if dim in variable.dims]
    values = np.asarray(variable.transpose(*own).values, float)
    return values.reshape([size if dim in own else 1 for dim, size in zip(dims, shape, strict=True)])
