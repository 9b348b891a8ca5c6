"""The values of an axis, from lists, arrays, or text such as `logspace(0.01, 1, 100)`."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import Diagnostic, Place, SpecError

_CALL = re.compile(r"\s*(linspace|logspace|range)\s*\((.*)\)\s*")
_MAX_VALUES = 10**8

FORMS = "write `1,2,3`, `linspace(first, last, number)`, `logspace(first, last, number)` or `range(first, last, step)`"


def axis_error(name: str, message: str, remedy: str = "") -> SpecError:
    return SpecError([Diagnostic(Place("", 0, f"over[{name!r}]"), message, remedy)])


def read_values(name: str, given: Any) -> list[Any] | np.ndarray:
    """A list of texts, or an array of numbers. Text is split at commas outside of parentheses.

    **Raises:** `SpecError` for text that is no list of values, and for no values at all.
    """
    if isinstance(given, str):
        call = _CALL.fullmatch(given)
        found: Any = _spaced(name, *call.groups()) if call else split(given)
    else:
        found = given.tolist() if isinstance(given, np.ndarray) and given.ndim == 0 else given
    try:
        values = [found] if isinstance(found, int | float) else list(found)
    except TypeError:
        raise axis_error(name, f"{given!r} is no list of values", FORMS) from None
    if not values:
        raise axis_error(name, "the axis has no values", FORMS)
    return values if any(isinstance(value, str) for value in values) else np.asarray(values)


def split(text: str) -> list[str]:
    """Parts between commas that stand outside of parentheses; square brackets around all are left off."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def numbers(name: str, values: Sequence[Any] | np.ndarray) -> np.ndarray:
    """**Raises:** `SpecError` for what is no finite number or infinity."""
    try:
        array = np.asarray([float(value) for value in values])
    except (TypeError, ValueError):
        wrong = next(value for value in values if not _is_number(value))
        raise axis_error(name, f"{wrong!r} is no number", FORMS) from None
    if np.isnan(array).any():
        raise axis_error(name, "nan is no value", FORMS)
    return array


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _spaced(name: str, kind: str, arguments: str) -> np.ndarray:
    try:
        first, last, step = (float(argument) for argument in arguments.split(","))
    except ValueError:
        raise axis_error(name, f"{kind}({arguments}) needs three numbers", FORMS) from None
    if not np.isfinite([first, last, step]).all():
        raise axis_error(name, f"{kind}({arguments}) needs finite numbers", FORMS)
    exact = np.floor((last - first) / step + 1e-9) + 1 if kind == "range" and step else step
    if not (exact == np.floor(exact) and 1 <= exact <= _MAX_VALUES):
        raise axis_error(name, f"{kind}({arguments}) makes no sensible number of values", FORMS)
    number = int(exact)
    if kind == "range":
        return first + step * np.arange(number)
    if kind == "linspace":
        return np.linspace(first, last, number)
    if first <= 0.0 or last <= 0.0:
        raise axis_error(
            name, f"logspace({arguments}) needs numbers above 0", "give first and last values, no exponents"
        )
    spaced = np.geomspace(first, last, number)
    spaced[[0, -1]] = first, last
    return spaced
