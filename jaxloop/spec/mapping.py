"""The mapping: per storage level its loops and the tensors that it keeps (spec/dense.md section 3)."""

from dataclasses import dataclass, field

from .._errors import Place


@dataclass(frozen=True, slots=True)
class Loop:
    """`bound` iterations over `rank`; the last outer iteration runs `residual` of them (equal when perfect). `place`
    tells where the input says so and takes no part in comparisons."""

    rank: str
    bound: int
    residual: int
    place: Place = field(default=Place(), compare=False)

    @property
    def is_perfect(self) -> bool:
        return self.bound == self.residual


@dataclass(frozen=True, slots=True)
class LevelNest:
    """The loops of one storage level and its directives.

    - `temporal`: one loop per rank, innermost first, bound 1 included.
    - `spatial_x`, `spatial_y`: loops that distribute work to the children along X and Y, innermost first. X loops lie
      inside Y loops.
    - `keep`: the tensors stored here, in the Einsum's order; all others are bypassed.
    - `no_temporal_reuse`, `no_link_transfer`, `no_multicast`: tensors for which that kind of reuse is switched off
      (spec/dense.md section 4.8).
    - `stream`: tensors that are not stored here but pass through, word by word: written once and read once on their
      way. Only conventions with `streams` count that.
    """

    level: str
    temporal: tuple[Loop, ...]
    spatial_x: tuple[Loop, ...]
    spatial_y: tuple[Loop, ...]
    keep: tuple[str, ...]
    no_temporal_reuse: tuple[str, ...] = ()
    no_link_transfer: tuple[str, ...] = ()
    no_multicast: tuple[str, ...] = ()
    stream: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A mapping: one `LevelNest` per storage level, innermost first."""

    levels: tuple[LevelNest, ...]
