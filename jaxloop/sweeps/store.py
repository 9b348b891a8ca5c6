"""Sweeps on disk: a Zarr group with one chunk per block and field.

A chunk is written to a file of its own and then renamed, with a checksum inside; the group itself appears complete,
definition included. So the files that exist are exactly what has been computed, at whatever moment the process dies.
"""

import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
import zarr.codecs

from .._errors import Diagnostic, Place, SpecError
from .dataset import attrs, coordinates, ordered, storable
from .fields import attributes, axes_of, fill_of, kind_of
from .partials import partial_of, remove
from .plan import Box, Plan

_WAIT_SECONDS = 600.0
_DAMAGED = "delete it, or give another path"


@dataclass(frozen=True, eq=False)
class Store:
    """The group of a plan, open for writing. `arrays`: per field."""

    path: Path
    plan: Plan
    arrays: dict[str, Any]

    def write(self, number: int, box: Box, values: dict[str, np.ndarray]) -> None:
        """One block. `valid` comes last: until then the points count as not there."""
        del number
        for name in sorted(values, key=lambda name: name == "valid"):
            self.arrays[name][box] = values[name]

    def is_done(self, number: int) -> bool:
        """Whether a block is there and undamaged."""
        box = self.plan.box(number)
        at = [str(part.start // size) for part, size in zip(box, self.plan.block, strict=True)]
        for name, array in self.arrays.items():
            if not self.path.joinpath(name, "c", *at, *"0" * len(axes_of(name))).exists():
                return False
            try:
                array[box]
            except (ValueError, RuntimeError, OSError):
                return False
        return True

    def open(self) -> xr.Dataset:
        """The results, read from the disk where they are used."""
        return open_sweep(self.path)


def open_sweep(path: str | os.PathLike[str], group: str | None = None) -> xr.Dataset:
    """A sweep's results, read where they are used. `group`: the name of one of several reductions.

    **Raises:** `SpecError` where there is none.
    """
    try:
        return ordered(xr.open_zarr(os.fspath(path), group=group, chunks=None, consolidated=False))
    except (OSError, ValueError, KeyError) as error:
        raise _refusal(Path(path), f"no sweep can be read there: {error}", _DAMAGED) from None


def open_store(path: Path, plan: Plan, creates: bool = True) -> Store:
    """The store of a plan: a new one, or one that an earlier run of the same sweep has begun.

    **Arguments:** `creates`: False for a process that waits for another to create it.

    **Raises:** `SpecError` if something else is there, another sweep included; `OSError`.
    """
    plan_definition = plan.definition()
    if not creates:
        _wait_for(path)
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        _create(path, plan)
    try:
        found = json.loads((path / "zarr.json").read_text())["attributes"]["definition"]
        definition = json.loads(found)
    except (OSError, ValueError, KeyError, TypeError):
        raise _refusal(path, "there is something that is no sweep of jaxloop", "give another path") from None
    refuse_another(path, definition, plan_definition)
    try:
        group = zarr.open_group(path, mode="r+", zarr_format=3)
        arrays = {name: group[name] for name in plan.fields}
    except (OSError, ValueError, KeyError) as error:
        raise _refusal(path, f"the sweep there is damaged: {error}", _DAMAGED) from None
    return Store(path, plan, arrays)


def refuse_another(path: Path, found: Any, wanted: dict[str, Any]) -> None:
    """**Raises:** `SpecError` that names what differs between two definitions."""
    if not isinstance(found, dict) or not found:
        raise _refusal(path, "there is something that is no sweep of jaxloop", "give another path")
    wanted = json.loads(json.dumps(wanted))
    differs = [part for part in wanted if found.get(part) != wanted[part]]
    if "dimensions" in differs:
        had = found.get("dimensions") or []
        names = [dimension["name"] for dimension in wanted["dimensions"] if dimension not in had]
        differs[differs.index("dimensions")] = f"dimensions ({', '.join(names) or 'their order or number'})"
    if differs:
        told = f"there is another sweep: it differs in {', '.join(differs)}"
        raise _refusal(path, told, "give another path, or delete it")


def _create(path: Path, plan: Plan) -> None:
    partial = partial_of(path)
    try:
        named = storable(xr.Dataset({}, coordinates(plan, plan.fields), attrs(plan)))
        named.to_zarr(partial, mode="w", zarr_format=3, consolidated=False)
        group = zarr.open_group(partial, mode="r+", zarr_format=3)
        dims = tuple(dimension.name for dimension in plan.dimensions)
        for name in plan.fields:
            own = tuple(named.sizes[axis] for axis in axes_of(name))
            kind = kind_of(name, plan.dtype)
            group.create_array(
                name,
                shape=(*plan.shape, *own),
                chunks=(*plan.block, *own),
                dtype=kind,
                fill_value=fill_of(kind),
                dimension_names=(*dims, *axes_of(name)),
                compressors=(zarr.codecs.ZstdCodec(level=0), zarr.codecs.Crc32cCodec()),
                attributes=dict(attributes(name)),
                config={"write_empty_chunks": True},
            )
        os.replace(partial, path)
    finally:
        remove(partial)


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not (path / "zarr.json").exists():
        if time.monotonic() > deadline:
            raise _refusal(path, "the first process has not created it", "look at that process' messages")
        time.sleep(0.05)


def _refusal(path: Path, message: str, remedy: str) -> SpecError:
    return SpecError([Diagnostic(Place(str(path)), message, remedy)])


def bytes_per_point(fields: tuple[str, ...], sizes: dict[str, int], dtype: np.dtype) -> int:
    """Of stored results, before compression."""
    return sum(kind_of(name, dtype).itemsize * math.prod(sizes[axis] for axis in axes_of(name)) for name in fields)
