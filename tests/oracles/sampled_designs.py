"""Small sparse designs as YAML: written by hand (`Spec`) or drawn at random (`random_spec`).

Random designs may lie where the model is known to differ from what happens: `sampled_limits` tells.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import yaml

import jaxloop
from jaxloop.spec.design import Design

WINDOW = [[["P", "stride"]], [["R"]]]
PROBLEMS: dict[str, tuple[str, dict[str, list[Any]]]] = {
    "matmul": ("MNK", {"A": ["M", "K"], "B": ["K", "N"], "Z": ["M", "N"]}),
    "matvec": ("MK", {"A": ["M", "K"], "B": ["K"], "Z": ["M"]}),
    "batched": ("GMNK", {"A": ["G", "M", "K"], "B": ["G", "K", "N"], "Z": ["G", "M", "N"]}),
    "conv": ("PRCM", {"A": ["M", "C", "R"], "B": ["C", "PR"], "Z": ["M", "P"]}),
}
"""Ranks, and per tensor (operands A and B, output Z) the ranks that each axis adds up."""


@dataclass(frozen=True)
class Level:
    """Temporal factors from the innermost loop outward (`"K2 N4 M2"`), spatial ones likewise, tensors kept."""

    temporal: str = ""
    spatial: str = ""
    keep: str = "ABZ"


@dataclass(frozen=True)
class Saf:
    """Accesses to `target` at `level` are removed where a tensor of `leaders` is empty."""

    level: int
    target: str
    leaders: str
    kind: str = "skipping"


@dataclass(frozen=True)
class Spec:
    """One design; levels innermost first.

    - `densities`: per tensor `(distribution, density)` or `("banded", half width)`.
    - `formats`: per level and tensor its ranks from the outermost inward (`"UOP CP"`); a rank may name the loops that
      it flattens (`"CP:MK"`). `backwards`: assigned from the innermost loop outward.
    - `decompresses`: levels that may (de)compress; `compute`: kinds of compute optimization.
    """

    problem: str
    levels: tuple[Level, ...]
    densities: dict[str, tuple[str, float]] = field(default_factory=dict)
    formats: dict[tuple[int, str], str] = field(default_factory=dict)
    safs: tuple[Saf, ...] = ()
    compute: tuple[str, ...] = ()
    backwards: bool = False

    def load(self) -> Design:
        return jaxloop.loads({"design.yaml": yaml.safe_dump(self.document(), sort_keys=False)})

    @property
    def names(self) -> list[str]:
        return [f"L{s}" for s in range(len(self.levels))]

    def factors(self, text: str) -> dict[str, int]:
        """All ranks, those named first, in their order."""
        named = {part[0]: int(part[1:]) for part in text.split()}
        return named | {rank: 1 for rank in PROBLEMS[self.problem][0] if rank not in named}

    def sizes(self) -> dict[str, int]:
        sizes = dict.fromkeys(PROBLEMS[self.problem][0], 1)
        for level in self.levels:
            for text in (level.temporal, level.spatial):
                for rank, factor in self.factors(text).items():
                    sizes[rank] *= factor
        return sizes

    def document(self) -> dict[str, Any]:
        return {
            "architecture": self._architecture(),
            "problem": self._problem(),
            "mapping": [entry for s in reversed(range(len(self.levels))) for entry in self._mapping(s)],
            "sparse_optimizations": {"targets": [*map(self._target, range(len(self.levels))), self._compute()]},
            "ERT": {"version": 0.3, "tables": [*map(self._energies, [*self.names, "MAC"])]},
        }

    def _energies(self, name: str) -> dict[str, Any]:
        actions = ("compute",) if name == "MAC" else ("read", "write")
        return {"name": f"S.{name}", "actions": [{"name": a, "arguments": None, "energy": 1.0} for a in actions]}

    def _architecture(self) -> dict[str, Any]:
        mesh, nodes = 1, []
        for s in reversed(range(len(self.levels))):
            attributes = {"datawidth": 16, "block_size": 1, "metadata_datawidth": 8, "metadata_storage_width": 8}
            attributes |= {"decompression_supported": True, "compression_supported": True}
            kind = "DRAM" if s == len(self.levels) - 1 else "storage"
            if kind == "storage":
                attributes |= {"depth": 1 << 20, "width": 16, "metadata_storage_depth": 1 << 20}
            name = f"L{s}" if mesh == 1 else f"L{s}[0..{mesh - 1}]"
            nodes.append({"name": name, "class": kind, "attributes": attributes})
            mesh *= math.prod(self.factors(self.levels[s].spatial).values())
        name = "MAC" if mesh == 1 else f"MAC[0..{mesh - 1}]"
        nodes.append({"name": name, "class": "compute", "attributes": {"datawidth": 16}})
        return {"version": 0.3, "subtree": [{"name": "S", "local": nodes}]}

    def _problem(self) -> dict[str, Any]:
        ranks, tensors = PROBLEMS[self.problem]
        spaces = [
            {"name": name, "projection": [[[rank] for rank in axis] for axis in axes]} for name, axes in tensors.items()
        ]
        spaces[-1]["read-write"] = True
        densities = {
            name: {"distribution": kind, **({"band_width": int(value)} if kind == "banded" else {"density": value})}
            for name, (kind, value) in self.densities.items()
        }
        shape = {"name": self.problem, "dimensions": list(ranks), "data-spaces": spaces}
        return {"shape": shape, "instance": {**self.sizes(), **({"densities": densities} if densities else {})}}

    def _mapping(self, s: int) -> list[dict[str, Any]]:
        level, entries = self.levels[s], []
        for kind, text in (("temporal", level.temporal), ("spatial", level.spatial)):
            if kind == "spatial" and not text:
                continue
            factors = self.factors(text)
            words = " ".join(f"{rank}={factor}" for rank, factor in factors.items())
            entries.append({"target": f"L{s}", "type": kind, "factors": words, "permutation": "".join(factors)})
        keep = [t for t in "ABZ" if t in level.keep]
        bypass = [t for t in "ABZ" if t not in level.keep]
        return [*entries, {"target": f"L{s}", "type": "bypass", "keep": keep, "bypass": bypass}]

    def _target(self, s: int) -> dict[str, Any]:
        spaces = []
        for (level, tensor), text in self.formats.items():
            if level == s:
                ranks = [self._rank(word) for word in text.split()]
                order = {"rank-application-order": "inner-to-outer"} if self.backwards else {}
                spaces.append({"name": tensor, "ranks": ranks} | order)
        actions = [
            {"type": saf.kind, "options": [{"target": saf.target, "condition-on": list(saf.leaders)}]}
            for saf in self.safs
            if saf.level == s
        ]
        found: dict[str, Any] = {"name": f"L{s}"}
        found |= {"representation-format": {"data-spaces": spaces}} if spaces else {}
        return found | ({"action-optimization": actions} if actions else {})

    def _rank(self, word: str) -> dict[str, Any]:
        form, _, flattened = word.partition(":")
        return {"format": form} | ({"flattened-rankIDs": [list(flattened)]} if flattened else {})

    def _compute(self) -> dict[str, Any]:
        optimizations = [{"type": kind} for kind in self.compute]
        return {"name": "MAC"} | ({"compute-optimization": optimizations} if optimizations else {})


def _loops(text: str, ranks: str) -> int:
    """Nontrivial loops over some ranks."""
    return sum(part[0] in ranks and int(part[1:]) > 1 for part in text.split())


def _random_levels(rng: np.random.Generator, ranks: str) -> list[Level]:
    """Two or three levels, all factors 2 or 4, at most 512 iterations, at most one spatial loop."""
    depth = int(rng.integers(2, 4))
    slots: list[dict[str, int]] = [{} for _ in range(depth)]
    total = 1
    for _ in range(40):
        rank, slot, factor = rng.choice(list(ranks)), int(rng.integers(depth)), int(rng.choice((2, 2, 2, 4)))
        if total * factor <= 512 and slots[slot].get(rank, 1) * factor <= 4:
            slots[slot][rank] = slots[slot].get(rank, 1) * factor
            total *= factor
    spatial_slot = int(rng.integers(depth)) if rng.random() < 0.4 else -1
    levels = []
    for s, slot in enumerate(slots):
        order = list(rng.permutation(list(slot)))
        spatial = order.pop() if s == spatial_slot and order else ""
        temporal = " ".join(f"{rank}{slot[rank]}" for rank in order)
        levels.append(Level(temporal, f"{spatial}{slot[spatial]}" if spatial else ""))
    return levels


def _random_keep(rng: np.random.Generator, levels: list[Level]) -> list[Level]:
    """Each tensor may be bypassed anywhere but at the outermost level."""
    kept = [{t for t in "ABZ" if s == len(levels) - 1 or rng.random() < 0.85} for s in range(len(levels))]
    return [Level(x.temporal, x.spatial, "".join(sorted(keep))) for x, keep in zip(levels, kept, strict=True)]


def _random_density(rng: np.random.Generator, extents: list[int], family: str) -> tuple[str, float]:
    """A density that real tensors of these extents can have exactly."""
    if family == "banded" and len(extents) == 2 and extents[0] == extents[1] > 2:
        return "banded", float(rng.integers(0, min(extents[0] // 2, 4)))
    if family == "structured" and not any(extent & (extent - 1) for extent in extents):
        return "fixed-structured", float(rng.choice((0.25, 0.5, 0.75)))
    size = math.prod(extents)
    return "hypergeometric", int(rng.integers(1, size + 1)) / size


def _random_formats(
    rng: np.random.Generator, levels: list[Level], tensor: str, ranks: str
) -> dict[tuple[int, str], str]:
    """Formats of one tensor with at most 4 ranks: at all levels that keep it, or at all but the innermost; one rank per
    loop, one for the tiles of a level without a format, sometimes one too many."""
    kept = [s for s, level in enumerate(levels) if tensor in level.keep]
    start, loops = 0, []
    for s in kept:
        loops.append(sum(_loops(f"{x.spatial} {x.temporal}", ranks) for x in levels[start : s + 1]))
        start = s + 1
    only_level = len(kept) == 1
    if rng.random() < 0.3 and not only_level:
        kept, loops = kept[1:], [int(loops[0] > 0) + loops[1], *loops[2:]]
    loops[-1] += int(rng.random() < 0.3)
    total = max(1, sum(loops))
    if total > 4:
        return {}
    compressed = int(rng.integers(0 if only_level else 1, total + 1))
    forms = [str(rng.choice(("UOP", "UB"))) for _ in range(total - compressed)]
    forms += [str(rng.choice(("CP", "B", "RLE"))) for _ in range(compressed)]
    found, below = {}, 0
    for s, own in zip(kept, loops, strict=True):
        below += own
        found[s, tensor] = " ".join(forms[-max(below, 1) :])
    return found


def _random_flat_formats(
    rng: np.random.Generator, levels: list[Level], tensor: str, ranks: str
) -> dict[tuple[int, str], str]:
    """A format of the outermost level: all its loops in one rank, all further in in another."""
    kept = [s for s, level in enumerate(levels) if tensor in level.keep]
    inner, outer = str(rng.choice(("CP", "B", "RLE"))), str(rng.choice(("UOP", "UB", "CP", "B", "RLE")))
    if len(kept) > 2:
        return {}
    text = f"{outer}:{ranks} {inner}:{ranks}"
    below = [f"{x.spatial} {x.temporal}" for x in levels[: kept[0] + 1]]
    has_tiles = len(kept) == 2 and any(_loops(text, ranks) for text in below)
    return {(kept[-1], tensor): text if has_tiles else f"{inner}:{ranks}"}


def _random_safs(rng: np.random.Generator, levels: list[Level]) -> tuple[Saf, ...]:
    """At most one per level and target, with the same leaders at every level, so that inner ones include outer ones."""
    found = []
    for target, leaders in (("A", "B"), ("B", "A"), ("Z", str(rng.choice(("A", "B", "AB"))))):
        if rng.random() < 0.45:
            kept = [s for s, level in enumerate(levels) if target in level.keep]
            chosen = {s for s in kept if rng.random() < 0.6} or {kept[0]}
            kinds = ("gating", "skipping")
            found += [Saf(s, target, leaders, str(rng.choice(kinds))) for s in sorted(chosen)]
    return tuple(found)


FAMILIES = {
    "uniform": ("matmul", "matvec", "batched"),
    "structured": ("matmul", "matvec", "batched"),
    "banded": ("matmul",),
    "flattened": ("matmul", "matvec", "batched"),
    "windows": ("conv",),
}
"""Problems of each family of designs. Structured and banded say how nonzeros lie (elsewhere anywhere), flattened is
about formats."""


def random_spec(seed: int, family: str) -> Spec:
    """A design of at most 512 computes with random mapping, densities, formats and SAFs, some of each."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    while True:
        spec = _draw(rng, family)
        is_banded = any(kind == "banded" for kind, _ in spec.densities.values())
        if (spec.formats or spec.safs or spec.compute) and is_banded == (family == "banded"):
            return spec


def _draw(rng: np.random.Generator, family: str) -> Spec:
    problem = str(rng.choice(FAMILIES[family]))
    ranks, tensors = PROBLEMS[problem]
    levels = _random_keep(rng, _random_levels(rng, ranks))
    sizes = Spec(problem, tuple(levels)).sizes()
    extents = {name: [1 + sum(sizes[rank] - 1 for rank in axis) for axis in axes] for name, axes in tensors.items()}
    densities = {t: _random_density(rng, extents[t], family) for t in "ABZ" if rng.random() < 0.85}
    draw = _random_flat_formats if family == "flattened" else _random_formats
    formats: dict[tuple[int, str], str] = {}
    for name, axes in tensors.items():
        if rng.random() < 0.6 and all(len(axis) == 1 for axis in axes):
            formats |= draw(rng, levels, name, "".join(axes))
    compute = tuple(kind for kind in ("gating", "skipping") if rng.random() < 0.5)
    backwards = bool(rng.random() < 0.3) and family != "flattened"
    return Spec(problem, tuple(levels), densities, formats, _random_safs(rng, levels), compute, backwards)
