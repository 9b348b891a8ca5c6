"""The kernel against the brute-force walk of `tests/oracles/loopnest.py`."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.result import Evaluation
from jaxloop.spec.einsum import Axis, Term
from tests.helpers import assert_all_finite
from tests.oracles.exactness import exactness
from tests.oracles.loopnest import Counts, Key, walk
from tests.strategies import random_design

COUNTS = {
    "reads": "reads",
    "fills": "fills",
    "updates": "updates",
    "temporal_reductions": "temporal_reductions",
    "partition": "partition_size",
    "tile_words": "tile_words",
    "instances": "instances",
    "links": "link_transfers",
}
"""Field of `Counts` -> field of `Evaluation`, per level and tensor."""


def _table(design: jl.Design, values: dict[Key, Any]) -> np.ndarray:
    names = [tensor.name for tensor in design.einsum.tensors]
    return np.array([[float(values[level.name, name]) for name in names] for level in design.architecture.levels])


def _expected_records(design: jl.Design, counts: Counts) -> dict[Key, dict[tuple[float, float], float]]:
    """The walk's records as the networks carry them: an output below a level that cannot reduce in place crosses
    twice, less one partition per record (spec/dense.md 9.4)."""
    expected = {}
    for level in design.architecture.levels:
        for tensor in design.einsum.tensors:
            records = {key: value for key, value in counts.records[level.name, tensor.name].items() if value}
            if tensor.is_output and not level.reduction_supported:
                elided = counts.partition[level.name, tensor.name]
                records = {key: 2 * value - elided for key, value in records.items()}
            expected[level.name, tensor.name] = {key: float(value) for key, value in records.items() if value}
    return expected


def _records(design: jl.Design, ours: Evaluation) -> dict[Key, dict[tuple[float, float], float]]:
    found: dict[Key, dict[tuple[float, float], float]] = {}
    for s, level in enumerate(design.architecture.levels):
        for t, tensor in enumerate(design.einsum.tensors):
            rows = zip(
                ours.record_multicast[:, s, t], ours.record_scatter[:, s, t], ours.record_accesses[:, s, t], strict=True
            )
            kept = [(float(m), float(g), float(accesses)) for m, g, accesses in rows if accesses != 0.0]
            assert [record[:2] for record in kept] == sorted(record[:2] for record in kept)
            found[level.name, tensor.name] = {(m, g): accesses for m, g, accesses in kept}
    return found


def _compare(design: jl.Design, ours: Evaluation, counts: Counts, rtol: float = 0.0) -> None:
    for theirs, field in COUNTS.items():
        expected = _table(design, getattr(counts, theirs))
        np.testing.assert_allclose(getattr(ours, field), expected, rtol=rtol, atol=rtol, err_msg=field)
    assert (ours.computes, ours.compute_cycles) == (counts.computes, counts.compute_cycles)
    assert ours.compute_instances == counts.compute_instances
    found, wanted = _records(design, ours), _expected_records(design, counts)
    for key, records in wanted.items():
        assert found[key].keys() == records.keys(), key
        np.testing.assert_allclose(
            list(found[key].values()), list(records.values()), rtol=max(rtol, 1e-12), err_msg=str(key)
        )


def _walk(design: jl.Design, **options: Any) -> Counts | None:
    """None where the walk refuses the nest because an output is read less often than first touched."""
    assert design.nest is not None
    try:
        return walk(design.einsum, design.architecture, design.nest, **options)
    except ValueError as error:
        assert "is read less often than first touched" in str(error)
        return None


def check(design: jl.Design, conventions: jl.Conventions, rtol: float = 0.0, **options: Any) -> bool:
    """Compares all counts; returns whether there were any."""
    ours, counts = jl.evaluate(design, conventions=conventions), _walk(design, **options)
    refused = jl.Status.NEGATIVE_READS in jl.Status(int(ours.status))
    assert refused == (counts is None)
    if counts is not None:
        _compare(design, ours, counts, rtol)
    return counts is not None


def check_reference(design: jl.Design) -> bool:
    return check(design, jl.TIMELOOP_2022, policy="model", second_index=True, links=True)


def check_smooth(design: jl.Design, policy: str = "model") -> bool:
    return check(design, jl.SMOOTH, 1e-12, policy=policy, second_index=False, links=False, integer_counts=False)


def draw(seed: int, count: int, kind: str | None = None, **options: Any) -> list[jl.Design]:
    rng = random.Random(seed)
    return [random_design(rng, kind, max_fanout=8, **options) for _ in range(count)]


def _axis(*terms: str | tuple[str, int]) -> Axis:
    return Axis(tuple(Term(*((term, 1) if isinstance(term, str) else term)) for term in terms))


PROJECTIONS = {
    "three ranks in one axis": (_axis("P", "R", ("K", 2)), _axis("C", "P")),
    "a rank in two axes": (_axis("C", "P"), _axis("P", ("R", 2))),
    "a diagonal": (_axis("P"), _axis("P"), _axis("R", "C")),
    "a negative coefficient": (_axis("C"), _axis(("P", 2), ("R", -1))),
    "a coefficient of zero": (_axis("C"), _axis(("P", 0), "R")),
    "a rank twice in one axis": (_axis("C"), _axis(("P", 2), ("P", -1), "R")),
    "a rank that cancels": (_axis("C"), _axis(("P", 1), ("P", -1), ("R", 1))),
}
"""Inputs of a one-dimensional convolution as no convolution has them."""


def unusual(design: jl.Design, name: str, axes: tuple[Axis, ...]) -> jl.Design:
    """The design with other axes of the tensor `name` and without limits of capacity."""
    tensors = tuple(replace(t, axes=axes) if t.name == name else t for t in design.einsum.tensors)
    levels = tuple(replace(level, size=None) for level in design.architecture.levels)
    return replace(
        design,
        einsum=replace(design.einsum, tensors=tensors),
        architecture=replace(design.architecture, levels=levels),
    )


@pytest.mark.parametrize("directives", [0.0, 0.2])
def test_reference_counts(directives: float):
    """All kinds, with bypass and links: every count to the last word."""
    assert all(check_reference(design) for design in draw(1, 200, directives=directives))


def test_smooth_counts():
    """Without roundings, links and extrapolation."""
    assert all(check_smooth(design) for design in draw(2, 200, directives=0.1))


def test_smooth_counts_are_least_traffic():
    """Where `exactness` says so, the smooth model counts what a buffer for one tile truly needs."""
    exact = [d for d in draw(3, 200) if d.nest is not None and exactness(d.einsum, d.nest, second_index=False)]
    assert len(exact) > 160
    assert all(check_smooth(design, "full") for design in exact)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_unusual_projections(name: str):
    for design in draw(4, 24, "conv1d", directives=0.1):
        strange = unusual(design, "Inputs", PROJECTIONS[name])
        assert check_reference(strange) and check_smooth(strange)


def test_output_with_holes():
    """A strided output's tile has more words than are ever written: where no count of reads exists, the status says so
    and the numbers stay finite."""
    strange = [unusual(design, "Outputs", (_axis("K"), _axis(("P", 3)))) for design in draw(5, 40, "conv1d")]
    counted = [check_reference(design) for design in strange]
    assert 5 < sum(counted) < 35
    for design in strange:
        assert_all_finite(jl.evaluate(design))


@pytest.mark.slow
def test_links_as_the_loops_really_run():
    """Every index visited, links on: the rule, and where `exactness` says so the truth."""
    conventions = jl.Conventions(second_index_motion=False)
    for design in draw(6, 1500, directives=0.1):
        options = {"second_index": False, "links": True}
        check(design, conventions, policy="model", **options)
        assert design.nest is not None
        if exactness(design.einsum, design.nest, second_index=False):
            check(design, conventions, policy="full", **options)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_long_sweep(seed: int):
    for design in draw(seed, 500, directives=0.1):
        assert check_reference(design) and check_smooth(design)
        assert design.nest is not None
        if exactness(design.einsum, design.nest, second_index=False):
            assert check_smooth(design, "full")
