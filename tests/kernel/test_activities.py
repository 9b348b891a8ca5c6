"""Energy by activity, with that of the compute units, is all energy. For an overbooked design see
`tests/report/test_explain.py`."""

import pytest

import jaxloop
from jaxloop.program import Activity
from tests.helpers import assert_activities_sum
from tests.report.conftest import DATA


def test_a_dense_design():
    one = jaxloop.evaluate(jaxloop.load("eyeriss:alexnet_conv2"))
    assert_activities_sum(one)
    assert not one.energy_pj_by_activity[:, Activity.METADATA].any()


@pytest.mark.slow
def test_a_design_with_wires():
    one = jaxloop.evaluate(jaxloop.load(*map(str, sorted((DATA / "wired").glob("*.yaml")))))
    assert_activities_sum(one)
    expected = one.network_energy_pj + one.link_energy_pj
    assert one.energy_pj_by_activity[:, Activity.NETWORK].sum() == pytest.approx(expected.sum(), rel=1e-12) != 0.0


def test_a_sparse_design():
    one = jaxloop.evaluate(jaxloop.load("coordinate_list:matmul-0.1"))
    assert_activities_sum(one)
    assert one.energy_pj_by_activity[:, Activity.METADATA].any()
