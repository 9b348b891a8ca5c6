"""Lines of an explanation: sections with their source, aligned columns, numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

SOURCES = {
    "tile": "docs/model.md 1",
    "density": "spec/sparse.md 1",
    "occupancy": "spec/sparse.md 2.6 and 5.2",
    "format": "spec/sparse.md 2",
    "saf": "spec/sparse.md 3.2 to 3.4",
    "words": "docs/model.md 7, spec/sparse.md 3.6 and 3.7",
    "metadata": "spec/sparse.md 2.8 and 3.7",
    "energy": "docs/model.md 9, spec/sparse.md 5.3 to 5.5",
    "computes": "spec/sparse.md 4",
    "capacity": "docs/model.md 11, spec/sparse.md 5.2",
    "time": "docs/model.md 10, spec/sparse.md 5.6",
}
"""Section -> where its formulas are written down."""

_INDENT = "  "
_EXACT = 1e6


def section(title: str, source: str, lines: Iterable[str]) -> list[str]:
    """A titled block with a blank line before it."""
    return ["", f"{title}  [{SOURCES[source]}]", *(f"{_INDENT}{line}" for line in lines)]


def aligned(rows: Sequence[Sequence[str]], left: Iterable[int] = (0,)) -> list[str]:
    """Columns of equal width, those in `left` aligned to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = set(left)
    return [
        "  ".join(
            f"{cell:<{width}}" if place in left else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def number(value: Any) -> str:
    """An integer as it is, other numbers with six digits or more."""
    value = float(value)
    if value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= _EXACT else f"{value:,.6g}"


def amount(value: Any, unit: str) -> str:
    """`1 word`, `2 words`."""
    return f"{number(value)} {unit}{'' if float(value) == 1 else 's'}"


def chance(value: Any) -> str:
    """A probability, or a density."""
    return f"{float(value):.6g}"


def picojoules(value: Any) -> str:
    """An energy in pJ."""
    return f"{float(value):,.3f}"
