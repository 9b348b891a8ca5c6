"""The layout of sparse designs; tests/spec_examples compares whole files."""

import pytest

import jaxloop
from jaxloop.report import stats_text
from tests.report.conftest import DATA, sparse_texts
from tests.spec_examples.examples import EXAMPLES
from tests.spec_examples.stats import different_lines, figures


@pytest.mark.parametrize("name", ["06", "08"])
def test_equals_the_reference(name, sparse):
    assert different_lines(stats_text(sparse(name)), EXAMPLES[name].expected()) == []


def _with_key(name: str, sparse: str) -> jaxloop.Evaluation:
    files = {path.name: path.read_text() for path in (DATA / name).glob("*.yaml")}
    return jaxloop.evaluate(jaxloop.loads(files | {"sparse.yaml": sparse}))


def test_an_empty_key_selects_the_layout(expected_stats):
    """Nothing else changes: every figure of the dense file is there, and all operations are actual ones."""
    text = stats_text(_with_key("matmul", "sparse_optimizations: {targets: []}\n"))
    ours, dense = figures(text), figures(expected_stats("matmul"))
    shared = set(ours) & set(dense)
    areas = {("Summary Stats", "", "Area")}
    assert {key for key in shared if ours[key] != dense[key]} <= areas
    labels = {label for *_, label in shared}
    assert {"Cycles", "Scalar reads (per-instance)", "Energy (total)", "Write Bandwidth (total)", "Total"} <= labels
    for (block, tensor, label), value in ours.items():
        if label.startswith("Actual scalar "):
            assert value == ours[block, tensor, label.replace("Actual scalar", "Scalar")]
    assert ours["MulAcc", "", "Actual Computes (total)"] == ours["MulAcc", "", "Computes (total)"]


def test_metadata_without_bits_is_no_traffic(sparse):
    """The bitmask of 07b has units, but the level gives them no bits: the reference prints a bare 0."""
    text = stats_text(sparse("07b"))
    assert "            Rank 0 (metadata, payload): (16, 0)\n" in text
    assert "Actual scalar format reads (per-instance)                   : 0\n" in text


def test_metadata_of_each_rank(sparse):
    lines = stats_text(sparse("06")).splitlines()
    label = "        Actual scalar format reads (per-instance)                   "
    first = len(lines) - 1 - lines[::-1].index(label)
    assert lines[first + 1 : first + 3] == [
        "            Rank 1 (metadata, payload): (0,  25)",
        "            Rank 0 (metadata, payload): (312,  0)",
    ]


@pytest.mark.slow
def test_networks_keep_the_instances_of_the_mapping():
    """Per instance of the mapping, however many of them have something to do."""
    files = sparse_texts("07")
    files["arch.yaml"] = files["arch.yaml"].replace(
        "metadata_storage_depth: 32,", "metadata_storage_depth: 32, energy-per-hop: 0.25,"
    )
    evaluation = jaxloop.evaluate(jaxloop.loads(files))
    total = float(evaluation.network_energy_pj[0, 0])
    assert total > 0 and float(evaluation.instances[0, 0]) == 1.75
    found = figures(stats_text(evaluation))
    assert found["R <==> MAC", "A", "Energy (per-instance)"] == f"{total / 2:.2f} pJ"
