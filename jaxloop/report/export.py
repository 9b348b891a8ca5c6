"""A sweep as one file for other programs: Parquet or CSV with one row per point, or netCDF.

Rows are read and written in blocks, so that a dataset which lies lazily in a Zarr store never is in memory as a whole.
"""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._errors import Diagnostic, Place, SpecError, nearest
from .files import replacing
from .sweep_points import refuse

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

Slab = dict[str, slice]
"""Part of the sweep: dimension -> its places. Slabs follow each other in row order, the last dimension fastest."""
CELLS_PER_BLOCK, MOST_CELLS_PER_BLOCK = 2**21, 2**24
REMEDY = "pip install 'jaxloop[export]'"


def export(dataset: "Dataset", path: str | Path, block_rows: int | None = None) -> Path:
    """Writes a sweep to `path`, in the format of its suffix: `.parquet`, `.csv` or `.nc`.

    Rows: one per point, valid or not, the last dimension fastest. Columns: all coordinates, then all variables; those
    with further dimensions have a column per entry, `name.level.tensor`. Numbers keep all their digits. Units and long
    names are in the schema's metadata (Parquet: of each field, and together under `units`) or the attributes
    (netCDF), and so are the dataset's attributes; CSV has neither. The file appears when it is complete.

    **Arguments:** `block_rows`: rows that are read and written at once (default: about 2 million numbers' worth).

    **Raises:** `SpecError` for another suffix, a missing library, columns of one name, or names that netCDF has not;
    `OSError` where the folder does not exist or cannot be written.
    """
    target = Path(path)
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        message = f'no format is known by the suffix "{target.suffix}"'
        raise SpecError([Diagnostic(Place(str(path)), message, nearest(target.suffix, _WRITERS))])
    if "cycles" not in dataset:
        refuse(dataset, "has no variable cycles", "plots and exports need the result of jl.sweep")
    with replacing(target) as temporary:
        write(dataset, temporary, block_rows)
    return target


def _dims(dataset: "Dataset") -> list[str]:
    """The dimensions of the sweep; others, as levels and tensors, are laid out as columns."""
    return [str(dim) for dim in dataset["cycles"].dims]


def _slabs(dataset: "Dataset", block_rows: int | None) -> Iterator[Slab]:
    dims = _dims(dataset)
    if not dims:
        yield {}
        return
    sizes = [dataset.sizes[dim] for dim in dims]
    chunks = dataset["cycles"].encoding.get("chunks") or [1] * len(dims)
    block_rows = block_rows or _block_rows(sizes, chunks, columns=len(_names(dataset)))
    cut = next(k for k in range(len(dims)) if math.prod(sizes[k + 1 :]) <= block_rows)
    step = max(1, block_rows // max(1, math.prod(sizes[cut + 1 :])))
    if step > chunks[cut]:
        step -= step % chunks[cut]
    whole = {dim: slice(0, size) for dim, size in zip(dims[cut + 1 :], sizes[cut + 1 :], strict=True)}
    for outer in product(*map(range, sizes[:cut])):
        fixed = {dim: slice(i, i + 1) for dim, i in zip(dims[:cut], outer, strict=True)}
        for start in range(0, sizes[cut], step):
            yield fixed | {dims[cut]: slice(start, min(start + step, sizes[cut]))} | whole


def _block_rows(sizes: Sequence[int], chunks: Sequence[int], columns: int) -> int:
    """More than usual where that spares reading the chunks of a store again and again, as far as memory allows."""
    usual = max(1, CELLS_PER_BLOCK // columns)
    first = next((k for k, length in enumerate(chunks) if length > 1), len(sizes))
    rows = math.prod(chunks[first : first + 1]) * math.prod(sizes[first + 1 :])
    return max(usual, rows) if rows * columns <= MOST_CELLS_PER_BLOCK else usual


def _variables(dataset: "Dataset") -> list["DataArray"]:
    """In the order of the columns. What merely names the entries of further dimensions is part of other names."""
    dims = _dims(dataset)
    bare = [dim for dim in dims if dim not in dataset.coords]
    indices = [dataset[dim] for dim in bare]
    coords = [c for name, c in dataset.coords.items() if name in dims or name not in dataset.dims]
    first = sorted(
        indices + coords, key=lambda c: ([dims.index(str(d)) for d in c.dims if d in dims], c.name not in dims)
    )
    return first + list(dataset.data_vars.values())


def _entries(dataset: "Dataset", variable: "DataArray") -> tuple[list[str], list[str]]:
    """The dimensions of a variable that are not the sweep's, and the names of its columns."""
    extra = [str(dim) for dim in variable.dims if dim not in _dims(dataset)]
    labels = [[str(label) for label in dataset[dim].values] for dim in extra]
    return extra, [".".join((str(variable.name), *row)) for row in product(*labels)]


def _names(dataset: "Dataset") -> list[str]:
    names = [name for variable in _variables(dataset) for name in _entries(dataset, variable)[1]]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        refuse(dataset, f"would have two columns {', '.join(twice)}", "rename one of the variables")
    return names


def _columns(dataset: "Dataset", slab: Mapping[str, slice]) -> Iterator[np.ndarray]:
    """The columns of the rows of one slab, each of shape `(row,)`."""
    dims = _dims(dataset)
    shape = tuple(part.stop - part.start for part in (slab[dim] for dim in dims))
    for variable in _variables(dataset):
        extra, _ = _entries(dataset, variable)
        own = [dim for dim in dims if dim in variable.dims]
        values = variable.isel({dim: slab[dim] for dim in own}).transpose(*own, *extra).values
        here = [n if dim in own else 1 for dim, n in zip(dims, shape, strict=True)]
        entries = values.shape[len(own) :]
        block = np.broadcast_to(values.reshape((*here, *entries)), (*shape, *entries))
        yield from block.reshape(math.prod(shape), math.prod(entries)).T


def _write_parquet(dataset: "Dataset", path: Path, block_rows: int | None) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise _missing("Parquet files need pyarrow") from None
    variables = [v for v in _variables(dataset) for _ in _entries(dataset, v)[1]]
    names = _names(dataset)
    fields = [
        pyarrow.field(
            name,
            pyarrow.string() if _is_text(v) else pyarrow.from_numpy_dtype(v.dtype),
            metadata={str(key): str(value) for key, value in v.attrs.items()},
        )
        for name, v in zip(names, variables, strict=True)
    ]
    units = {name: str(v.attrs.get("units", "")) for name, v in zip(names, variables, strict=True)}
    metadata = {str(key): str(value) for key, value in dataset.attrs.items()} | {"units": json.dumps(units)}
    schema = pyarrow.schema(fields, metadata)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for slab in _slabs(dataset, block_rows):
            columns = zip(_columns(dataset, slab), schema.types, strict=True)
            table = pyarrow.Table.from_arrays([pyarrow.array(c, kind) for c, kind in columns], schema=schema)
            writer.write_table(table, row_group_size=len(table))


def _write_csv(dataset: "Dataset", path: Path, block_rows: int | None) -> None:
    """Python's own writer: `repr` of a float is the shortest text that reads back as the same number."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_names(dataset))
        for slab in _slabs(dataset, block_rows):
            writer.writerows(zip(*(column.tolist() for column in _columns(dataset, slab)), strict=True))


def _write_netcdf(dataset: "Dataset", path: Path, block_rows: int | None) -> None:
    """The coordinates through xarray, then the variables block by block, which xarray would load as a whole."""
    try:
        import h5netcdf
        import h5py
    except ImportError:
        raise _missing("netCDF files need h5netcdf") from None
    illegal = [str(name) for name in (*dataset.variables, *dataset.dims) if "/" in str(name)]
    if illegal:
        refuse(dataset, f'netCDF has no name with "/": {illegal[0]}', "rename it, or export to .parquet or .csv")
    dataset.coords.to_dataset().assign_attrs(dataset.attrs).drop_encoding().to_netcdf(path, "w", engine="h5netcdf")
    first: Slab = next(_slabs(dataset, block_rows), {})
    with h5netcdf.File(path, "a") as file:
        for dim, size in dataset.sizes.items():
            if dim not in file.dimensions:
                file.dimensions[str(dim)] = size
        for name, variable in dataset.data_vars.items():
            kind = h5py.string_dtype() if _is_text(variable) else np.int8 if variable.dtype == bool else variable.dtype
            chunks = tuple(_length(first.get(str(dim)), size) for dim, size in variable.sizes.items())
            packed = {"chunks": chunks, "compression": "gzip", "compression_opts": 1, "shuffle": True}
            options = packed if chunks and all(chunks) else {}
            stored = file.create_variable(str(name), tuple(map(str, variable.dims)), kind, **options)
            stored.attrs.update(variable.attrs)
            if variable.dtype == bool:
                stored.attrs["dtype"] = "bool"
        for slab in _slabs(dataset, block_rows):
            for name, variable in dataset.data_vars.items():
                place = {dim: slab[str(dim)] for dim in variable.dims if dim in slab}
                block = variable.isel(place).values
                target = tuple(place.get(dim, slice(None)) for dim in variable.dims)
                file.variables[str(name)][target if target else ...] = (
                    block.astype(object) if _is_text(variable) else block
                )


def _length(part: slice | None, size: int) -> int:
    return size if part is None else part.stop - part.start


def _is_text(variable: "DataArray") -> bool:
    return variable.dtype.kind in "OUST"


def _missing(message: str) -> SpecError:
    return SpecError([Diagnostic(Place("export"), f"{message}, which is not installed", REMEDY)])


_WRITERS: dict[str, Callable[["Dataset", Path, int | None], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".nc": _write_netcdf,
}
"""Suffix -> what writes it."""
