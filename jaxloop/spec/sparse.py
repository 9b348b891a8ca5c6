"""Sparse acceleration features (SAFs): representation formats, gating, skipping (spec/inputs.md section 6)."""

from dataclasses import dataclass, field
from enum import StrEnum

from .._errors import Place


class RankFormat(StrEnum):
    UOP = "UOP"
    CP = "CP"
    B = "B"
    RLE = "RLE"
    UB = "UB"


COMPRESSED = (RankFormat.CP, RankFormat.B, RankFormat.RLE)
"""Formats that leave out what is empty."""


class ActionKind(StrEnum):
    GATING = "gating"
    SKIPPING = "skipping"
    SPATIAL_SKIPPING = "skipping_spatial"
    POSITION_SKIPPING = "position_skipping"


@dataclass(frozen=True, slots=True)
class FormatRank:
    """One rank of a representation. Word bits are None where the level's default applies; `flattened` holds groups of
    ranks that this format rank merges."""

    format: RankFormat
    payload_word_bits: int | None = None
    metadata_word_bits: int | None = None
    flattened: tuple[tuple[str, ...], ...] = ()


def fitting_bits(bits: int, row: int) -> int:
    """Word bits as a metadata row of `row` bits can store them: raised to a divisor of it (spec/sparse.md 2.1)."""
    return next((wider for wider in range(bits, 2 * bits) if row % wider == 0), 2 * bits)


@dataclass(frozen=True, slots=True)
class TensorFormat:
    """The representation of one tensor at one level, ranks outermost first."""

    tensor: str
    ranks: tuple[FormatRank, ...]
    inner_to_outer: bool = False
    compression_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Intersection:
    """Accesses to `target` are removed where a tensor of `condition_on` is empty; there is none for position skipping,
    in which the target's own zeros are left out."""

    target: str
    condition_on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ActionOptimization:
    """One gating or skipping group: the analyser picks one of `options`."""

    kind: ActionKind
    options: tuple[Intersection, ...]


@dataclass(frozen=True, slots=True)
class SparseTarget:
    """What one level (or the compute units) does about zeros."""

    level: str
    formats: tuple[TensorFormat, ...] = ()
    actions: tuple[ActionOptimization, ...] = ()
    compute: tuple[ActionKind, ...] = ()


@dataclass(frozen=True, slots=True)
class SparseOptimizations:
    """All targets. `is_present` tells an empty key from an absent one (it selects the layout of the stats file);
    `place` tells where the key stands and takes no part in comparisons."""

    targets: tuple[SparseTarget, ...] = ()
    is_present: bool = False
    place: Place = field(default=Place("", 0, "sparse_optimizations"), compare=False)

    @property
    def has_effect(self) -> bool:
        return any(t.formats or t.actions or t.compute for t in self.targets)
