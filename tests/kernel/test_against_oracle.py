"""The kernel against the plain-Python oracle of `tests/oracles/sparse_model.py` on random sparse designs.

The oracle takes the dense counts of the kernel, which `test_against_walk.py` checks. Left out is what the oracle calls
undefined (the reference aborts or divides by zero there) and what wraps around (quirk Q19): those designs must give
finite numbers all the same.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.result import Evaluation
from jaxloop.spec.architecture import Metadata
from jaxloop.spec.mapping import LevelNest, Loop
from jaxloop.spec.sparse import ActionKind, FormatRank, RankFormat, SparseTarget, TensorFormat
from tests.helpers import assert_all_finite, random_mapping, row, stacked
from tests.oracles.sparse_errors import Refusal, Undefined
from tests.oracles.sparse_model import SparseResult, evaluate as oracle
from tests.oracles.sparse_traffic import ACTIONS, KINDS, DenseCounts
from tests.sparse_strategies import FAMILIES, random_sparse_design

CONVENTIONS = jl.Conventions(link_transfers=False)
"""Links are a matter of the dense counts; without them one executable serves a family."""

COUNTS, ENERGIES, CHANCES = (2.0, 1e-6), (1e-9, 1e-4), (1e-12, 1e-9)
"""Absolute and relative tolerance, those of the golden data; what is not rounded is compared more sharply."""

WORDS = {
    "runtime partition not": "more compression ranks than the next outer level has: runtime partition is not",
    "does not align.": "does not align with the ranks of the next inner level.",
}
"""Words of the oracle -> ours, where they are not the same."""

KIND_CODES = {ActionKind.GATING: 1, ActionKind.SKIPPING: 2, ActionKind.SPATIAL_SKIPPING: 3}

MUST_REFUSE = {
    "compressed level inside": jl.Status.FORMATS_DO_NOT_FIT,
    "spatial skipping and another SAF": jl.Status.MIXED_SAFS,
    "no multiple of its elements": jl.Status.UNEVEN_FIBERS,
}
"""Words of the oracle where the reference aborts and nothing sensible can be said -> our status."""


@dataclass(frozen=True)
class Verdict:
    """`outcome`: "equal", "different", "refused" (by both) or why nothing is compared; `details`: the fields that
    differ, or the oracle's reason."""

    outcome: str
    details: tuple[str, ...] = ()


def dense_counts(design: jl.Design, ours: Evaluation) -> dict[tuple[int, str], DenseCounts]:
    """An output has as many temporal reductions as reads."""
    found = {}
    for s in range(len(design.architecture.levels)):
        for t, tensor in enumerate(design.einsum.tensors):
            reads, fills, updates = (int(getattr(ours, action)[s, t]) for action in ACTIONS)
            found[s, tensor.name] = DenseCounts(reads, fills, updates, float(reads) if tensor.is_output else 0.0)
    return found


def compare(design: jl.Design, ours: Evaluation, exact: bool = False) -> Verdict:
    """One evaluation, also of a batch. `exact`: counts and energies may not differ at all."""
    status = jl.Status(int(ours.status))
    if jl.Status.NEGATIVE_READS in status:
        return Verdict("no dense counts")
    try:
        theirs = oracle(design, dense_counts(design, ours))
    except Refusal as refusal:
        return Verdict("refused" if status else "different", (str(refusal),))
    except Undefined as undefined:
        known = all(bit in status for words, bit in MUST_REFUSE.items() if words in str(undefined))
        return Verdict("undefined" if known else "different", (str(undefined),))
    if theirs.wraps:
        return Verdict("wraps")
    if status:
        return Verdict("different", (str(status),))
    found = tuple(_differences(design, ours, theirs, 0.0 if exact else 1.0))
    return Verdict("different" if found else "equal", found)


def check(design: jl.Design, exact: bool = False) -> Verdict:
    """`compare`, and the first reason of a refusal must be the oracle's."""
    ours = jl.evaluate(design, conventions=CONVENTIONS)
    assert_all_finite(ours)
    verdict = compare(design, ours, exact)
    if verdict.outcome != "refused":
        return verdict
    reason = verdict.details[0]
    for theirs, own in WORDS.items():
        reason = reason.replace(theirs, own)
    same = re.match(re.escape(reason) + r"(?!\w)", ours.reasons[0])
    return verdict if same else Verdict("different", (*verdict.details, *ours.reasons))


def _by_key(design: jl.Design, values: dict[tuple[int, str], Any], default: Any = 0.0) -> np.ndarray:
    names, levels = [tensor.name for tensor in design.einsum.tensors], range(len(design.architecture.levels))
    return np.array([[values.get((s, name), default) for name in names] for s in levels], float)


def _padded(units: Any, ranks: int) -> list[list[float]]:
    return [*units, *([[0.0, 0.0]] * (ranks - len(units)))]


def _expected(design: jl.Design, theirs: SparseResult, ranks: int) -> dict[str, tuple[Any, tuple[float, float]]]:
    """Field of `Evaluation` -> its value and tolerance."""
    held, counts, capacity = theirs.held, theirs.counts, theirs.capacity
    empty = [[0.0, 0.0]] * ranks

    def table(values: dict[tuple[int, str], Any], default: Any = 0.0) -> np.ndarray:
        return _by_key(design, values, default)

    accesses = [[table({k: c.data[kind][a] for k, c in counts.items()}) for a in ACTIONS] for kind in KINDS]
    metadata = [
        [table({k: _padded(c.metadata[kind][a], ranks) for k, c in counts.items()}, empty) for a in ACTIONS]
        for kind in KINDS
    ]
    safs = {(saf.level, saf.target): saf for saf in theirs.safs.values()}
    return {
        "accesses": (accesses, COUNTS),
        "metadata_accesses": (metadata, COUNTS),
        "temporal_reductions": (table({k: c.temporal_reductions for k, c in counts.items()}), COUNTS),
        "decompressions": (table({k: c.decompressions for k, c in counts.items()}), COUNTS),
        "compressions": (table({k: c.compressions for k, c in counts.items()}), COUNTS),
        "computes_by_fate": ([getattr(theirs.computes, kind) for kind in KINDS], COUNTS),
        "stored_words": (table({k: c.words for k, c in capacity.items()}), COUNTS),
        "metadata_bits": (table({k: c.bits for k, c in capacity.items()}), COUNTS),
        "expected_words": (table({k: h.occupancy for k, h in held.items()}), CHANCES),
        "expected_density": (table({k: h.density for k, h in held.items()}), CHANCES),
        "tile_empty": (table({k: h.chance_empty for k, h in held.items()}), CHANCES),
        "metadata_units": (table({k: _padded(h.units, ranks) for k, h in held.items()}, empty), CHANCES),
        "saf_kind": (table({k: KIND_CODES[saf.kind] for k, saf in safs.items()}), (0.0, 0.0)),
        "saf_chance": (table({k: saf.chance for k, saf in safs.items()}), CHANCES),
        "instances": (table(theirs.instances), CHANCES),
        "clusters": (table(theirs.clusters), COUNTS),
        "energy_pj_by_tensor": (table(theirs.energy), ENERGIES),
        "address_energy_pj": (table(theirs.address_energy), ENERGIES),
        "compute_energy_pj": (theirs.compute_energy, ENERGIES),
        "compute_instances": (theirs.units, CHANCES),
        "compute_cycles": (theirs.compute_cycles, (1.0, 0.0)),
        "level_cycles": (theirs.level_cycles, (1.0, 0.0)),
        "slowdown": (theirs.slowdown, (0.0, 1e-6 + 1.0 / max(theirs.compute_cycles, 1))),
        "cycles": (theirs.cycles, (1.0, 0.0)),
    }


OF_KEPT_TENSORS = {"expected_words", "expected_density", "stored_words", "metadata_bits", "instances", "clusters"}
"""Fields that mean something for kept tensors only."""


def _differences(design: jl.Design, ours: Evaluation, theirs: SparseResult, slack: float) -> Iterator[str]:
    keep = _by_key(design, dict.fromkeys(theirs.held, 1.0))
    ranks = ours.metadata_units.shape[2]
    for field, (value, (absolute, relative)) in _expected(design, theirs, ranks).items():
        own, expected = np.asarray(getattr(ours, field), float), np.asarray(value, float)
        if field in OF_KEPT_TENSORS:
            own, expected = own * keep, expected * keep
        allowed = np.maximum(max(slack * absolute, 1e-30), max(relative, 1e-13) * np.abs(expected))
        worse = np.argwhere(~(np.abs(own - expected) <= allowed))
        if len(worse):
            at = tuple(worse[0])
            yield f"{field}{[int(i) for i in at]}: oracle {expected[at]!r}, ours {own[at]!r} ({len(worse)} differ)"


def draw(seed: int, family: str, count: int, least_words: int = 1, most_words: int = 900) -> list[jl.Design]:
    rng = random.Random(f"{family} {seed}")
    return [random_sparse_design(rng, family, least_words, most_words) for _ in range(count)]


def check_all(designs: list[jl.Design]) -> None:
    """All designs; two fifths at least must have numbers to compare."""
    verdicts = [check(design) for design in designs]
    assert [found for found in enumerate(verdicts) if found[1].outcome == "different"] == []
    assert sum(verdict.outcome == "equal" for verdict in verdicts) >= 0.4 * len(verdicts)


@pytest.mark.parametrize("family", ["plain", "flattened", "banded", "windows"])
def test_equals_the_oracle(family: str):
    check_all(draw(1, family, 250))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_long_sweep(family: str):
    check_all(draw(2, family, 1500))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["plain", "windows"])
def test_large_tensors(family: str):
    """More occupancies than one sum holds."""
    check_all(draw(3, family, 100, 1000, 20000))


def for_any_mapping(design: jl.Design, rng: random.Random) -> jl.Design:
    """The design with room and formats for any mapping: every level has a rank more than the next inner one, and each
    takes all loops that it finds."""
    targets = {target.level: target for target in design.sparse.targets}
    chosen = {
        tensor.name: rng.choice((RankFormat.CP, RankFormat.RLE, RankFormat.B)) for tensor in design.einsum.tensors
    }
    for s, level in enumerate(design.architecture.levels):
        formats = tuple(
            TensorFormat(tensor.name, (FormatRank(chosen[tensor.name], 4, 4, (tensor.ranks,)),) * (s + 1))
            for tensor in design.einsum.tensors
        )
        own = targets.get(level.name, SparseTarget(level.name))
        targets[level.name] = replace(own, formats=formats)
    levels = design.architecture.levels
    storage = tuple(replace(s, size=None, metadata=Metadata(8, 1, 64), compression_supported=True) for s in levels)
    return replace(
        design,
        sparse=replace(design.sparse, targets=tuple(targets.values())),
        architecture=replace(design.architecture, levels=storage),
    )


def nest_of(design: jl.Design, mapping: jl.Mapping) -> jl.LoopNest:
    """A mapping as arrays, in words; every rank has one spatial loop, along X or Y."""
    ranks, names = design.einsum.ranks, [tensor.name for tensor in design.einsum.tensors]

    def loops(bounds: np.ndarray, order: np.ndarray, chosen: np.ndarray) -> tuple[Loop, ...]:
        return tuple(Loop(ranks[r], int(bounds[r]), int(bounds[r])) for r in order if chosen[r])

    levels = []
    for s, level in enumerate(design.architecture.levels):
        is_y, order = mapping.spatial_y[s] > 1.0, mapping.spatial_order[s]
        temporal = loops(mapping.temporal[s], mapping.temporal_order[s], np.ones_like(is_y))
        spatial = loops(mapping.spatial_x[s], order, ~is_y), loops(mapping.spatial_y[s], order, is_y)
        kept = tuple(name for name, keep in zip(names, mapping.keep[s], strict=True) if keep)
        levels.append(LevelNest(level.name, temporal, *spatial, kept))
    return jl.LoopNest(tuple(levels))


def x_inside_y(mapping: jl.Mapping) -> jl.Mapping:
    """The mapping with one spatial axis per rank, and the ranks along Y last in the spatial order."""
    along_x = np.where(mapping.spatial_y > 1.0, 1.0, mapping.spatial_x)
    temporal = mapping.temporal * mapping.spatial_x / along_x
    is_y = np.take_along_axis(mapping.spatial_y > 1.0, mapping.spatial_order, axis=1)
    order = np.take_along_axis(mapping.spatial_order, np.argsort(is_y, axis=1, kind="stable"), axis=1)
    return replace(mapping, temporal=temporal, spatial_x=along_x, spatial_order=order)


def random_lanes(family: str, seed: int, count: int) -> tuple[jl.Design, list[jl.Mapping]]:
    """A design with 3 or more levels, children along X and Y, and formats for any mapping; random mappings."""
    rng = random.Random(f"{family} {seed}")
    while True:
        design = random_sparse_design(rng, family)
        levels = range(len(design.architecture.levels))
        if len(levels) >= 3 and any(min(design.architecture.fanout(s)) > 1 for s in levels):
            break
    design = for_any_mapping(design, rng)
    return design, [x_inside_y(random_mapping(design, rng)) for _ in range(count)]


LANES = 60


def check_lanes(family: str, seed: int) -> int:
    """How many of `LANES` lanes have numbers to compare."""
    design, mappings = random_lanes(family, seed, LANES)
    lanes = jl.evaluate(design, mappings=stacked(mappings), conventions=CONVENTIONS)
    verdicts = []
    for index, mapping in enumerate(mappings):
        ours: Any = SimpleNamespace(**row(lanes, index))
        own = replace(design, nest=nest_of(design, mapping))
        verdicts.append(compare(own, ours))
    assert [found for found in enumerate(verdicts) if found[1].outcome == "different"] == []
    return sum(verdict.outcome == "equal" for verdict in verdicts)


@pytest.mark.slow
def test_lanes_equal_the_oracle():
    """A batch has an executable of the design's own sizes."""
    assert check_lanes("plain", 1) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_more_lanes(family: str):
    assert sum(check_lanes(family, seed) for seed in range(2, 8)) >= 120


def test_loops_along_x_lie_inside_those_along_y():
    """Whatever the spatial order says of an X and a Y loop."""
    design, mappings = random_lanes("plain", 1, 200)
    mixed = []
    for mapping in mappings:
        along_x, along_y = mapping.spatial_x.max(axis=1) > 1.0, mapping.spatial_y.max(axis=1) > 1.0
        if (along_x & along_y).any():
            along_y_only = (mapping.spatial_y > 1.0) & (mapping.spatial_x == 1.0)
            is_y = np.take_along_axis(along_y_only, mapping.spatial_order, axis=1)
            inside, outside = (
                np.take_along_axis(mapping.spatial_order, np.argsort(key, axis=1, kind="stable"), axis=1)
                for key in (is_y, ~is_y)
            )
            mixed.append((replace(mapping, spatial_order=inside), replace(mapping, spatial_order=outside)))
    assert len(mixed) >= 10
    lanes = (list(islice(cycle(side), LANES)) for side in zip(*mixed, strict=True))
    expected, ours = (jl.evaluate(design, mappings=stacked(side), conventions=CONVENTIONS) for side in lanes)
    for name in ("saf_chance", "fiber_length", "metadata_accesses", "energy_pj"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(expected, name), err_msg=name)
