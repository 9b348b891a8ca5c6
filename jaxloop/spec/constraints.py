"""What a mapper may choose: constraints on mappings and the mapper's options (spec/inputs.md sections 4 and 5).

Constraints are kept as they were written, one object per item with its place, so that a contradiction can name both of
its sides. Whether they can be met is found out where a map space is built from them.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from .._errors import Place


class LoopKind(StrEnum):
    TEMPORAL = "temporal"
    SPATIAL = "spatial"


class Relation(StrEnum):
    EQUAL = "="
    AT_MOST = "<="
    AT_LEAST = ">="


class Reuse(StrEnum):
    """Kinds of reuse that can be switched off; the names are those of the fields of `LevelNest`."""

    TEMPORAL = "no_temporal_reuse"
    LINK_TRANSFER = "no_link_transfer"
    MULTICAST = "no_multicast"


@dataclass(frozen=True, slots=True)
class FactorConstraint:
    """The bound of one loop. `rank` is None for what applies to every rank that the item does not list."""

    level: str
    kind: LoopKind
    rank: str | None
    relation: Relation
    value: int
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        if self.rank is None:
            return f'default factor {self.relation}{self.value} of "{self.level}" ({self.kind})'
        return f'{self.rank}{self.relation}{self.value} of "{self.level}" ({self.kind})'


@dataclass(frozen=True, slots=True)
class OrderConstraint:
    """Loops pinned innermost (`inner`, innermost first) and outermost (`outer`, innermost of them first); the others
    are free in between."""

    level: str
    kind: LoopKind
    inner: tuple[str, ...]
    outer: tuple[str, ...] = ()
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        text = "".join(self.inner) + (f"_{''.join(self.outer)}" if self.outer else "")
        return f'permutation {text} of "{self.level}" ({self.kind})'


@dataclass(frozen=True, slots=True)
class SplitConstraint:
    """The first `split` loops of the spatial permutation, those of bound 1 included, go along X."""

    level: str
    split: int
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return f'split {self.split} of "{self.level}"'


@dataclass(frozen=True, slots=True)
class KeepConstraint:
    """The level stores the tensor (`keep`) or lets it pass by."""

    level: str
    tensor: str
    keep: bool
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return f'{"keep" if self.keep else "bypass"} of "{self.tensor}" at "{self.level}"'


@dataclass(frozen=True, slots=True)
class ReuseConstraint:
    """One kind of reuse is switched off for `tensors`."""

    level: str
    reuse: Reuse
    tensors: tuple[str, ...]
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return f'{self.reuse} of "{self.level}"'


@dataclass(frozen=True, slots=True)
class ParallelismConstraint:
    """At least the share `minimum` of all fan-outs must be used."""

    level: str
    minimum: float
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return f'parallelism of at least {self.minimum:g} at "{self.level}"'


@dataclass(frozen=True, slots=True)
class OverbookingConstraint:
    """The level may be too small for a tile with this probability at most."""

    level: str
    proportion: float
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return f'max_overbooked_proportion {self.proportion:g} of "{self.level}"'


@dataclass(frozen=True, slots=True)
class Constraints:
    """All constraints of the files, in their order. `template` is the kind of space that they ask for."""

    factors: tuple[FactorConstraint, ...] = ()
    orders: tuple[OrderConstraint, ...] = ()
    splits: tuple[SplitConstraint, ...] = ()
    keeps: tuple[KeepConstraint, ...] = ()
    reuses: tuple[ReuseConstraint, ...] = ()
    parallelism: tuple[ParallelismConstraint, ...] = ()
    overbooking: tuple[OverbookingConstraint, ...] = ()
    template: str = "uber"
    template_place: Place = field(default=Place("", 0, "mapspace.template"), compare=False)


class Algorithm(StrEnum):
    RANDOM = "random"
    EXHAUSTIVE = "exhaustive"
    LINEAR_PRUNED = "linear_pruned"
    HYBRID = "hybrid"
    RANDOM_PRUNED = "random_pruned"


@dataclass(frozen=True, slots=True)
class MapperOptions:
    """The `mapper` section, with the reference's defaults.

    - `metrics`: what is minimized, most important first: `delay`, `energy`, `edp`, `last_level_accesses`,
      `accesses_N` (storage level N).
    - `threads`: None for as many as the machine has.
    - `search_size`: valid mappings in all, 0 for no limit.
    - `timeout`: invalid mappings in a row before a thread stops, `victory_condition`: valid ones that are no better;
      0 for never.
    - `sync_interval`: mappings between exchanges of the best one, 0 for none.
    - `max_permutations`: orders that are tried per factorization.
    - `max_temporal_loops`: of bound above 1 in one mapping, None for no limit.
    """

    algorithm: Algorithm = Algorithm.HYBRID
    metrics: tuple[str, ...] = ("edp",)
    threads: int | None = None
    search_size: int = 0
    timeout: int = 1000
    victory_condition: int = 500
    sync_interval: int = 0
    filter_revisits: bool = False
    penalize_consecutive_bypass_fails: bool = False
    max_permutations: int = 16
    max_temporal_loops: int | None = None
    diagnostics: bool = False
    log_stats: bool = False
    log_suboptimal: bool = False
    live_status: bool = False
    out_prefix: str = "timeloop-mapper"
    place: Place = field(default=Place("", 0, "mapper"), compare=False)
