"""`python -m benchmarks.throughput [--json FILE]`: evaluations per second of random valid mappings.

Sustained: mappings lie in host memory, results (cycles, energy, status) arrive there. Compilation is timed apart. The
closed form alone (links not corrected) is timed beside the whole, to show what the enumeration of links costs.
"""

import argparse
import json
import os
import platform
import statistics
import time
from importlib.metadata import version
from typing import Any
from unittest import mock

import jax
import numpy as np

import jaxloop as jl
from jaxloop.run import batch

from .cases import Case, cases, valid_mappings

FIELDS = ("cycles", "energy_pj", "status")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "numpy": np.__version__,
        "load": round(os.getloadavg()[0], 2),
    }


def measure(case: Case, count: int, seconds: float) -> dict[str, Any]:
    mappings, share = valid_mappings(case.design, count, whole=case.whole)
    start = time.perf_counter()
    first = _evaluate(case, mappings, (*FIELDS, "link_transfers"))
    compile_seconds = time.perf_counter() - start
    with mock.patch.object(batch, "correct_links", lambda *_: None):
        unsure = _evaluate(case, mappings, ("needs_enumeration",)).needs_enumeration
        closed = _rates(case, mappings, seconds / 2)
    rates = _rates(case, mappings, seconds)
    return {
        "case": case.name,
        "dtype": np.dtype(case.dtype).name,
        "valid_share_of_draws": share,
        "distinct_mappings": int(min(count, len(first.cycles))),
        "first_call_seconds": compile_seconds,
        "median_per_second": statistics.median(rates),
        "best_per_second": max(rates),
        "closed_form_median_per_second": statistics.median(closed),
        "lanes_enumerated": float(np.mean(unsure)),
        "lanes_with_links": float(np.mean((first.link_transfers > 0).any(axis=(1, 2)))),
    }


def _evaluate(case: Case, mappings: jl.Mapping, fields: tuple[str, ...]) -> jl.Evaluation:
    return jl.evaluate(case.design, mappings=mappings, fields=fields, conventions=case.conventions, dtype=case.dtype)


def _rates(case: Case, mappings: jl.Mapping, seconds: float) -> list[float]:
    """Evaluations per second of repeated calls over `seconds`, after one warming call."""
    _evaluate(case, mappings, FIELDS)
    rates, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        result = _evaluate(case, mappings, FIELDS)
        rates.append(len(result.cycles) / (time.perf_counter() - start))
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the record to this file")
    parser.add_argument("--count", type=int, default=32768, help="mappings per call")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of measurement per case")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    options = parser.parse_args()
    chosen = [case for case in cases() if options.only in case.name]
    record = {"machine": machine(), "results": [measure(c, options.count, options.seconds) for c in chosen]}
    print(json.dumps(record, indent=2))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(record, file, indent=2)


if __name__ == "__main__":
    main()
