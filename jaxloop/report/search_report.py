"""A search on the screen, as a log, and as a figure."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ..spec.mapping import LevelNest, LoopNest
from .figures import BLUE, COLORS, render

_UNITS = {"edp": "J cycle", "ed2p": "J cycle^2", "energy_pj": "pJ", "energy": "pJ", "cycles": "cycles"}


def nest_line(nest: LoopNest) -> str:
    """A nest in one line, outermost level first: `DRAM[A B Z] M8 K4 - Buffer[A B] N4X M2Y K16`; tensors that a level
    stores in brackets, loops of bound 1 left out, outermost first."""
    return " - ".join(_level_text(level) for level in reversed(nest.levels))


def _level_text(level: LevelNest) -> str:
    loops = [f"{loop.rank}{loop.bound}" for loop in reversed(level.temporal) if loop.bound > 1]
    for axis, group in (("Y", level.spatial_y), ("X", level.spatial_x)):
        loops += [f"{loop.rank}{loop.bound}{axis}" for loop in reversed(group) if loop.bound > 1]
    return f"{level.level}[{' '.join(level.keep)}]" + "".join(f" {loop}" for loop in loops)


def scores_text(names: Sequence[str], scores: Sequence[float]) -> str:
    """`edp 1.234e+09 pJ cycle`"""
    parts = [f"{name} {score:.6g} {_UNITS.get(name, '')}".rstrip() for name, score in zip(names, scores, strict=True)]
    return ", ".join(parts)


def print_failures(
    reasons: dict[str, int], levels: dict[tuple[str, str], int], nearest: Sequence[str], evaluated: int
) -> None:
    """Why mappings were not valid: a table, and the one that came closest in words."""
    table = Table("reason", "where", "mappings", "share", title="why mappings are not valid", title_justify="left")
    for column in table.columns[2:]:
        column.justify = "right"
    for reason, count in reasons.items():
        table.add_row(reason, "", f"{count:,}", f"{count / max(evaluated, 1):.1%}")
    for (level, reason), count in levels.items():
        table.add_row(reason, level, f"{count:,}", f"{count / max(evaluated, 1):.1%}")
    console = Console(stderr=True)
    console.print(table)
    for reason in nearest:
        console.print(f"nearest miss: {reason}", highlight=False, markup=False)


def history_figure(histories: dict[str, dict[str, Any]], metric: str) -> Callable[[Any], None]:
    """The best so far against evaluations, both logarithmic; a step per improvement.

    **Arguments:** `histories`: by name, `evaluations`, `scores` [improvement, metric] and `evaluated` in all.
    """

    def draw(figure: Any) -> None:
        figure.set_size_inches(6.4, 3.8)
        panel = figure.subplots()
        for number, (name, history) in enumerate(histories.items()):
            counts = np.append(history["evaluations"], history["evaluated"])
            best = np.append(history["scores"][:, 0], history["scores"][-1:, 0])
            color = COLORS[number % len(COLORS)] if len(histories) > 1 else BLUE
            panel.step(counts, best, where="post", label=name, color=color, marker="o", markersize=3)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("evaluations")
        panel.set_ylabel(f"best {metric} [{_UNITS[metric]}]" if metric in _UNITS else f"best {metric}")
        panel.grid(alpha=0.3, which="both")
        if len(histories) > 1:
            panel.legend(frameon=False)

    return draw


def history_files(histories: dict[str, dict[str, Any]], metric: str) -> dict[str, bytes]:
    """`{"png": ..., "svg": ...}`"""
    return render(history_figure(histories, metric), "--plot")
