"""Intermediate values of the sparse oracle for one golden case:

`python -m tests.oracles.sparse_dump FILE.jsonl.gz CASE_ID`
"""

import sys
from pathlib import Path

from tests.golden.compare import read_cases

from .sparse_errors import Refusal
from .sparse_golden import differences, run_case
from .sparse_model import SparseResult


def _print_held(result: SparseResult, level: int, tensor: str) -> None:
    held = result.held[level, tensor]
    empty = result.models[tensor].empty(held.tile)
    print(f"  {tensor}: tile {held.tile} n={held.shape} P(0)={empty!r} p0={held.chance_empty!r}")
    print(f"    R_avg={result.instances[level, tensor]!r} E[k]={held.occupancy!r} density={held.density!r}")
    if not held.has_metadata:
        return
    for r, (rank, form) in enumerate(zip(held.ranks.ranks, held.ranks.formats, strict=True)):
        metadata, payload = held.units[r]
        print(
            f"    rank {r} {form.format} F={rank.fiber} tile below {held.ranks.subtiles[r]} recorded {rank.tile}"
            f" E metadata={metadata!r} E payload={payload!r} max {result.capacity[level, tensor].units[r]}"
            f" bits {form.metadata_word_bits}/{form.payload_word_bits} flattened {form.flattened}"
        )


def _print_saf(result: SparseResult, level: int, tensor: str) -> None:
    saf = result.safs[level, tensor]
    print(f"    {saf.kind} p={saf.chance!r} target loop (level, index) {saf.loop} scalar={saf.is_scalar}")
    for leader in saf.leaders:
        box = {rank: size for rank, size in leader.box.items() if size > 1}
        print(f"      leader {leader.tensor} box {box} tile {leader.tile} P(0)={leader.empty!r}")


def dump(result: SparseResult) -> None:
    """Prints per level and tensor what is held, the SAF and the counts, then compute and cycles."""
    for level, tensor in sorted(result.counts):
        print(f"level {level}")
        if (level, tensor) in result.held:
            _print_held(result, level, tensor)
        else:
            print(f"  {tensor}: bypassed")
        if (level, tensor) in result.safs:
            _print_saf(result, level, tensor)
        counts = result.counts[level, tensor]
        print(f"    words {counts.data}")
        print(f"    metadata {counts.metadata}")
        print(f"    energy per instance {result.energy_per_instance[level, tensor]!r}")
    print(f"operand states {result.states}")
    print(f"{result.computes} cycles {result.compute_cycles} energy {result.compute_energy!r}")
    print(f"level cycles {result.level_cycles} slowdown {result.slowdown} cycles {result.cycles}")


def main(path: Path, wanted: str) -> None:
    case = next(case for case in read_cases(path) if case["id"] == wanted)
    try:
        dump(run_case(case))
    except Refusal as refusal:
        print(refusal)
    for row in differences(case):
        print("DIFFERS", *row)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
