"""Small random designs: seeded generators (`random_design`) and the same as a hypothesis strategy (`designs`).

Every design is legal: factors multiply to the rank sizes, each tensor is kept somewhere, the hardware has the instances
that the mapping uses and the capacity for its tiles. Sizes are drawn as factors per loop, so any rank may be split over
all levels. Shapes of the problem are fixed per kind and an `Einsum` always lists the same ranks, so that values fall
into few array shapes.
"""

import math
import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from jaxloop.spec.architecture import Architecture, Compute, Network, Storage
from jaxloop.spec.design import Design
from jaxloop.spec.einsum import Axis, Einsum, Tensor, Term
from jaxloop.spec.mapping import LevelNest, Loop, LoopNest
from jaxloop.spec.tables import EnergyTable
from tests.oracles.loopnest import words

LEVEL_NAMES = ("RF", "Spad", "GB", "DRAM")
FACTORS = (2, 2, 2, 3, 3, 4, 5)


def _axis(*terms: str | tuple[str, int, str]) -> Axis:
    return Axis(tuple(Term(term) if isinstance(term, str) else Term(*term) for term in terms))


def _plain(name: str, ranks: str, is_output: bool = False) -> Tensor:
    return Tensor(name, tuple(_axis(rank) for rank in ranks), is_output)


def _window(rng: random.Random, image: str, filter_rank: str, axis: str = "") -> Axis:
    """A sliding window: `[image * stride + filter * dilation]`."""
    stride, dilation = rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2))
    return _axis((image, stride, f"{axis}stride"), (filter_rank, dilation, f"{axis}dilation"))


def matmul(rng: random.Random) -> tuple[Tensor, ...]:
    return _plain("A", "MK"), _plain("B", "KN"), _plain("Z", "MN", True)


def batched_matmul(rng: random.Random) -> tuple[Tensor, ...]:
    return _plain("A", "BMK"), _plain("B", "BKN"), _plain("Z", "BMN", True)


def matvec(rng: random.Random) -> tuple[Tensor, ...]:
    return _plain("A", "MK"), _plain("x", "K"), _plain("y", "M", True)


def conv1d(rng: random.Random) -> tuple[Tensor, ...]:
    return (
        _plain("Weights", "CKR"),
        Tensor("Inputs", (_axis("C"), _window(rng, "P", "R"))),
        _plain("Outputs", "KP", True),
    )


def conv2d(rng: random.Random) -> tuple[Tensor, ...]:
    windows = _window(rng, "P", "R", "W"), _window(rng, "Q", "S", "H")
    return (
        _plain("Weights", "CKRS"),
        Tensor("Inputs", (_axis("N"), _axis("C"), *windows)),
        _plain("Outputs", "NKPQ", True),
    )


def depthwise(rng: random.Random) -> tuple[Tensor, ...]:
    windows = _window(rng, "P", "R", "W"), _window(rng, "Q", "S", "H")
    return _plain("Weights", "CRS"), Tensor("Inputs", (_axis("C"), *windows)), _plain("Outputs", "CPQ", True)


KINDS: dict[str, tuple[str, Callable[[random.Random], tuple[Tensor, ...]]]] = {
    "matmul": ("MKN", matmul),
    "batched_matmul": ("BMKN", batched_matmul),
    "matvec": ("MK", matvec),
    "conv1d": ("RPCK", conv1d),
    "conv2d": ("RSPQCKN", conv2d),
    "depthwise": ("RSPQC", depthwise),
}
"""Ranks, in problem order, and tensors of each kind. No rank or tensor is optional: a kind is one shape."""


def random_factors(
    rng: random.Random, ranks: str, slots: int, spatial_slots: frozenset[int], max_computes: int, max_fanout: int
) -> list[dict[str, int]]:
    """Loop bounds per slot and rank. At most `max_computes` in all, at most `max_fanout` in the spatial slots."""
    bounds = [dict.fromkeys(ranks, 1) for _ in range(slots)]
    # Few active ranks: several loops over one rank, and windows that move in both of their ranks, are what is hard.
    active = rng.sample(ranks, rng.randint(1, len(ranks)))
    computes = fanout = 1
    for _ in range(rng.randint(2, 10)):
        slot, rank, factor = rng.randrange(slots), rng.choice(active), rng.choice(FACTORS)
        grows_fanout = factor if slot in spatial_slots else 1
        if computes * factor <= max_computes and fanout * grows_fanout <= max_fanout:
            bounds[slot][rank] *= factor
            computes, fanout = computes * factor, fanout * grows_fanout
    return bounds


def _loops(rng: random.Random, ranks: str, bounds: dict[str, int]) -> tuple[Loop, ...]:
    order = rng.sample(ranks, len(ranks))
    return tuple(Loop(rank, bounds[rank], bounds[rank]) for rank in order)


def random_keep(rng: random.Random, tensors: tuple[str, ...], levels: int, bypass: float) -> list[tuple[str, ...]]:
    """Per level the tensors that it keeps; each tensor is kept at one level at least. `bypass` is a probability."""
    home = {tensor: rng.randrange(levels) for tensor in tensors}
    return [tuple(t for t in tensors if level == home[t] or rng.random() >= bypass) for level in range(levels)]


def random_nest(
    rng: random.Random,
    einsum: Einsum,
    bounds: list[dict[str, int]],
    keep: list[tuple[str, ...]],
    directives: float = 0.0,
) -> LoopNest:
    """Loops in random order over `bounds` (per level one spatial and one temporal slot). `directives` is the
    probability of each of the switches of spec/dense.md 4.8."""
    ranks, names = "".join(einsum.ranks), [tensor.name for tensor in einsum.tensors]
    levels = []
    for level, kept in enumerate(keep):
        spatial = _loops(rng, ranks, bounds[2 * level])
        split = rng.randint(0, len(ranks))
        switched = [tuple(n for n in names if directives and rng.random() < directives) for _ in range(3)]
        temporal = _loops(rng, ranks, bounds[2 * level + 1])
        name = LEVEL_NAMES[level - len(keep)]
        levels.append(LevelNest(name, temporal, spatial[:split], spatial[split:], kept, *switched))
    return LoopNest(tuple(levels))


def _tile_words(einsum: Einsum, bounds: list[dict[str, int]], level: int, kept: tuple[str, ...]) -> int:
    box = tuple(math.prod(bound[rank] for bound in bounds[: 2 * level + 2]) for rank in einsum.ranks)
    return sum(words(einsum, tensor, box) for tensor in einsum.tensors if tensor.name in kept)


def _network(rng: random.Random, word_bits: int) -> Network:
    return Network(
        word_bits=word_bits,
        router_energy=rng.choice((None, 0.125)),
        wire_energy=rng.choice((None, 0.0625)),
        tile_width=rng.choice((None, 500.0)),
        energy_per_hop=rng.choice((None, None, 1.5)),
        fill_latency=rng.choice((0, 0, 3)),
        drain_latency=rng.choice((0, 0, 2)),
    )


def random_architecture(
    rng: random.Random, einsum: Einsum, bounds: list[dict[str, int]], nest: LoopNest
) -> Architecture:
    """Hardware on which `nest` is legal; fan-outs and capacities sometimes larger than used."""
    mesh = [rng.choice((1, 1, 1, 2)), 1]
    meshes = []
    for level in reversed(nest.levels):
        meshes.append(tuple(mesh))
        used = [math.prod(loop.bound for loop in loops) for loops in (level.spatial_x, level.spatial_y)]
        spare = rng.choice((1, 1, 1, 2)) if math.prod(used) > 1 else 1
        mesh = [mesh[0] * used[0] * spare, mesh[1] * used[1]]
    storage = []
    for level, spec in enumerate(nest.levels):
        backing = level == len(nest.levels) - 1
        word_bits, buffering = rng.choice((8, 16)), rng.choice((1.0, 1.0, 2.0))
        needed = _tile_words(einsum, bounds, level, spec.keep)
        instances = math.prod(meshes[-1 - level])
        storage.append(
            Storage(
                name=spec.level,
                technology="DRAM" if backing else "SRAM",
                word_bits=word_bits,
                block_size=rng.choice((1, 1, 2, 4)),
                cluster_size=rng.choice((1, 1, 2)) if instances % 2 == 0 and not backing else 1,
                size=None if backing else rng.choice((None, math.ceil(needed * buffering) + rng.choice((0, 7)))),
                multiple_buffering=buffering,
                mesh_x=meshes[-1 - level][0],
                mesh_y=meshes[-1 - level][1],
                read_bandwidth=rng.choice((None, None, 1.0, 2.5)),
                write_bandwidth=rng.choice((None, None, 1.0, 2.5)),
                shared_bandwidth=rng.choice((None, None, None, 3.0)),
                reduction_supported=not backing,
                vector_access_energy=rng.choice((None, 1.25)),
                address_energy=rng.choice((None, 0.25)),
                area=rng.choice((None, 10.0)),
                network=_network(rng, word_bits),
            )
        )
    compute = Compute("MAC", rng.choice((8, 16)), mesh[0], mesh[1], rng.choice((None, 1.0)), rng.choice((None, 3.0)))
    return Architecture(compute, tuple(storage))


def random_energy_table(rng: random.Random, architecture: Architecture) -> EnergyTable:
    """Energies for every level: `read` and `write`, sometimes the finer `random_*` actions as well."""
    components = {architecture.compute.name: {"compute": rng.choice((0.5, 1.0))}}
    for order, level in enumerate(architecture.levels):
        read = float(rng.choice((1, 2, 3)) * 8**order)
        actions = {"read": read, "write": read + 0.5}
        if rng.random() < 0.3:
            actions |= {"random_fill": read + 0.25, "random_update": read + 0.75}
        components[level.name] = actions
    return EnergyTable(components, rng.choice((None, 0.0625)), "random")


def random_design(
    rng: random.Random,
    kind: str | None = None,
    *,
    min_levels: int = 2,
    max_levels: int = 4,
    max_computes: int = 256,
    max_fanout: int = 16,
    bypass: float = 0.2,
    directives: float = 0.0,
) -> Design:
    """One design of `kind` (a key of `KINDS`, else any). `bypass` and `directives` are probabilities per level and
    tensor. The defaults keep the brute-force walk at a few milliseconds."""
    kind = kind or rng.choice(sorted(KINDS))
    ranks, tensors_of = KINDS[kind]
    levels = rng.randint(min_levels, max_levels)
    spatial_levels = frozenset(2 * level for level in range(levels) if rng.random() < 0.5)
    # Slots that may not be spatial are drawn as their level's temporal slot.
    bounds = random_factors(rng, ranks, 2 * levels, spatial_levels, max_computes, max_fanout)
    for level in range(levels):
        if 2 * level not in spatial_levels:
            for rank in ranks:
                bounds[2 * level + 1][rank] *= bounds[2 * level][rank]
                bounds[2 * level][rank] = 1
    tensors = tensors_of(rng)
    sizes = tuple(math.prod(bound[rank] for bound in bounds) for rank in ranks)
    einsum = Einsum(kind, tuple(ranks), sizes, tensors)
    keep = random_keep(rng, tuple(t.name for t in tensors), levels, bypass)
    nest = random_nest(rng, einsum, bounds, keep, directives)
    architecture = random_architecture(rng, einsum, bounds, nest)
    table = random_energy_table(rng, architecture) if rng.random() < 0.5 else None
    return Design(einsum, architecture, nest, table, name=kind)


def designs(kind: str | None = None, **options: Any) -> st.SearchStrategy[Design]:
    """`random_design` as a strategy: hypothesis draws and shrinks every choice. Options as there."""
    return st.randoms(use_true_random=False).map(lambda rng: random_design(rng, kind, **options))
