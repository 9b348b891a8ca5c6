"""The quantities that a sweep can give: fields of `Evaluation`, and what follows from them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import nearest
from ..program import Action, Activity, Fate, Names
from ..result import own_axes
from ..run.batch import BATCH_FIELDS
from .values import axis_error

Leaves = dict[str, np.ndarray]


@dataclass(frozen=True)
class Derived:
    """`of`: the fields that it follows from; `compute`: from their arrays."""

    of: tuple[str, ...]
    compute: Callable[..., np.ndarray]
    units: str
    long_name: str


PJ_PER_J = 1e12

DERIVED = {
    "valid": Derived(("status",), lambda status: status == 0, "", "the mapping can run"),
    "edp": Derived(
        ("energy_pj", "cycles"), lambda energy, cycles: energy * cycles / PJ_PER_J, "J cycle", "energy-delay product"
    ),
    "ed2p": Derived(
        ("energy_pj", "cycles"),
        lambda energy, cycles: energy * cycles * cycles / PJ_PER_J,
        "J cycle^2",
        "energy-delay-squared product",
    ),
}
SHORT = {"delay": "cycles", "energy": "energy_pj", "area": "area_um2"}
"""Names of objectives."""

DEFAULT_FIELDS = ("cycles", "energy_pj", "valid")

_UNITS = {
    "_pj": "pJ",
    "_um2": "um^2",
    "cycles": "cycle",
    "_words": "word",
    "_bits": "bit",
    "reads": "word",
    "fills": "word",
    "updates": "word",
}
_FILL = {"b": False, "i": -1}
"""By kind of dtype, what stands for a point without a result; nan for floats."""

_RENAMED = {"2": "metadata_part", "level1": "unit"}


def check_fields(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The fields by their full names.

    **Raises:** `SpecError` for names that do not exist.
    """
    named = tuple(dict.fromkeys(SHORT.get(name, name) for name in fields))
    known = (*BATCH_FIELDS, *DERIVED)
    for name in named:
        if name not in known:
            raise axis_error("fields", f'no result "{name}"', nearest(name, known))
    return named


def kernel_fields(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The fields of `Evaluation` that give `fields`."""
    return tuple(dict.fromkeys(n for name in fields for n in (DERIVED[name].of if name in DERIVED else (name,))))


def derive(values: Leaves, fields: tuple[str, ...]) -> Leaves:
    """The `fields`, from those of the kernel."""
    return {
        name: DERIVED[name].compute(*(values[n] for n in DERIVED[name].of)) if name in DERIVED else values[name]
        for name in fields
    }


def axes_of(field: str) -> tuple[str, ...]:
    """Names of the axes that a field has at each point, no two alike."""
    found: list[str] = []
    for axis in () if field in DERIVED else own_axes(field):
        axis = _RENAMED.get(axis, axis)
        found.append("leader" if axis in found else axis)
    return tuple(found)


def labels(names: Names, format_ranks: int) -> dict[str, Any]:
    """The coordinates of all axes that a field may have at each point."""
    return {
        "level": list(names.levels),
        "unit": [names.compute, *names.levels],
        "tensor": list(names.tensors),
        "leader": list(names.tensors),
        "activity": [activity.name.lower() for activity in Activity],
        "action": [action.name.lower() for action in Action],
        "fate": [fate.name.lower() for fate in Fate],
        "format_rank": list(range(format_ranks)),
        "metadata_part": ["metadata", "payload"],
    }


def attributes(field: str) -> dict[str, str]:
    """Units and a name in words."""
    if field in DERIVED:
        return {"units": DERIVED[field].units, "long_name": DERIVED[field].long_name}
    units = next((unit for ending, unit in _UNITS.items() if field.endswith(ending) or f"{ending}_by" in field), "")
    words = field.removesuffix("_pj").removesuffix("_um2").replace("_", " ")
    return {"units": units, "long_name": words}


def kind_of(field: str, dtype: np.dtype) -> np.dtype:
    """The dtype of a field where the kernel computes in `dtype`."""
    if field == "valid" or field == "needs_enumeration":
        return np.dtype(bool)
    integers = ("status", "violation", "format_violation", "saf_kind")
    return np.dtype(np.int32) if field in integers else dtype


def fill_of(kind: np.dtype) -> Any:
    return _FILL.get(kind.kind, float("nan"))
