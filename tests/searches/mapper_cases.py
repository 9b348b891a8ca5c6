"""The cases of the reference's mapper: inputs, and what its own search found.

`CASES` are those that can be searched, `REFUSED` those whose constraints contradict each other.
"""

import gzip
import json
import math
from functools import cache
from pathlib import Path

import numpy as np

import jaxloop as jl
from jaxloop.spec.design import Design
from tests.spec_examples.examples import EXAMPLES
from tests.spec_examples.stats import figures

_DATA = Path(__file__).parent / "data/mapper_cases.jsonl.gz"

REFUSED = {
    "m02-mapper-contradictory": 'all factors of K are given and multiply to 1, .* K=1 of "Main" \\(temporal\\)',
    "m04-mapper-nondivisor": 'K=5 of "Spad" .* does not divide the size 16 of K',
    "m06-mapper-minpar": 'parallelism of at least 0.9 at "Glb" .* is not at the innermost level, "Spad"',
}
"""What the error says."""

STOPPED_EARLY = ("m05-mapper-linear-timeout",)
"""Where the reference's search stops after 200 invalid mappings in a row, without the optimum."""


@cache
def texts() -> dict[str, dict[str, str]]:
    """Input files by case, without the mapping that the reference found."""
    found = {case["id"]: case["files"] for case in _lines()}
    for name in ("09", "10", "14"):
        found[name] = {file: text for file, text in EXAMPLES[name].files().items() if file != "mapping.yaml"}
    return found


@cache
def design(name: str) -> Design:
    return jl.loads(texts()[name])


@cache
def space(name: str) -> jl.MapSpace:
    return jl.MapSpace(design(name))


def metrics(name: str) -> tuple[str, ...]:
    """What the case minimizes."""
    mapper = design(name).mapper
    assert mapper is not None
    return mapper.metrics


def reference(name: str) -> dict[str, str]:
    """What the reference's mapper found, as it prints it: cycles, pJ per compute, energy-delay product in J cycles."""
    if name in ("09", "10", "14"):
        found = figures(EXAMPLES[name].expected())
        section = "pJ/Compute" if name == "09" else "pJ/Algorithmic-Compute"
        summary = {label: found["Summary Stats", "", label] for label in ("Cycles", "EDP(J*cycle)")}
        every = {
            "cycles": summary["Cycles"],
            "pJ/compute": found[section, "", "Total"],
            "EDP": summary["EDP(J*cycle)"],
        }
    else:
        given = next(case["reference"] for case in _lines() if case["id"] == name)
        every = {"cycles": given["cycles"], "EDP": given["edp"]}
    return {label: every[label] for label in printed(name, np.ones(len(metrics(name)))) if label in every}


def printed(name: str, scores: np.ndarray) -> dict[str, str]:
    """The same of scores, as far as the metrics of the case tell it."""
    own = dict(zip(metrics(name), scores.tolist(), strict=True))
    found: dict[str, str] = {}
    if "delay" in own:
        found["cycles"] = f"{own['delay']:.0f}"
    if "energy" in own:
        found["pJ/compute"] = f"{own['energy'] / math.prod(design(name).einsum.sizes):.2f}"
        own.setdefault("edp", own["energy"] * own["delay"] / 1e12)
    if "edp" in own:
        found["EDP"] = f"{own['edp']:.2e}"
    return found


@cache
def _lines() -> list[dict]:
    with gzip.open(_DATA, "rt") as file:
        return [json.loads(line) for line in file]


CASES = tuple(name for name in texts() if name not in REFUSED)
