"""Accelerators from the literature that come with the package.

One folder per accelerator. Its `design.yaml` has the keys `description`, `source`, `common` (files that every workload
uses) and `workloads` (the further files of each): all are ordinary input files that lie beside it, or in the folder of
another accelerator when written `folder/file`.

Workloads that differ in a few numbers share their files: a workload may be `{files: [...], set: {name: value}}`, and
`${name}` in its files stands for the value. A `set` beside `common` holds for all workloads, theirs goes before it.
"""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Any

import yaml

from .._errors import Diagnostic, Place, SpecError, nearest


@dataclass(frozen=True, slots=True)
class ShippedDesign:
    """One accelerator with one workload. `name` is `accelerator:workload`; `source` says where the numbers are from."""

    name: str
    workload: str
    description: str
    source: str


@cache
def shipped() -> tuple[ShippedDesign, ...]:
    """All designs of the package, sorted by accelerator, workloads in the order of their file."""
    return tuple(
        ShippedDesign(f"{folder.name}:{workload}", workload, catalog["description"], catalog["source"])
        for folder in _folders()
        for catalog in (_catalog(folder),)
        for workload in catalog["workloads"]
    )


def is_shipped(name: str) -> bool:
    """Whether `name` means a shipped design and not a file: it looks like no path and no such file exists. The design
    itself may be unknown, then `files` proposes others."""
    path = Path(name)
    return path.name == name and (":" in name or path.suffix == "") and not path.exists()


def files(name: str) -> dict[str, str]:
    """The input files of a shipped design, `{file name: text}`, as `jaxloop.loads` takes them.

    **Raises:** `SpecError` that proposes the nearest names where there is no such design, and for a placeholder without
    a value.
    """
    names = [design.name for design in shipped()]
    if name not in names:
        of_accelerator = [known for known in names if known.startswith(f"{name}:")]
        remedy = nearest(name, of_accelerator or names)
        raise SpecError([Diagnostic(Place(name), "no design of this name comes with jaxloop", remedy)])
    accelerator, workload = name.split(":", 1)
    root = resources.files(__name__)
    catalog = _catalog(root / accelerator)
    entry = catalog["workloads"][workload]
    chosen: dict[str, Any] = {"files": entry} if isinstance(entry, list) else entry
    values = {**catalog.get("set", {}), **chosen.get("set", {})}
    members = [*catalog.get("common", ()), *chosen.get("files", ())]
    paths = [member if "/" in member else f"{accelerator}/{member}" for member in members]
    return {path: _fill(path, root.joinpath(path).read_text(encoding="utf-8"), values) for path in paths}


def _fill(path: str, text: str, values: dict[str, object]) -> str:
    """The text with the values in place of its placeholders."""
    try:
        return Template(text).substitute(values)
    except KeyError as error:
        message = f"the placeholder ${{{error.args[0]}}} has no value"
        raise SpecError([Diagnostic(Place(path), message, "add it to `set` in design.yaml")]) from None


def _folders() -> list[Traversable]:
    folders = [f for f in resources.files(__name__).iterdir() if (f / "design.yaml").is_file()]
    return sorted(folders, key=lambda folder: folder.name)


def _catalog(folder: Traversable) -> dict:
    return yaml.safe_load((folder / "design.yaml").read_text(encoding="utf-8"))
