"""A process that sweeps `base.grid`: `python -m tests.sweeps.child OUT [--reduce] [--pause SECONDS] [--blocks POINTS]`.

Writes a line per call of the kernel: points done, points of all. Its last line: executables compiled, and compilations
found in and missing from the compilation cache.
"""

import argparse
import time
from collections import Counter

import jax

import jaxloop as jl
from jaxloop.run.executables import compilations
from jaxloop.sweeps import plan
from tests.sweeps.base import RESULTS, grid

REDUCTIONS = {"best": jl.Best("edp", "mapping", 2, RESULTS), "front": jl.Pareto(("cycles", "energy_pj"), (), RESULTS)}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("out")
    arguments.add_argument("--reduce", action="store_true")
    arguments.add_argument("--pause", type=float, default=0.0)
    arguments.add_argument("--blocks", type=int, default=24)
    given = arguments.parse_args()
    events: Counter[str] = Counter()
    jax.monitoring.register_event_listener(lambda event, **_: events.update([event]))
    plan.BLOCK_POINTS = given.blocks

    def tell(done: int, points: int) -> None:
        print(done, points, flush=True)
        time.sleep(given.pause)

    jl.sweep(**grid(), out=given.out, progress=tell, reduce=REDUCTIONS if given.reduce else None)
    hits, misses = (events[f"/jax/compilation_cache/cache_{kind}"] for kind in ("hits", "misses"))
    print(compilations()["grid"], hits, misses, flush=True)


if __name__ == "__main__":
    main()
