"""The plots that a designer wants first of a sweep, chosen by what its dataset holds.

Points that are not valid are left out everywhere. A dimension of mappings is reduced first: of each set of designs
whose members differ in the mapping only, the valid point of lowest energy-delay product stands for all.
"""

import math
import textwrap
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .figures import BLACK, COLORS, LINES, MARKS, SKY, VERMILION, render
from .files import write_atomically
from .sweep_energy import energy_plot, has_breakdown
from .sweep_panels import (
    HOLLOW,
    hollow_mark,
    legend_below,
    mark_axis,
    mark_decades,
    mark_evenly,
    scale_values,
    set_title,
    unit_of,
)
from .sweep_points import MAPPING, Axis, Points, is_log, number_text, points_of

if TYPE_CHECKING:
    from xarray import Dataset

Draw = Callable[[Any], None]
"""Fills an empty matplotlib `Figure`."""
MAX_LINES, MAX_MAPS, MAX_BARS, MAX_OF_AN_AXIS, MAX_DOTS = 8, 4, 12, 4, 20_000


def plots_of(dataset: "Dataset") -> dict[str, Draw]:
    """Name -> a function that fills an empty matplotlib `Figure`; `report.figures.render` makes files of it.

    - `lines`: cycles, energy, energy-delay product, and the area where it varies, over the longest numeric axis; a line
      for each combination of the others (up to 8; longer axes are reduced to their best
      points, or to a few values of the workload's densities and ranks).
    - `map`: cycles and energy over the first two numeric axes.
    - `bars`: the same quantities where no axis is numeric.
    - `pareto`: energy against cycles of all valid points, mappings included; those that no other point beats in both.
    - `energy`: shares of levels, activities and tensors over the first axis, where the dataset has them.

    **Raises:** `SpecError` where the dataset is none of a sweep or no point of it is valid.
    """
    everything = points_of(dataset)
    points = everything.best([MAPPING])
    design = str(dataset.attrs.get("design", ""))
    numeric = [axis for axis in points.axes if axis.numeric and len(axis) > 1]
    plots: dict[str, Draw] = {}
    if numeric:
        longest = max(numeric, key=len)
        plots["lines"] = partial(_lines, points=_few(points, [longest], MAX_LINES), design=design)
    else:
        plots["bars"] = partial(_bars, points=points.ordered([]), design=design)
    if len(numeric) > 1:
        plots["map"] = partial(_map, points=_few(points, numeric[:2], MAX_MAPS), design=design)
    if everything.valid.sum() > 1:
        plots["pareto"] = partial(_pareto, points=everything, design=design)
    if has_breakdown(dataset):
        plots["energy"] = energy_plot(dataset, points, MAX_BARS)
    return plots


def write_plots(dataset: "Dataset", path: str | Path) -> list[Path]:
    """Writes all plots of a sweep as PNG and SVG: `path/lines.png` where `path` is a folder, else `path-lines.png`.

    All are drawn before the first is written; each appears when it is complete.

    **Returns:** the paths of the files.

    **Raises:** `SpecError` where matplotlib is not installed or there is nothing to draw; `OSError`.
    """
    target = Path(path)
    drawn = {name: render(draw) for name, draw in plots_of(dataset).items()}
    stem = target.with_suffix("") if target.suffix in (".png", ".svg") else target
    paths = []
    for name, files in drawn.items():
        for kind, content in files.items():
            file = target / f"{name}.{kind}" if target.is_dir() else stem.with_name(f"{stem.name}-{name}.{kind}")
            write_atomically(file, content)
            paths.append(file)
    return paths


def pareto_front(cycles: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Places of the points that no other point beats or equals in both, by growing cycles; one of equal points.

    **Arguments:** shape `(point,)`, finite.
    """
    order = np.lexsort((energy, cycles))
    lowest = np.minimum.accumulate(energy[order])
    better = np.ones(len(order), bool)
    better[1:] = lowest[1:] < lowest[:-1]
    return order[better]


def _few(points: Points, first: list[Axis], most: int) -> Points:
    """The named axes first, and so few combinations of the others that they can be told apart: the longest of them are
    reduced."""
    names = [axis.name for axis in first]
    while True:
        others = [axis for axis in points.axes if axis.name not in names and len(axis) > 1]
        if math.prod(map(len, others)) <= most:
            return points.ordered(names)
        longest = max(others, key=len)
        points = points.reduced(longest, MAX_OF_AN_AXIS if len(longest) > MAX_OF_AN_AXIS else 1)


def _combinations(axes: tuple[Axis, ...]) -> list[tuple[tuple[int, ...], str]]:
    """The places along the axes and their texts."""
    places = product(*(range(len(axis)) for axis in axes))
    return [(at, ", ".join(axis.texts[i] for axis, i in zip(axes, at, strict=True))) for at in places]


def _quantities(points: Points) -> list[str]:
    area = points.quantities.get("area_um2", np.zeros(1))
    varies = len(np.unique(area[np.isfinite(area)])) > 1
    return ["cycles", "energy_pj", "edp", *(["area_um2"] if varies else [])]


def _panels(figure: Any, names: list[str], height: float) -> list[Any]:
    rows, columns = (2, 2) if len(names) == 4 else (1, len(names))
    figure.set_size_inches(3.5 * columns if columns == 3 else 8.0, height * rows + 0.8)
    return list(np.ravel(figure.subplots(rows, columns)))


def _lines(figure: Any, points: Points, design: str) -> None:
    axis, *others = points.axes
    names = _quantities(points)
    order = np.argsort(axis.values)
    for panel, name in zip(_panels(figure, names, 3.0), names, strict=True):
        values = points.quantities[name]
        scale = scale_values(panel, "y", name, values)
        for i, (at, text) in enumerate(_combinations(tuple(others))):
            line = values[(slice(None), *at)][order] / scale
            if np.isfinite(line).any():
                panel.plot(
                    axis.values[order], line, label=text, color=COLORS[i], marker=MARKS[i], ls=LINES[i % len(LINES)],
                    lw=1.6, ms=5 if len(axis) <= 40 else 0, mec="white", mew=0.5,
                )  # fmt: skip
        mark_axis(panel, "x", axis)
        panel.grid(alpha=0.3)
    if others:
        legend_below(figure, panel, ", ".join(other.label for other in others))
    set_title(figure, design, points.notes)


def _bars(figure: Any, points: Points, design: str) -> None:
    """Side by side, so that long names have room; of many points those of lowest EDP."""
    names = _quantities(points)
    valid = [(at, text) for at, text in _combinations(points.axes) if points.valid[at]]
    best = np.argsort([points.quantities["edp"][at] for at, _ in valid], kind="stable")[:MAX_BARS]
    notes = [*points.notes, *([f"the best {MAX_BARS} of {len(valid):,}"] if len(valid) > MAX_BARS else [])]
    if points.axes:
        notes.append(f"rows: {', '.join(axis.label for axis in points.axes)}")
    shown = [valid[i] for i in sorted(best)]
    texts = [textwrap.fill(text or design, 48) for _, text in shown]
    rows = len(shown) * max(text.count("\n") + 1.5 for text in texts)
    figure.set_size_inches(2.6 * len(names) + 2.0, 0.2 * rows + 1.2)
    panels = np.ravel(figure.subplots(1, len(names), sharey=True))
    for panel, name in zip(panels, names, strict=True):
        scale, label = unit_of(name, points.quantities[name])
        widths = [points.quantities[name][at] / scale for at, _ in shown]
        drawn = panel.barh(range(len(shown)), widths, 0.7, color=COLORS[0], edgecolor="white", lw=0)
        panel.bar_label(drawn, [number_text(float(f"{width:.3g}")) for width in widths], fontsize=8, padding=2)
        mark_evenly(panel.xaxis, most=4)
        panel.set_xlabel(label)
        panel.margins(x=0.18)
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(shown)), texts)
    panels[0].invert_yaxis()
    set_title(figure, design, notes)


def _edges(axis: Axis) -> np.ndarray:
    """Borders of the cells around the points: halfway between neighbors, on a logarithmic axis by ratio."""
    values = np.log(axis.values) if axis.log else axis.values
    middle = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
    return np.exp(edges) if axis.log else edges


def _map(figure: Any, points: Points, design: str) -> None:
    from matplotlib.colors import LogNorm, Normalize

    across, up, *others = points.axes
    combinations = _combinations(tuple(others))
    count = len(combinations)
    figure.set_size_inches(*((9.0, 4.8) if count == 1 else (2.6 * count + 1.4, 6.2)))
    panels = figure.subplots(*((1, 2) if count == 1 else (2, count)), sharex=True, sharey=True)
    panels = np.reshape(panels, (2, count))
    edp = points.quantities["edp"]
    for row, name in zip(panels, ("cycles", "energy_pj"), strict=True):
        values = points.quantities[name]
        scale, label = unit_of(name, values)
        norm = (LogNorm if is_log(values) else Normalize)(np.nanmin(values) / scale, np.nanmax(values) / scale)
        mesh: Any = None
        for panel, (at, text) in zip(row, combinations, strict=True):
            here = (slice(None), slice(None), *at)
            panel.patch.set(**HOLLOW)
            cells = values[here].T / scale
            mesh = panel.pcolormesh(_edges(across), _edges(up), cells, norm=norm, cmap="viridis", rasterized=True)
            if np.isfinite(edp[here]).any():
                i, j = np.unravel_index(np.nanargmin(edp[here]), edp[here].shape)
                panel.plot(across.values[i], up.values[j], "*", ms=14, color=VERMILION, mec="white", label="lowest EDP")
            mark_axis(panel, "x", across)
            mark_axis(panel, "y", up)
            if panel in panels[0] and text:
                panel.set_title(text, fontsize=10)
            panel.label_outer()
        bar = figure.colorbar(mesh, ax=list(row), label=label, pad=0.02, location="top" if count == 1 else "right")
        ruler = bar.ax.xaxis if count == 1 else bar.ax.yaxis
        if is_log(values):
            mark_decades(ruler, float(np.nanmax(values) / np.nanmin(values)))
        else:
            mark_evenly(ruler)
    legend_below(figure, panels[0, 0], first=[] if points.valid.all() else [hollow_mark()])
    columns = [f"columns: {', '.join(other.label for other in others)}"] if others else []
    set_title(figure, design, [*points.notes, *columns])


def _pareto(figure: Any, points: Points, design: str) -> None:
    """The front is drawn as the border of what its points beat."""
    figure.set_size_inches(7.0, 5.0)
    panel = figure.subplots()
    valid = np.flatnonzero(points.valid)
    cycles, energy, edp = (points.quantities[n].reshape(-1)[valid] for n in ("cycles", "energy_pj", "edp"))
    front, best = pareto_front(cycles, energy), int(edp.argmin())
    x_scale, y_scale = scale_values(panel, "x", "cycles", cycles), scale_values(panel, "y", "energy_pj", energy)
    x, y = cycles / x_scale, energy / y_scale
    shown = np.arange(len(valid))
    if len(valid) > MAX_DOTS:
        shown = np.sort(np.random.default_rng(0).choice(len(valid), MAX_DOTS, replace=False))
    places = np.unravel_index(valid, points.index.shape)
    group = next((i for i, axis in enumerate(points.axes) if _can_be_colored(axis)), None)
    texts = ("valid points",) if group is None else points.axes[group].texts
    for i, text in enumerate(texts):
        mine = shown if group is None else shown[places[group][shown] == i]
        panel.plot(
            x[mine], y[mine], MARKS[i], ms=4.5 if len(shown) < 2000 else 3, mec="none", alpha=0.6, label=text,
            color=SKY if group is None else COLORS[i], rasterized=len(valid) > MAX_DOTS,
        )  # fmt: skip
    panel.plot(
        x[front], y[front], "-o", color=BLACK, ms=6, mfc="none", lw=1.3, drawstyle="steps-post",
        label=f"Pareto front ({len(front):,})",
    )  # fmt: skip
    panel.plot(x[best], y[best], "*", ms=15, color=VERMILION, mec="white", ls="none", label="lowest EDP")
    setting = ", ".join(f"{a.name} {a.texts[p[best]]}" for a, p in zip(points.axes, places, strict=True) if len(a) > 1)
    panel.set_title(textwrap.fill(f"lowest EDP: {setting}", 100), fontsize=9)
    panel.grid(alpha=0.3)
    legend_below(figure, panel, "" if group is None else points.axes[group].label)
    notes = [f"{len(valid):,} valid points" + (f", {MAX_DOTS:,} of them drawn" if len(shown) < len(valid) else "")]
    set_title(figure, design, notes)


def _can_be_colored(axis: Axis) -> bool:
    return not axis.numeric and axis.name != MAPPING and 1 < len(axis) < len(COLORS)
