"""Really encodes tiles: the ranks of a representation as digits of coordinates, and streams that decode again.

A tile with the ranks of a format is a tree: an array of shape (fiber of the outermost rank, ..., innermost). Fibers
that hold no nonzero are not stored, but by UB. The innermost rank's payload is the data itself, hence no units; ranks
of one element have no units, but the anchor (the outermost rank, or the innermost of an inner-to-outer format).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxloop.spec.sparse import FormatRank, RankFormat, TensorFormat

from .sampled_walk import COMPUTE, Walk


@dataclass(frozen=True)
class Digit:
    """One loop's part of a coordinate: `bound` values, `stride` elements of the flat tensor apart."""

    bound: int
    stride: int


@dataclass(frozen=True)
class Layout:
    """How a level stores a tensor: ranks innermost first, each a list of digits, innermost first."""

    formats: tuple[RankFormat, ...]
    ranks: tuple[tuple[Digit, ...], ...]
    anchor: int

    @property
    def fibers(self) -> tuple[int, ...]:
        """Elements per fiber, innermost rank first."""
        return tuple(math.prod(digit.bound for digit in rank) for rank in self.ranks)

    @property
    def offsets(self) -> np.ndarray:
        """Flat indices of the elements less the tile's place, in the order of the tree."""
        offsets = np.zeros(1, np.int64)
        for digit in [digit for rank in reversed(self.ranks) for digit in reversed(rank)]:
            offsets = (offsets[:, None] + np.arange(digit.bound) * digit.stride).reshape(-1)
        return offsets

    @property
    def is_compressed(self) -> bool:
        return any(form in (RankFormat.B, RankFormat.CP, RankFormat.RLE) for form in self.formats)

    def has_units(self, rank: int) -> bool:
        return self.fibers[rank] > 1 or rank == self.anchor

    @property
    def data_rank(self) -> int:
        """The innermost rank that has units."""
        return next(r for r in range(len(self.ranks)) if self.has_units(r))


@dataclass
class Stream:
    """What one rank of an encoded tile stores."""

    metadata: list[int] = field(default_factory=list)
    payload: list[int] = field(default_factory=list)


def _filled(tree: np.ndarray, rank: int) -> np.ndarray:
    """Which coordinates of a rank (0 the outermost) hold a nonzero: [fibers, coordinates]."""
    return np.any(tree.reshape(math.prod(tree.shape[:rank]), tree.shape[rank], -1), axis=2)


def _fiber_starts(tree: np.ndarray, formats: Sequence[RankFormat], rank: int) -> list[int]:
    """Where each fiber of a rank begins in the rank's stream, and the stream's end; of the data beyond all ranks."""
    if rank == len(formats):
        sizes = tree.reshape(-1).astype(int)
    else:
        filled, form = _filled(tree, rank), formats[rank]
        width = filled.shape[1]
        if form is RankFormat.UB:
            sizes = np.full(len(filled), width)
        elif form in (RankFormat.UOP, RankFormat.B):
            sizes = filled.any(1) * (width + (form is RankFormat.UOP))
        else:
            sizes = filled.sum(1)
    return [0, *np.cumsum(sizes).tolist()]


def encode(tree: np.ndarray, formats: Sequence[RankFormat]) -> list[Stream]:
    """The streams of a tile, outermost rank first; `formats` likewise. A payload tells where a coordinate's fiber
    begins in the stream of the next rank, or its word in the data."""
    streams = []
    for rank, form in enumerate(formats):
        starts = _fiber_starts(tree, formats, rank + 1)
        stream, width = Stream(), tree.shape[rank]
        for number, fiber in enumerate(_filled(tree, rank)):
            if form is not RankFormat.UB and not fiber.any():
                continue
            first = number * width
            coordinates = np.flatnonzero(fiber).tolist()
            if form is RankFormat.UOP:
                stream.payload += starts[first : first + width + 1]
            elif form is RankFormat.UB:
                stream.metadata += fiber.astype(int).tolist()
                stream.payload += starts[first : first + width]
            else:
                stream.payload += [starts[first + i] for i in coordinates]
                if form is RankFormat.B:
                    stream.metadata += fiber.astype(int).tolist()
                elif form is RankFormat.CP:
                    stream.metadata += coordinates
                else:
                    stream.metadata += [b - a - 1 for a, b in zip([-1, *coordinates], coordinates, strict=False)]
        streams.append(stream)
    return streams


def decode(streams: Sequence[Stream], formats: Sequence[RankFormat], shape: tuple[int, ...]) -> np.ndarray:
    """The tile that `encode` was given, from the streams alone."""
    tile = np.zeros(shape, bool)

    def length(rank: int) -> int:
        if rank == len(formats):
            return 1 + max(streams[-1].payload, default=-1)
        return len(streams[rank].payload if formats[rank] is RankFormat.UOP else streams[rank].metadata)

    def visit(path: tuple[int, ...], start: int, end: int) -> None:
        rank = len(path)
        if rank == len(formats):
            tile[path] = True
        if rank == len(formats) or start == end:
            return
        stream, form, width = streams[rank], formats[rank], shape[rank]
        if form is RankFormat.UOP:
            entries = [(i, start + i) for i in range(width)]
        elif form is RankFormat.UB:
            entries = [(i, start + i) for i in range(width) if stream.metadata[start + i]]
        elif form is RankFormat.B:
            bits = [i for i in range(width) if stream.metadata[start + i]]
            before = sum(stream.metadata[:start])
            entries = [(i, before + number) for number, i in enumerate(bits)]
        elif form is RankFormat.CP:
            entries = [(stream.metadata[at], at) for at in range(start, end)]
        else:
            runs = stream.metadata[start:end]
            coordinates = (np.cumsum(np.array(runs, int) + 1) - 1).tolist()
            entries = [(i, at) for i, at in zip(coordinates, range(start, end), strict=True)]
        for coordinate, at in entries:
            begin = stream.payload[at]
            beyond = stream.payload[at + 1] if at + 1 < len(stream.payload) else length(rank + 1)
            if form is not RankFormat.UOP or beyond > begin:
                visit((*path, coordinate), begin, beyond)

    visit((), 0, length(0))
    return tile


def count_units(trees: np.ndarray, layout: Layout) -> np.ndarray:
    """Units that `encode` stores, for many tiles at once: [..., elements in the order of the tree] to
    [..., rank, (metadata, payload)], ranks innermost first."""
    batch, ranks = trees.shape[:-1], len(layout.ranks)
    units = np.zeros((*batch, ranks, 2))
    for rank in range(ranks):
        if not layout.has_units(rank):
            continue
        fibers, width = math.prod(layout.fibers[rank + 1 :]), layout.fibers[rank]
        filled = trees.reshape(*batch, fibers, width, -1).any(-1)
        stored, coordinates = filled.any(-1).sum(-1), filled.sum((-1, -2))
        form = layout.formats[rank]
        if form is RankFormat.UOP:
            pair = 0, stored * (width + 1)
        elif form is RankFormat.UB:
            pair = fibers * width, fibers * width
        elif form is RankFormat.B:
            pair = stored * width, coordinates
        else:
            pair = coordinates, coordinates
        units[..., rank, 0] = pair[0]
        units[..., rank, 1] = 0 if rank == layout.data_rank else pair[1]
    return units


def layouts(walk: Walk, tensor: str, formats: dict[int, TensorFormat]) -> dict[int, Layout]:
    """The layout of a tensor at every level that has a format for it.

    Raises `ValueError` where loops and ranks do not fit, or a rank would split a window.
    """
    found: dict[int, Layout] = {}
    for level in sorted(level for level in formats if walk.keeps(tensor, level)):
        child = walk.child(tensor, level)
        keeps_child = child != COMPUTE and len(walk.offsets(tensor, child)) > 1
        own = formats[level]
        forms = tuple(rank.format for rank in reversed(own.ranks))
        compressed = any(form in (RankFormat.B, RankFormat.CP, RankFormat.RLE) for form in forms)
        pretiled = compressed and keeps_child
        inner = _inner_ranks(walk, tensor, child, found.get(child)) if pretiled else ()
        if pretiled and child in found and forms[: len(inner)] != found[child].formats:
            raise ValueError(f"{tensor}: the child's ranks are stored in other formats")
        loops = _own_loops(walk, tensor, level, child if pretiled else COMPUTE)
        outer = _assign(loops, own.ranks[: len(forms) - len(inner)], own.inner_to_outer)
        anchor = 0 if own.inner_to_outer else len(forms) - 1
        found[level] = Layout(forms, (*inner, *outer), anchor)
        if sorted(found[level].offsets.tolist()) != sorted(walk.offsets(tensor, level).tolist()):
            raise ValueError(f"{tensor}: the ranks do not cover the tile once (windows are not encoded)")
    return found


def _inner_ranks(walk: Walk, tensor: str, child: int, layout: Layout | None) -> tuple[tuple[Digit, ...], ...]:
    """The child's ranks; one of all its loops if it has no format."""
    if layout is not None:
        return layout.ranks
    steps = [(loop.bound, walk.step_of(tensor, loop)) for loop in walk.loops if loop.level <= child]
    return (tuple(Digit(bound, stride) for bound, stride in steps if bound > 1 and stride),)


def _own_loops(walk: Walk, tensor: str, level: int, below: int) -> list[tuple[str, Digit]]:
    """The tensor's loops of the levels above `below` up to `level`, innermost first. A rank's innermost loop above its
    child covers what lies below."""
    ranks, view = walk.design.einsum.ranks, walk.tensors[tensor]
    child = walk.child(tensor, level) if below == COMPUTE else below
    scale: dict[int, int] = {}
    if below == COMPUTE:
        for loop in walk.loops:
            if loop.level <= child:
                scale[loop.rank] = scale.get(loop.rank, 1) * loop.bound
    fans_out = [math.prod(walk.design.architecture.fanout(s)) > 1 for s in range(walk.depth)]
    out = []
    for loop in walk.loops:
        exists = not loop.spatial or fans_out[loop.level]
        if exists and child < loop.level <= level and ranks[loop.rank] in view.ranks:
            more = scale.pop(loop.rank, 1)
            stride = walk.step_of(tensor, loop) // more
            if loop.bound * more > 1:
                out.append((ranks[loop.rank], Digit(loop.bound * more, stride)))
    return out


def _assign(loops: list[tuple[str, Digit]], ranks: Sequence[FormatRank], backwards: bool) -> list[tuple[Digit, ...]]:
    """Loops to ranks (outermost first), from the outermost loop inward or from the innermost outward: one each, or as
    many as a flattened group names. Returns ranks innermost first; those left over are empty."""
    pending = loops if backwards else loops[::-1]
    order = list(ranks[::-1] if backwards else ranks)
    out: list[tuple[Digit, ...]] = []
    for rank in order:
        taken: list[Digit] = []
        if pending:
            group = next((g for g in rank.flattened if pending[0][0] in g), None)
            if rank.flattened and group is None:
                raise ValueError(f"no flattened group holds rank {pending[0][0]}")
            taken.append(pending[0][1])
            pending = pending[1:]
            while group and pending and pending[0][0] in group:
                taken.append(pending[0][1])
                pending = pending[1:]
        out.append(tuple(taken if backwards else taken[::-1]))
    if pending:
        raise ValueError("more loops than ranks")
    return out if backwards else out[::-1]
