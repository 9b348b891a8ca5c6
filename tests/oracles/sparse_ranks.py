"""Which loops each rank of a representation covers (spec/sparse.md sections 2.3 and 2.4)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxloop.spec.sparse import FormatRank, TensorFormat

from .sparse_density import Tile
from .sparse_errors import Refusal
from .sparse_geometry import Geometry, Step, product, size_of, tile_of


@dataclass(frozen=True)
class Rank:
    """Elements per fiber and the tile recorded when the rank was made."""

    fiber: int
    tile: Tile


@dataclass(frozen=True)
class Ranks:
    """Ranks innermost first. `subtiles[r]` is the tile below rank r. `formats` is empty without metadata."""

    ranks: tuple[Rank, ...]
    subtiles: tuple[Tile, ...]
    formats: tuple[FormatRank, ...] = ()
    inner_to_outer: bool = False

    @property
    def anchor(self) -> int:
        """The rank that counts even if its fibers have one element."""
        return 0 if self.inner_to_outer else len(self.ranks) - 1


@dataclass
class _Walk:
    """The loops of a tensor at a level, innermost first, and the formats of its ranks, none without metadata."""

    geometry: Geometry
    tensor: str
    loops: Sequence[Step]
    formats: Sequence[FormatRank]

    def rank(self, loops: Sequence[Step]) -> Rank:
        tensor = self.geometry.tensors[self.tensor]
        return Rank(size_of(tensor, product((s.rank, s.bound) for s in loops)), tile_of(tensor, loops[0].box))

    @property
    def innermost(self) -> Tile:
        return tile_of(self.geometry.tensors[self.tensor], self.loops[0].box)

    def group(self, rank: int, step: Step) -> tuple[str, ...] | None:
        """The first flattened group of a rank that holds the loop's rank."""
        if not self.formats:
            return None
        return next((g for g in self.formats[rank].flattened if step.rank in g), None)

    def refuses(self, rank: int, step: Step) -> bool:
        """The rank flattens loops, and this one is not among them."""
        return bool(self.formats) and bool(self.formats[rank].flattened) and self.group(rank, step) is None

    def absorb(self, rank: int, pending: list[Step]) -> list[Step]:
        """Takes from the front of `pending` the loops of one rank; trivial ones are dropped."""
        group = self.group(rank, pending[0])
        taken = [pending.pop(0)]
        while pending and (
            not self.formats or (group is not None and (pending[0].rank in group or pending[0].bound == 1))
        ):
            step = pending.pop(0)
            if step.bound > 1:
                taken.append(step)
        return taken


def _drop_trivial(pending: list[Step]) -> None:
    while pending and pending[0].bound == 1:
        pending.pop(0)


def _outer_to_inner(walk: _Walk, first: int, count: int) -> tuple[list[Rank], list[Step]]:
    """Ranks `count - 1` down to `first` from the outermost loop inward, and the loops left over."""
    ranks: list[Rank] = []
    pending = list(reversed(walk.loops))
    rank = count
    while rank > first and pending:
        _drop_trivial(pending)
        if not pending:
            break
        rank -= 1
        if walk.refuses(rank, pending[0]):
            ranks.append(Rank(1, walk.innermost))  # at the outer end, whatever lies there already (quirk Q9)
        else:
            ranks.insert(0, walk.rank(walk.absorb(rank, pending)))
    ranks[:0] = [Rank(1, walk.innermost)] * (rank - first)
    return ranks, pending


def _inner_to_outer(walk: _Walk, first: int, count: int, scalar: Tile) -> tuple[list[Rank], list[Step]]:
    """Ranks `first` up to `count - 1` from the innermost loop outward, and the loops left over."""
    ranks: list[Rank] = []
    pending = list(walk.loops)
    rank = first
    while rank < count and pending:
        _drop_trivial(pending)
        if not pending:
            break
        if walk.refuses(rank, pending[0]):
            ranks.append(Rank(1, scalar))
        else:
            ranks.append(walk.rank(walk.absorb(rank, pending)))
        rank += 1
    ranks += [Rank(1, walk.innermost)] * (count - rank)
    return ranks, pending


def _collected(geometry: Geometry, tensor: str, level: int, pretiled: bool) -> list[Step]:
    """The tensor's loops above its child, innermost first; unless the child's ranks are taken over, the innermost loop
    of each rank also covers what lies below (2.3)."""
    child = geometry.child(tensor, level)
    below = -1 if child is None else child
    relevant = geometry.tensors[tensor].ranks
    loops = [s for nest in geometry.nest[below + 1 : level + 1] for s in nest if s.rank in relevant]
    if pretiled or child is None:
        return loops
    scale = dict(geometry.nest[child][-1].box)
    return [replace(s, bound=s.bound * scale.pop(s.rank, 1)) for s in loops]


def apply_ranks(
    geometry: Geometry, tensor: str, level: int, formats: dict[int, TensorFormat], child: Ranks | None, pretiled: bool
) -> Ranks:
    """**Arguments:** `formats` of the tensor by level; `child`: the ranks of the next level inward that keeps the
    tensor; `pretiled`: its tiles stay whole here.

    **Raises:** `Refusal` if the loops do not fit the ranks.
    """
    own = formats.get(level)
    ranks_of = tuple(reversed(own.ranks)) if own else ()
    count = max(1, len(ranks_of))
    name = geometry.design.architecture.levels[level].name
    scalar = (1,) * len(geometry.tensors[tensor].axes)
    taken = child if pretiled else None
    first = len(taken.ranks) if taken else 0
    if taken:
        inner = taken.formats and [r.format for r in taken.formats]
        compressed = any(is_compressed(r) for r in taken.formats)
        if first > count or (compressed and inner != [r.format for r in ranks_of[:first]]):
            raise Refusal(name, f"pretiling does not align. dataspace name: {tensor}")
    walk = _Walk(geometry, tensor, _collected(geometry, tensor, level, pretiled), ranks_of)
    backwards = own is not None and own.inner_to_outer
    ranks, rest = _inner_to_outer(walk, first, count, scalar) if backwards else _outer_to_inner(walk, first, count)
    if any(s.bound > 1 for s in rest):
        raise Refusal(name, f"more compression ranks needed than supported in hardware. dataspace name: {tensor}")
    below = taken.subtiles if taken else (scalar,)
    subtiles = (*below, *(r.tile for r in ranks))
    return Ranks((*(taken.ranks if taken else ()), *ranks), subtiles, ranks_of, backwards)


def is_compressed(rank: FormatRank) -> bool:
    return rank.format.value in ("B", "CP", "RLE")
