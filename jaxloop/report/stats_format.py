"""Numbers and lines in the form of the reference's stats file (spec/dense.md section 13)."""

import math
from typing import Any

TAB = "    "


def fixed(value: Any) -> str:
    """Two decimals; 0/0 as the reference's C++ library prints it, so that readers written for it keep working."""
    number = float(value)
    return "-nan" if math.isnan(number) else f"{number:.2f}"


def count(value: Any) -> str:
    """A count: no decimals, unless conventions without rounding leave a fraction."""
    number = float(value)
    return str(int(number)) if number.is_integer() else fixed(number)


def optional(text: str, given: bool) -> str:
    """`-` for what the input does not specify."""
    return text if given else "-"


def ratio(numerator: Any, denominator: Any) -> float:
    """IEEE division: 0/0 is NaN, x/0 infinite."""
    if float(denominator) != 0:
        return float(numerator) / float(denominator)
    return math.nan if float(numerator) == 0 else math.inf


def line(label: str, value: str, unit: str = "", *, width: int, indent: int) -> str:
    """`label : value unit`, the label padded to `width` after `indent` tabs."""
    return f"{TAB * indent}{label:<{width}} : {value}" + (f" {unit}" if unit else "")


def heading(title: str, indent: int = 0) -> list[str]:
    """The title and a line of dashes below it."""
    return [TAB * indent + title, TAB * indent + "-" * len(title)]
