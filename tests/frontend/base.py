"""One small design as texts, and edits of it: every test states only what differs."""

import re
from dataclasses import dataclass

import pytest

from jaxloop import SpecError
from jaxloop.frontend import read_texts

ARCHITECTURE = """\
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - name: Main
      class: DRAM
      attributes: {width: 64, block-size: 8, word-bits: 8, metadata_storage_width: 64}
    subtree:
    - name: chip
      local:
      - name: Glb
        class: SRAM
        attributes:
          depth: 64
          width: 64
          block-size: 8
          word-bits: 8
          metadata_storage_width: 16
      subtree:
      - name: PE[0..3]
        local:
        - name: Spad
          class: storage
          subclass: my_spad
          attributes: {depth: 64, datawidth: 8, metadata_storage_width: 8}
        - name: Mac
          class: intmac
          attributes: {datawidth: 8}
"""

PROBLEM = """\
problem:
  shape:
    name: matmul
    dimensions: [M, N, K]
    coefficients:
    - {name: stride, default: 1}
    data-spaces:
    - name: A
      projection: [[[M]], [[K]]]
    - name: B
      projection: [[[N]], [[K]]]
    - name: Z
      projection: [[[M]], [[N]]]
      read-write: true
  instance:
    M: 8
    N: 8
    K: 16
    densities:
      A: {distribution: hypergeometric, density: 0.25}
"""

MAPPING = """\
mapping:
- {target: Main, type: temporal, factors: M=1 N=2 K=2, permutation: KNM}
- {target: Glb, type: temporal, factors: M=2 N=2 K=2, permutation: KNM}
- {target: Glb, type: spatial, factors: M=4 N=1 K=1, permutation: MNK, split: 1}
- {target: Spad, type: temporal, factors: M=1 N=2 K=4, permutation: KNM}
- {target: Spad, type: bypass, keep: [A, B], bypass: [Z]}
"""

ENERGIES = """\
ERT:
  version: 0.3
  tables:
  - name: system.Main
    actions:
    - {name: read, arguments: {}, energy: 64.0}
    - {name: write, arguments: {}, energy: 96.0}
  - name: system.chip.Glb
    actions:
    - {name: read, arguments: {}, energy: 8.0}
  - name: system.chip.PE[0..3].Spad
    actions:
    - {name: read, arguments: {}, energy: 1.0}
  - name: system.chip.PE[0..3].Mac
    actions:
    - {name: compute, arguments: {}, energy: 0.5}
"""

AREAS = """\
ART:
  version: 0.3
  tables:
  - {name: system.Main, area: 10.0}
  - {name: system.chip.Glb, area: 20.0}
"""

SPARSE = """\
sparse_optimizations:
  targets:
  - name: Spad
    representation-format:
      data-spaces:
      - name: A
        rank-application-order: inner-to-outer
        ranks:
        - {format: UOP, payload-word-bits: 4}
        - {format: CP, metadata-word-bits: 4, flattened-rankIDs: [[M, K]]}
    action-optimization:
    - type: skipping
      options:
      - {target: B, condition-on: [A]}
    - {type: gating, target: Z, condition-on: [A, B]}
  - name: Mac
    compute-optimization:
    - {type: gating}
"""

TEXTS = {
    "arch.yaml": ARCHITECTURE,
    "problem.yaml": PROBLEM,
    "mapping.yaml": MAPPING,
    "ert.yaml": ENERGIES,
    "art.yaml": AREAS,
    "sparse.yaml": SPARSE,
}


def edited(*edits: tuple[str, str, str], base: dict[str, str] | None = None) -> dict[str, str]:
    """The base texts after replacements `(file, old, new)`; `old` must occur exactly once."""
    texts = dict(TEXTS if base is None else base)
    for file, old, new in edits:
        assert texts[file].count(old) == 1, f"{old!r} occurs {texts[file].count(old)} times in {file}"
        texts[file] = texts[file].replace(old, new)
    return texts


def line_of(text: str, snippet: str) -> int:
    """The number of the first line that holds `snippet`."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if snippet in line)


@dataclass(frozen=True)
class Malformed:
    """One edit that makes a file of the base design wrong, and the error that must name it: its line (that of the
    snippet `at`), its key path, the message and the remedy (parts of the text)."""

    name: str
    old: str
    new: str
    at: str
    path: str
    message: str
    remedy: str


def malformed(cases: list[Malformed]) -> pytest.MarkDecorator:
    """Parametrizes a test over `cases`."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases])


def check(file: str, case: Malformed, base: dict[str, str] | None = None) -> None:
    """The design after the edit gives exactly the one error that `case` describes."""
    texts = edited((file, case.old, case.new), base=base)
    place = f"{file}:{line_of(texts[file], case.at)}: {case.path}: "
    with pytest.raises(SpecError, match="^" + re.escape(place)) as info:
        read_texts(texts)
    assert len(info.value.errors) == 1, str(info.value)
    assert case.message in info.value.errors[0].message
    assert case.remedy in info.value.errors[0].remedy
