"""`python -m benchmarks.certificate --out FILE.zarr [--json FILE]`: the optimum of a space of 110 million mappings.

A sparse matrix multiplication of 144 x 128 x 128 on the three levels of `cases.SPARSE`, coordinate lists and skipping,
bypass free: all 110,475,392 mappings, streamed by `jaxloop.sweep` with a reduction, so that nothing but the best ones
and a histogram is kept; interrupted, the same command goes on. Then each method's result with 10,000 evaluations
against it.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import jaxloop as jl

from .cases import SPARSE
from .throughput import machine

SIZES = {"M": 144, "N": 128, "K": 128}
METHODS = ("random", "population", "gradient")
BUDGET = 10**4


def design(sizes: dict[str, int] = SIZES) -> Any:
    """Without a mapping of its own."""
    texts = {name: text for name, text in SPARSE.items() if name != "mapping.yaml"}
    for rank, size in sizes.items():
        texts["problem.yaml"] = texts["problem.yaml"].replace(f"    {rank}: 128", f"    {rank}: {size}")
    return jl.loads(texts)


def certify(out: Path | None, sizes: dict[str, int], seeds: int) -> dict[str, Any]:
    """The optimum by energy-delay product, how rare near-optimal mappings are, and what the methods reach."""
    problem = design(sizes)
    space = jl.MapSpace(problem)
    reduce = {"best": jl.Best("edp", k=10), "histogram": jl.Histogram("edp", "logspace(1e-4,1e6,1001)")}
    start = time.perf_counter()
    found = jl.sweep(problem, {}, mappings=space, reduce=reduce, out=out, progress=True)
    seconds = time.perf_counter() - start
    best = found["best"]
    optimum = float(best["edp"][0])
    counts = found["histogram"]["count"].values
    record: dict[str, Any] = {
        "sizes": sizes,
        "mappings": space.size,
        "seconds": seconds,
        "valid": int(counts.sum() + found["histogram"]["below"] + found["histogram"]["above"]),
        "edp": optimum,
        "number": int(best["mapping"][0]),
        "equally_good_of_ten": int((best["edp"] == optimum).sum()),
        "methods": {},
    }
    for method in METHODS:
        results = [jl.search(problem, space, "edp", method=method, budget=BUDGET, seed=seed) for seed in range(seeds)]
        ratios = np.array([float(result.scores[0]) / optimum for result in results])
        assert (ratios >= 1.0 - 1e-12).all(), "a method beat the optimum: the enumeration is wrong"
        record["methods"][method] = {
            "median": float(np.median(ratios)),
            "worst": float(ratios.max()),
            "reached": int((ratios <= 1.0 + 1e-12).sum()),
            "seeds": seeds,
        }
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the reductions are kept")
    parser.add_argument("--json", type=Path, help="write the record to this file")
    parser.add_argument("--small", action="store_true", help="a space of 2 million mappings")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    sizes = {"M": 16, "N": 16, "K": 32} if options.small else SIZES
    record = {"machine": machine(), **certify(options.out, sizes, options.seeds)}
    print(json.dumps(record, indent=2))
    if options.json:
        options.json.write_text(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
