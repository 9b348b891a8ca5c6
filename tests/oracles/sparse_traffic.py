"""Accesses that happen, are gated or skipped (spec/sparse.md 2.8, 3.6 to 3.8)."""

import math
from dataclasses import dataclass, field

from jaxloop.spec.sparse import ActionKind

from .sparse_errors import Undefined
from .sparse_format import Held, Units
from .sparse_geometry import Geometry
from .sparse_saf import Saf

ACTIONS = ("reads", "fills", "updates")
KINDS = ("random", "gated", "skipped")
IntUnits = list[list[int]]


@dataclass(frozen=True)
class DenseCounts:
    """Words per instance of one tensor at one level, without sparsity."""

    reads: int = 0
    fills: int = 0
    updates: int = 0
    temporal_reductions: float = 0.0


@dataclass
class Counts:
    """Words and metadata units per instance: `data[kind][action]`, `metadata[kind][action]` per rank."""

    data: dict[str, dict[str, int]]
    metadata: dict[str, dict[str, IntUnits]]
    temporal_reductions: int = 0
    decompressions: int = 0
    compressions: int = 0


@dataclass
class _Working:
    """What is left of the traffic while SAFs are propagated."""

    data: dict[str, float]
    metadata: dict[str, IntUnits]


@dataclass
class Traffic:
    """`computes` are left of all; `removed[tensor]` is the chance that the tensor's innermost SAF removed them with;
    `wraps`: an inner SAF removes less than an outer one, where the reference's counts wrap around (quirk Q19) and these
    are clamped."""

    counts: dict[tuple[int, str], Counts]
    computes: float
    removed: dict[str, float] = field(default_factory=dict)
    wraps: bool = False


def _empty_counts(ranks: int) -> Counts:
    return Counts(
        {kind: dict.fromkeys(ACTIONS, 0) for kind in KINDS},
        {kind: {action: [[0, 0] for _ in range(ranks)] for action in ACTIONS} for kind in KINDS},
    )


def _metadata_counts(units: Units, accesses: int, shape: int) -> IntUnits:
    return [[math.ceil(unit * (accesses / shape)) for unit in rank] for rank in units]


def _working(dense: DenseCounts, held: Held | None) -> _Working:
    """The traffic after formats (2.8, 3.6)."""
    data = {action: float(getattr(dense, action)) for action in ACTIONS}
    if held is None or not held.has_metadata:
        return _Working(data, {action: [] for action in ACTIONS})
    metadata = {action: _metadata_counts(held.units, getattr(dense, action), held.shape) for action in ACTIONS}
    zeros = 1.0 - held.density
    return _Working({action: n - math.floor(n * zeros) for action, n in data.items()}, metadata)


def _thin(working: _Working, chance: float, outer_ranks: int) -> None:
    """Removes what an outer SAF keeps from arriving."""
    for action in ACTIONS:
        working.data[action] -= math.floor(working.data[action] * chance)
    if outer_ranks == 1:
        for action in ("reads", "fills"):
            for rank in working.metadata[action][:1]:
                for i in range(2):
                    rank[i] -= math.floor(rank[i] * chance)


class Propagation:
    """Propagates the SAFs of all tensors, outer levels first (3.7)."""

    def __init__(
        self,
        geometry: Geometry,
        held: dict[tuple[int, str], Held],
        safs: dict[tuple[int, str], Saf],
        dense: dict[tuple[int, str], DenseCounts],
        computes: int,
    ):
        self._geometry, self._held, self._safs, self._dense = geometry, held, safs, dense
        self._done: set[tuple[int, str]] = set()
        self._left = {key: _working(counts, held.get(key)) for key, counts in dense.items()}
        self.traffic = Traffic({}, float(computes))

    def run(self) -> Traffic:
        for tensor in self._geometry.tensors:
            for level in range(self._geometry.depth - 1, -1, -1):
                if (level, tensor) in self._safs:
                    self._propagate(level, tensor)
        for key in self._dense:
            if key not in self._done:
                self._settle(key, inner=False)
        self._count_compressions()
        return self.traffic

    def _rank_count(self, key: tuple[int, str]) -> int:
        held = self._held.get(key)
        return len(held.units) if held is not None else 0

    def _propagate(self, level: int, tensor: str) -> None:
        saf = self._safs[level, tensor]
        for inner in range(level - 1, -1, -1):
            key = (inner, tensor)
            _thin(self._left[key], saf.chance, self._rank_count((level, tensor)))
            if key in self._safs:
                self._settle(key, inner=True)
                own = self._safs[key]
                if own.kind is not ActionKind.SPATIAL_SKIPPING:
                    self._remove(key, self._beyond(own.chance, saf.chance), own.kind)
                break
        else:
            if not self._geometry.tensors[tensor].is_output:
                self.traffic.computes -= math.floor(self.traffic.computes * saf.chance)
                self.traffic.removed[tensor] = six_digits(saf.chance)
        if (level, tensor) not in self._done:
            self._settle((level, tensor), inner=False)
            if saf.kind is not ActionKind.SPATIAL_SKIPPING:
                self._remove((level, tensor), saf.chance, saf.kind)

    def _beyond(self, inner: float, outer: float) -> float:
        """The chance that an inner SAF removes what an outer one has left. An outer one that removes all leaves none
        to count."""
        if inner < outer:
            self.traffic.wraps = True
        return max(0.0, 1.0 - (1.0 - inner) / (1.0 - outer)) if outer < 1.0 else 0.0

    def _settle(self, key: tuple[int, str], inner: bool) -> None:
        """Takes the traffic left as what happens. Below another SAF metadata reads become the updates (quirk Q3)."""
        left = self._left[key]
        counts = _empty_counts(self._rank_count(key))
        counts.data["random"] = {action: int(left.data[action]) for action in ACTIONS}
        metadata = dict(left.metadata)
        if inner:
            metadata["reads"] = metadata["updates"]
        counts.metadata["random"] = {action: [list(rank) for rank in metadata[action]] for action in ACTIONS}
        self.traffic.counts[key] = counts
        self._done.add(key)
        self._reduce(key)

    def _reduce(self, key: tuple[int, str]) -> None:
        dense, counts = self._dense[key], self.traffic.counts[key]
        if dense.updates:
            left = counts.data["random"]["updates"]
            counts.temporal_reductions = math.ceil(dense.temporal_reductions * left / dense.updates)

    def _remove(self, key: tuple[int, str], chance: float, kind: ActionKind) -> None:
        """The SAF's effect at its own level (3.7.1); spatial skipping has none."""
        level, tensor = key
        counts, name = self.traffic.counts[key], "gated" if kind is ActionKind.GATING else "skipped"
        is_output = self._geometry.tensors[tensor].is_output
        for action, rounded in (("reads", math.ceil if is_output else math.floor), ("updates", math.floor)):
            dropped = rounded(counts.data["random"][action] * chance)
            counts.data[name][action] += dropped
            counts.data["random"][action] -= dropped
        child = self._geometry.child(tensor, level)
        ranks = self._rank_count(key if child is None else (child, tensor))
        for action in ("reads", "updates"):
            pairs = zip(counts.metadata["random"][action], counts.metadata[name][action], strict=True)
            for random, removed in list(pairs)[:ranks]:
                for i in range(2):
                    dropped = math.floor(random[i] * chance)
                    removed[i] += dropped
                    random[i] -= dropped
        self._reduce(key)

    def _count_compressions(self) -> None:
        """(3.8)"""
        for (level, tensor), held in self._held.items():
            parent = self._geometry.parent(tensor, level)
            if parent is None or held.compressed == self._held[parent, tensor].compressed:
                continue
            if held.compressed:
                raise Undefined("a compressed level inside an uncompressed one: the reference aborts")
            counts = self.traffic.counts[level, tensor]
            counts.decompressions += counts.data["random"]["fills"]
            if self._geometry.tensors[tensor].is_output:
                counts.compressions += self.traffic.counts[parent, tensor].data["random"]["updates"]


def six_digits(value: float) -> float:
    """Rounded half away from zero to six decimals (r6 of the specification)."""
    return math.floor(value * 1e6 + 0.5) / 1e6
