"""Map spaces on which the search methods are compared."""

from dataclasses import dataclass, replace

import jaxloop as jl
from jaxloop.spec.density import Distribution
from jaxloop.spec.design import Design

from .cases import MATMUL, SPARSE

CONV = """
problem:
  shape:
    name: conv
    dimensions: [M, C, P, Q, R, S]
    data-spaces:
    - {name: W, projection: [[[M]], [[C]], [[R]], [[S]]]}
    - {name: I, projection: [[[C]], [[P], [R]], [[Q], [S]]]}
    - {name: O, projection: [[[M]], [[P]], [[Q]]], read-write: true}
  instance:
    M: 64
    C: 32
    P: 14
    Q: 14
    R: 3
    S: 3
    densities:
      W: {distribution: fixed-structured, density: 0.25}
      I: {distribution: fixed-structured, density: 0.5}
"""

CONV_SPARSE = """
sparse_optimizations:
  targets:
  - name: Backing
    representation-format:
      data-spaces: [{name: W, ranks: [{format: CP, flattened-rankIDs: [[M, C, R, S]]}]}]
  - name: Buffer
    representation-format:
      data-spaces: [{name: W, ranks: [{format: CP, flattened-rankIDs: [[M, C, R, S]]}]}]
    action-optimization:
    - {type: skipping, target: I, condition-on: [W]}
  - name: Register
    action-optimization:
    - {type: gating, target: O, condition-on: [W, I]}
"""

SECOND_BUFFER = """
    - {name: DRAM, class: DRAM, attributes: {word-bits: 16, block-size: 4, read_bandwidth: 16, write_bandwidth: 16}}
    - {name: Shared, class: SRAM, attributes: {entries: 1048576, word-bits: 16, block-size: 4, read_bandwidth: 24,
       write_bandwidth: 24}}
"""
"""What stands in the place of the DRAM's line of `MATMUL`."""


@dataclass(frozen=True)
class Problem:
    """`group`: of the figures."""

    name: str
    group: str
    design: Design
    conventions: jl.Conventions = jl.TIMELOOP_2022


def problems() -> tuple[Problem, ...]:
    dense = jl.loads(MATMUL)
    sizes = {"M": 512, "N": 3072, "K": 768}
    bert = replace(dense.einsum, sizes=tuple(sizes[rank] for rank in dense.einsum.ranks))
    # links are enumerated by one large executable per size of fan-out: minutes of compilation for Eyeriss
    no_links = replace(jl.TIMELOOP_2022, link_transfers=False)
    return (
        Problem("matmul 1024^3, 3 levels", "dense", dense),
        Problem("matmul 1024^3, 4 levels", "dense", _deeper()),
        Problem("BERT feed-forward 512 x 768 x 3072", "dense", replace(dense, einsum=bert, nest=None)),
        Problem("Fig. 1, bitmask", "sparse", jl.load("bitmask:matmul-0.1"), jl.MICRO22),
        Problem("Fig. 1, coordinate list", "sparse", jl.load("coordinate_list:matmul-0.1"), jl.MICRO22),
        Problem("sparse matmul 128^3, hypergeometric", "sparse", _at_random(jl.loads(SPARSE))),
        Problem("sparse convolution, 3 levels", "sparse", _sparse_convolution()),
        Problem("Eyeriss, AlexNet conv2", "dense", jl.load("eyeriss:alexnet_conv2"), no_links),
    )


def _deeper() -> Design:
    texts = {name: text for name, text in MATMUL.items() if name != "mapping.yaml"}
    lines = texts["arch.yaml"].splitlines()
    at = next(number for number, line in enumerate(lines) if "name: DRAM" in line)
    texts["arch.yaml"] = "\n".join([*lines[:at], SECOND_BUFFER.strip("\n"), *lines[at + 1 :]])
    table = "\n  - {name: system.Shared, actions: [{name: read, arguments: {}, energy: 90},"
    texts["ERT.yaml"] = texts["ERT.yaml"].rstrip() + table + " {name: write, arguments: {}, energy: 96}]}\n"
    return jl.loads(texts)


def _sparse_convolution() -> Design:
    kept = {name: SPARSE[name] for name in ("arch.yaml", "ERT.yaml")}
    return jl.loads(kept | {"problem.yaml": CONV, "sparse.yaml": CONV_SPARSE})


def _at_random(design: Design) -> Design:
    uniform = {name: replace(d, distribution=Distribution.HYPERGEOMETRIC) for name, d in design.densities.items()}
    return replace(design, densities=uniform)
