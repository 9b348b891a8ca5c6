"""`python -m benchmarks.search_speed [--json FILE]`: time to what the reference finds in ten minutes.

The reference's mapper, on one thread, evaluates about 10 sparse and 630 dense mappings a second: 6,000 and 380,000 in
ten minutes. What so many uniform draws find, the median of several seeds, is the target; then the time, everything
compiled, in which each method first has a mapping as good.
"""

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import jaxloop as jl

from .cases import MATMUL
from .throughput import machine

REFERENCE_SECONDS = 600.0
CASES = {
    "Fig. 1, coordinate list": ("coordinate_list:matmul-0.1", 6_000),
    "Fig. 1, bitmask": ("bitmask:matmul-0.1", 6_000),
    "dense matmul 1024^3": (None, 380_000),
}
METHODS = ("random", "population", "gradient")
SEEDS = range(5)


def measure(name: str, evaluations: int) -> dict[str, Any]:
    shipped = CASES[name][0]
    design = jl.loads(MATMUL) if shipped is None else jl.load(shipped)
    space = jl.MapSpace(design)
    found = [jl.search(design, space, "edp", method="random", budget=evaluations, seed=seed) for seed in SEEDS]
    target = statistics.median(float(result.scores[0]) for result in found)
    record: dict[str, Any] = {
        "case": name,
        "space": space.size,
        "evaluations_of_reference": evaluations,
        "target": target,
    }
    for method in METHODS:
        jl.search(design, space, "edp", method=method, budget=evaluations, seed=99)  # compiles
        runs = [_until(design, space, method, evaluations, target, seed + 100) for seed in SEEDS]
        seconds = statistics.median(run["seconds"] for run in runs)
        record[method] = {
            "median_seconds": seconds,
            "median_evaluations": statistics.median(run["evaluations"] for run in runs),
            "reached": sum(run["reached"] for run in runs),
            "times_faster": REFERENCE_SECONDS / seconds,
        }
    return record


def _until(design: Any, space: jl.MapSpace, method: str, evaluations: int, target: float, seed: int) -> dict[str, Any]:
    """Time and evaluations until the target, at most ten times those of the reference."""

    def tell(search: Any) -> None:
        if search.tally.best[0] <= target:
            raise KeyboardInterrupt  # ends the search with what it has

    start = time.perf_counter()
    budget = 10 * evaluations
    result = jl.search(design, space, "edp", method=method, budget=budget, seed=seed, tell=tell, batch=1024)
    seconds = time.perf_counter() - start
    reached = bool(result.scores[0] <= target)
    return {"seconds": seconds, "evaluations": result.evaluated + result.relaxed, "reached": reached}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the record to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    record = {"machine": machine(), "results": [measure(name, count) for name, (_, count) in CASES.items()]}
    print(json.dumps(record, indent=2))
    if options.json:
        options.json.write_text(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
