"""What the reports of sparse designs share: metadata in bits and rows, words that take time (spec/sparse.md section 5).

Plain arithmetic on the numbers of an `Evaluation`; no model.
"""

from dataclasses import dataclass

import numpy as np

from ..program import RANK_FORMATS, SAF_KINDS, Action, Fate, SparseProgram
from ..result import Context, Evaluation
from ..spec.sparse import ActionKind, RankFormat

READS, WRITES = [Action.READ], [Action.FILL, Action.UPDATE]

_FORMATS = {code: rank_format for rank_format, code in RANK_FORMATS.items()}


def sparse_program(context: Context) -> SparseProgram:
    """The sparse part of the program.

    **Raises:** `ValueError` for a design without sparse optimizations.
    """
    if context.program.sparse is None:
        raise ValueError("the design has no sparse optimizations")
    return context.program.sparse


def rank_formats(context: Context, s: int, t: int) -> list[RankFormat]:
    """The formats of a tensor's ranks at a level, innermost first; empty where it is bypassed or has no metadata."""
    if context.program.sparse is None or not context.mapping.keep[s, t]:
        return []
    codes = np.asarray(context.program.sparse.rank_format)[s, t]
    return [_FORMATS[int(code)] for code in codes if code > 0]


def compacted(context: Context) -> list[int]:
    """The tensors with position skipping, at the innermost level (docs/model.md 24)."""
    if context.program.sparse is None:
        return []
    groups = np.asarray(context.program.sparse.saf_kind) == SAF_KINDS[ActionKind.POSITION_SKIPPING]
    targets = np.asarray(context.program.sparse.saf_target)[groups]
    return sorted({int(t) for t in targets.reshape(-1) if t >= 0})


def metadata_bits(context: Context, units: np.ndarray) -> np.ndarray:
    """Bits of units [..., level, tensor, format_rank, 2] of metadata and payload. [..., level, tensor]"""
    if context.program.sparse is None:
        return np.zeros(units.shape[:-2])
    sparse = context.program.sparse
    return (units * np.stack([sparse.metadata_bits, sparse.payload_bits], axis=-1)).sum((-1, -2))


def accessed_bits(evaluation: Evaluation, context: Context) -> np.ndarray:
    """Bits of metadata read, filled and updated: none at levels without storage for metadata.
    [fate, action, level, tensor]"""
    bits = metadata_bits(context, np.asarray(evaluation.metadata_accesses))
    if context.program.sparse is None:
        return bits
    return bits * (np.asarray(context.program.sparse.metadata_width) > 0)[:, None]


def mapped_instances(context: Context) -> np.ndarray:
    """Instances that the loops of the mapping ask for, whatever becomes of them. [level]"""
    spread = (np.asarray(context.mapping.spatial_x) * np.asarray(context.mapping.spatial_y)).prod(1)
    outer = np.concatenate([spread[1:], [1.0]])
    return outer[::-1].cumprod()[::-1]


def used_instances(evaluation: Evaluation, context: Context) -> np.ndarray:
    """Instances that must exist for a tensor, whether or not their tiles hold something: fewer than the mapping asks
    for where spatial skipping leaves some out. [level, tensor]"""
    program, clusters = context.program, np.asarray(evaluation.clusters)
    rows = np.floor(np.asarray(program.mesh_x * program.mesh_y / program.cluster_size))[:, None]
    most = np.asarray(evaluation.instances_x * evaluation.instances_y)[:, None]
    return np.where(clusters < rows, clusters, most)


def is_joint(context: Context) -> bool:
    """Whether both operands are real data, so that what they hold together is counted (docs/model.md 25)."""
    masks = None if context.program.sparse is None else context.program.sparse.masks
    return masks is not None and bool(np.asarray(masks.joint).any())


def may_overbook(context: Context, s: int) -> bool:
    """Whether a level plans for fewer nonzeros than its fullest tile may hold (5.2)."""
    sparse = context.program.sparse
    return sparse is not None and bool(sparse.allow_overbooking[s]) and bool(np.isfinite(context.program.size[s]))


def outer_level(context: Context, s: int, t: int) -> int | None:
    """The next level further out that keeps the tensor."""
    return next((q for q in range(s + 1, len(context.names.levels)) if context.mapping.keep[q, t]), None)


@dataclass(frozen=True)
class Timed:
    """What takes time at a level: words of data and of metadata per instance that has a tile, and both evened out
    over the instances of the mapping. [level, tensor]"""

    data: np.ndarray
    metadata: np.ndarray
    evened: np.ndarray


def timed_words(evaluation: Evaluation, context: Context, actions: list[Action]) -> Timed:
    """Of actual and gated accesses; skipped ones take no time (5.6)."""
    whole = context.program.structure.conventions.integer_counts
    fates = [Fate.ACTUAL, Fate.GATED]
    word_bits = np.asarray(context.program.word_bits)[:, None]
    words = np.asarray(evaluation.accesses)[fates][:, actions].sum((0, 1))
    if context.program.sparse is None:
        return Timed(words, np.zeros_like(words), words)
    bits = accessed_bits(evaluation, context)[fates][:, actions].sum((0, 1))
    used, average = used_instances(evaluation, context), np.asarray(evaluation.instances)
    metadata = np.floor(bits / word_bits) if whole else bits / word_bits
    evened = (words + metadata) / (used / np.where(average > 0, average, 1.0))
    evened = np.where(average > 0, np.ceil(evened) if whole else evened, 0.0)
    return Timed(words, metadata, evened)
