"""Where the energy of a sweep's points goes: stacked bars by level, by activity and by tensor."""

import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .figures import COLORS, GRAY, HATCHES
from .sweep_panels import mark_evenly, name_bars, set_title, unit_of
from .sweep_points import Axis, Points, is_log, number_text

if TYPE_CHECKING:
    from xarray import Dataset

BREAKDOWNS = {
    "level": ("energy_pj_by_activity", "energy_pj_by_tensor"),
    "activity": ("energy_pj_by_activity",),
    "tensor": ("energy_pj_by_tensor",),
}
"""Dimension of the parts -> the variables that tell them, the first that the dataset has."""
COMPUTE, COMPUTE_ENERGY = "compute", "compute_energy_pj"
"""A part beside levels and activities: the compute units. No tensor has a share of it."""
MAX_PARTS = 7


def has_breakdown(dataset: "Dataset") -> bool:
    return any(name in dataset for names in BREAKDOWNS.values() for name in names)


def energy_plot(dataset: "Dataset", points: Points, most: int) -> Callable[[Any], None]:
    """At most `most` bars over the first axis, each the lowest valid EDP along the others that a designer chooses."""
    first = next((axis for axis in points.axes if len(axis) > 1), None)
    for axis in points.axes:
        if axis is not first:
            points = points.reduced(axis, 1)
    kept = np.flatnonzero(points.valid)
    notes = points.notes
    if len(kept) > most:
        notes = (*notes, f"{most} of {len(kept):,} {first.name if first else 'points'}")
        kept = kept[np.linspace(0, len(kept) - 1, most).round().astype(int)]
    index = points.index.reshape(-1)[kept]
    totals = points.quantities["energy_pj"].reshape(-1)[kept]
    parts = {dim: found for dim, names in BREAKDOWNS.items() if (found := _parts(dataset, dim, names, index))}
    texts = [first.texts[i] if first else "" for i in kept]
    design = str(dataset.attrs.get("design", ""))
    return partial(_draw, parts=parts, totals=totals, texts=texts, axis=first, design=design, notes=notes)


def _parts(dataset: "Dataset", dim: str, names: tuple[str, ...], index: np.ndarray) -> Mapping[str, np.ndarray]:
    """Energy of each part [pJ], shape `(bar,)`, the largest first, small ones together; nothing where no variable
    tells it."""
    name = next((name for name in names if name in dataset), None)
    if name is None:
        return {}
    table = _at(dataset, name, dim, index)
    labels = [str(label) for label in dataset[dim].values]
    if dim != "tensor" and COMPUTE_ENERGY in dataset:
        table = np.concatenate([table, _at(dataset, COMPUTE_ENERGY, None, index)])
        labels.append(COMPUTE)
    order = [i for i in np.argsort(-table.sum(1), kind="stable") if table[i].any()]
    parts = {labels[i]: table[i] for i in order[:MAX_PARTS]}
    if rest := order[MAX_PARTS:]:
        parts[labels[rest[0]] if len(rest) == 1 else f"{len(rest)} others"] = table[rest].sum(0)
    return parts


def _at(dataset: "Dataset", name: str, dim: str | None, index: np.ndarray) -> np.ndarray:
    """A variable at some points of the sweep, summed over all but `dim`: shape `(dim, bar)`, `(1, bar)` for None."""
    dims = [str(d) for d in dataset["cycles"].dims]
    places = np.unravel_index(index, [dataset.sizes[d] for d in dims]) if dims else ()
    rows = []
    for place in zip(*places, strict=True) if dims else [()]:
        at = {d: int(i) for d, i in zip(dims, place, strict=True) if d in dataset[name].dims}
        point = dataset[name].isel(at)
        rows.append(np.atleast_1d(point.sum([d for d in point.dims if d != dim]).values))
    return np.asarray(rows, float).T


def _draw(
    figure: Any,
    parts: Mapping[str, Mapping[str, np.ndarray]],
    totals: np.ndarray,
    texts: list[str],
    axis: Axis | None,
    design: str,
    notes: tuple[str, ...],
) -> None:
    """Shares of all energy in percent where one bar would hide beside another."""
    figure.set_size_inches(max(6.0, 2.6 + 0.6 * len(texts)), 2.3 * len(parts) + 0.7)
    panels = np.ravel(figure.subplots(len(parts), 1, sharex=True))
    as_shares = is_log(totals)
    scale, label = unit_of("energy_pj", totals)
    at = np.arange(len(texts))
    for panel, (dim, stacks) in zip(panels, parts.items(), strict=True):
        bottom = np.zeros(len(texts))
        for i, (name, part) in enumerate(stacks.items()):
            height = 100 * part / totals if as_shares else part / scale
            color = GRAY if i == MAX_PARTS else COLORS[i]
            panel.bar(
                at, height, 0.75, bottom, label=name, color=color, hatch=HATCHES[i], edgecolor="white", lw=0,
            )  # fmt: skip
            bottom = bottom + height
        panel.set_ylabel("share of energy [%]" if as_shares else label)
        mark_evenly(panel.yaxis)
        panel.grid(axis="y", alpha=0.3)
        handles, labels = panel.get_legend_handles_labels()
        panel.legend(
            handles[::-1], labels[::-1], title=dim, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False,
            fontsize=9, handleheight=1.4,
        )  # fmt: skip
        if as_shares:
            panel.set_ylim(0, 100)
    if as_shares:
        top = [number_text(float(f"{total / scale:.3g}")) for total in totals]
        for place, text in zip(at, top, strict=True):
            panels[0].annotate(text, (place, 100), (0, 3), textcoords="offset points", ha="center", fontsize=8)
        panels[0].set_title(f"above the bars: {label}", fontsize=9, pad=16, loc="left")
    name_bars(panels[-1], texts, 0.55)
    if axis:
        panels[-1].set_xlabel(textwrap.fill(axis.label, 60))
    set_title(figure, design, notes)
