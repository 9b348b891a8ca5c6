"""Lines of an explanation: sections with their source, aligned columns, numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

SOURCES = {
    "tile": "docs/model.md 1",
    "density": "docs/model.md 12",
    "occupancy": "docs/model.md 15 and 21",
    "format": "docs/model.md 13 and 14",
    "saf": "docs/model.md 16 and 17",
    "words": "docs/model.md 7 and 18",
    "metadata": "docs/model.md 18",
    "energy": "docs/model.md 9 and 20",
    "computes": "docs/model.md 19",
    "capacity": "docs/model.md 11 and 21",
    "time": "docs/model.md 10 and 20",
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
