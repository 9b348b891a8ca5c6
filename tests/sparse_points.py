"""Random points of one sparse structure: a fixed problem on fixed levels, with numbers drawn into the leaves of
`Program` and `Mapping` (densities, formats, SAFs, prices, bandwidths, loops), so that many tests share few
executables."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import numpy as np

import jaxloop as jl
from jaxloop.kernel.evaluate import evaluate
from jaxloop.lower import lower
from jaxloop.lower.program import to_device
from jaxloop.program import DENSITY_KINDS, RANK_FORMATS, SAF_KINDS
from jaxloop.result import Evaluation
from jaxloop.spec.architecture import Architecture, Compute, Metadata, Network, Storage
from jaxloop.spec.density import Density, Distribution
from jaxloop.spec.einsum import Axis, Einsum, Tensor, Term
from jaxloop.spec.mapping import LevelNest, Loop
from jaxloop.spec.sparse import (
    ActionKind,
    ActionOptimization,
    FormatRank,
    Intersection,
    RankFormat,
    SparseOptimizations,
    SparseTarget,
    TensorFormat,
)
from tests.helpers import QUICK, random_mapping

Point = tuple[jl.Program, jl.Mapping]
"""Numpy leaves without lanes."""

LANES = 64
"""Points of one call."""

SIZES = {"M": 8, "K": 8, "N": 6}
"""A[M, K] is square, so that it may be banded."""

TENSORS = ("A", "B", "Z")
WORDS = np.array([64.0, 48.0, 48.0])
MESHES = {"RF": (4, 2), "GB": (2, 1), "DRAM": (1, 1)}
LEVELS, FORMAT_RANKS, GROUPS, OPTIONS, BAND = len(MESHES), 4, 3, 2, 2

UNCOMPRESSED = (RankFormat.UOP, RankFormat.UB)
COMPRESSED = (RankFormat.CP, RankFormat.B, RankFormat.RLE)
STRUCTURED, UNIFORM, BANDED = (
    DENSITY_KINDS[kind] for kind in (Distribution.FIXED_STRUCTURED, Distribution.HYPERGEOMETRIC, Distribution.BANDED)
)
GATING, SKIPPING = SAF_KINDS[ActionKind.GATING], SAF_KINDS[ActionKind.SKIPPING]

PRICES = ("action_energy", "address_energy", "compute_energy", "energy_per_hop", "router_energy")
SPARSE_PRICES = (
    "gated_energy",
    "skipped_energy",
    "metadata_energy",
    "conversion_energy",
    "gated_compute_energy",
    "skipped_compute_energy",
)
BANDWIDTHS = ("read_bandwidth", "write_bandwidth", "shared_bandwidth")


@dataclass(frozen=True)
class Choice:
    """What points may have.

    - `distributions`: codes of the tensors' densities; `blocks`: words per vector access.
    - `formats`, `safs`, `compute`: whether there are any; `uncompressed`: chance of a format of such ranks alone.
    - `kinds`, `targets`: codes and targets of SAFs; `options`: groups may have a second one.
    - `limited`: chance that a bandwidth is limited; `bypass`: that a level does not keep a tensor.
    """

    distributions: tuple[int, ...] = (STRUCTURED, UNIFORM, UNIFORM, BANDED)
    formats: bool = True
    safs: bool = True
    compute: bool = True
    uncompressed: float = 0.25
    kinds: tuple[int, ...] = (0, GATING, SKIPPING, SKIPPING)
    targets: tuple[int, ...] = (0, 1, 2)
    options: bool = False
    blocks: tuple[int, ...] = (1, 1, 2, 4)
    limited: float = 0.5
    bypass: float = 0.2


@cache
def template() -> jl.Design:
    """A matrix multiplication on levels with children along X, along Y and along both, and sparse optimizations as
    large as any point's."""
    axes = {"A": "MK", "B": "KN", "Z": "MN"}
    tensors = tuple(Tensor(t, tuple(Axis((Term(rank),)) for rank in axes[t]), t == "Z") for t in TENSORS)
    metadata, network = Metadata(8, 1, 64, 4096), Network(energy_per_hop=1.0)
    levels = tuple(Storage(n, mesh_x=x, mesh_y=y, metadata=metadata, network=network) for n, (x, y) in MESHES.items())
    all_loops, idle = (tuple(Loop(r, b, b) for r, b in sizes.items()) for sizes in (SIZES, dict.fromkeys(SIZES, 1)))
    nests = tuple(LevelNest(name, all_loops if name == "DRAM" else idle, (), (), TENSORS) for name in MESHES)
    ranks = (FormatRank(RankFormat.UOP, None, None, (("M", "K"),)),) * FORMAT_RANKS
    group = ActionOptimization(ActionKind.GATING, (Intersection("B", ("A",)), Intersection("A", ("B",))))
    return jl.Design(
        Einsum("matmul", tuple(SIZES), tuple(SIZES.values()), tensors),
        Architecture(Compute("MAC", 16, 4, 4, 1.0), levels),
        jl.LoopNest(nests),
        densities={"A": Density(Distribution.BANDED, band_width=BAND), "B": Density(Distribution.HYPERGEOMETRIC, 0.5)},
        sparse=SparseOptimizations((SparseTarget("DRAM", (TensorFormat("A", ranks),), (group,) * GROUPS),), True),
    )


@cache
def base() -> jl.Program:
    """The template with a place for a format of every tensor at every level."""
    program = lower(template(), jl.SMOOTH, exact=True).program
    structure = program.structure
    assert structure.sparse is not None
    return replace(program, structure=replace(structure, sparse=replace(structure.sparse, cells=None)))


def draw(rng: random.Random, choice: Choice = Choice()) -> Point:
    """One point. Every price is drawn."""
    program, numbers = base(), np.random.default_rng(rng.getrandbits(32))
    assert program.sparse is not None
    leaves: dict[str, Any] = {name: numbers.uniform(0.5, 2.0, np.shape(getattr(program, name))) for name in PRICES}
    for name in BANDWIDTHS:
        limit = 10.0 ** numbers.uniform(-1.0, 1.5, LEVELS)
        leaves[name] = np.where(numbers.random(LEVELS) < choice.limited, limit, np.inf)
    leaves["block_size"] = numbers.choice(np.array(choice.blocks, float), LEVELS)
    prices = {name: numbers.uniform(0.1, 0.5, np.shape(getattr(program.sparse, name))) for name in SPARSE_PRICES}
    sparse = replace(program.sparse, **prices, **_densities(rng, choice), **_formats(rng, choice), **_safs(rng, choice))
    mapping = random_mapping(template(), rng, choice.bypass)
    return replace(program, **leaves, sparse=sparse), mapping


def draw_all(seed: int, choice: Choice = Choice(), count: int = LANES) -> list[Point]:
    rng = random.Random(seed)
    return [draw(rng, choice) for _ in range(count)]


def _densities(rng: random.Random, choice: Choice) -> dict[str, np.ndarray]:
    """Only A may be banded."""
    plain = [kind for kind in choice.distributions if kind != BANDED]
    kinds = [rng.choice(choice.distributions), rng.choice(plain), rng.choice(plain)]
    return {
        "density_kind": np.array(kinds, np.int32),
        "density": np.array([rng.uniform(0.05, 0.95) for _ in kinds]),
        "band_width": np.array([rng.randint(0, BAND) for _ in kinds], float),
    }


def _formats(rng: random.Random, choice: Choice) -> dict[str, np.ndarray]:
    """Of each tensor at all levels from the outermost to some inner one. Most have a rank more than the next inner
    level, and each rank takes all loops that it finds; others have one rank per loop, or too few."""
    shape = (LEVELS, len(TENSORS), FORMAT_RANKS)
    zeros = ("metadata_bits", "payload_bits", "has_groups")
    leaves = {name: np.zeros(shape) for name in zeros} | {
        "rank_format": np.zeros(shape, np.int32),
        "inner_to_outer": np.zeros(shape[:2]),
        "merges": np.zeros((*shape, len(SIZES), len(SIZES))),
        "metadata_width": np.array([rng.choice((0.0, 8.0, 64.0)) for _ in MESHES]),
        "decompression_supported": np.ones(LEVELS),
        "compression_supported": np.ones(LEVELS),
    }
    for t in range(len(TENSORS)) if choice.formats else ():
        if rng.random() < 0.2:
            continue
        kinds = [rng.choice(UNCOMPRESSED if rng.random() < choice.uncompressed else COMPRESSED)]
        while len(kinds) < FORMAT_RANKS:
            may_compress = kinds[-1] in COMPRESSED and rng.random() < 0.5
            kinds.append(rng.choice(COMPRESSED if may_compress else UNCOMPRESSED))
        flattens, backwards, spare = rng.random() < 0.7, rng.random() < 0.3, rng.choice((0, 0, 1))
        for s in range(rng.choice((0, 0, 1, 2)), LEVELS):
            leaves["inner_to_outer"][s, t] = backwards
            for rank in range(s + 1 + spare if flattens else min(s + 2, FORMAT_RANKS)):
                leaves["rank_format"][s, t, rank] = RANK_FORMATS[kinds[rank]]
                leaves["metadata_bits"][s, t, rank] = rng.choice((0, 1, 4, 8))
                leaves["payload_bits"][s, t, rank] = rng.choice((0, 4, 8))
                leaves["has_groups"][s, t, rank] = leaves["merges"][s, t, rank] = float(flattens)
    return leaves


def _safs(rng: random.Random, choice: Choice) -> dict[str, np.ndarray]:
    leaders = np.zeros((GROUPS, OPTIONS, len(TENSORS)))
    targets = np.full((GROUPS, OPTIONS), -1, np.int32)
    kinds = np.zeros(GROUPS, np.int32)
    for group in range(GROUPS) if choice.safs else ():
        kinds[group] = rng.choice(choice.kinds)
        for option in range(OPTIONS if choice.options and rng.random() < 0.5 else 1):
            target = targets[group, option] = rng.choice(choice.targets)
            others = [t for t in range(len(TENSORS)) if t != target]
            leaders[group, option, rng.sample(others, rng.choice((1, 1, 2)))] = 1.0
    return {
        "saf_kind": kinds,
        "saf_level": np.array(sorted(rng.randrange(LEVELS) for _ in range(GROUPS)), np.int32),
        "saf_target": targets,
        "saf_leaders": leaders,
        "compute_gating": np.asarray(float(choice.compute and rng.random() < 0.5)),
        "compute_skipping": np.asarray(float(choice.compute and rng.random() < 0.5)),
    }


def with_sparse(point: Point, **leaves: Any) -> Point:
    """The point with other leaves of its sparse part."""
    program, mapping = point
    assert program.sparse is not None
    return replace(program, sparse=replace(program.sparse, **leaves)), mapping


def without_sparse(point: Point) -> Point:
    """The point as a dense design."""
    program, mapping = point
    return replace(program, sparse=None, structure=replace(program.structure, sparse=None)), mapping


def with_conventions(point: Point, conventions: jl.Conventions) -> Point:
    program, mapping = point
    return replace(program, structure=replace(program.structure, conventions=conventions)), mapping


def as_lanes(points: Sequence[Point]) -> Point:
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis=-1), *points)


_lanes = jax.jit(evaluate, compiler_options=QUICK)


def in_lanes(function: Callable[..., Any], points: Sequence[Point], *more: Any) -> Any:
    """`function(program, mapping, *more)` of all points in lanes, `LANES` at a time; every result has as many lanes."""
    results = []
    for start in range(0, len(points), LANES):
        chunk = list(points[start : start + LANES])
        lanes = as_lanes(chunk + [chunk[-1]] * (LANES - len(chunk)))
        with jax.enable_x64(True):
            results.append(jax.device_get(function(*to_device(lanes, np.float64), *more)))
    full = [jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*leaf.shape[:-1], LANES)), result) for result in results]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=-1)[..., : len(points)], *full)


def evaluate_points(points: Sequence[Point], conventions: jl.Conventions) -> Evaluation:
    """All points, in a trailing lane axis. One executable per conventions."""
    return in_lanes(_lanes, [with_conventions(point, conventions) for point in points])


def single(point: Point, index: int) -> Any:
    """One lane."""
    return jax.tree.map(lambda leaf: leaf[..., index], point)
