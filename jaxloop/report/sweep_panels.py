"""What the plots of a sweep share: units, scales, ticks, titles and legends of a panel."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from .numbers import energy_unit
from .sweep_points import Axis, is_log, number_text

NAMES = {"cycles": "cycles", "energy_pj": "energy", "edp": "EDP", "area_um2": "area"}
"""Quantity -> what it is called on an axis."""
MARKED_VALUES = 9
UM2_PER_MM2, LEAST_IN_MM2 = 1e6, 1e4


def unit_of(quantity: str, values: np.ndarray) -> tuple[float, str]:
    """What the values are divided by to read best, and the label of their axis, with the unit."""
    finite = values[np.isfinite(values) & (values > 0)]
    largest = float(finite.max()) if finite.size else 1.0
    middle = float(np.sqrt(finite.min()) * np.sqrt(finite.max())) if is_log(values) else largest
    name = NAMES[quantity]
    if quantity == "cycles":
        return 1.0, name
    if quantity == "area_um2":
        return (UM2_PER_MM2, f"{name} [mm²]") if middle >= LEAST_IN_MM2 else (1.0, f"{name} [µm²]")
    scale, unit = energy_unit(middle)
    return scale, f"{name} [{unit.replace('u', 'µ')}{'·cycle' if quantity == 'edp' else ''}]"


def scale_values(panel: Any, which: str, quantity: str, values: np.ndarray) -> float:
    """Gives axis `which` ("x" or "y") the label and the scale of a quantity.

    **Returns:** what the values are to be divided by.
    """
    scale, label = unit_of(quantity, values)
    panel.set(**{f"{which}label": label})
    if is_log(values):
        panel.set(**{f"{which}scale": "log"})
        finite = values[np.isfinite(values)]
        mark_decades(getattr(panel, f"{which}axis"), float(finite.max() / finite.min()))
    else:
        mark_evenly(getattr(panel, f"{which}axis"))
    return scale


def mark_axis(panel: Any, which: str, axis: Axis) -> None:
    """Label, scale and ticks of an axis of the sweep: at its own values, where they are few."""
    ruler = getattr(panel, f"{which}axis")
    panel.set(**{f"{which}label": textwrap.fill(axis.label, 36), f"{which}scale": "log" if axis.log else "linear"})
    if len(axis) <= MARKED_VALUES and (not axis.log or not (axis.values % 1).any()):
        places = np.log(axis.values) if axis.log else axis.values
        longest = max(map(len, axis.texts))
        kept = _apart(places, 0.02 + 0.03 * longest if which == "x" else 0.07)
        ruler.set_ticks(axis.values[kept], [axis.texts[i] for i in kept])
        ruler.set_ticks([], minor=True)
    elif axis.log:
        mark_decades(ruler, float(axis.values.max() / axis.values.min()))
    else:
        mark_evenly(ruler)


def mark_decades(ruler: Any, ratio: float) -> None:
    """Ticks of a logarithmic axis, the more the less it spans."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    across = ruler.axis_name == "x"  # where texts stand side by side and need more room
    subs = (1.0, 2.0, 5.0) if ratio < (100 if across else 300) else (1.0,)
    ruler.set_major_locator(LogLocator(subs=subs, numticks=5 if across else 12))
    ruler.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    ruler.set_minor_formatter(NullFormatter())


def mark_evenly(ruler: Any, most: int = 6) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ruler.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))
    ruler.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))


def legend_below(figure: Any, panel: Any, title: str = "", first: Sequence[Any] = ()) -> None:
    """One legend for all panels, below them, of what this one shows. `first`: marks that no panel has."""
    handles, labels = panel.get_legend_handles_labels()
    handles, labels = [*handles, *first], [*labels, *(mark.get_label() for mark in first)]
    if handles:
        room = int(11 * figure.get_figwidth()) // (max(map(len, labels)) + 7)
        columns = max(1, min(room, len(handles), 4 if len(handles) > 5 else 5))
        rows = -(-len(handles) // columns)
        figure.set_figheight(figure.get_figheight() + 0.19 * (rows - 1))
        figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9, title_fontsize=9,
            title=title or None, handlelength=2.8,
        )  # fmt: skip


def hollow_mark() -> Any:
    """For the legend: cells whose points are not valid."""
    from matplotlib.patches import Patch

    return Patch(**HOLLOW, label="not valid")


HOLLOW: dict[str, Any] = {"facecolor": "#EEEEEE", "edgecolor": "#BBBBBB", "hatch": "////"}


def set_title(figure: Any, design: str, notes: Sequence[str]) -> None:
    """`design (best of 12 mappings)` above all panels."""
    noted = f"({'; '.join(notes)})" if notes else ""
    figure.suptitle("\n".join(textwrap.wrap(f"{design} {noted}".strip(), int(9 * figure.get_figwidth()))))


def name_bars(panel: Any, texts: Sequence[str], room: float) -> None:
    """Texts below the bars 0, 1, ..., slanted where they are wider than their `room` [inch]."""
    inches_per_character = 0.085
    slanted = max(map(len, texts)) * inches_per_character > room
    panel.set_xticks(range(len(texts)), texts)
    if slanted:
        panel.tick_params(axis="x", rotation=45)
        for label in panel.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    panel.set_xlim(min(-0.6, 0.5 * len(texts) - 2), max(len(texts) - 0.4, 0.5 * len(texts) + 1))


def _apart(places: np.ndarray, share: float) -> list[int]:
    """The places, from the lowest up, that lie at least this share of the span from the one before."""
    order = [int(i) for i in np.argsort(places)]
    least = share * (places.max() - places.min())
    kept = order[:1]
    for i in order[1:]:
        if places[i] - places[kept[-1]] >= least:
            kept.append(i)
    return kept
