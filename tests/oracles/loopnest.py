"""A brute-force interpreter of small mapped loop nests: it walks every iteration and counts words from coordinate sets.

It exists to check the closed-form kernel, so it shares no code and no formula with it. Every child of every fan-out
holds an explicit set of tensor coordinates; what a parent must deliver is a difference of sets, a multicast is a group
of equal sets. Only the bookkeeping that follows the walk (partitions, bypass, rounding) is arithmetic, as in
spec/dense.md section 5. Factors must be perfect. Cost: iterations x fan-out x tile words, per tensor and level.

**Two reuse policies:**

- `"full"`: a child keeps its previous tile and is sent only what that tile lacks; loops run to their last index. This
  is the least traffic possible with room for one tile.
- `"model"`: the rule of spec/dense.md 4.3 as the state machine of 6.1: a child remembers the motion of its tile and is
  sent a set difference only while the motion repeats, else the whole tile. With `second_index` the walk visits only
  indices 0 and 1 of each loop and index 1 counts for all that follow it, as the reference does; without, it visits all.

In both, compute units hold nothing (4.2), tiles are bounding boxes (holes left by strides are data, section 1), one
instance of each level is walked (all others see the same, translated), and partly equal deltas are not multicast (4.5).
`exactness.py` tells when the two agree.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from jaxloop.spec.architecture import Architecture
from jaxloop.spec.einsum import Einsum, Tensor
from jaxloop.spec.mapping import LoopNest

Policy = Literal["full", "model"]
Number = int | float | Fraction
Key = tuple[str, str]
"""Level name, tensor name."""
Point = tuple[int, ...]
"""A corner of the iteration space (one entry per rank) or a coordinate of a tensor (one entry per axis)."""
Records = dict[tuple[int, int], Number]
"""Accesses by (children that receive a word together, number of such groups)."""


@dataclass(frozen=True)
class Counts:
    """What one walk gives: words per instance of the level over the whole execution, by (level, tensor).

    **Attributes:**

    - `reads`, `fills`, `updates`, `temporal_reductions`, `partition`, `tile_words`, `peers` (words that an instance
      hands to its neighbors): 0 where the level bypasses the tensor. `Fraction` if the walk was asked not to round.
    - `instances`: used instances of the level, 0 above the outermost level that keeps the tensor.
    - `records`, `links`: of the connection below the level, after bypass.
    - `computes`, `compute_cycles` (one operation per unit and cycle), `compute_instances` (units in use).
    """

    reads: dict[Key, Number] = field(default_factory=dict)
    fills: dict[Key, Number] = field(default_factory=dict)
    updates: dict[Key, Number] = field(default_factory=dict)
    temporal_reductions: dict[Key, Number] = field(default_factory=dict)
    partition: dict[Key, Number] = field(default_factory=dict)
    tile_words: dict[Key, int] = field(default_factory=dict)
    peers: dict[Key, Number] = field(default_factory=dict)
    instances: dict[Key, int] = field(default_factory=dict)
    records: dict[Key, Records] = field(default_factory=dict)
    links: dict[Key, Number] = field(default_factory=dict)
    computes: int = 0
    compute_cycles: int = 0
    compute_instances: int = 0


@dataclass(frozen=True)
class FlatLoop:
    """A loop of the flattened nest. One iteration moves index `rank` of the iteration space by `stride`."""

    rank: int
    bound: int
    stride: int
    level: int
    spatial: bool


def flatten(einsum: Einsum, nest: LoopNest) -> list[FlatLoop]:
    """All loops, innermost first: per level X, Y, temporal (spec/dense.md section 3). Raises `ValueError` on imperfect
    factors and where the factors of a rank do not multiply to its size."""
    strides = [1] * len(einsum.ranks)
    flat = []
    for index, level in enumerate(nest.levels):
        spatial = level.spatial_x + level.spatial_y
        for position, loop in enumerate(spatial + level.temporal):
            if not loop.is_perfect:
                raise ValueError(f"{level.level}: the loop over {loop.rank} is imperfect; this walk takes none")
            rank = einsum.ranks.index(loop.rank)
            flat.append(FlatLoop(rank, loop.bound, strides[rank], index, position < len(spatial)))
            strides[rank] *= loop.bound
    if tuple(strides) != einsum.sizes:
        raise ValueError(f"factors multiply to {strides}, the ranks have sizes {einsum.sizes}")
    return flat


def points(loops: Sequence[FlatLoop], ranks: int, origin: Point | None = None) -> Iterator[Point]:
    """Corners that `loops` (innermost first) visit, in order of execution, from `origin`."""
    start = origin or (0,) * ranks
    for indices in itertools.product(*(range(loop.bound) for loop in reversed(loops))):
        corner = list(start)
        for loop, index in zip(reversed(loops), indices, strict=True):
            corner[loop.rank] += index * loop.stride
        yield tuple(corner)


def _weighted_points(loops: Sequence[FlatLoop], ranks: int) -> Iterator[tuple[Point, int]]:
    """As `points`, but index 1 of each loop stands for all indices from 1 on (spec/dense.md 4.1)."""
    for indices in itertools.product(*(range(min(loop.bound, 2)) for loop in reversed(loops))):
        corner, weight = [0] * ranks, 1
        for loop, index in zip(reversed(loops), indices, strict=True):
            corner[loop.rank] += index * loop.stride
            weight *= loop.bound - 1 if index else 1
        yield tuple(corner), weight


def box_of(loops: Sequence[FlatLoop], ranks: int) -> Point:
    """Iterations per rank that `loops` cover together."""
    sizes = [1] * ranks
    for loop in loops:
        sizes[loop.rank] *= loop.bound
    return tuple(sizes)


@dataclass(frozen=True)
class View:
    """A tensor with rank names resolved to indices: per axis its (rank, coefficient) terms."""

    axes: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, einsum: Einsum, tensor: Tensor) -> "View":
        return cls(tuple(tuple((einsum.ranks.index(t.rank), t.coefficient) for t in a.terms) for a in tensor.axes))

    def bounds(self, corner: Point, box: Point) -> tuple[tuple[int, int], ...]:
        """Lowest and highest coordinate per axis that the box of iterations at `corner` touches."""
        out = []
        for terms in self.axes:
            ends = [(c * corner[rank], c * (corner[rank] + box[rank] - 1)) for rank, c in terms]
            out.append((sum(map(min, ends)), sum(map(max, ends))))
        return tuple(out)

    def words(self, box: Point) -> int:
        return math.prod(high - low + 1 for low, high in self.bounds((0,) * len(box), box))

    def motion(self, loop: FlatLoop) -> Point:
        """How far one iteration of `loop` moves a tile."""
        return tuple(sum(c for rank, c in terms if rank == loop.rank) * loop.stride for terms in self.axes)


@lru_cache(maxsize=1 << 14)
def _coordinates(bounds: tuple[tuple[int, int], ...]) -> frozenset[Point]:
    return frozenset(itertools.product(*(range(low, high + 1) for low, high in bounds)))


def words(einsum: Einsum, tensor: Tensor, box: Point) -> int:
    """Words of the tile that a box of `box[rank]` iterations touches (spec/dense.md section 1)."""
    return View.of(einsum, tensor).words(box)


@dataclass
class _Child:
    """What one child holds of one tensor, and the motion that the documented rule expects next."""

    held: frozenset[Point] | None = None
    low: Point = ()
    expected: Point | None = None

    def receive(self, low: Point, tile: frozenset[Point], reuse: Policy | None) -> frozenset[Point]:
        """Takes the next tile (lowest corner `low`) and returns what must be delivered; `reuse` None: everything."""
        held, moved = self.held, tuple(new - old for new, old in zip(low, self.low, strict=False))
        self.held, self.low = tile, low
        if held is None or reuse is None:
            return tile
        if reuse == "model":
            if self.expected not in (None, moved):
                self.expected = None
                return tile
            self.expected = moved
        return tile - held


@dataclass
class _Connection:
    """Traffic from one instance of a level to its children (the level below or the compute units), one tensor."""

    fanout: int
    records: Records = field(default_factory=lambda: defaultdict(int))
    links: Number = 0

    @property
    def content(self) -> Number:
        return sum(self.records[key] for key in sorted(self.records))

    @property
    def per_child(self) -> Number:
        """Words per child, on average. In floating point the reference's order of operations (spec/dense.md 5.2)."""
        total = 0
        for key in sorted(self.records):
            total += self.records[key] * key[0] / self.fanout
        return total


def _neighbors(element: int, width: int, height: int) -> list[int]:
    """Grid neighbors of an element, by the reference's decoding of its number (spec/dense.md 4.6)."""
    row, column = divmod(element, width)
    out = []
    if height > 1:
        out += [element - width] * (row > 0) + [element + width] * (row < height - 1)
    if width > 1:
        out += [element - 1] * (column > 0) + [element + 1] * (column < width - 1)
    return out


def _groups(deltas: Sequence[frozenset[Point]], elements: Sequence[int], multicast: bool) -> list[tuple[int, int]]:
    """(receivers, words) of each group of `elements` that get the same words."""
    if not multicast:
        return [(1, len(deltas[e])) for e in elements]
    return [(receivers, len(delta)) for delta, receivers in Counter(deltas[e] for e in elements).items()]


@dataclass(frozen=True)
class _Walker:
    """Everything that the walks of all connections share."""

    einsum: Einsum
    architecture: Architecture
    nest: LoopNest
    flat: list[FlatLoop]
    policy: Policy
    second_index: bool
    links: bool

    def steps(self, level: int) -> Iterator[tuple[Point, int]]:
        """Temporal steps of all loops from `level` outward: corner and weight."""
        loops = [loop for loop in self.flat if loop.level >= level and not loop.spatial]
        ranks = len(self.einsum.ranks)
        if self.policy == "model" and self.second_index:
            return _weighted_points(loops, ranks)
        return ((corner, 1) for corner in points(loops, ranks))

    def grid(self, level: int) -> tuple[int, int]:
        physical = self.architecture.fanout(level)
        spec = self.nest.levels[level]
        used = [math.prod(loop.bound for loop in loops) for loops in (spec.spatial_x, spec.spatial_y)]
        return max(physical[0], used[0]), max(physical[1], used[1])

    def connection(self, level: int, tensor: Tensor) -> _Connection:
        """Walks the connection below `level` for one tensor."""
        view, spec, ranks = View.of(self.einsum, tensor), self.nest.levels[level], len(self.einsum.ranks)
        inside = box_of([loop for loop in self.flat if loop.level < level], ranks)
        spatial = [loop for loop in self.flat if loop.level == level and loop.spatial]
        holds = level > 0 and tensor.name not in self.nest.levels[level - 1].no_temporal_reuse
        linked = self.links and tensor.name not in spec.no_link_transfer
        children = [_Child() for _ in points(spatial, ranks)]
        out, grid = _Connection(len(children)), self.grid(level)
        neighbors = [[n for n in _neighbors(e, *grid) if n < out.fanout] for e in range(out.fanout)]
        before: list[frozenset[Point]] | None = None
        for corner, weight in self.steps(level):
            deltas = []
            for child, place in zip(children, points(spatial, ranks, corner), strict=True):
                bounds = view.bounds(place, inside)
                tile = _coordinates(bounds)
                deltas.append(child.receive(tuple(b[0] for b in bounds), tile, self.policy if holds else None))
            receivers = [e for e, delta in enumerate(deltas) if delta]
            groups = _groups(deltas, receivers, tensor.name not in spec.no_multicast)
            if linked and before is not None:
                rest = [e for e in receivers if not any(before[n] == deltas[e] for n in neighbors[e])]
                fewer = _groups(deltas, rest, tensor.name not in spec.no_multicast)
                if len(fewer) < len(groups):
                    out.links += weight * sum(len(deltas[e]) for e in set(receivers) - set(rest))
                    groups = fewer
            for multicast, scatter in Counter(m for m, _ in groups).items():
                size = sum(delivered for m, delivered in groups if m == multicast)
                out.records[multicast, scatter] += weight * size
            before = deltas
        return out


def _round(value: Number) -> int:
    """To the nearest integer, halves away from zero (counts are never negative)."""
    return math.floor(value + 0.5) if isinstance(value, float) else math.floor(value + Fraction(1, 2))


def _bypass(connections: list[_Connection], kept: list[bool], exact: bool) -> tuple[list[Number], list[Number], int]:
    """Hands the traffic of bypassed levels outward (spec/dense.md 5.3, 5.4), in place. Returns content and words per
    child of the connection above, per level, and the number of levels from the innermost to the outermost keeper."""
    levels = len(connections)
    number = Fraction if exact else float
    for connection in connections:
        connection.records = {key: number(value) for key, value in connection.records.items()}
    content = [connection.content for connection in connections]
    arriving = [connection.per_child for connection in connections[1:]] + [number(0)]
    for level in range(levels):
        if kept[level]:
            continue
        if level < levels - 1:
            outer = connections[level + 1]
            scale = content[level] * outer.fanout / sum(outer.records[key] * key[0] for key in sorted(outer.records))
            outer.records = {key: value * scale for key, value in outer.records.items()}
            outer.links, content[level + 1] = 0, outer.content
        content[level] = arriving[level] = number(0)
    keepers = max((level + 1 for level in range(levels) if kept[level]), default=0)
    if keepers == 0:
        raise ValueError("a tensor is bypassed at every level")
    for connection in connections[keepers:]:
        connection.records, connection.links = {}, 0
    arriving[keepers - 1] = number(0)
    return content, arriving, keepers


def _partitions(walker: _Walker, tensor: Tensor, exact: bool) -> list[Number]:
    """Words that one instance of each level is responsible for (spec/dense.md 5.1)."""
    view, ranks, levels = View.of(walker.einsum, tensor), len(walker.einsum.ranks), len(walker.nest.levels)
    share: Number = view.words(walker.einsum.sizes)
    out: list[Number] = [share]
    for level in reversed(range(levels - 1)):
        tile = view.words(box_of([loop for loop in walker.flat if loop.level <= level], ranks))
        union = view.words(
            box_of([x for x in walker.flat if x.level <= level or (x.level == level + 1 and x.spatial)], ranks)
        )
        share = Fraction(share) * tile / union if exact else int(share) * tile // union
        out.append(share)
    return out[::-1]


def _account(walker: _Walker, tensor: Tensor, exact: bool, elide_first_read: bool, out: Counts) -> None:
    """Reads, fills and updates of one tensor at every level from its walked traffic (spec/dense.md section 5)."""
    names = [level.level for level in walker.nest.levels]
    ranks = len(walker.einsum.ranks)
    kept = [tensor.name in level.keep for level in walker.nest.levels]
    connections = [walker.connection(level, tensor) for level in range(len(names))]
    partitions = _partitions(walker, tensor, exact)
    content, arriving, keepers = _bypass(connections, kept, exact)
    number, rounded, floored = (Fraction, Fraction, Fraction) if exact else (float, _round, math.floor)
    for level, name in enumerate(names):
        key = name, tensor.name
        used = math.prod(loop.bound for loop in walker.flat if loop.spatial and loop.level > level)
        out.instances[key] = used if level < keepers else 0
        out.records[key], out.links[key] = dict(sorted(connections[level].records.items())), connections[level].links
        outer_links = connections[level + 1].links if level + 1 < len(names) else 0
        peers = number(outer_links) / used
        out.peers[key] = peers
        tables = (out.reads, out.fills, out.updates, out.temporal_reductions, out.partition, out.tile_words)
        if not kept[level]:
            for table in tables:
                table[key] = 0
            continue
        out.tile_words[key] = words(walker.einsum, tensor, box_of([x for x in walker.flat if x.level <= level], ranks))
        out.partition[key] = partitions[level]
        given = content[level] + peers
        if tensor.is_output and elide_first_read:
            given -= partitions[level]
        if given < 0:
            raise ValueError(f"{name}: {tensor.name} is read less often than first touched (spec/dense.md 5.6)")
        out.reads[key] = rounded(given)
        out.fills[key] = floored(arriving[level] + peers)
        out.updates[key] = rounded(content[level]) if tensor.is_output else 0
        out.temporal_reductions[key] = out.reads[key] if tensor.is_output else 0


def walk(
    einsum: Einsum,
    architecture: Architecture,
    nest: LoopNest,
    *,
    policy: Policy = "model",
    second_index: bool = True,
    links: bool = True,
    integer_counts: bool = True,
    first_read_elision: bool = True,
) -> Counts:
    """Interprets a mapped loop nest.

    **Arguments:**

    - `policy`, `second_index`: see the module; `second_index` has no meaning for `"full"`.
    - `links`: words that a neighbor received one step earlier come from it (spec/dense.md 4.6).
    - `integer_counts`: the reference's floating point and roundings (5.2, 5.6). Off: exact fractions.
    - `first_read_elision`: the first update of an output word needs no read (5.6).

    Raises `ValueError` for imperfect factors, factors that do not multiply to the ranks' sizes, a tensor that no level
    keeps, and an output that is read less often than first touched.
    """
    walker = _Walker(einsum, architecture, nest, flatten(einsum, nest), policy, second_index, links)
    cycles = sum(weight for _, weight in walker.steps(0))
    units = math.prod(loop.bound for loop in walker.flat if loop.spatial)
    out = Counts(computes=cycles * units, compute_cycles=cycles, compute_instances=units)
    for tensor in einsum.tensors:
        _account(walker, tensor, not integer_counts, first_read_elision, out)
    return out
