"""Values of the axes `format.LEVEL.TENSOR`, `saf.LEVEL.TENSOR` and `sparse`: changed sparse optimizations."""

import re
from collections.abc import Callable
from dataclasses import replace

from .._errors import nearest
from ..spec.design import Design
from ..spec.sparse import (
    ActionKind,
    ActionOptimization,
    FormatRank,
    Intersection,
    RankFormat,
    SparseOptimizations,
    SparseTarget,
    TensorFormat,
)
from .values import axis_error

AS_IN_FILES, NONE = "file", "none"
_RANK = re.compile(r"(UOP|CP|B|RLE|UB)(?:\((\d+)\))?", re.IGNORECASE)
_SAF = re.compile(r"(\w+)(?:\((.*)\))?")
_SAF_KINDS = {str(kind): kind for kind in ActionKind}
_COMPUTE_KINDS = {str(kind): kind for kind in (ActionKind.GATING, ActionKind.SKIPPING)}
FORMAT_FORMS = (
    'write rank formats outermost first, such as "UOP-CP" or "UOP(0)-CP(14)" with word bits, "none" or "file"'
)
SAF_FORMS = 'write "none", "file", or a kind with the tensors that it depends on, such as "skipping(B)"'

Change = Callable[[SparseOptimizations], SparseOptimizations]


def format_change(name: str, level: str, tensor: str, text: str) -> Change:
    """The representation of a tensor at a level: rank formats outermost first, joined by `-`. The number in parentheses
    are the bits of a payload word (UOP) or of a metadata word (CP, B, RLE); without one the level's default applies.

    **Raises:** `SpecError` for other text.
    """
    if text == AS_IN_FILES:
        return lambda sparse: sparse
    ranks = () if text == NONE else tuple(_rank(name, part, text) for part in text.split("-"))

    def change(sparse: SparseOptimizations) -> SparseOptimizations:
        def replaced(target: SparseTarget) -> SparseTarget:
            others = tuple(found for found in target.formats if found.tensor != tensor)
            return replace(target, formats=(*others, TensorFormat(tensor, ranks)) if ranks else others)

        return _at_level(sparse, level, replaced)

    return change


def _rank(name: str, part: str, text: str) -> FormatRank:
    found = _RANK.fullmatch(part.strip())
    if found is None:
        raise axis_error(name, f'"{text}" is no representation format', FORMAT_FORMS)
    kind, bits = RankFormat(found[1].upper()), None if found[2] is None else int(found[2])
    if kind is RankFormat.UOP:
        return FormatRank(kind, payload_word_bits=bits)
    return FormatRank(kind, metadata_word_bits=bits)


def saf_change(name: str, design: Design, level: str, tensor: str, text: str) -> Change:
    """What a level does about accesses to a tensor: `gating(LEADERS)`, `skipping(LEADERS)`,
    `skipping_spatial(LEADERS)`, `position_skipping`, joined by `+`.

    **Raises:** `SpecError` for other text and tensors that do not exist.
    """
    if text == AS_IN_FILES:
        return lambda sparse: sparse
    groups = () if text == NONE else tuple(_group(name, design, tensor, part, text) for part in text.split("+"))

    def change(sparse: SparseOptimizations) -> SparseOptimizations:
        def replaced(target: SparseTarget) -> SparseTarget:
            left = [replace(g, options=tuple(o for o in g.options if o.target != tensor)) for g in target.actions]
            return replace(target, actions=(*(group for group in left if group.options), *groups))

        return _at_level(sparse, level, replaced)

    return change


def _group(name: str, design: Design, tensor: str, part: str, text: str) -> ActionOptimization:
    found = _SAF.fullmatch(part.strip())
    if found is None or found[1] not in _SAF_KINDS:
        raise axis_error(name, f'"{text}" is no sparse acceleration feature', SAF_FORMS)
    leaders = tuple(leader.strip() for leader in (found[2] or "").split(",") if leader.strip())
    tensors = [known.name for known in design.einsum.tensors]
    for leader in leaders:
        if leader not in tensors:
            raise axis_error(name, f'no tensor "{leader}"', nearest(leader, tensors))
    kind = _SAF_KINDS[found[1]]
    if bool(leaders) == (kind is ActionKind.POSITION_SKIPPING):
        raise axis_error(name, f'"{text}" names {"tensors" if leaders else "no tensor to depend on"}', SAF_FORMS)
    return ActionOptimization(kind, (Intersection(tensor, leaders),))


def compute_change(name: str, unit: str, text: str) -> Change:
    """What the compute units do about operations with a zero: `none`, `gating`, `skipping`.

    **Raises:** `SpecError` for other text.
    """
    if text == AS_IN_FILES:
        return lambda sparse: sparse
    if text != NONE and text not in _COMPUTE_KINDS:
        raise axis_error(
            name, f'"{text}" is nothing that compute units do', 'write "none", "file", "gating" or "skipping"'
        )
    kinds = () if text == NONE else (_COMPUTE_KINDS[text],)
    return lambda sparse: _at_level(sparse, unit, lambda target: replace(target, compute=kinds))


def _at_level(
    sparse: SparseOptimizations, level: str, change: Callable[[SparseTarget], SparseTarget]
) -> SparseOptimizations:
    found = {target.level: target for target in sparse.targets}
    found[level] = change(found.get(level, SparseTarget(level)))
    return replace(sparse, targets=tuple(found.values()), is_present=True)
