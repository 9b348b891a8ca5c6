"""The small design with sparse sections of its own, as the tests of lowering edit it."""

import jaxloop as jl
from tests.frontend.base import TEXTS, edited

A, B, Z = 0, 1, 2
SPAD, GLB, MAIN = 0, 1, 2
"""Positions of tensors and levels."""

FORMATS = """\
sparse_optimizations:
  targets:
  - name: Glb
    representation-format:
      data-spaces:
      - name: B
        ranks:
        - {format: UB}
        - {format: UOP, payload-word-bits: 5, flattened-rankIDs: [[N], [K, M]]}
        - {format: RLE, metadata-word-bits: 3, flattened-rankIDs: [[K, N], [N, M]]}
"""

ACTIONS = """\
sparse_optimizations:
  targets:
  - name: Main
    action-optimization:
    - {type: gating, target: B, condition-on: [A]}
  - name: Spad
    action-optimization:
    - type: skipping
      options:
      - {target: A, condition-on: [B]}
      - {target: B, condition-on: [A]}
    - {type: gating, target: Z, condition-on: [A, B]}
  - name: Mac
    compute-optimization:
    - {type: skipping}
"""


SQUARE = (("problem.yaml", "K: 16", "K: 8"), ("mapping.yaml", "N=2 K=4", "N=2 K=2"))
"""Edits that make A and B square."""


def design(*edits: tuple[str, str, str], sparse: str = TEXTS["sparse.yaml"]) -> jl.Design:
    return jl.loads(edited(*edits, base=TEXTS | {"sparse.yaml": sparse}))
