"""The user's values in the sparse part of a program."""

from dataclasses import replace

import numpy as np
import pytest

import jaxloop as jl
from jaxloop._errors import SpecError
from jaxloop.lower import lower
from jaxloop.lower.override import override
from jaxloop.lower.sparse import AXES
from jaxloop.spec.sparse import SparseOptimizations

from .base import GLB, SPAD, design


def test_densities_take_the_place_of_the_files():
    lowered = lower(design(), jl.TIMELOOP_2022, exact=True)
    found = override(lowered, None, None, (3,), {"A": 0.5, "Z": np.array([0.0, 0.5, 1.0])}).sparse
    assert found is not None and found.density.tolist() == [[0.5] * 3, [1.0] * 3, [0.0, 0.5, 1.0]]
    kept = lowered.program.sparse
    assert kept is not None and kept.density.tolist() == [0.25, 1.0, 1.0]


@pytest.mark.parametrize(
    "attribute, leaf, index",
    [
        ("Glb.metadata_width", "metadata_width", (GLB,)),
        ("Glb.metadata_size", "metadata_size", (GLB,)),
        ("Glb.decompression_supported", "decompression_supported", (GLB,)),
        ("Glb.gated_read_energy", "gated_energy", (0, GLB)),
        ("Glb.skipped_update_energy", "skipped_energy", (2, GLB)),
        ("Glb.metadata_read_energy", "metadata_energy", (0, 0, GLB)),
        ("Spad.gated_metadata_fill_energy", "metadata_energy", (1, 1, SPAD)),
        ("Spad.skipped_metadata_update_energy", "metadata_energy", (2, 2, SPAD)),
        ("Spad.decompression_energy", "conversion_energy", (0, SPAD)),
        ("Spad.compression_energy", "conversion_energy", (1, SPAD)),
        ("Mac.gated_energy", "gated_compute_energy", ()),
        ("Mac.skipped_energy", "skipped_compute_energy", ()),
    ],
)
def test_hardware_attributes_of_sparse_designs(attribute: str, leaf: str, index: tuple[int, ...]):
    lowered = lower(design(), jl.TIMELOOP_2022, exact=True)
    before, after = lowered.program.sparse, override(lowered, {attribute: [70.0, 80.0]}, None, (2,)).sparse
    assert before is not None and after is not None
    for name in AXES:
        expected = np.asarray(getattr(before, name))[..., None]
        if name == leaf:
            expected = np.repeat(expected, 2, axis=-1)
            expected[index] = [70.0, 80.0]
        np.testing.assert_array_equal(getattr(after, name), expected, err_msg=name)


def test_sparse_attributes_of_dense_designs_are_errors():
    lowered = lower(replace(design(), sparse=SparseOptimizations()), jl.TIMELOOP_2022)
    with pytest.raises(SpecError, match='"gated_read_energy" has no effect: the design has no sparse optimizations'):
        override(lowered, {"Glb.gated_read_energy": 1.0}, None, ())
    with pytest.raises(SpecError, match='"Mac" has no attribute "gated_enrgy"'):
        override(lowered, {"Mac.gated_enrgy": 1.0}, None, ())


def test_densities_and_sparse_hardware_in_evaluations():
    """One evaluation shows the values in its context; in a batch they are axes like others."""
    one = jl.evaluate(design(), densities={"A": 0.5, "B": 0.75}, hardware={"Mac.gated_energy": 7.0})
    assert one.context is not None and one.context.program.sparse is not None
    assert one.context.program.sparse.density.tolist() == [0.5, 0.75, 1.0]
    assert one.context.program.sparse.gated_compute_energy == 7.0
    many = jl.evaluate(design(), densities={"A": [[0.1], [0.2]], "B": [0.5, 0.6, 0.7]}, fields=("cycles",))
    assert np.shape(many.cycles) == (2, 3)


def test_densities_without_effect_warn():
    dense = replace(design(), sparse=SparseOptimizations())
    with pytest.warns(UserWarning, match="densities= has no effect"):
        same = jl.evaluate(dense, densities={"A": 0.5})
    assert same.to_dict() == jl.evaluate(dense).to_dict()
