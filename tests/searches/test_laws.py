"""Laws of searches against `evaluate`, mapping by mapping."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jaxloop as jl
from jaxloop.searches.objectives import CLEAR, better, improvements
from jaxloop.spec.constraints import Constraints, KeepConstraint
from tests.searches.mapper_cases import design, printed, reference, space

CASE = "m08-mapper-prime"
FIELDS = ("cycles", "energy_pj", "status")
EVERY = {"free": (), "pinned": (KeepConstraint("Spad", "A", True), KeepConstraint("Glb", "Z", True))}


@cache
def all_of(constraints: str = "free") -> tuple[jl.MapSpace, jl.Evaluation]:
    """A small space and all of its mappings evaluated."""
    own = design(CASE)
    found = jl.MapSpace(replace(own, constraints=Constraints(keeps=EVERY[constraints])))
    assert found.size <= 3136
    return found, jl.evaluate(own, mappings=found.decode(np.arange(found.size)), fields=FIELDS)


def numbers(evaluation: jl.Evaluation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cycles and energy, infinite where invalid, and what is valid."""
    valid = np.asarray(evaluation.valid)
    cycles, energy = (np.where(valid, np.asarray(leaf), np.inf) for leaf in (evaluation.cycles, evaluation.energy_pj))
    return cycles, energy, valid


# --- exhaustive search


@pytest.mark.parametrize("constraints", EVERY)
def test_exhaustive_is_brute_force(constraints: str):
    found, evaluation = all_of(constraints)
    cycles, energy, valid = numbers(evaluation)
    result = jl.search(found.design, found, "edp", method="exhaustive")
    assert result.is_complete and result.evaluated == found.size
    assert result.valid == valid.sum()
    assert result.scores[0] == (cycles * energy / 1e12).min()
    assert result.nest is not None and found.index_of(result.nest) == np.argmin(cycles * energy / 1e12)
    running = np.minimum.accumulate(cycles * energy / 1e12)
    np.testing.assert_array_equal(result.history["scores"][:, 0], np.unique(running[np.isfinite(running)])[::-1])
    at = result.history["evaluations"] - 1
    np.testing.assert_array_equal((cycles * energy / 1e12)[at], result.history["scores"][:, 0])


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_exhaustive_of_any_hardware(data: st.DataObject):
    """Prices, bandwidths and capacities do not change the executable; sizes and levels are one design's."""
    own = design(CASE)
    levels = own.architecture.levels
    words_held = [data.draw(st.sampled_from([3, 17, 64, 300])) for _ in levels[:-1]] + [levels[-1].size]
    words = [data.draw(st.sampled_from([None, 0.5, 3.0])) for _ in levels]
    changed = [
        replace(level, size=size, read_bandwidth=width)
        for level, size, width in zip(levels, words_held, words, strict=True)
    ]
    own = replace(own, architecture=replace(own.architecture, levels=tuple(changed)))
    found = jl.MapSpace(own)
    cycles, energy, valid = numbers(jl.evaluate(own, mappings=found.decode(np.arange(found.size)), fields=FIELDS))
    result = jl.search(own, found, "edp", method="exhaustive")
    assert result.valid == valid.sum()
    assert result.scores[0] == (cycles * energy / 1e12).min()
    if result.nest is None:
        assert not valid.any() and result.failures.nearest
    for method in ("random", "population"):
        other = jl.search(own, found, "edp", method=method, budget=300, seed=1)
        assert other.scores[0] >= result.scores[0]
        if other.nest is not None:
            at = found.index_of(other.nest)
            assert valid[at] and cycles[at] * energy[at] / 1e12 == other.scores[0]


def test_the_evaluation_of_the_result():
    result = jl.search(design(CASE), space(CASE), ["delay", "energy"], method="population", budget=600)
    evaluation = result.evaluation()
    assert evaluation.valid
    assert result.scores.tolist() == [float(evaluation.cycles), float(evaluation.energy_pj)]


# --- several metrics


def transcribed(candidate: list[float], incumbent: list[float]) -> bool:
    """spec/inputs.md 5.6, word by word."""
    ratios = []
    for new, old in zip(candidate, incumbent, strict=True):
        if old == 0.0:
            ratios.append(0.0 if new == 0.0 else -1.0)
        else:
            ratios.append((old - new) / old)
    for ratio in ratios:
        if abs(ratio) > 0.001:
            return ratio > 0.0
    return ratios[0] > 0.0


VALUES = st.sampled_from([0.0, 1.0, 1.0005, 0.9995, 1.0009, 1.002, 0.998, 2.0, 1e9])


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=12), st.tuples(VALUES, VALUES, VALUES))
def test_the_first_clear_metric_decides(candidates: list[tuple[float, ...]], incumbent: tuple[float, ...]):
    points, best = np.asarray(candidates), np.asarray(incumbent)
    wanted = [transcribed(list(point), list(incumbent)) for point in candidates]
    assert better(points, best).tolist() == wanted
    chain, current = [], list(incumbent)
    for at, point in enumerate(candidates):
        if transcribed(list(point), current):
            chain.append(at)
            current = list(point)
    assert improvements(points, best) == chain


def test_the_first_valid_mapping_beats_none():
    nothing = np.full(2, np.inf)
    assert improvements(np.asarray([[np.inf, np.inf], [5.0, 5.0], [np.inf, 1.0], [4.0, 9.0]]), nothing) == [1, 3]


def test_lexicographic_search():
    """The search's chain of improvements over the whole space."""
    found, evaluation = all_of()
    cycles, energy, _ = numbers(evaluation)
    result = jl.search(found.design, found, ["delay", "energy"], method="exhaustive")
    best, chain = [math.inf, math.inf], []
    for at, point in enumerate(zip(cycles.tolist(), energy.tolist(), strict=True)):
        if math.isfinite(point[0]) and (not chain or transcribed(list(point), best)):
            best = list(point)
            chain.append(at + 1)
    assert result.history["evaluations"].tolist() == chain
    assert result.scores.tolist() == best
    assert cycles.min() * (1.0 + CLEAR) >= best[0]


def test_front_is_brute_force():
    found, evaluation = all_of()
    cycles, energy, valid = numbers(evaluation)
    result = jl.search(found.design, found, jl.Pareto(("cycles", "energy_pj")), method="exhaustive")
    points = sorted(set(zip(cycles[valid].tolist(), energy[valid].tolist(), strict=True)))
    wanted = [p for p in points if not any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)]
    assert result.front is not None
    assert sorted(set(map(tuple, result.front.scores.tolist()))) == wanted
    at = found.index_of(result.front.mappings)
    np.testing.assert_array_equal(np.stack([cycles[at], energy[at]], axis=1), result.front.scores)


def test_front_of_a_population_goes_on(tmp_path: Any):
    options: dict[str, Any] = {"method": "population", "checkpoint": tmp_path / "state"}
    objective = jl.Pareto(("cycles", "energy_pj"))
    jl.search(design(CASE), space(CASE), objective, budget=1250, **options)
    resumed = jl.search(design(CASE), space(CASE), objective, budget=1500, **options)
    whole = jl.search(design(CASE), space(CASE), objective, method="population", budget=1500)
    for ours, theirs in zip(jax.tree.leaves(resumed.front), jax.tree.leaves(whole.front), strict=True):
        np.testing.assert_array_equal(ours, theirs)


# --- scenarios, alternatives, limits


SCENARIOS = {"Main.read_bandwidth": [0.5, 2.0, 8.0]}


@cache
def by_scenario() -> tuple[np.ndarray, np.ndarray]:
    """Cycles and energy-delay products, [mapping, scenario]; infinite where invalid."""
    found, _ = all_of()
    batch = found.decode(np.arange(found.size))
    columns = []
    for width in SCENARIOS["Main.read_bandwidth"]:
        hardware = {"Main.read_bandwidth": width}
        cycles, energy, _ = numbers(jl.evaluate(found.design, mappings=batch, hardware=hardware, fields=FIELDS))
        columns.append((cycles, cycles * energy / 1e12))
    return np.stack([c for c, _ in columns], axis=1), np.stack([e for _, e in columns], axis=1)


@pytest.mark.parametrize("aggregate", ["mean", "max", "sum"])
def test_one_mapping_for_all_scenarios(aggregate: str):
    found, _ = all_of()
    _, products = by_scenario()
    result = jl.search(found.design, found, "edp", over=SCENARIOS, aggregate=aggregate, method="exhaustive")
    by_hand = getattr(np, aggregate)(products, axis=1)
    assert result.scores[0] == by_hand.min()
    assert result.nest is not None and found.index_of(result.nest) == by_hand.argmin()
    assert result.valid == np.isfinite(by_hand).sum()


@pytest.mark.slow
def test_the_best_hardware_is_chosen():
    found, _ = all_of()
    _, products = by_scenario()
    result = jl.search(found.design, found, "edp", choose=SCENARIOS, method="exhaustive")
    assert result.scores[0] == products.min()
    mapping, scenario = np.argwhere(products == products.min())[0]
    assert (
        result.alternative["Main.read_bandwidth"]
        in np.asarray(SCENARIOS["Main.read_bandwidth"])[products[mapping] == products.min()]
    )
    assert float(result.evaluation().cycles * result.evaluation().energy_pj) / 1e12 == result.scores[0]
    assert result.nest is not None and found.index_of(result.nest) == mapping


def test_limits_are_kept():
    found, evaluation = all_of()
    cycles, energy, valid = numbers(evaluation)
    limit = float(np.median(energy[valid]))
    result = jl.search(found.design, found, "delay", limits={"energy": limit}, method="exhaustive")
    within = energy <= limit
    assert result.scores[0] == cycles[within].min()
    assert result.valid == within.sum()
    assert result.failures.reasons["over a limit of the user's"] == (np.asarray(evaluation.energy_pj) > limit).sum()


SIZED = {"Spad.size": [4, 8, 16]}


@pytest.mark.slow
def test_a_size_is_chosen():
    found, _ = all_of()
    batch = found.decode(np.arange(found.size))
    each = []
    for size in SIZED["Spad.size"]:
        cycles, energy, _ = numbers(
            jl.evaluate(found.design, mappings=batch, hardware={"Spad.size": size}, fields=FIELDS)
        )
        each.append((cycles * energy / 1e12).min())
    result = jl.search(found.design, found, "edp", choose=SIZED, method="exhaustive")
    assert result.scores[0] == min(each)
    assert each[SIZED["Spad.size"].index(int(result.alternative["Spad.size"]))] == min(each)


def test_gating_is_chosen():
    """Example 10 gates reads of one operand, which costs nothing."""
    own, found = design("10"), space("10")
    result = jl.search(own, found, choose={"saf.Local.A": ["none", "file"]}, method="exhaustive")
    assert result.alternative == {"saf.Local.A": "file"}
    assert printed("10", result.scores) == reference("10")


@pytest.mark.slow
def test_formats_and_safs_are_chosen():
    """Each combination of a sweep."""
    own, found = design("10"), space("10")
    choose = {"saf.Local.A": ["none", "file", "gating(B)"], "format.Back.A": ["file", "none"]}
    result = jl.search(own, found, "edp", choose=choose, method="exhaustive")
    swept = jl.sweep(own, choose, mappings=found, fields=("edp", "valid"))
    values = np.where(swept.valid, swept.edp, np.inf)
    assert result.scores[0] == values.min()
    chosen = swept.sel(dict(result.alternative))
    assert float(np.where(chosen.valid, chosen.edp, np.inf).min()) == result.scores[0]
    evaluation = result.evaluation()
    assert float(evaluation.cycles * evaluation.energy_pj) / 1e12 == pytest.approx(result.scores[0], rel=1e-12)


def test_why_nothing_is_valid():
    """A store that holds one word of everything."""
    own = design(CASE)
    tiny = replace(own.architecture.levels[-1], size=1)
    levels = (*own.architecture.levels[:-1], tiny)
    small = replace(own, architecture=replace(own.architecture, levels=levels))
    result = jl.search(small, jl.MapSpace(small), "edp", method="random", budget=500)
    assert result.nest is None and result.valid == 0 and np.isinf(result.scores).all()
    assert result.failures.reasons["over capacity"] == 500
    assert result.failures.levels[tiny.name, "capacity"] == 500
    assert any(tiny.name in reason and "exceeds" in reason for reason in result.failures.nearest)
    assert result.failures.nearest_nest is not None
    with pytest.raises(ValueError, match="no valid mapping was found"):
        result.evaluation()
