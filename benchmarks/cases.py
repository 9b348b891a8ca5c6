"""Designs and random valid mappings that the benchmarks share."""

from dataclasses import dataclass, replace

import numpy as np

import jaxloop as jl
from jaxloop.spec.density import Distribution
from jaxloop.spec.design import Design

MATMUL = {
    "arch.yaml": """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {word-bits: 16, block-size: 4, read_bandwidth: 16, write_bandwidth: 16}}
    subtree:
    - name: chip
      local:
      - {name: Buffer, class: SRAM, attributes: {entries: 65536, word-bits: 16, block-size: 4, read_bandwidth: 32,
         write_bandwidth: 32}}
      subtree:
      - name: PE[0..255]
        local:
        - {name: Registers, class: regfile, attributes: {entries: 512, word-bits: 16, meshX: 16}}
        - {name: MAC, class: intmac, attributes: {word-bits: 16, meshX: 16}}
""",
    "problem.yaml": """
problem:
  shape:
    name: matmul
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: Z, projection: [[[M]], [[N]]], read-write: true}
  instance: {M: 1024, N: 1024, K: 1024}
""",
    "mapping.yaml": """
mapping:
- {target: DRAM, type: temporal, factors: M=4 N=4 K=8, permutation: KNM}
- {target: Buffer, type: temporal, factors: M=4 N=4 K=16, permutation: MNK}
- {target: Buffer, type: spatial, factors: M=16 N=16 K=1, permutation: MNK, split: 1}
- {target: Registers, type: temporal, factors: M=4 N=4 K=8, permutation: KNM}
""",
    "ERT.yaml": """
ERT:
  version: 0.3
  tables:
  - {name: system.DRAM, actions: [{name: read, arguments: {}, energy: 512}, {name: write, arguments: {}, energy: 512}]}
  - {name: system.chip.Buffer, actions: [{name: read, arguments: {}, energy: 24},
     {name: write, arguments: {}, energy: 28}]}
  - {name: system.chip.PE.Registers, actions: [{name: read, arguments: {}, energy: 0.6},
     {name: write, arguments: {}, energy: 0.7}]}
  - {name: system.chip.PE.MAC, actions: [{name: compute, arguments: {}, energy: 2.2}]}
""",
}
"""A three-level matrix multiplication on 16 x 16 processing elements."""


SPARSE = {
    "arch.yaml": """
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: Backing, class: SRAM, attributes: {entries: 131072, word-bits: 8, block-size: 8, read_bandwidth: 8,
       metadata_storage_depth: 16384, metadata_storage_width: 28}}
    subtree:
    - name: PE
      local:
      - {name: Buffer, class: SRAM, attributes: {entries: 512, word-bits: 8, read_bandwidth: 2, write_bandwidth: 2,
         metadata_storage_depth: 256, metadata_storage_width: 28}}
      - {name: Register, class: regfile, attributes: {entries: 1, word-bits: 8, read_bandwidth: 1, write_bandwidth: 1}}
      - {name: MAC, class: intmac, attributes: {word-bits: 8}}
""",
    "problem.yaml": """
problem:
  shape:
    name: matmul
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[N]], [[K]]]}
    - {name: Z, projection: [[[M]], [[N]]], read-write: true}
  instance:
    M: 128
    N: 128
    K: 128
    densities:
      A: {distribution: fixed-structured, density: 0.1}
      B: {distribution: fixed-structured, density: 0.1}
""",
    "mapping.yaml": """
mapping:
- {target: Register, type: bypass, keep: [Z], bypass: [A, B]}
- {target: Buffer, type: bypass, keep: [A, B], bypass: [Z]}
- {target: Register, type: temporal, factors: M=1 N=1 K=128, permutation: KMN}
- {target: Buffer, type: temporal, factors: M=1 N=1 K=1, permutation: MNK}
- {target: Backing, type: temporal, factors: M=128 N=128 K=1, permutation: MNK}
""",
    "sparse.yaml": """
sparse_optimizations:
  targets:
  - name: Backing
    representation-format:
      data-spaces:
      - {name: A, rank-application-order: inner-to-outer, ranks: [{format: UOP, payload-word-bits: 0}, {format: B}]}
      - {name: B, rank-application-order: inner-to-outer,
         ranks: [{format: UOP, payload-word-bits: 0}, {format: UOP, payload-word-bits: 0}, {format: B}]}
  - name: Buffer
    representation-format:
      data-spaces:
      - {name: A, ranks: [{format: B}]}
      - {name: B, ranks: [{format: UOP, payload-word-bits: 0}, {format: B}]}
    action-optimization:
    - {type: gating, target: A, condition-on: [B]}
    - {type: gating, target: B, condition-on: [A]}
  - name: Register
    action-optimization:
    - {type: gating, target: Z, condition-on: [A, B]}
""",
    "ERT.yaml": """
ERT:
  version: 0.3
  tables:
  - {name: system.Backing, actions: [{name: read, energy: 20}, {name: write, energy: 22}, {name: idle, energy: 0},
     {name: metadata_read, energy: 8}, {name: metadata_write, energy: 9}]}
  - {name: system.PE.Buffer, actions: [{name: read, energy: 1}, {name: write, energy: 1.1}, {name: idle, energy: 0.01},
     {name: metadata_read, energy: 0.8}, {name: metadata_write, energy: 0.9}]}
  - {name: system.PE.Register, actions: [{name: read, energy: 0.1}, {name: write, energy: 0.1},
     {name: idle, energy: 0.001}]}
  - {name: system.PE.MAC, actions: [{name: mac_random, energy: 0.5}, {name: mac_gated, energy: 0.02}]}
""",
}
"""A matrix multiplication of the size and shape of the MICRO'22 paper's Fig. 1, in the bitmask representation."""


@dataclass(frozen=True)
class Case:
    """**Attributes:** `whole`: chance that a rank is not split over several places, which representations with few
    ranks ask for."""

    name: str
    design: Design
    conventions: jl.Conventions = jl.TIMELOOP_2022
    dtype: type = np.float64
    whole: float = 0.0


def _at_random(design: Design) -> Design:
    """The design with the same densities, its nonzeros anywhere."""
    uniform = {name: replace(d, distribution=Distribution.HYPERGEOMETRIC) for name, d in design.densities.items()}
    return replace(design, densities=uniform)


def cases() -> tuple[Case, ...]:
    sparse, paper = jl.loads(SPARSE), jl.load("coordinate_list:matmul-0.1")
    random = _at_random(sparse)
    return (
        Case("Eyeriss, AlexNet conv2 (6 levels, 7 ranks)", jl.load("eyeriss:alexnet_conv2")),
        Case("matmul 1024^3 (3 levels, 3 ranks)", jl.loads(MATMUL)),
        Case("sparse matmul 128^3, fixed-structured", sparse, whole=0.7),
        Case("sparse matmul 128^3, hypergeometric", random, whole=0.7),
        Case("sparse matmul 128^3, fixed-structured, smooth", sparse, jl.SMOOTH, np.float32, 0.7),
        Case("sparse matmul 128^3, hypergeometric, smooth", random, jl.SMOOTH, np.float32, 0.7),
        Case("Fig. 1, fixed-structured", paper, whole=0.7),
        Case("Fig. 1, hypergeometric", _at_random(paper), whole=0.7),
        Case("Fig. 1, fixed-structured, smooth", paper, jl.SMOOTH, np.float32, 0.7),
    )


def primes(number: int) -> list[int]:
    """Prime factors in ascending order, repeated ones repeated."""
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found


def random_mappings(design: Design, count: int, seed: int, whole: float = 0.0) -> jl.Mapping:
    """Random factorizations over all temporal and spatial places (fan-outs respected), random loop orders, bypass as in
    the design's own mapping. With a chance of `whole`, a rank goes to one place undivided. Capacities may be exceeded:
    see `valid_mappings`. Leaves have `count` leading rows."""
    rng = np.random.default_rng(seed)
    own = jl.mapping_of(design)
    levels, ranks = own.temporal.shape
    fan = [design.architecture.fanout(s) for s in range(levels)]
    # places: temporal of each level, then X and Y of each level
    factors = np.ones((count, 3 * levels, ranks))
    limit = np.concatenate([np.full(levels, np.inf), [x for x, _ in fan], [y for _, y in fan]])
    open_places = np.flatnonzero(limit > 1)
    # levels that store nothing get no temporal loops, as mappers do
    stores = own.keep.any(axis=1)
    open_places = np.array([p for p in open_places if p >= levels or stores[p]])
    rows = np.arange(count)
    for rank, size in enumerate(design.einsum.sizes):
        undivided, only = rng.random(count) < whole, open_places[rng.integers(0, len(open_places), count)]
        for prime in primes(size):
            place = np.where(undivided, only, open_places[rng.integers(0, len(open_places), count)])
            full = factors[rows, place].prod(axis=1) * prime > limit[place]
            place = np.where(full, levels - 1, place)
            factors[rows, place, rank] *= prime
    # a rank that took both X and Y of one level is split between them; v0.3 files cannot say so, the arrays can
    order = np.argsort(rng.random((count, levels, ranks)), axis=2).astype(np.int32)
    spread = {n: np.broadcast_to(getattr(own, n), (count, *getattr(own, n).shape)) for n in own.__dataclass_fields__}
    spread |= {"temporal": factors[:, :levels], "temporal_order": order, "spatial_order": order}
    spread |= {"spatial_x": factors[:, levels : 2 * levels], "spatial_y": factors[:, 2 * levels :]}
    return jl.Mapping(**spread)


def valid_mappings(
    design: Design, count: int, seed: int = 0, draw: int = 65536, whole: float = 0.0
) -> tuple[jl.Mapping, float]:
    """`count` random valid mappings (repeated if 40 draws find too few), and the share of draws that is valid."""
    kept, found, drawn = [], 0, 0
    while found < count and drawn < 40 * draw:
        batch = random_mappings(design, draw, seed + drawn, whole)
        valid = jl.evaluate(design, mappings=batch, fields=("status",), conventions=jl.SMOOTH).valid
        drawn, found = drawn + draw, found + int(valid.sum())
        kept.append({n: getattr(batch, n)[valid] for n in batch.__dataclass_fields__})
    leaves = {n: np.concatenate([part[n] for part in kept]) for n in kept[0]}
    chosen = np.resize(np.arange(found), count)
    return jl.Mapping(**{n: leaf[chosen] for n, leaf in leaves.items()}), found / drawn
