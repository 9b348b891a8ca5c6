"""Where the energy goes: the parts that sum to `Evaluation.energy_pj` (spec/dense.md section 10)."""

import numpy as np

from ..result import Evaluation


def level_energy_pj(evaluation: Evaluation) -> np.ndarray:
    """Energy in pJ of each storage level, all instances: data accesses and address generation. [level]"""
    return np.asarray(evaluation.energy_pj_by_tensor + evaluation.address_energy_pj).sum(1)


def network_energy_pj(evaluation: Evaluation) -> np.ndarray:
    """Energy in pJ of the network below each storage level, all instances, links included. [level]"""
    return np.asarray(evaluation.network_energy_pj + evaluation.link_energy_pj).sum(1)
