"""Size classes: few array sizes for all designs, so that different designs share an executable.

A padding level stores nothing and has no loops; it lies outside all real ones. A padding rank has size 1, a padding
tensor no axes, a padding axis no ranks. None of them changes a number.
"""

import math
from dataclasses import replace

from ..conventions import Conventions
from ..program import SparseStructure, Structure
from ..spec.architecture import Architecture
from ..spec.einsum import Einsum, Tensor

LEVELS = (4, 6, 8, 12, 16, 24, 32)
RANKS = (4, 8, 16, 32)
TENSORS = (3, 4, 6, 8, 16)
AXES = (4, 8, 16)
MULTICAST = (128, 512)
ELEMENTS = (16, 64, 256, 1024, 4096)
"""Children that one enumeration of links can hold; a wider fan-out is evaluated without and says so."""

FORMAT_RANKS = (16, 32)
GROUPS = (16, 64)
OPTIONS = (4, 16)
BANDS = (15, 63, 255, 1023)
BOXES = (256, 1024, 2048, 4096, 8192)
DIVISORS = (16, 32, 64, 128)


def _up(value: int, classes: tuple[int, ...]) -> int:
    """The smallest class that holds `value`; itself beyond the largest."""
    return next((c for c in classes if c >= value), value)


def sliding_axes(tensor: Tensor) -> list[int]:
    """Indices of the axes that two ranks move."""
    return [i for i, axis in enumerate(tensor.axes) if len(axis.ranks) == 2]


def is_irregular(tensor: Tensor) -> bool:
    """No closed form of the multicast groups: an axis moved by three ranks or more, or a rank that moves two axes."""
    moved = [rank for axis in tensor.axes for rank in axis.ranks]
    return any(len(axis.ranks) > 2 for axis in tensor.axes) or len(moved) != len(set(moved))


def exact_structure(
    einsum: Einsum,
    architecture: Architecture,
    keys: int,
    conventions: Conventions,
    sparse: SparseStructure | None = None,
) -> Structure:
    """A design's own sizes; `keys` is what its tensors' motions need, `sparse` its sparse part."""
    sliding = max((len(sliding_axes(t)) for t in einsum.tensors), default=0)
    return Structure(
        levels=len(architecture.levels),
        ranks=len(einsum.ranks),
        tensors=len(einsum.tensors),
        axes=max(1, max(len(t.axes) for t in einsum.tensors)),
        sliding=sliding,
        sliding_tensors=sum(bool(sliding_axes(t)) for t in einsum.tensors),
        # a group of m children on one sliding axis needs at least m * m children
        multicast=max(1, math.isqrt(architecture.compute.instances)) if sliding else 1,
        keys=keys,
        irregular=any(is_irregular(t) for t in einsum.tensors),
        elements=0,
        conventions=conventions,
        sparse=sparse,
    )


def class_structure(exact: Structure) -> Structure:
    """The size class of a design."""
    return replace(
        exact,
        levels=_up(exact.levels, LEVELS),
        ranks=_up(exact.ranks, RANKS),
        tensors=_up(exact.tensors, TENSORS),
        axes=_up(exact.axes, AXES),
        sliding=_up(exact.sliding, (2,)) if exact.sliding else 0,
        multicast=_up(exact.multicast, MULTICAST) if exact.sliding else 1,
        sparse=None if exact.sparse is None else _sparse_class(exact.sparse),
    )


def _sparse_class(exact: SparseStructure) -> SparseStructure:
    """One executable serves designs with and without uniformly random tensors, flattened ranks, formats and SAFs."""
    return replace(
        exact,
        format_ranks=_up(exact.format_ranks, FORMAT_RANKS),
        flattening=True,
        groups=_up(exact.groups, GROUPS),
        options=_up(exact.options, OPTIONS),
        hypergeometric=True,
        cells=None,
        fans_out=True,
        band=_up(exact.band, BANDS) if exact.band >= 0 else -1,
        boxes=None if exact.boxes is None else (_up(exact.boxes[0], BOXES), _up(exact.boxes[1], BOXES)),
        divisors=_up(exact.divisors, DIVISORS) if exact.boxes is not None else 0,
    )


def element_class(fanout: int) -> int:
    """Children that an enumeration must hold for a mapping with this largest fan-out."""
    return min(_up(fanout, ELEMENTS), ELEMENTS[-1])
