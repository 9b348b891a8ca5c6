"""`python -m benchmarks.search_quality [--only TEXT] [--seeds N] [--json FILE] [--plot DIR]`: what each search method
reaches with few evaluations, against the best of a million random mappings.

Evaluations of the relaxed model count like those of the exact one.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import jaxloop as jl
from jaxloop.report.figures import COLORS, LINES, render
from jaxloop.searches import methods
from jaxloop.searches.gradient import Gradient

from .search_problems import Problem, problems
from .throughput import machine

BUDGET, REFERENCE = 10**4, 10**6
NEAR = 1.01
"""Within so much of the best of the reference counts as reached."""

RANDOM, POPULATION, GRADIENT = "random", "population", "gradient"
WALK, DESCENT = "walk alone", "descent alone"
METHODS = (RANDOM, POPULATION, GRADIENT, WALK, DESCENT)

PARTS: dict[str, Callable[..., Any]] = {
    WALK: lambda space, seed, objectives: Gradient(space, seed, steps=0),
    DESCENT: lambda space, seed, objectives: Gradient(space, seed, stale=0),
}
"""The gradient method without its descent, and with one generation of steps only after each descent."""

Curve = list[tuple[int, float]]
"""Evaluations and the best so far, after each batch."""


def curve_of(problem: Problem, space: jl.MapSpace, method: str, budget: int, seed: int) -> Curve:
    found: Curve = []

    def tell(search: Any) -> None:
        found.append((search.spent, float(search.tally.best[0])))

    with mock.patch.dict(methods.METHODS, PARTS):
        jl.search(
            problem.design,
            space,
            "edp",
            method=method,
            budget=budget,
            seed=seed,
            conventions=problem.conventions,
            tell=tell,
        )
    return found


def measure(problem: Problem, seeds: int) -> dict[str, Any]:
    """The record of a problem: per method the curves, final values and evaluations until near the reference."""
    space = jl.MapSpace(problem.design)
    start = time.perf_counter()
    reference = curve_of(problem, space, RANDOM, REFERENCE, seeds)
    record: dict[str, Any] = {
        "problem": problem.name,
        "group": problem.group,
        "space": str(space.size),
        "reference": reference[-1][1],
        "reference_seconds": time.perf_counter() - start,
        "methods": {},
    }
    for method in METHODS:
        start = time.perf_counter()
        curves = [curve_of(problem, space, method, BUDGET, seed) for seed in range(seeds)]
        record["methods"][method] = {
            "curves": curves,
            "seconds": (time.perf_counter() - start) / seeds,
        } | summary(curves, reference[-1][1])
    return record


def summary(curves: list[Curve], reference: float) -> dict[str, Any]:
    last = np.asarray([curve[-1][1] for curve in curves]) / reference
    needed = [next((count for count, best in curve if best <= NEAR * reference), np.inf) for curve in curves]
    return {
        "median": float(np.median(last)),
        "worst": float(last.max()),
        "best": float(last.min()),
        "reached": int(np.isfinite(needed).sum()),
        "evaluations": float(np.median(needed)),
    }


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: the median of the seeds' least EDP as a multiple of the reference's, and in parentheses the median
    number of evaluations until it was within 1 % of it."""
    lines = [
        "| problem | mappings in the space | " + " | ".join(METHODS) + " |",
        "|---|---|" + "---|" * len(METHODS),
    ]
    for record in records:
        cells = [record["problem"], f"{float(record['space']):.1e}"]
        for method in METHODS:
            found = record["methods"][method]
            needed = found["evaluations"]
            cells.append(f"{found['median']:.3g} ({f'{needed:,.0f}' if np.isfinite(needed) else '-'})")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw_group(figure: Any, records: list[dict[str, Any]]) -> None:
    """Best so far against evaluations: medians of the seeds and their quartiles."""
    at = np.unique(np.geomspace(100, BUDGET, 120).astype(int))
    columns = min(2, len(records))
    axes = figure.subplots(-(-len(records) // columns), columns, squeeze=False)
    figure.set_size_inches(5.2 * columns, 3.4 * len(axes))
    for record, axis in zip(records, axes.flat, strict=False):
        for place, method in enumerate(METHODS):
            values = np.asarray([_at(curve, at) for curve in record["methods"][method]["curves"]])
            ratios = values / record["reference"]
            low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75), axis=0, method="nearest")
            there = np.isfinite(middle)
            color, line = COLORS[place], LINES[place % len(LINES)]
            axis.plot(at[there], middle[there], line, color=color, label=method, linewidth=1.6)
            both = there & np.isfinite(high)
            axis.fill_between(at[both], low[both], high[both], color=color, alpha=0.15, linewidth=0)
        axis.axhline(1.0, color="black", linewidth=0.6)
        axis.set(xscale="log", yscale="log", title=record["problem"], xlabel="evaluations")
        axis.set_ylabel(f"least EDP / that of {REFERENCE:,} random")
        axis.title.set_size(10)
    for axis in axes.flat[len(records) :]:
        axis.set_axis_off()
    axes.flat[0].legend(fontsize=8, frameon=False)


def _at(curve: Curve, counts: np.ndarray) -> np.ndarray:
    """The best so far after these numbers of evaluations."""
    spent, best = np.asarray(curve).T
    place = np.searchsorted(spent, counts, side="right") - 1
    return np.where(place >= 0, best[np.maximum(place, 0)], np.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="problems whose name holds this text")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", type=Path, help="adds the records to this file as they come")
    parser.add_argument("--plot", type=Path, help="folder for figures; of the records of --json, if there is one")
    options = parser.parse_args()
    records: dict[str, Any] = {}
    if options.json and options.json.exists():
        records = {record["problem"]: record for record in json.loads(options.json.read_text())["records"]}
    for problem in problems():
        if options.only in problem.name and problem.name not in records:
            record = records[problem.name] = measure(problem, options.seeds)
            print(table([record]).splitlines()[-1], f"{record['reference_seconds']:.0f} s", flush=True)
            if options.json:
                told = {"machine": machine(), "seeds": options.seeds, "records": list(records.values())}
                options.json.write_text(json.dumps(told))
    chosen = [records[problem.name] for problem in problems() if problem.name in records]
    print(table(chosen))
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        for group in dict.fromkeys(record["group"] for record in chosen):
            mine = [record for record in chosen if record["group"] == group]
            for kind, data in render(lambda figure, mine=mine: draw_group(figure, mine)).items():
                (options.plot / f"search-{group}.{kind}").write_bytes(data)


if __name__ == "__main__":
    main()
