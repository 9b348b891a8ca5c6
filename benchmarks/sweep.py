"""`python -m benchmarks.sweep [--json FILE]`: points per second and peak memory of whole sweeps, results written.

Each case is a sweep of Fig. 1's design over random valid mappings and densities into a Zarr group in a temporary
folder, in a process of its own, so that its peak memory is its own. The first sweep compiles; the second is measured.
Where JAX finds a GPU or a TPU the same cases run there.
"""

import argparse
import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxloop as jl
from jaxloop.lower import lower, lower_mapping
from jaxloop.run.grid import make_runner

from .cases import Case, cases, valid_mappings
from .throughput import machine

SIZES = (10**5, 10**6, 10**7)
DENSITIES = "logspace(0.01,1,{})"
OVER = ("density.A", "density.B")


def measure(case: Case, points: int, out: Path, keep: str) -> dict[str, Any]:
    """One sweep, after a small one that compiles."""
    densities = min(1000, points // 100)
    count = points // densities
    drawn, _ = valid_mappings(case.design, min(count, 10_000), whole=case.whole)
    number = len(drawn.temporal)
    mappings = jax.tree.map(lambda leaf: leaf[np.arange(count) % number], drawn)
    options: dict[str, Any] = {"conventions": case.conventions, "dtype": case.dtype, "mappings": mappings}
    if keep == "best":
        options["reduce"] = jl.Best("edp", per="+".join(OVER))
    over = {OVER: DENSITIES.format(densities)}
    seconds, first = 0.0, 0.0
    for attempt in range(2):
        target: dict[str, Any] = {"out": out / f"{attempt}.zarr"} if keep == "all" else {}
        start = time.perf_counter()
        jl.sweep(case.design, over, **options, **target)
        seconds = time.perf_counter() - start
        first = first or seconds
        for path in target.values():
            shutil.rmtree(path)
    return {
        "case": case.name,
        "device": jax.devices()[0].device_kind,
        "dtype": np.dtype(case.dtype).name,
        "kept": keep,
        "points": count * densities,
        "mappings": count,
        "densities": densities,
        "seconds": seconds,
        "points_per_second": count * densities / seconds,
        "first_seconds": first,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def analyze(case: Case) -> dict[str, Any]:
    """What XLA counts for a point of one chunk: a product of mappings and densities, and unrelated points."""
    found: dict[str, Any] = {"case": case.name}
    lowered = lower(case.design, case.conventions, exact=True, dtype=case.dtype)
    assert case.design.nest is not None
    mapping = lower_mapping(case.design.nest, case.design.einsum, lowered.own)
    for name, shape in (("product", (8, 128)), ("unrelated", (1024,))):
        program, lanes = _in_lanes((lowered.program, mapping), len(shape))
        lanes = jax.tree.map(partial(np.repeat, repeats=shape[0], axis=-len(shape)), lanes)
        density = np.repeat(program.sparse.density, shape[-1], axis=-1)
        program = replace(program, sparse=replace(program.sparse, density=density))
        runner = make_runner(lowered.program.structure, np.dtype(case.dtype), FIELDS, shape, None)
        compiled = runner.compiled(program, lanes)
        cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
        points = math.prod(runner.chunk)
        found[name] = {
            "chunk": runner.chunk,
            "flops": cost["flops"] / points,
            "bytes": cost["bytes accessed"] / points,
            "temporary_bytes": memory.temp_size_in_bytes / points,
        }
    return found


def _in_lanes(tree: Any, axes: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[(..., *(None,) * axes)], tree)


FIELDS = ("cycles", "energy_pj", "status")


def stream_bandwidth() -> float:
    """Bytes per second that one core moves between memory and itself: a copy of 256 MiB."""
    source = np.ones(2**25)
    target = np.empty_like(source)
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the record to this file")
    parser.add_argument("--only", default="Fig. 1", help="cases whose name contains this")
    parser.add_argument("--points", type=int, action="append", help=f"numbers of points [default: {SIZES}]")
    parser.add_argument("--keep", choices=("all", "best"), default="all")
    parser.add_argument("--analyze", action="store_true", help="flops and bytes per point as XLA counts them")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    chosen = [case for case in cases() if options.only in case.name]
    if options.one:
        with tempfile.TemporaryDirectory() as folder:
            (case,) = [case for case in cases() if case.name == options.one]
            print(json.dumps(measure(case, options.points[0], Path(folder), options.keep)))
        return
    results = []
    if options.analyze:
        results = [analyze(case) for case in chosen]
        results.append({"copy_bytes_per_second": stream_bandwidth()})
    for case in chosen if not options.analyze else []:
        for points in options.points or SIZES:
            command = [sys.executable, "-m", "benchmarks.sweep", "--one", case.name, "--points", str(points)]
            done = subprocess.run([*command, "--keep", options.keep], capture_output=True, text=True, check=True)
            results.append(json.loads(done.stdout))
            print(json.dumps(results[-1]), file=sys.stderr)
    record = {"machine": machine(), "results": results}
    print(json.dumps(record, indent=2))
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
