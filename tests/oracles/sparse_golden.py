"""Compares the sparse oracle with golden cases: `python -m tests.oracles.sparse_golden FILE.jsonl.gz [ID...]`."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxloop
from tests.golden.compare import read_cases

from .sparse_errors import Refusal
from .sparse_model import SparseResult, evaluate
from .sparse_traffic import ACTIONS, KINDS, DenseCounts


def dense_counts(case: dict[str, Any], outputs: set[str]) -> dict[tuple[int, str], DenseCounts]:
    """The dense counts that the reference printed. Its temporal reductions are already thinned: an output has as many
    as reads."""
    found = {}
    for s, level in enumerate(case["expected"]["levels"][1:]):
        for tensor in level["keep"]:
            reads, fills, updates = (level[action][tensor] for action in ACTIONS)
            found[s, tensor] = DenseCounts(reads, fills, updates, float(reads) if tensor in outputs else 0.0)
    return found


def run_case(case: dict[str, Any]) -> SparseResult:
    design = jaxloop.loads(case["spec"])
    outputs = {tensor.name for tensor in design.einsum.tensors if tensor.is_output}
    if case["ok"]:
        return evaluate(design, dense_counts(case, outputs))
    names = [tensor.name for tensor in design.einsum.tensors]
    dense = {(s, t): DenseCounts() for s in range(len(design.architecture.levels)) for t in names}
    return evaluate(design, dense)


def differences(case: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Field, theirs, ours."""
    try:
        result = run_case(case)
    except Refusal as refusal:
        if case["ok"]:
            return [("refused", "accepted", str(refusal))]
        return (
            []
            if case["error"].removeprefix("ERROR: ").strip() == str(refusal)
            else [("reason", case["error"], str(refusal))]
        )
    if not case["ok"]:
        return [("accepted", case["error"], "")]
    return [row for row in compare(case["expected"], result) if not _same(*row)]


def _same(field: str, theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(_same(field, *pair) for pair in zip(theirs, ours, strict=True))
    if "energy" in field:
        return abs(theirs - ours) <= 1e-4 * abs(theirs) + 1e-9
    if field == "utilization":
        return abs(theirs - ours) <= 0.0051
    if field == "edp":
        return abs(theirs - ours) <= 0.0051 * abs(theirs)
    if "cycles" in field:
        return abs(theirs - ours) <= 1
    if "slowdown" in field:
        return abs(theirs - ours) <= 1e-6
    if "instances" in field:
        return abs(theirs - ours) <= 1e-6 * abs(theirs) + 1e-12
    return abs(theirs - ours) <= max(2, 1e-6 * abs(theirs))


def compare(expected: dict[str, Any], result: SparseResult) -> Iterator[tuple[str, Any, Any]]:
    """Every field, theirs, ours."""
    compute, *levels = expected["levels"]
    for kind in KINDS:
        yield f"{kind}_computes", compute[f"{kind}_computes"], getattr(result.computes, kind)
    yield "compute energy", compute["energy"], result.compute_energy
    yield "compute cycles", compute["cycles"], result.compute_cycles
    for s, level in enumerate(levels):
        for tensor in level["keep"]:
            yield from _compare_tensor(level, s, tensor, result)
        yield f"{level['name']}.slowdown", level["slowdown"], result.slowdown[s]
        yield f"{level['name']}.cycles", level["cycles"], result.level_cycles[s]
    yield "cycles", expected["summary"]["cycles"], result.cycles
    yield "utilization", expected["summary"]["utilization"], result.utilization
    networks = [entry for network in expected["networks"].values() for entry in network.values()]
    if not any(entry["Link transfers"] for entry in networks):  # their energy is not among what is printed
        energy = result.energy_without_networks + math.fsum(entry["Energy (total)"] for entry in networks)
        yield "edp", expected["summary"]["edp"], result.cycles * energy / 1e12


def _compare_tensor(level: dict[str, Any], s: int, tensor: str, result: SparseResult) -> Iterator[tuple[str, Any, Any]]:
    where = f"{level['name']}.{tensor}."
    key = (s, tensor)
    words = result.capacity[key].words if key in result.capacity else 0
    yield where + "utilized_capacity", level["utilized_capacity"][tensor], words
    yield where + "utilized_instances", level["utilized_instances"][tensor], result.instances[key]
    yield where + "utilized_clusters", level["utilized_clusters"][tensor], result.clusters[key]
    counts = result.counts[key]
    for action in ACTIONS:
        for kind in KINDS:
            yield f"{where}{kind}_{action}", level[f"{kind}_{action}"][tensor], counts.data[kind][action]
            name = f"{kind}_format_{action}"
            yield where + name, level[name][tensor], counts.metadata[kind][action]
    yield where + "temporal_reductions", level["temporal_reductions"][tensor], counts.temporal_reductions
    yield where + "energy", level["energy"][tensor], result.energy_per_instance[key]


def main(path: Path, wanted: list[str]) -> None:
    passed = total = 0
    for case in read_cases(path):
        if wanted and case["id"] not in wanted:
            continue
        total += 1
        found = differences(case)
        passed += not found
        for row in found[:6]:
            print(case["id"], *row)
    print(f"{path.name}: {passed} of {total}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
