"""Accelerators from the literature that come with the package.

One folder per accelerator. Its `design.yaml` has the keys `description`, `source`, `common` (files that every workload
uses) and `workloads` (the further files of each): all are ordinary input files that lie beside it.
"""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

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
    return path.name == name and path.suffix == "" and not path.exists()


def files(name: str) -> dict[str, str]:
    """The input files of a shipped design, `{file name: text}`, as `jaxloop.loads` takes them.

    **Raises:** `SpecError` that proposes the nearest names where there is no such design.
    """
    names = [design.name for design in shipped()]
    if name not in names:
        of_accelerator = [known for known in names if known.startswith(f"{name}:")]
        remedy = nearest(name, of_accelerator or names)
        raise SpecError([Diagnostic(Place(name), "no design of this name comes with jaxloop", remedy)])
    accelerator, workload = name.split(":", 1)
    folder = resources.files(__name__) / accelerator
    catalog = _catalog(folder)
    members = [*catalog.get("common", ()), *catalog["workloads"][workload]]
    return {f"{accelerator}/{member}": (folder / member).read_text(encoding="utf-8") for member in members}


def _folders() -> list[Traversable]:
    folders = [f for f in resources.files(__name__).iterdir() if (f / "design.yaml").is_file()]
    return sorted(folders, key=lambda folder: folder.name)


def _catalog(folder: Traversable) -> dict:
    return yaml.safe_load((folder / "design.yaml").read_text(encoding="utf-8"))
