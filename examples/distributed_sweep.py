"""One sweep by several processes, on one machine or many, into one Zarr store that all of them can reach.

Alone, on a small sweep:

    python examples/distributed_sweep.py

As two processes (each prints the same result; `--coordinator` is the address of process 0, the same for all):

    python examples/distributed_sweep.py --coordinator localhost:9911 --number 2 --id 0 --out sweep.zarr &
    python examples/distributed_sweep.py --coordinator localhost:9911 --number 2 --id 1 --out sweep.zarr

Each process computes its share of the blocks on its own devices. The store holds the same bytes as that of one process.
When one of them is lost, start all again with the same command, or one alone: what is done is not computed again.
"""

import argparse
import tempfile
from pathlib import Path

import jax

import jaxloop as jl

arguments = argparse.ArgumentParser(description="One sweep by several processes.")
arguments.add_argument("--coordinator", help="host:port of process 0")
arguments.add_argument("--number", type=int, default=1, help="of processes")
arguments.add_argument("--id", type=int, default=0, help="of this process, from 0")
arguments.add_argument("--out", type=Path, help="the Zarr store; a temporary one without")
given = arguments.parse_args()
if given.number > 1:
    if given.coordinator is None or given.out is None:
        arguments.error("several processes need --coordinator and --out")
    jax.distributed.initialize(given.coordinator, num_processes=given.number, process_id=given.id)

design = jl.load(str(Path(__file__).parent / "spmm.yaml"))
over = {"DRAM.read_bandwidth": "logspace(0.125, 8, 7)", "Buffer.read_bandwidth": "logspace(0.125, 8, 49)"}
with tempfile.TemporaryDirectory() as folder:
    found = jl.sweep(design, over, out=given.out or Path(folder) / "sweep.zarr")
    cycles = found.cycles.where(found.valid)
    enough = (cycles <= cycles.min("Buffer.read_bandwidth")).idxmax("Buffer.read_bandwidth")
    for bandwidth, buffer in zip(enough["DRAM.read_bandwidth"].values, enough.values, strict=True):
        least = cycles.sel({"DRAM.read_bandwidth": bandwidth}).min().item()
        print(f"DRAM {bandwidth:5.3f} words/cycle: {least:9.0f} cycles, with a buffer of {buffer:5.3f} words/cycle")
