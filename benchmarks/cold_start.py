"""`python -m benchmarks.cold_start`: wall time of `jaxloop evaluate eyeriss:alexnet_conv2` in a new process, without
and with a filled compilation cache (JAX_COMPILATION_CACHE_DIR), and of its parts."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

COMMAND = [sys.executable, "-m", "jaxloop", "evaluate", "eyeriss:alexnet_conv2"]
PARTS = """
import time; start = time.perf_counter()
def lap(name):
    global start
    now = time.perf_counter(); print(f"  {name:<28} {now - start:6.2f} s"); start = now
import jax; lap("import jax")
import jaxloop as jl; jl.evaluate; lap("import jaxloop")
design = jl.load("eyeriss:alexnet_conv2"); lap("read the files")
jl.evaluate(design); lap("first evaluation (compiles)")
jl.evaluate(design); lap("second evaluation")
"""


def timed(environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(COMMAND, check=True, capture_output=True, env=environment)
    return time.perf_counter() - start


def main() -> None:
    cold = [timed(dict(os.environ)) for _ in range(3)]
    with tempfile.TemporaryDirectory() as cache:
        warm_environment = os.environ | {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        timed(warm_environment)
        warm = [timed(warm_environment) for _ in range(3)]
    print(f"cold: {statistics.median(cold):.2f} s   compilation cache filled: {statistics.median(warm):.2f} s")
    subprocess.run([sys.executable, "-c", PARTS], check=True)


if __name__ == "__main__":
    main()
