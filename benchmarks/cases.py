"""Designs and random valid mappings that the benchmarks share."""

from dataclasses import dataclass

import numpy as np

import jaxloop as jl
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


@dataclass(frozen=True)
class Case:
    name: str
    design: Design


def cases() -> tuple[Case, ...]:
    return (
        Case("Eyeriss, AlexNet conv2 (6 levels, 7 ranks)", jl.load("eyeriss:alexnet_conv2")),
        Case("matmul 1024^3 (3 levels, 3 ranks)", jl.loads(MATMUL)),
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


def random_mappings(design: Design, count: int, seed: int) -> jl.Mapping:
    """Random factorizations over all temporal and spatial places (fan-outs respected), random loop orders, bypass as in
    the design's own mapping. Capacities may be exceeded: see `valid_mappings`. Leaves have `count` leading rows."""
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
        for prime in primes(size):
            place = open_places[rng.integers(0, len(open_places), count)]
            full = factors[rows, place].prod(axis=1) * prime > limit[place]
            place = np.where(full, levels - 1, place)
            factors[rows, place, rank] *= prime
    # a rank that took both X and Y of one level is split between them; v0.3 files cannot say so, the arrays can
    order = np.argsort(rng.random((count, levels, ranks)), axis=2).astype(np.int32)
    spread = {n: np.broadcast_to(getattr(own, n), (count, *getattr(own, n).shape)) for n in own.__dataclass_fields__}
    spread |= {"temporal": factors[:, :levels], "temporal_order": order, "spatial_order": order}
    spread |= {"spatial_x": factors[:, levels : 2 * levels], "spatial_y": factors[:, 2 * levels :]}
    return jl.Mapping(**spread)


def valid_mappings(design: Design, count: int, seed: int = 0, draw: int = 65536) -> tuple[jl.Mapping, float]:
    """`count` random valid mappings (repeated if 40 draws find too few), and the share of draws that is valid."""
    kept, found, drawn = [], 0, 0
    while found < count and drawn < 40 * draw:
        batch = random_mappings(design, draw, seed + drawn)
        valid = jl.evaluate(design, mappings=batch, fields=("status",)).valid
        drawn, found = drawn + draw, found + int(valid.sum())
        kept.append({n: getattr(batch, n)[valid] for n in batch.__dataclass_fields__})
    leaves = {n: np.concatenate([part[n] for part in kept]) for n in kept[0]}
    chosen = np.resize(np.arange(found), count)
    return jl.Mapping(**{n: leaf[chosen] for n, leaf in leaves.items()}), found / drawn
