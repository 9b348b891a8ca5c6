"""Densities, representation formats and sparse acceleration features (SAFs): spec -> `SparseStructure` and
`SparseProgram`."""

import math
from collections.abc import Callable, Mapping as Dict
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..conventions import Conventions
from ..program import (
    DENSITY_KINDS,
    OCCUPANCIES,
    RANK_FORMATS,
    SAF_KINDS,
    Action,
    Conversion,
    Fate,
    SparseProgram,
    SparseStructure,
    Structure,
)
from ..spec.architecture import Storage
from ..spec.density import Density, Distribution
from ..spec.design import Design
from ..spec.sparse import ActionKind, FormatRank, RankFormat, TensorFormat, fitting_bits
from .costs import Costs
from .masks import mask_leaves, mask_sizes

DENSE = Density(Distribution.FIXED_STRUCTURED, 1.0)
"""The density of a tensor that has none."""

OPERANDS = 2
"""Tensors that are only read: the model of the compute units knows no other number (spec/sparse.md 4)."""

AXES: dict[str, tuple[str, ...]] = {
    "rank_count": (),
    "density_kind": ("tensor",),
    "density": ("tensor",),
    "band_width": ("tensor",),
    "rank_format": ("level", "tensor", "format_rank"),
    "metadata_bits": ("level", "tensor", "format_rank"),
    "payload_bits": ("level", "tensor", "format_rank"),
    "inner_to_outer": ("level", "tensor"),
    "has_groups": ("level", "tensor", "format_rank"),
    "merges": ("level", "tensor", "format_rank", "rank", "rank"),
    "metadata_word_bits": ("level",),
    "metadata_width": ("level",),
    "metadata_size": ("level",),
    "decompression_supported": ("level",),
    "compression_supported": ("level",),
    "allow_overbooking": ("level",),
    "saf_kind": ("group",),
    "saf_level": ("group",),
    "saf_target": ("group", "option"),
    "saf_leaders": ("group", "option", "tensor"),
    "compute_gating": (),
    "compute_skipping": (),
    "gated_energy": ("action", "level", "tensor"),
    "skipped_energy": ("action", "level", "tensor"),
    "metadata_energy": ("fate", "action", "level", "tensor"),
    "conversion_energy": ("conversion", "level", "tensor"),
    "gated_compute_energy": (),
    "skipped_compute_energy": (),
}
"""Leaf of `SparseProgram` -> its axes."""

LEVEL_LEAVES: dict[str, tuple[Callable[[Storage], Any], float]] = {
    "metadata_word_bits": (lambda level: level.metadata.word_bits, 0.0),
    "metadata_width": (lambda level: level.metadata.width, 0.0),
    "metadata_size": (
        lambda level: np.inf if level.size is None else level.metadata.depth * level.metadata.width,
        np.inf,
    ),
    "decompression_supported": (lambda level: level.decompression_supported, 0.0),
    "compression_supported": (lambda level: level.compression_supported, 0.0),
    "allow_overbooking": (lambda level: level.allow_overbooking, 0.0),
}
"""Leaf of `SparseProgram` -> where it comes from, and its value at padding levels. A level without a size rejects no
metadata either (spec/sparse.md 5.2)."""

_INTEGERS = ("density_kind", "rank_format", "saf_kind", "saf_level", "saf_target")
_PADDING = {"density": 1.0, "saf_target": -1} | {name: padding for name, (_, padding) in LEVEL_LEAVES.items()}
"""What padding holds where it is not 0."""


@dataclass(frozen=True)
class _Indices:
    """Positions of names along the axes."""

    levels: dict[str, int]
    tensors: dict[str, int]
    ranks: dict[str, int]


def _indices(design: Design) -> _Indices:
    return _Indices(
        levels={level.name: s for s, level in enumerate(design.architecture.levels)},
        tensors={tensor.name: t for t, tensor in enumerate(design.einsum.tensors)},
        ranks={rank: d for d, rank in enumerate(design.einsum.ranks)},
    )


def sparse_structure(
    design: Design, conventions: Conventions, sizes: Dict[str, int], densities: Dict[str, Any]
) -> SparseStructure | None:
    """A design's own sizes; None when the design has no sparse effect. `sizes`: of the ranks, and `densities`, in place
    of the design's own: the largest and all those of a sweep."""
    if not design.sparse.has_effect:
        return None
    groups = [group for target in design.sparse.targets for group in target.actions]
    ranks = [rank for _, tensor_format in formats(design) for rank in tensor_format.ranks]
    found = design.densities.values()
    occupancies = _occupancies(design, sizes, densities) if conventions.occupancy_sums else 0
    return SparseStructure(
        format_ranks=max((len(tensor_format.ranks) for _, tensor_format in formats(design)), default=1),
        flattening=any(rank.flattened for rank in ranks),
        groups=max(len(groups), 1),
        options=max((len(group.options) for group in groups), default=1),
        hypergeometric=any(d.distribution is Distribution.HYPERGEOMETRIC for d in found),
        band=max((d.band_width for d in found if d.distribution is Distribution.BANDED), default=-1),
        strided=occupancies > OCCUPANCIES,
        cells=_cells(design),
        fans_out=any(design.architecture.fanout(s) != (1, 1) for s in range(len(design.architecture.levels))),
        spatial_skipping=any(group.kind is ActionKind.SPATIAL_SKIPPING for group in groups),
        position_skipping=any(group.kind is ActionKind.POSITION_SKIPPING for group in groups),
        **mask_sizes(design),
        overbooking=any(level.allow_overbooking for level in design.architecture.levels),
    )


def _cells(design: Design) -> tuple[tuple[int, int], ...]:
    """Pairs of a level and a tensor with a representation there or further out, by level."""
    indices = _indices(design)
    outermost: dict[str, int] = {}
    for level, tensor_format in formats(design):
        outermost[tensor_format.tensor] = max(indices.levels[level], outermost.get(tensor_format.tensor, 0))
    found = tuple(
        (s, t)
        for s in range(len(indices.levels))
        for tensor, t in indices.tensors.items()
        if s <= outermost.get(tensor, -1)
    )
    return found or ((0, 0),)  # one that stays empty: arrays must hold something


def _occupancies(design: Design, sizes: Dict[str, int], densities: Dict[str, Any]) -> int:
    """Occupancies of a tile, at worst over all tile sizes, that expectations must sum over: the support of the
    hypergeometric distribution, or 10 standard deviations and 40 around its mean where that is less. 0 without such
    tensors."""
    needed = 0
    for tensor in design.einsum.tensors:
        own = design.densities.get(tensor.name, DENSE)
        if own.distribution is not Distribution.HYPERGEOMETRIC:
            continue
        words = math.prod(tensor.extents(sizes))
        nonzeros = np.ceil(np.asarray(densities.get(tensor.name, own.density), float) * words)
        # a tile of half the tensor varies most
        window = 20.0 * np.sqrt(nonzeros * (1.0 - nonzeros / words) / 4.0) + 81.0
        support = np.minimum(np.minimum(nonzeros, words - nonzeros), window) + 1.0
        needed = max(needed, math.ceil(support.max()))
    return needed


def sparse_leaves(design: Design, structure: Structure, costs: Costs) -> SparseProgram:
    """The sparse part as numpy arrays without lanes, padded to `structure`, which has a sparse part."""
    sizes, indices = _axis_sizes(structure), _indices(design)
    leaves: dict[str, Any] = dict.fromkeys(AXES)
    absent = () if structure.sparse and structure.sparse.flattening else ("has_groups", "merges")
    for name in AXES.keys() - absent:
        shape = [sizes[axis] for axis in AXES[name]]
        leaves[name] = np.full(shape, _PADDING.get(name, 0), np.int32 if name in _INTEGERS else float)
    leaves["rank_count"][()] = len(design.einsum.ranks)
    for tensor, t in indices.tensors.items():
        density = design.densities.get(tensor, DENSE)
        leaves["density_kind"][t] = DENSITY_KINDS[density.distribution]
        leaves["density"][t] = density.density
        leaves["band_width"][t] = density.band_width
    for name, (read, _) in LEVEL_LEAVES.items():
        leaves[name][: len(indices.levels)] = [read(level) for level in design.architecture.levels]
    for level, tensor_format in formats(design):
        _fill_format(leaves, design.architecture.levels[indices.levels[level]], tensor_format, indices)
    _fill_groups(leaves, design, indices)
    kinds = [kind for target in design.sparse.targets for kind in target.compute]
    leaves["compute_gating"][()] = ActionKind.GATING in kinds
    leaves["compute_skipping"][()] = ActionKind.SKIPPING in kinds
    for name, energy in costs.sparse_energies().items():
        if "level" in AXES[name]:
            leaves[name][..., : len(indices.levels), :] = energy[..., None]
        else:
            leaves[name][()] = energy
    return SparseProgram(**leaves, masks=mask_leaves(design, structure))


def _fill_format(leaves: dict[str, Any], level: Storage, tensor_format: TensorFormat, indices: _Indices) -> None:
    """One representation; the spec lists its ranks outermost first."""
    place = indices.levels[level.name], indices.tensors[tensor_format.tensor]
    leaves["inner_to_outer"][place] = tensor_format.inner_to_outer
    for position, rank in enumerate(reversed(tensor_format.ranks)):
        at = (*place, position)
        leaves["rank_format"][at] = RANK_FORMATS[rank.format]
        leaves["metadata_bits"][at], leaves["payload_bits"][at] = word_bits(rank, level)
        if rank.flattened:
            leaves["has_groups"][at] = 1.0
        for first, d in indices.ranks.items():
            for follower in next((group for group in rank.flattened if first in group), ()):
                leaves["merges"][(*at, d, indices.ranks[follower])] = 1.0


def _fill_groups(leaves: dict[str, Any], design: Design, indices: _Indices) -> None:
    """Gating and skipping groups, those of inner levels first."""
    targets = [target for target in design.sparse.targets if target.actions]
    targets.sort(key=lambda target: indices.levels[target.level])
    groups = [(indices.levels[target.level], group) for target in targets for group in target.actions]
    for g, (level, group) in enumerate(groups):
        leaves["saf_kind"][g] = SAF_KINDS[group.kind]
        leaves["saf_level"][g] = level
        for o, option in enumerate(group.options):
            leaves["saf_target"][g, o] = indices.tensors[option.target]
            leaves["saf_leaders"][g, o, [indices.tensors[leader] for leader in option.condition_on]] = 1.0


def word_bits(rank: FormatRank, level: Storage) -> tuple[int, int]:
    """Bits of a metadata and of a payload word. What the reader leaves open takes the level's default, raised to a
    divisor of the metadata row as the reader does for the others (spec/sparse.md 2.1)."""
    default, width = level.metadata.word_bits, level.metadata.width
    if default and width % default:
        default = fitting_bits(default, width)
    if rank.format is RankFormat.UB:
        return default, default
    metadata = 1 if rank.format is RankFormat.B else default
    return (
        metadata if rank.metadata_word_bits is None else rank.metadata_word_bits,
        default if rank.payload_word_bits is None else rank.payload_word_bits,
    )


def uses_default(rank: FormatRank) -> bool:
    has_own_metadata_bits = rank.metadata_word_bits is not None or rank.format is RankFormat.B
    return rank.format is RankFormat.UB or rank.payload_word_bits is None or not has_own_metadata_bits


def formats(design: Design) -> list[tuple[str, TensorFormat]]:
    """All representations with the names of their levels."""
    return [(target.level, tensor_format) for target in design.sparse.targets for tensor_format in target.formats]


def _axis_sizes(structure: Structure) -> dict[str, int]:
    sparse = structure.sparse or SparseStructure()
    return {
        "level": structure.levels,
        "rank": structure.ranks,
        "tensor": structure.tensors,
        "format_rank": sparse.format_ranks,
        "group": sparse.groups,
        "option": sparse.options,
        "action": len(Action),
        "fate": len(Fate),
        "conversion": len(Conversion),
    }


def crop_sparse(sparse: SparseProgram, own: Structure) -> SparseProgram:
    """The sparse part without its padding. Leaves without lanes."""
    sizes = _axis_sizes(own)
    leaves = {name: getattr(sparse, name) for name in AXES}
    cropped = {
        name: None if leaf is None else leaf[tuple(slice(sizes[axis]) for axis in AXES[name])]
        for name, leaf in leaves.items()
    }
    return SparseProgram(**cropped, masks=sparse.masks)
