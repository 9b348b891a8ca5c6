"""Designs whose counts are known: small cases counted by hand, and known limits of the statistical model."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .sampled import Key, Sampler, Simulation
from .sampled_designs import Level, Saf, Spec
from .sampled_tensors import Masks, blocks, products, sample_all

UNIFORM = "hypergeometric"


def empty(size: int, nonzeros: int, words: int) -> float:
    """Chance that a tile of so many words holds none of the nonzeros, spread anywhere over `size` words."""
    return math.comb(size - nonzeros, words) / math.comb(size, words)


TWO_LEVELS = Level("K2 N4 M2"), Level("M4 K4 N2")
DENSITIES = {"A": (UNIFORM, 0.25), "B": (UNIFORM, 0.5)}
GATING = Spec(
    "matmul",
    (Level("K8 N4 M2"), Level("M2")),
    DENSITIES,
    safs=(Saf(0, "B", "A", "gating"), Saf(0, "Z", "AB", "gating")),
    compute=("gating",),
)
SKIPPED_TILES = Spec("matmul", TWO_LEVELS, DENSITIES, safs=(Saf(1, "B", "A"),))
COMPRESSED = Spec("matmul", TWO_LEVELS, DENSITIES, {(1, "A"): "UOP UOP UOP CP", (0, "A"): "UOP CP"})
BOTH_SIDES = Spec(
    "matmul",
    TWO_LEVELS,
    DENSITIES,
    {(1, "A"): "UOP UOP UOP RLE", (0, "A"): "UOP RLE", (1, "B"): "CP CP CP B", (0, "B"): "CP B"},
    (Saf(0, "A", "B"), Saf(0, "B", "A"), Saf(0, "Z", "AB")),
    ("skipping",),
)
A_TILE = empty(64, 16, 4)
"""Chance that A's tile of 4 in the two-level examples is empty: 0.306244."""
A_LEADER = empty(64, 16, 16)
"""Chance that the leader tile of 16 is empty: 0.0046156."""

BITMASKED = Spec("matmul", TWO_LEVELS, DENSITIES, {(1, "A"): "UOP UOP UB CP", (0, "A"): "UB CP"})

BY_HAND: list[tuple[Spec, dict[Key, float]]] = [
    (
        GATING,  # worked example E2 of spec/sparse.md
        {
            ("reads", "actual", 0, "B"): 32,
            ("reads", "gated", 0, "B"): 96,
            ("reads", "actual", 0, "Z"): 14,
            ("reads", "gated", 0, "Z"): 98,
            ("updates", "actual", 0, "Z"): 16,
            ("temporal_reductions", 0, "Z"): 14,
            ("computes", "actual"): 16,
            ("computes", "gated"): 16,
            ("cycles",): 32,
        },
    ),
    (
        SKIPPED_TILES,  # E3
        {
            ("reads", "skipped", 1, "B"): 64 * A_LEADER,
            ("reads", "actual", 0, "B"): 512 * (1 - A_LEADER),
            ("fills", "actual", 0, "B"): 64 * (1 - A_LEADER),
            ("computes", "actual"): 512 * (1 - A_LEADER),
        },
    ),
    (
        COMPRESSED,  # E4, with each nonempty coordinate counted once
        {
            ("instances", 0, "A"): 1 - A_TILE,
            ("reads", "actual", 0, "A"): 512 * 0.25,
            ("fills", "actual", 0, "A"): 128 * 0.25,
            ("metadata_reads", "actual", 0, "A", 1, "payload"): 512 / 4 * 3 * (1 - A_TILE),
            ("metadata_fills", "actual", 0, "A", 0, "metadata"): 32,
            ("metadata_reads", "actual", 1, "A", 3, "payload"): 2 * 5,
            ("metadata_reads", "actual", 1, "A", 2, "payload"): 2 * 4 * 5 * (1 - empty(64, 16, 16)),
            ("metadata_reads", "actual", 1, "A", 1, "payload"): 2 * 16 * 3 * (1 - A_TILE),
            ("metadata_reads", "actual", 1, "A", 0, "metadata"): 2 * 16,
        },
    ),
    (
        BOTH_SIDES,  # E5, likewise
        {
            ("reads", "actual", 0, "A"): 64,
            ("reads", "skipped", 0, "A"): 64,
            ("reads", "actual", 0, "B"): 64,
            ("reads", "skipped", 0, "B"): 192,
            ("reads", "actual", 0, "Z"): 56,
            ("reads", "skipped", 0, "Z"): 392,
            ("updates", "actual", 0, "Z"): 64,
            ("metadata_reads", "actual", 0, "A", 1, "payload"): 512 / 4 * 3 * (1 - A_TILE) / 2,
            ("metadata_reads", "skipped", 0, "A", 0, "metadata"): 64,
            ("metadata_reads", "actual", 0, "B", 0, "metadata"): 512 / 8 * 4 * 2 * (1 - empty(64, 32, 2)) / 4,
            ("computes", "actual"): 64,
            ("computes", "skipped"): 0,
        },
    ),
    (
        BITMASKED,  # an uncompressed bitmask is stored whole, but not for tiles that are not there
        {
            ("tile_units", 0, "A", 1, "metadata"): 2 * (1 - A_TILE),
            ("tile_units", 0, "A", 1, "payload"): 2 * (1 - A_TILE),
            ("metadata_reads", "actual", 0, "A", 1, "metadata"): 512 / 4 * 2 * (1 - A_TILE),
            ("metadata_reads", "actual", 1, "A", 1, "metadata"): 2 * 32,
        },
    ),
]
"""Designs and their counts: worked examples of spec/sparse.md (without roundings, and each nonempty coordinate counted
once), and one more."""


@dataclass(frozen=True)
class Limit:
    """One count that the model gets wrong: what happens, and what it says."""

    spec: Spec
    key: Key
    truth: float
    model: float
    sampler: Sampler | None = None


def drawn(change: Callable[[Simulation, Masks, np.random.Generator], Masks]) -> Sampler:
    """Samples as the densities promise, then changed."""

    def sampler(simulation: Simulation, rng: np.random.Generator, samples: int) -> Masks:
        return change(simulation, sample_all(simulation.design, simulation.walk, rng, samples), rng)

    return sampler


TWO_OF_FOUR = drawn(lambda _, masks, rng: masks | {"A": blocks(rng, len(masks["A"]), masks["A"].shape[1:], 2, 4)})
"""A is not a lattice: 2 of 4 neighbors along K, at random."""
REAL_OUTPUTS = drawn(lambda simulation, masks, _: products(simulation.walk, masks))
HALF = {"A": ("fixed-structured", 0.5)}
BAND = {"A": ("banded", 1.0)}
OUTPUT_DENSITY = 42 / 64
"""The share of nonzero outputs of 8x8 products of densities 1/4 and 1/2, 1 - (1 - 1/8)^8, in whole elements."""

LIMITS = {
    "two directives on one tensor at one level": Limit(
        Spec("matmul", GATING.levels, DENSITIES, safs=(Saf(0, "Z", "A", "gating"), Saf(0, "Z", "B"))),
        ("updates", "actual", 0, "Z"),
        128 * 0.25 * 0.5,
        128 * 0.25,
    ),
    "different leaders at two levels": Limit(
        Spec("matmul", TWO_LEVELS, DENSITIES, safs=(Saf(1, "Z", "A"), Saf(0, "Z", "B"))),
        ("updates", "actual", 0, "Z"),
        512 * (1 - A_TILE) * 0.5,
        512 * 0.5,
    ),
    "a tile that stays put beyond its level": Limit(
        Spec("matmul", (Level("K2"), Level("K2"), Level("K4 M8 N4")), DENSITIES, safs=(Saf(1, "Z", "A"),)),
        ("updates", "actual", 1, "Z"),
        32 * (1 - empty(128, 32, 16)),
        32 * (1 - empty(128, 32, 4)),
    ),
    "a level without format between": Limit(
        Spec("matmul", (Level("K2"), Level("K2"), Level("K2 M8 N4")), {"A": (UNIFORM, 0.25)}, {(2, "A"): "CP CP B"}),
        ("fills", "actual", 0, "A"),
        256 * (1 - A_TILE),
        256,
    ),
    "fibers of an uncompressed format": Limit(
        Spec("batched", (Level("K2 M2 G2"),) * 2, {"A": (UNIFORM, 0.0625)}, {(1, "A"): "UOP UOP UB"}),
        ("tile_units", 1, "A", 1, "payload"),
        4 * (1 - empty(64, 4, 16)) * 5,
        4 * (1 - empty(64, 4, 32)) * 5,
    ),
    "part of a 2:4 block": Limit(
        Spec("matmul", (Level("K2"), Level("N4 M8 K4")), HALF, safs=(Saf(1, "B", "A"),)),
        ("reads", "skipped", 1, "B"),
        256 / 6,
        0,
        TWO_OF_FOUR,
    ),
    "parts of four 2:4 blocks": Limit(
        Spec("matmul", (Level("M4"), Level("M2 K8 N4")), HALF, {(1, "A"): "UOP CP B", (0, "A"): "B"}),
        ("instances", 0, "A"),
        1 - 1 / 16,
        1,
        TWO_OF_FOUR,
    ),
    "two bands": Limit(
        Spec(
            "matmul",
            (Level("K8 N8 M8"), Level()),
            BAND | {"B": ("banded", 1.0)},
            safs=(Saf(0, "B", "A"),),
            compute=("gating",),
        ),
        ("computes", "actual"),
        2 * 2**2 + 6 * 3**2,
        22 * 22 / 8,
    ),
    "a band where outputs are first updated": Limit(
        Spec("matmul", (Level("K8 N4 M8"), Level()), {"A": ("banded", 2.0)}, safs=(Saf(0, "Z", "A"),)),
        ("reads", "actual", 0, "Z"),
        (34 - 3) * 4,
        34 * 4 * 7 / 8,
    ),
    "a band in wide tiles": Limit(
        Spec("matmul", (Level("K4"), Level("M16 K4 N2")), BAND, {(1, "A"): "UOP CP CP"}),
        ("instances", 0, "A"),
        22 / 64,
        16 / 64,
    ),
    "outputs that follow from the operands": Limit(
        Spec(
            "matmul",
            (Level("K8 N4 M2"), Level("M4 N2")),
            DENSITIES | {"Z": (UNIFORM, OUTPUT_DENSITY)},
            {(0, "Z"): "CP CP", (1, "Z"): "CP CP CP CP"},
            safs=(Saf(0, "Z", "AB"),),
        ),
        ("updates", "actual", 0, "Z"),
        512 * 0.25 * 0.5,
        512 * 0.25 * 0.5 * OUTPUT_DENSITY,
        REAL_OUTPUTS,
    ),
}
