"""The figures of the paper's results: each function fills an empty matplotlib `Figure`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..report.figures import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, render as rendered
from .results import Row

PALETTE = (GRAY, ORANGE, BLUE, SKY, GREEN, PURPLE)
HATCHES = ("", "//", "", "..", "\\\\", "xx")


def render(draw: Any) -> dict[str, bytes]:
    """As `report.figures.render`.

    **Raises:** `SpecError` where matplotlib is not installed.
    """
    return rendered(draw, "--out", "pip install 'jaxloop[reproduce]', or leave --out away")


def fig1(
    figure: Any,
    densities: Sequence[float],
    rows: Mapping[tuple[str, str], tuple[Row, Row]],
    formats: Sequence[str],
    names: Sequence[str],
    crossings: Mapping[str, float],
) -> None:
    """Cycles and energy over density, both axes logarithmic."""
    figure.set_size_inches(10, 4.2)
    panels = figure.subplots(1, 2)
    quantities = (("cycles", "cycles", 1.0), ("energy", "energy [uJ]", 1e6))
    for i, (panel, (quantity, label, scale)) in enumerate(zip(panels, quantities, strict=True)):
        for kind, color, mark in zip(formats, (BLUE, ORANGE), ("o", "s"), strict=True):
            points = [rows[kind, name][i] for name in names]
            title = kind.replace("_", " ")
            panel.plot(densities, [p.ours / scale for p in points], color=color, label=f"{title}, jaxloop")
            reference = [p.reference / scale for p in points]
            panel.plot(densities, reference, mark, color=color, mfc="none", ms=7, label=f"{title}, artifact")
        panel.axvline(crossings[quantity], color=GRAY, ls=":")
        panel.annotate(
            f"equal at {crossings[quantity]:.2g}", (crossings[quantity], 0.03), (-5, 0), ha="right", color="#555555",
            xycoords=("data", "axes fraction"), textcoords="offset points",
        )  # fmt: skip
        panel.set(xscale="log", yscale="log", xlabel="density of both operands", ylabel=label)
        panel.set_xticks(densities, names, rotation=45)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[1].legend(frameon=False, fontsize=9)


def fig12(
    figure: Any, truth: Mapping[str, float], uniform: Mapping[str, float], real: Mapping[str, float], is_real: bool
) -> None:
    """Cycles on a logarithmic axis as in the paper, and the errors that it hides."""
    figure.set_size_inches(9, 6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    layers = list(uniform)
    kind = "jaxloop, real tensors" if is_real else "jaxloop, one random draw"
    series = (("simulated", truth, GRAY, ""), ("jaxloop, uniform", uniform, BLUE, ""), (kind, real, ORANGE, "//"))
    _bars(upper, layers, [(n, [v[x] for x in layers], c, h) for n, v, c, h in series])
    upper.set(yscale="log", ylabel="cycles", ylim=(1e5, 4e6))
    upper.legend(frameon=False, ncols=3, loc="upper center")
    errors = [(n, [100.0 * (v[x] / truth[x] - 1.0) for x in layers], c, h) for n, v, c, h in series[1:]]
    for bars in _bars(lower, layers, errors, places=3, first=1):
        lower.bar_label(bars, fmt="%.1f", fontsize=8, padding=2)
    lower.margins(y=0.15)
    lower.axhline(0.0, color="black", lw=0.8)
    lower.set(ylabel="error against\nsimulated cycles [%]", xlabel="layer")


def fig13(figure: Any, ours: Mapping[str, float], labels: Mapping[str, float], measured: Mapping[str, float]) -> None:
    """Eight groups of bars, with numbers on ours."""
    figure.set_size_inches(9, 4)
    panel = figure.subplots()
    pairs = list(ours)
    series = (("DSTC paper", measured, GRAY, ""), ("artifact", labels, ORANGE, "//"), ("jaxloop", ours, BLUE, ""))
    bars = _bars(panel, pairs, [(n, [v[x] for x in pairs], c, h) for n, v, c, h in series])
    panel.bar_label(bars[-1], fmt="%.2f", fontsize=8, padding=2)
    panel.set_xticks(range(len(pairs)), [pair.replace("-B", "\nB ").replace("A", "A ") for pair in pairs])
    panel.set(xlabel="densities", ylabel="time, share of dense", ylim=(0, 1.05))
    panel.legend(frameon=False)


def fig15(
    figure: Any,
    ours: Mapping[tuple[str, str], tuple[float, float]],
    theirs: Mapping[tuple[str, str], tuple[float, float]],
    labels: Mapping[str, str],
    weights: Sequence[str],
) -> None:
    """Cycles and energy by share of nonzero weights, the artifact's as dashes across the bars."""
    figure.set_size_inches(10, 6.5)
    panels = figure.subplots(2, 1, sharex=True)
    for i, (panel, quantity) in enumerate(zip(panels, ("cycles", "energy"), strict=True)):
        series = [
            (label, [ours[design, w][i] for w in weights], color, hatch)
            for (design, label), color, hatch in zip(labels.items(), PALETTE, HATCHES, strict=True)
        ]
        for bars, design in zip(_bars(panel, weights, series), labels, strict=True):
            for bar, w in zip(bars, weights, strict=True):
                left, height = bar.get_x(), theirs[design, w][i]
                panel.hlines(height, left - 0.01, left + bar.get_width() + 0.01, color="black", lw=1.6)
        panel.set_ylabel(f"{quantity},\nshare of dense TC")
        panel.grid(axis="y", alpha=0.3)
    panels[0].hlines([], 0, 0, color="black", lw=1.6, label="artifact")
    panels[0].set_ylim(0, 1.45)
    panels[0].legend(frameon=False, ncols=4, fontsize=9, loc="upper center")
    panels[1].set_xlabel("share of nonzero weights")


def table7(
    figure: Any, layers: Sequence[str], printed: Sequence[float], ratios: Sequence[float], bare: Sequence[float]
) -> None:
    """Compression ratios of five layers."""
    figure.set_size_inches(8, 3.8)
    panel = figure.subplots()
    series = [
        ("paper", list(printed), GRAY, ""),
        ("jaxloop", list(ratios), BLUE, ""),
        ("jaxloop, without the share of metadata", list(bare), SKY, "//"),
    ]
    for bars in _bars(panel, layers, series):
        panel.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
    panel.set(xlabel="layer of AlexNet", ylabel="DRAM traffic, dense / compressed", ylim=(0, 2.6))
    panel.legend(frameon=False, ncols=3, loc="upper center", fontsize=9)


Series = tuple[str, Sequence[float], str, str]
"""Label, heights, color, hatching."""


def _bars(panel: Any, groups: Sequence[str], series: Sequence[Series], places: int = 0, first: int = 0) -> list[Any]:
    """Groups of bars side by side. `places`: bars that a group has room for; `first`: place of the first of them."""
    places = places or len(series)
    width, centers = 0.84 / places, np.arange(len(groups))
    drawn = []
    for i, (label, heights, color, hatch) in enumerate(series):
        left = centers + (first + i - (places - 1) / 2) * width
        drawn.append(
            panel.bar(left, heights, 0.94 * width, label=label, color=color, hatch=hatch, edgecolor="white", lw=0)
        )
    panel.set_xticks(centers, groups)
    return drawn
