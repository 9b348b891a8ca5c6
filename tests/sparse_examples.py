"""The worked examples of spec/sparse.md section 7 as YAML: a matrix multiplication on a backing store, a buffer and
multipliers.
"""

from dataclasses import dataclass, field

import jaxloop as jl

BACKING, BUFFER = 1, 0
A, B, Z = 0, 1, 2
"""Positions of the levels and the tensors."""

ARCHITECTURE = """
architecture:
  version: 0.3
  subtree:
  - name: System
    local:
    - name: Backing
      class: DRAM
      attributes: {{width: 64, block_size: 4, datawidth: 16, metadata_storage_width: 64, metadata_datawidth: 8}}
    subtree:
    - name: PE{elements}
      local:
      - name: Buffer
        class: storage
        attributes: {{data_storage_depth: 4096, data_storage_width: {width}, datawidth: 16, block_size: {block},
          metadata_storage_depth: 4096, metadata_storage_width: 8, metadata_datawidth: 8{buffer}}}
      - name: MAC
        class: compute
        attributes: {{datawidth: 16}}
"""
PROBLEM = """
problem:
  shape:
    name: mm
    dimensions: [M, N, K]
    data-spaces:
    - {{name: A, projection: [[[M]], [[K]]]}}
    - {{name: B, projection: [[[K]], [[N]]]}}
    - {{name: Z, projection: [[[M]], [[N]]], read-write: true}}
  instance: {{M: {M}, N: {N}, K: {K}, densities: {{{densities}}}}}
"""
PRICES = {
    "Backing": "read 100 write 110 idle 0 metadata_read 50 metadata_write 55 metadata_idle 0",
    "Buffer": "read 10 write 12 idle 0.5 metadata_read 1 metadata_write 1.25 metadata_idle 0.125 gated_read 0.75 "
    "gated_write 0.875 skipped_read 0.0625 skipped_write 0.03125 decompression_count 0.25 compression_count 0.3",
    "MAC": "mac_random 2 mac_gated 0.5 mac_skipped 0.0625",
}
"""pJ."""


@dataclass(frozen=True)
class Example:
    """One example.

    - `backing`, `spatial`, `buffer`: factors and permutation of the directives (`"M4 N2 K4;MKN"`), first letter
      innermost.
    - `densities`: per tensor a distribution and its number (`"hypergeometric 0.25"`, `"banded 1"`).
    - `formats`: per level and tensor the ranks, outermost first (`"UOP CP"`); a rank may name what it flattens
      (`"RLE:MK"`).
    - `actions`: per level what is done (`"skipping B<-A"`); `compute`: `"gating"` or `"skipping"`.
    - `elements`: processing elements; `block`: words per access of the buffer; `attributes`: more of the buffer's.
    """

    backing: str
    buffer: str
    densities: dict[str, str]
    spatial: str = ""
    formats: dict[tuple[str, str], str] = field(default_factory=dict)
    actions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    compute: str = ""
    elements: int = 1
    block: int = 1
    attributes: str = ""

    def texts(self) -> dict[str, str]:
        """`{name: YAML}`."""
        sizes = dict.fromkeys("MNK", 1)
        for directive in (self.backing, self.spatial, self.buffer):
            for factor in directive.partition(";")[0].split():
                sizes[factor[0]] *= int(factor[1:])
        elements = f"[0..{self.elements - 1}]" if self.elements > 1 else ""
        return {
            "architecture": ARCHITECTURE.format(
                elements=elements, width=16 * self.block, block=self.block, buffer=self.attributes
            ),
            "problem": PROBLEM.format(**sizes, densities=", ".join(map(_density, self.densities.items()))),
            "mapping": self._mapping(),
            "sparse": self._sparse(),
            "energies": _energies(),
        }

    def evaluate(self) -> jl.Evaluation:
        return jl.evaluate(jl.loads(self.texts()))

    def _mapping(self) -> str:
        lines = [("Backing", "temporal", self.backing), ("Backing", "spatial", self.spatial)]
        lines.append(("Buffer", "temporal", self.buffer))
        return "mapping:\n" + "".join(_directive(*line) for line in lines if line[2])

    def _sparse(self) -> str:
        targets = []
        for level in ("Backing", "Buffer"):
            spaces = [_format(tensor, ranks) for (at, tensor), ranks in self.formats.items() if at == level]
            target = f"  - name: {level}\n"
            target += f"    representation-format: {{data-spaces: [{', '.join(spaces)}]}}\n" if spaces else ""
            actions = ", ".join(map(_action, self.actions.get(level, ())))
            targets.append(target + (f"    action-optimization: [{actions}]\n" if actions else ""))
        if self.compute:
            targets.append(f"  - name: MAC\n    compute-optimization: [{{type: {self.compute}}}]\n")
        return "sparse_optimizations:\n  targets:\n" + "".join(targets)


def _density(item: tuple[str, str]) -> str:
    tensor, (distribution, number) = item[0], item[1].split()
    key = "band_width" if distribution == "banded" else "density"
    return f"{tensor}: {{distribution: {distribution}, {key}: {number}}}"


def _directive(level: str, kind: str, text: str) -> str:
    factors, _, permutation = text.partition(";")
    given = dict((factor[0], factor[1:]) for factor in factors.split())
    factors = " ".join(f"{rank}={given.get(rank, 1)}" for rank in "MNK")
    return f"- {{target: {level}, type: {kind}, factors: {factors}, permutation: {permutation or 'MNK'}}}\n"


def _format(tensor: str, text: str) -> str:
    ranks = []
    for word in text.split():
        name, _, flattened = word.partition(":")
        ranks.append(
            f"{{format: {name}" + (f", flattened-rankIDs: [[{', '.join(flattened)}]]" if flattened else "") + "}"
        )
    return f"{{name: {tensor}, ranks: [{', '.join(ranks)}]}}"


def _action(text: str) -> str:
    """`"skipping B<-A"`."""
    kind, rest = text.split()
    target, leaders = rest.split("<-")
    return f"{{type: {kind}, target: {target}, condition-on: [{', '.join(leaders)}]}}"


def _energies() -> str:
    tables = []
    for name, text in PRICES.items():
        words = text.split()
        actions = [f"{{name: {a}, arguments: null, energy: {e}}}" for a, e in zip(words[::2], words[1::2], strict=True)]
        place = "System" if name == "Backing" else "System.PE"
        tables.append(f"  - {{name: {place}.{name}, actions: [{', '.join(actions)}]}}\n")
    return "ERT:\n  version: 0.3\n  tables:\n" + "".join(tables)


QUARTER_AND_HALF = {"A": "hypergeometric 0.25", "B": "hypergeometric 0.5"}
OUTER, INNER = "M4 N2 K4;MKN", "M2 N4 K2;KNM"
ROWS = {("Backing", "A"): "UOP UOP UOP CP", ("Buffer", "A"): "UOP CP"}
BOTH = {
    ("Backing", "A"): "UOP UOP UOP RLE",
    ("Buffer", "A"): "UOP RLE",
    ("Backing", "B"): "CP CP CP B",
    ("Buffer", "B"): "CP B",
}
CSR = {("Backing", "A"): "UOP CP", ("Buffer", "A"): "UOP CP"}

EXAMPLES = {
    "1 compute gating": Example("M2;MNK", "M2 N4 K8;KNM", {"A": "fixed 0.5", "B": "fixed 0.25"}, compute="gating"),
    "2 innermost gating": Example(
        "M2;MNK",
        "M2 N4 K8;KNM",
        QUARTER_AND_HALF,
        actions={"Buffer": ("gating B<-A", "gating Z<-AB")},
        compute="gating",
    ),
    "3 outer skipping": Example(OUTER, INNER, QUARTER_AND_HALF, actions={"Backing": ("skipping B<-A",)}),
    "4 compressed": Example(OUTER, INNER, QUARTER_AND_HALF, formats=ROWS),
    "5 double-sided": Example(
        OUTER,
        INNER,
        QUARTER_AND_HALF,
        formats=BOTH,
        actions={"Buffer": ("skipping A<-B", "skipping B<-A", "skipping Z<-AB")},
        compute="skipping",
    ),
    "6 hierarchical": Example(
        OUTER,
        INNER,
        QUARTER_AND_HALF,
        formats=BOTH,
        actions={"Backing": ("skipping B<-A",), "Buffer": ("skipping B<-A",)},
        compute="skipping",
    ),
    "7 decompression": Example(
        OUTER,
        INNER,
        {"A": "hypergeometric 0.25", "Z": "hypergeometric 0.75"},
        formats={("Backing", "A"): "RLE:MK RLE:MK", ("Backing", "Z"): "RLE:MN RLE:MN"},
        attributes=", decompression_supported: true, compression_supported: true",
    ),
    "8 whole tensor": Example("N2;MNK", "M8 N4 K8;KNM", QUARTER_AND_HALF, formats=CSR),
    "8f whole tensor, structured": Example(
        "N2;MNK", "M8 N4 K8;KNM", {"A": "fixed-structured 0.25", "B": "hypergeometric 0.5"}, formats=CSR
    ),
    "9 spatial": Example(
        "N2 K4;MKN",
        INNER,
        QUARTER_AND_HALF,
        spatial="M4",
        actions={"Backing": ("skipping B<-A",), "Buffer": ("skipping A<-B",)},
        elements=4,
    ),
    "10 banded": Example(OUTER, INNER, {"A": "banded 1", "B": "hypergeometric 0.5"}, formats=ROWS),
    "11 blocks": Example(OUTER, INNER, QUARTER_AND_HALF, formats=ROWS, actions={"Buffer": ("skipping B<-A",)}, block=4),
}
