"""Compares jaxloop with one golden case, field by field, at the tolerances of the golden data."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jaxloop as jl

COUNTS = {
    "partition_size": "partition_size",
    "utilized_capacity": "occupancy_words",
    "utilized_instances": "utilized_instances",
    "utilized_clusters": "utilized_clusters",
    "temporal_reductions": "temporal_reductions",
    **{action: f"algorithmic_{action}" for action in ("reads", "fills", "updates")},
    **{f"random_{action}": f"actual_{action}" for action in ("reads", "fills", "updates")},
    **{f"{k}_{a}": f"{k}_{a}" for k in ("gated", "skipped") for a in ("reads", "fills", "updates")},
}
"""Per-tensor counts: name in the golden data -> name in `Evaluation.to_dict()`."""

METADATA = {
    f"{theirs}_format_{action}": f"{ours}_metadata_{action}"
    for theirs, ours in (("random", "actual"), ("gated", "gated"), ("skipped", "skipped"))
    for action in ("reads", "fills", "updates")
}
COMPUTE_COUNTS = {
    "utilized_instances": "utilized_instances",
    "algorithmic_computes": "algorithmic_computes",
    "random_computes": "actual_computes",
    "gated_computes": "gated_computes",
    "skipped_computes": "skipped_computes",
}
NETWORK_COUNTS = ("Fanout", "Multicast factor", "Ingresses", "Link transfers", "Spatial reductions")


@dataclass(frozen=True)
class Tolerance:
    """`count`: absolute, or 1e-6 relative, whichever is larger; `energy`: relative."""

    count: float
    energy: float


DENSE, SPARSE = Tolerance(1.0, 1e-6), Tolerance(2.0, 1e-4)


@dataclass(frozen=True)
class Difference:
    field: str
    expected: Any
    ours: Any


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        for line in lines:
            yield json.loads(line)


def files_of(case: dict[str, Any]) -> dict[str, str]:
    return {f"{name}.yaml": text for name, text in case["spec"].items()}


def compare_case(case: dict[str, Any]) -> list[Difference]:
    """All fields of one case that differ; empty when it passes."""
    try:
        evaluation = jl.evaluate(jl.loads(files_of(case)))
    except jl.SpecError as error:
        if case["ok"]:
            return [Difference("refused", "accepted", str(error))]
        return (
            []
            if _same_reason(case["error"], [str(e.message) for e in error.errors])
            else [Difference("reason", case["error"], str(error))]
        )
    if not case["ok"]:
        if evaluation.valid:
            return [Difference("accepted", case["error"], "valid")]
        same = _same_reason(case["error"], evaluation.reasons[:1])
        return [] if same else [Difference("reason", case["error"], evaluation.reasons)]
    if not evaluation.valid:
        return [Difference("refused", "valid", evaluation.reasons)]
    return list(differences(case["expected"], evaluation.to_dict(), SPARSE if "sparse" in case["spec"] else DENSE))


def _same_reason(error: str, reasons: list[str]) -> bool:
    wanted = re.compile(re.escape(error.removeprefix("ERROR: ").strip()) + r"(?!\d)")
    return any(wanted.match(reason) for reason in reasons)


def differences(expected: dict[str, Any], ours: dict[str, Any], tolerance: Tolerance) -> Iterator[Difference]:
    """Where `Evaluation.to_dict()` is outside the tolerance around the golden answer."""
    yield from _pairs("levels", [lv["name"] for lv in expected["levels"]], [lv["name"] for lv in ours["levels"]])
    for theirs, mine in zip(expected["levels"], ours["levels"], strict=True):
        name = theirs["name"]
        if theirs["kind"] == "compute":
            for field, key in COMPUTE_COUNTS.items():
                yield from _count(f"{name}.{field}", theirs[field], mine[key], tolerance)
            yield from _energy(f"{name}.energy", theirs["energy"], mine["energy_pj"], tolerance)
            yield from _energy(f"{name}.area", theirs["area"], mine["area"], tolerance)
        else:
            yield from _storage(name, theirs, mine, tolerance)
        yield from _within(f"{name}.cycles", theirs["cycles"], mine["cycles"], 1.0)
    yield from _networks(expected, ours, tolerance)
    yield from _summary(expected.get("summary", {}), ours)


def _storage(name: str, theirs: dict[str, Any], mine: dict[str, Any], tolerance: Tolerance) -> Iterator[Difference]:
    yield from _pairs(f"{name}.keep", theirs["keep"], mine["keep"])
    yield from _within(f"{name}.slowdown", theirs["slowdown"], mine["slowdown"], 1e-6)
    for field, key in COUNTS.items():
        for tensor, value in theirs[field].items():
            yield from _count(f"{name}.{field}.{tensor}", value, mine[key][tensor], tolerance)
    for field, key in METADATA.items():
        for tensor, ranks in theirs[field].items():
            flat = [unit for rank in ranks for unit in rank]
            own = [unit for rank in mine[key][tensor] for unit in rank]
            yield from _pairs(f"{name}.{field}.{tensor}", len(flat), len(own))
            for value, unit in zip(flat, own, strict=False):
                yield from _count(f"{name}.{field}.{tensor}", value, unit, tolerance)
    for tensor, value in theirs["energy"].items():
        yield from _energy(f"{name}.energy.{tensor}", value, mine["energy_pj"][tensor], tolerance)
    for tensor, value in theirs["temporal_reduction_energy"].items():
        own = mine["temporal_reduction_energy_pj"][tensor]
        yield from _energy(f"{name}.temporal_reduction_energy.{tensor}", value, own, tolerance)


def _networks(expected: dict[str, Any], ours: dict[str, Any], tolerance: Tolerance) -> Iterator[Difference]:
    for name, tensors in expected.get("networks", {}).items():
        yield from _pairs(f"{name}", True, name in ours["networks"])
        for tensor, theirs in tensors.items():
            mine = ours["networks"].get(name, {}).get(tensor, {})
            for field in NETWORK_COUNTS:
                yield from _count(f"{name}.{tensor}.{field}", theirs[field], mine[field], tolerance)
            # printed with two decimals
            hops = "Average number of hops"
            yield from _within(f"{name}.{tensor}.{hops}", theirs[hops], mine[hops], 0.0051)
            energy = theirs["Energy (total)"]
            allowed = 0.0051 + tolerance.energy * abs(energy)
            yield from _within(f"{name}.{tensor}.energy", energy, mine["Energy (total)"], allowed)


def _summary(summary: dict[str, Any], ours: dict[str, Any]) -> Iterator[Difference]:
    if not summary:
        return
    yield from _within("cycles", summary["cycles"], ours["cycles"], 1.0)
    yield from _within("utilization", summary["utilization"], ours["utilization"], 0.0051)
    yield from _within("energy_uJ", summary["energy_uJ"], ours["energy_pj"] / 1e6, 0.0051)
    yield from _within("edp", summary["edp"], ours["edp"], 0.0051 * abs(summary["edp"]))


def _count(field: str, expected: float, ours: float, tolerance: Tolerance) -> Iterator[Difference]:
    yield from _within(field, expected, ours, max(tolerance.count, 1e-6 * abs(expected)))


def _energy(field: str, expected: float, ours: float, tolerance: Tolerance) -> Iterator[Difference]:
    yield from _within(field, expected, ours, tolerance.energy * abs(expected) + 1e-9)


def _within(field: str, expected: float, ours: float, allowed: float) -> Iterator[Difference]:
    if not abs(float(expected) - float(ours)) <= allowed:
        yield Difference(field, expected, ours)


def _pairs(field: str, expected: Any, ours: Any) -> Iterator[Difference]:
    if expected != ours:
        yield Difference(field, expected, ours)
