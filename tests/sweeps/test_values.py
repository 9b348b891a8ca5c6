"""What the values of axes may look like, and the one error, with its remedy, of each that makes no sense."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.run.executables import compilations
from jaxloop.sweeps.values import read_values
from tests.sparse_examples import EXAMPLES
from tests.sweeps.base import BOTH, SPARSE, dense_design, mappings, sparse_design


@pytest.mark.parametrize(
    "text, values",
    [
        ("1,2,3", [1, 2, 3]),
        ("[0.5, 2]", [0.5, 2]),
        ("7", [7]),
        ("linspace(0, 1, 5)", [0, 0.25, 0.5, 0.75, 1]),
        (" linspace ( 2,2, 1 ) ", [2]),
        ("logspace(0.01, 100, 5)", [0.01, 0.1, 1, 10, 100]),
        ("range(1, 9, 2)", [1, 3, 5, 7, 9]),
        ("range(0, 1, 0.1)", np.arange(11) / 10),
        ("range(5, 1, -2)", [5, 3, 1]),
        (np.array(3.0), [3]),
        (np.array([3, 4]), [3, 4]),
        (range(3), [0, 1, 2]),
        ((0.1, 0.2), [0.1, 0.2]),
        (2, [2]),
    ],
)
def test_numbers(text: Any, values: list[float]):
    np.testing.assert_allclose(np.asarray(read_values("x", text), float), values, rtol=1e-15)


@pytest.mark.parametrize("first, last, number", [(0.01, 1.0, 100), (1e-3, 0.7, 33), (3.0, 1e9, 7), (0.3, 0.1, 2)])
def test_the_ends_of_spaces_are_exact(first: float, last: float, number: int):
    for kind in ("linspace", "logspace"):
        values = read_values("x", f"{kind}({first}, {last}, {number})")
        assert len(values) == number and values[0] == first and values[-1] == last
    ratios = np.asarray(values)[1:] / np.asarray(values)[:-1]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)


@pytest.mark.parametrize(
    "text, values",
    [
        ("none,UOP-CP", ["none", "UOP-CP"]),
        ("[UOP(0)-CP(14), none]", ["UOP(0)-CP(14)", "none"]),
        ("skipping(A,B)+gating(Z),none", ["skipping(A,B)+gating(Z)", "none"]),
        (["UOP-CP"], ["UOP-CP"]),
    ],
)
def test_texts(text: Any, values: list[str]):
    assert read_values("x", text) == values


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors come before the first compilation and before any file."""

    def refuse(*arguments: Any) -> None:
        raise AssertionError("something is computed")

    for name in ("compute", "open_store"):
        monkeypatch.setattr(import_module("jaxloop.sweeps.sweep"), name, refuse)


OTHER_LEVELS = EXAMPLES["1 compute gating"]
WRONG: dict[str, tuple[dict[Any, Any], str]] = {
    "unknown axis": ({"denstiy.A": [0.1]}, r'no axis "denstiy.A" \(did you mean "density.A".*; kinds: density.TENSOR'),
    "axis without a key": ({"density": [0.1]}, r'no (axis|tensor) "'),
    "unknown level": ({"Bufer.size": [1]}, r'no axis "Bufer.size" \(did you mean "Buffer.size"'),
    "unknown attribute": (
        {"Buffer.read_bandwith": [1]},
        r'did you mean "read_bandwidth"',
    ),
    "unknown tensor": ({"density.Q": [0.1]}, r'no tensor "Q" \(valid: A, B, Z\)'),
    "unknown rank": ({"rank.Q": [1]}, r'no rank "Q" \(valid: M, N, K\)'),
    "unknown level of a format": ({"format.Bufer.A": ["none"]}, r'no level "Bufer" \(did you mean "Buffer"\?\)'),
    "unknown tensor of a format": ({"format.Buffer.Q": ["none"]}, r'no tensor "Q" \(valid: A, B, Z\)'),
    "format without a tensor": ({"format.Buffer": ["none"]}, r'no tensor "" \(valid: A, B, Z\)'),
    "unknown format": ({"format.Buffer.A": ["UOP-CSR"]}, r'"UOP-CSR" is no representation format \(write rank formats'),
    "formats out of order": ({"format.Buffer.A": ["CP-UOP"]}, r"compressed rank above .* \(put UOP and UB outermost\)"),
    "too many bits": (
        {"format.Buffer.A": ["UOP-CP(99)"]},
        r"99 bits do not fit a metadata row of 8",
    ),
    "bits without use": ({"format.Buffer.A": ["UB(3)"]}, r"UB has no words of its own \(write UB without bits\)"),
    "unknown saf": (
        {"saf.Buffer.A": ["skiping(B)"]},
        r'"skiping\(B\)" is no sparse acceleration feature \(w',
    ),
    "saf of nothing": ({"saf.Buffer.A": ["skipping"]}, r'"skipping" names no tensor to depend on \(write "none"'),
    "saf of too much": ({"saf.Buffer.A": ["position_skipping(B)"]}, r'"position_skipping\(B\)" names tensors \(write'),
    "saf of another": ({"saf.Buffer.A": ["skipping(Q)"]}, r'no tensor "Q" \(valid: A, B, Z\)'),
    "saf of itself": ({"saf.Buffer.A": ["gating(A,B)"]}, r'makes tensor "A" depend on itself \(name other tensors\)'),
    "unknown compute": ({"saf.MUL": ["none"]}, r'no compute unit "MUL" \(valid: MAC\)'),
    "compute that skips wrongly": ({"saf.MAC": ["skip"]}, r'"skip" is nothing that compute units do \(write "none"'),
    "whole alternatives without names": ({"sparse": ["none"]}, r'needs designs by name \(give \{"name": design'),
    "twice the same axis": ({"density.A": [0.1], ("density.A", "density.B"): [0.1]}, r"given twice \(merge the two\)"),
    "twice in one tuple": ({("density.A", "density.A"): [0.1]}, r"given twice \(merge the two\)"),
    "rows too short": ({("density.A", "density.B"): [(0.1, 0.2), (0.3,)]}, r"has not one value for each of density.A"),
    "rows too long": ({("density.A", "density.B"): [(0.1, 0.2, 0.3)]}, r"has not one value for each of density.A"),
    "rows of both kinds": ({("density.A", "density.B"): [(0.1, 0.2), 0.3]}, r"has not one value for each of density.A"),
    "negative size": ({"Buffer.size": [8, -1]}, r"-1 is no size \(give numbers of at least 0\)"),
    "bandwidth 0": ({"Buffer.read_bandwidth": [0]}, r"0 is no read_bandwidth \(give numbers above 0\)"),
    "rank 0": ({"rank.M": [8, 0]}, r"is no whole number of at least 1 \(give whole numbers"),
    "broken rank": ({"rank.M": [8, 1.5]}, r"is no whole number of at least 1 \(give whole numbers"),
    "density above 1": ({"density.A": [0.5, 1.5]}, r"1\.5"),
    "density below 0": ({"density.A": [-0.5]}, r"-0\.5"),
    "nan": ({"Buffer.size": [1.0, float("nan")]}, r"nan is no value \(write"),
    "density nan": ({"density.A": [float("nan")]}, r"nan is no value \(write"),
    "infinite rank": ({"rank.M": [float("inf")]}, r"is no whole number of at least 1 \(give whole numbers"),
    "no values": ({"density.A": []}, r"the axis has no values \(write"),
    "no values as text": ({"density.A": ""}, r"the axis has no values \(write"),
    "no rows": ({("density.A", "density.B"): []}, r"the axis has no values \(write"),
    "no names": ({(): [1, 2]}, r"the axis has no name \(kinds: density.TENSOR"),
    "no number": ({"density.A": "0.1,much"}, r"'much' is no number \(write"),
    "no list": ({"density.A": None}, r"None is no list of values \(write"),
    "table": ({"density.A": [[0.1, 0.2]]}, r"is no number \(write"),
    "two arguments": ({"density.A": "linspace(0, 1)"}, r"linspace\(0, 1\) needs three numbers \(write"),
    "half a value": ({"density.A": "linspace(0, 1, 2.5)"}, r"makes no sensible number of values \(write"),
    "range of nothing": ({"density.A": "range(0, 1, 0)"}, r"makes no sensible number of values \(write"),
    "range the wrong way": ({"density.A": "range(1, 0, 0.1)"}, r"makes no sensible number of values \(write"),
    "range of too much": ({"density.A": "range(0, 1, 1e-12)"}, r"makes no sensible number of values \(write"),
    "infinite range": ({"density.A": "range(0, inf, 1)"}, r"needs finite numbers \(write"),
    "infinite number": ({"density.A": "linspace(0, 1, inf)"}, r"needs finite numbers \(write"),
    "nan number": ({"density.A": "linspace(0, 1, nan)"}, r"needs finite numbers \(write"),
    "logspace of exponents": (
        {"density.A": "logspace(-3, 0, 4)"},
        r"needs numbers above 0 \(give first",
    ),
    "another function": ({"density.A": "geomspace(1, 2, 3)"}, r"'geomspace\(1, 2, 3\)' is no number \(write"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values(case: str, nothing_runs: None):
    over, message = WRONG[case]
    with pytest.raises(jl.SpecError, match=message) as caught:
        jl.sweep(sparse_design(), over)
    assert len(caught.value.errors) == 1
    assert caught.value.errors[0].remedy


def test_lengths_that_differ(nothing_runs: None):
    choices: list[dict[str, Any]] = [{"zipped": True}, {"zipped": True, "mappings": mappings()}]
    for options in choices:
        with pytest.raises(jl.SpecError, match=r"different lengths \(.*density.A: 2, density.B: 3\) \(make them equal"):
            jl.sweep(sparse_design(), {"density.A": [0.1, 0.2], "density.B": [0.1, 0.2, 0.3]}, **options)


def test_whole_alternatives_of_another_architecture(nothing_runs: None):
    other = replace(sparse_design(), einsum=replace(sparse_design().einsum, ranks=("M", "N", "L")))
    with pytest.raises(jl.SpecError, match=r'"other" has other levels, tensors or ranks \(vary designs of one arch'):
        jl.sweep(sparse_design(), {"sparse": {"both": jl.loads(BOTH.texts()), "other": other}})


def test_an_axis_that_a_dense_design_does_not_have(nothing_runs: None):
    with pytest.raises(jl.SpecError, match=r'"metadata_width" has no effect: .* \(leave it out\)'):
        jl.sweep(dense_design(), {"Buffer.metadata_width": [8]})


def test_no_mapping(nothing_runs: None):
    texts = {name: text for name, text in SPARSE.texts().items() if name != "mapping"}
    with pytest.raises(jl.SpecError, match=r"the files hold no mapping \(add one or pass mappings=\)"):
        jl.sweep(jl.loads(texts), {"density.A": [0.1]})


@pytest.mark.parametrize(
    "reduce, message",
    [
        (jl.Best("enregy"), r'no result "enregy" \(did you mean "energy_pj"'),
        (jl.Best(per="density.B"), r'no dimension "density.B" to keep \(did you mean "density.A"\?\)'),
        (jl.Best("reads"), r'"reads" is not one number per point \(reduce by others\)'),
        (jl.Best(k=0), r"k=0 keeps nothing \(keep at least 1\)"),
        (jl.Pareto(("cycles", "latency")), r'no result "latency"'),
        (jl.Histogram("cycles", [1, 2], per="what"), r'no dimension "what" to keep'),
        ({}, r"reduce= names no reduction"),
    ],
)
def test_wrong_reductions(reduce: Any, message: str, nothing_runs: None):
    with pytest.raises((jl.SpecError, ValueError), match=message):
        jl.sweep(sparse_design(), {"density.A": [0.1]}, reduce=reduce)


@pytest.mark.parametrize("edges", [[1], [1, 1], [2, 1], "1,x", [1, float("nan")], []])
def test_wrong_edges(edges: Any):
    with pytest.raises(jl.SpecError, match="edges"):
        jl.Histogram("cycles", edges)


def test_wrong_fields(nothing_runs: None):
    with pytest.raises(jl.SpecError, match=r'no result "energy_pJ" \(did you mean "energy_pj"'):
        jl.sweep(sparse_design(), fields=("energy_pJ",))
    with pytest.raises(ValueError, match="names no result"):
        jl.sweep(sparse_design(), fields=())
    with pytest.raises(ValueError, match="integer counts need float64"):
        jl.sweep(sparse_design(), dtype=np.float32)


def test_more_points_than_can_ever_be_computed():
    design = jl.load("eyeriss:alexnet_conv2")
    before = compilations()
    with pytest.raises(jl.SpecError, match=r"points are too many \(1e\+12 at most: sample the mappings"):
        jl.sweep(design, mappings=jl.MapSpace(design), reduce=jl.Best())
    assert compilations() == before
