"""The worked examples 1 to 11 of spec/sparse.md section 7 (tests/sparse_examples.py), every number that the text gives.

The text cuts off most of the digits of real numbers; they follow from the counts that it names, written out here.
"""

from functools import cache
from math import comb, floor
from typing import Any

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.program import Fate
from tests.sparse_examples import BACKING, BUFFER, EXAMPLES, A, B, Z

LEADER = comb(48, 16) / comb(64, 16)
"""Chance that 16 words of 64 hold none of 16 nonzeros (examples 3, 6 and 9): 0.0046156."""
SMALL = comb(48, 4) / comb(64, 4)
"""The same of 4 words (examples 4, 5, 7 and 11): 0.306244."""

FIGURES: dict[str, dict[str, dict[str, dict[str, Any]]]] = {
    "2 innermost gating": {
        "Buffer": {
            "algorithmic_reads": {"B": 128, "Z": 112},
            "algorithmic_updates": {"Z": 128},
            "actual_reads": {"B": 32, "Z": 14},
            "gated_reads": {"B": 96, "Z": 98},
            "actual_fills": {"B": 32, "Z": 16},
            "actual_updates": {"Z": 16},
            "gated_updates": {"Z": 112},
            "temporal_reductions": {"Z": 14},
            "energy_pj": {"B": 776, "Z": 695.5},
        }
    },
    "3 outer skipping": {
        "Backing": {"algorithmic_reads": {"B": 64}, "actual_reads": {"B": 64}, "skipped_reads": {"B": 0}},
        "Buffer": {
            "algorithmic_reads": {"B": 512},
            "actual_reads": {"B": 510},
            "actual_fills": {"B": 64},
            "gated_reads": {"A": 0, "B": 0, "Z": 0},
            "skipped_reads": {"A": 0, "B": 0, "Z": 0},
        },
    },
    "4 compressed": {
        "Buffer": {
            "algorithmic_reads": {"A": 512},
            "algorithmic_fills": {"A": 128},
            "actual_reads": {"A": 185},
            "actual_fills": {"A": 47},
            "expected_density": {"A": 0.25 / (1 - SMALL)},
            "actual_metadata_reads": {"A": [[180, 0], [0, 384]]},
            "actual_metadata_fills": {"A": [[45, 0], [0, 96]]},
            "occupancy_words": {"A": 4},
            "metadata_occupancy_units": {"A": [[4, 0], [0, 3]]},
            "utilized_instances": {"A": 1 - SMALL},
            "energy_pj": {"A": 1850 + 564 + 564 + 176.25},
            "energy_pj_total": {"A": 3154.25 * (1 - SMALL)},
        },
        "Backing": {
            "algorithmic_reads": {"A": 128},
            "actual_reads": {"A": 32},
            "metadata_occupancy_units": {"A": [[15, 0], [0, 34], [0, 20], [0, 5]]},
            "actual_metadata_reads": {"A": [[29, 0], [0, 67], [0, 40], [0, 10]]},
            "energy_pj": {"A": 1750},
        },
    },
    "5 double-sided": {
        "Buffer": {
            "actual_reads": {"A": 93, "B": 65, "Z": 56},
            "skipped_reads": {"A": 92, "B": 192, "Z": 392},
            "actual_updates": {"Z": 64},
            "skipped_updates": {"Z": 448},
            "actual_metadata_reads": {"A": [[66, 0], [0, 192]]},
            "skipped_metadata_reads": {"A": [[66, 0], [0, 192]]},
        }
    },
    "6 hierarchical": {
        "Buffer": {
            "actual_reads": {"B": 65},
            "skipped_reads": {"B": 191},
            "actual_fills": {"B": 33},
            "actual_metadata_reads": {"A": [[132, 0], [0, 384]], "B": [[0, 0], [0, 0]]},
            "skipped_metadata_reads": {"B": [[0, 0], [0, 0]]},
        }
    },
    "7 decompression": {
        "Buffer": {
            "actual_reads": {"A": 512},
            "actual_fills": {"A": 128},
            "utilized_instances": {"A": 1 - SMALL},
            "decompressions": {"A": 128, "Z": 256},
            "compressions": {"A": 0, "Z": 192},
            "energy_pj": {"A": 6688, "Z": 13696 + 121.6},
            "energy_pj_total": {"A": 6688 * (1 - SMALL)},
        },
        "Backing": {
            "algorithmic_updates": {"Z": 256},
            "actual_updates": {"Z": 256 - 64},
            "occupancy_words": {"A": 16},
            "metadata_occupancy_units": {"A": [[12, 0], [12, 12]]},
        },
    },
    "8 whole tensor": {
        "Buffer": {
            "algorithmic_reads": {"A": 512},
            "actual_reads": {"A": 512 - 384},
            "utilized_instances": {"A": 1},
            "metadata_occupancy_units": {"A": [[15, 0], [0, 9]]},
            "expected_metadata_units": {"A": [[8 * (1 - comb(48, 8) / comb(64, 8)) * 2, 0], [0, 9]]},
        }
    },
    "8f whole tensor, structured": {"Buffer": {"metadata_occupancy_units": {"A": [[16, 0], [0, 9]]}}},
    "9 spatial": {
        "Buffer": {"algorithmic_reads": {"A": 128}, "actual_reads": {"A": 64}, "skipped_reads": {"A": 64}},
    },
    "10 banded": {
        "Buffer": {
            "algorithmic_reads": {"A": 512},
            "actual_reads": {"A": 512 - 230},
            "utilized_instances": {"A": 0.625},
            "expected_occupancy_words": {"A": 2.2},
            "expected_density": {"A": 0.55},
            "expected_metadata_units": {"A": [[1.6, 0], [0, 0.4 * 3]]},
            "actual_metadata_fills": {"A": [[52, 0], [0, 39]]},
        }
    },
    "11 blocks": {
        "Buffer": {
            "actual_reads": {"A": 185, "B": 512 - 156},
            "skipped_reads": {"B": 156},
            "actual_fills": {"A": 47},
            "energy_pj": {"A": (47 * 10 + 12 * 12) * (1 - SMALL) ** 2 / 0.25 + 564 + 141 * 1.25},
        }
    },
}
"""Level -> field of `to_dict()` -> tensor -> figure."""

COMPUTES = {
    "1 compute gating": ((16, 112, 0), 128),
    "2 innermost gating": ((16, 16, 0), 32),
    "3 outer skipping": ((510, 0, 0), 510),
    "4 compressed": ((512, 0, 0), 512),
    "5 double-sided": ((64, 0, 0), 64),
    "6 hierarchical": ((64, 0, 64), 64),
    "9 spatial": ((255, 0, 0), 64),
}
"""Operations that happen, are gated and skipped; cycles."""

SAFS = {
    "2 innermost gating": {(BUFFER, B): 1 - 8 / 32, (BUFFER, Z): 1 - 0.25 * 0.5},
    "3 outer skipping": {(BACKING, B): LEADER},
    "5 double-sided": {(BUFFER, A): 0.5, (BUFFER, B): 0.75, (BUFFER, Z): 0.875},
    "6 hierarchical": {(BACKING, B): LEADER, (BUFFER, B): 0.75},
    "9 spatial": {(BACKING, B): LEADER, (BUFFER, A): 0.5},
    "11 blocks": {(BUFFER, B): SMALL},
}
"""Chance of each SAF; all others are absent."""

LEADERS = {
    ("3 outer skipping", BACKING, B, A): 8 * 2,
    ("9 spatial", BACKING, B, A): 8 * 2,
    ("11 blocks", BUFFER, B, A): 1 * 4,
}
"""Words of the leader tile at a level, of a target under a condition."""


@cache
def evaluated(name: str) -> jl.Evaluation:
    return EXAMPLES[name].evaluate()


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name: str):
    levels = {level["name"]: level for level in evaluated(name).to_dict()["levels"]}
    assert evaluated(name).valid
    for level, fields in FIGURES[name].items():
        for field, tensors in fields.items():
            for tensor, expected in tensors.items():
                ours = levels[level][field][tensor]
                np.testing.assert_allclose(ours, expected, rtol=1e-12, err_msg=f"{level} {field} {tensor}")


@pytest.mark.parametrize("name", COMPUTES)
def test_computes(name: str):
    counts, cycles = COMPUTES[name]
    assert tuple(evaluated(name).computes_by_fate) == counts
    assert evaluated(name).cycles == evaluated(name).compute_cycles == cycles


@pytest.mark.parametrize(("name", "energy"), [("1 compute gating", 16 * 2 + 112 * 0.5), ("2 innermost gating", 40)])
def test_energy_of_the_units(name: str, energy: float):
    assert evaluated(name).compute_energy_pj == energy


@pytest.mark.parametrize("name", EXAMPLES)
def test_chances_of_safs(name: str):
    expected = np.zeros((2, 3))
    for place, chance in SAFS.get(name, {}).items():
        expected[place] = chance
    np.testing.assert_allclose(evaluated(name).saf_chance, expected, rtol=1e-12)
    assert ((evaluated(name).saf_kind > 0) == (expected > 0)).all()


@pytest.mark.parametrize("place", LEADERS)
def test_leader_tiles(place: tuple[str, int, int, int]):
    name, level, target, condition = place
    assert evaluated(name).leader_words[level, target, condition] == LEADERS[place]


def test_what_an_inner_saf_removes_of_what_an_outer_one_left():
    found = evaluated("6 hierarchical")
    assert found.saf_local_chance[BUFFER, B] == pytest.approx(1 - 0.25 / (1 - LEADER), rel=1e-12)
    assert found.saf_local_chance[BACKING, B] == pytest.approx(0.0046156, abs=5e-8)
    left = 257 - floor(257 * LEADER)
    assert found.accesses[Fate.SKIPPED, 0, BUFFER, B] == floor(left * found.saf_local_chance[BUFFER, B]) == 191


def test_tiles_are_empty_with_these_chances():
    assert evaluated("4 compressed").tile_empty[BUFFER, A] == pytest.approx(SMALL, rel=1e-12)
    assert evaluated("5 double-sided").tile_empty[BUFFER, B] == pytest.approx(comb(32, 8) / comb(64, 8), rel=1e-12)
    assert evaluated("10 banded").tile_empty[BUFFER, A] == 6 / 16
    assert not evaluated("8 whole tensor").tile_empty.any()


def test_metadata_of_nonempty_tiles_of_example_4():
    """The only unit of example 4 that is a sum over occupancies: both rows with two nonzeros at most hold one word."""
    chances = [comb(16, k) * comb(48, 4 - k) / comb(64, 4) / (1 - SMALL) for k in range(5)]
    rows = [0.0, 2 * (1 - 3 / 6), 2 * (1 - 1 / 6), 2 * 2, 2 * 2]
    expected = sum(chance * units for chance, units in zip(chances, rows, strict=True))
    units = evaluated("4 compressed").metadata_units[BUFFER, A]
    np.testing.assert_allclose(units[:2], [[expected, 0.0], [0.0, 3.0]], rtol=1e-12)
