"""Eyeriss on the convolutions of AlexNet: worked example 11 of spec/dense.md, also the artifact's answers."""

from functools import cache

import pytest

import jaxloop as jl

MICROJOULES = 1e6
LAYERS = {
    "alexnet_conv1": (2838528, 2137.488),
    "alexnet_conv2": (6881280, 4402.457),
    "alexnet_conv3": (3833856, 2927.084),
    "alexnet_conv4": (2875392, 2259.789),
    "alexnet_conv5": (1916928, 1506.526),
}
"""Layer -> cycles and uJ."""

CONV2 = {
    "shared_glb": {
        "Inputs": {"reads": 13762560, "fills": 1769472, "partition_size": 196608},
        "Outputs": {"reads": 8830976, "fills": 802816, "updates": 9633792},
    },
    "weights_spad": {"Weights": {"reads": 6881280, "fills": 122880, "utilized_instances": 140}},
    "ifmap_spad": {"Inputs": {"reads": 6881280, "fills": 98304, "partition_size": 5461}},
    "psum_spad": {"Outputs": {"reads": 6823936, "fills": 688128, "updates": 6881280, "partition_size": 57344}},
    "DRAM": {"Weights": {"reads": 1228800}, "Inputs": {"reads": 1769472}, "Outputs": {"updates": 802816}},
}
"""Level -> tensor -> words per instance."""


@cache
def evaluation(layer: str) -> jl.Evaluation:
    return jl.evaluate(jl.load(f"eyeriss:{layer}"))


@pytest.mark.parametrize("layer", LAYERS)
def test_cycles_and_energy(layer: str):
    cycles, energy = LAYERS[layer]
    one = evaluation(layer)
    assert one.valid and one.cycles == cycles
    assert one.energy_pj / MICROJOULES == pytest.approx(energy, abs=0.5e-3)


@pytest.mark.parametrize(
    ("level", "tensor"), [(level, tensor) for level, tensors in CONV2.items() for tensor in tensors]
)
def test_traffic_of_conv2(level: str, tensor: str):
    (found,) = (each for each in evaluation("alexnet_conv2").to_dict()["levels"] if each["name"] == level)
    for field, count in CONV2[level][tensor].items():
        key = f"algorithmic_{field}" if field in ("reads", "fills", "updates") else field
        assert found[key][tensor] == count, field


def test_work_of_conv2():
    one = evaluation("alexnet_conv2")
    assert one.computes == 963379200
    assert one.utilization == pytest.approx(0.8333, abs=0.5e-4)
