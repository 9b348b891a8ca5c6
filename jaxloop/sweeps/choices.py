"""Values of the axes `format.LEVEL.TENSOR`, `saf.LEVEL.TENSOR` and `sparse`: changed sparse optimizations."""

import re
import warnings
from collections.abc import Callable
from dataclasses import replace

from .._errors import nearest
from ..spec.design import Design
from ..spec.sparse import (
    COMPRESSED,
    ActionKind,
    ActionOptimization,
    FormatRank,
    Intersection,
    RankFormat,
    SparseOptimizations,
    SparseTarget,
    TensorFormat,
    fitting_bits,
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


def format_change(name: str, design: Design, level: str, tensor: str, text: str) -> Change:
    """The representation of a tensor at a level: rank formats outermost first, joined by `-`. The number in parentheses
    are the bits of a payload word (UOP) or of a metadata word (CP, B, RLE); without one the level's default applies.
    As in files, they are raised to a divisor of the level's metadata row, which a `UserWarning` says.

    **Raises:** `SpecError` for other text, and for what files may not say either.
    """
    if text == AS_IN_FILES:
        return lambda sparse: sparse
    row = next(found.metadata.width for found in design.architecture.levels if found.name == level)
    ranks = () if text == NONE else tuple(_rank(name, part, text, row) for part in text.split("-"))
    compressed = [rank.format in COMPRESSED for rank in ranks]
    if compressed != sorted(compressed):
        raise axis_error(name, f'"{text}" has a compressed rank above an uncompressed one', "put UOP and UB outermost")

    def change(sparse: SparseOptimizations) -> SparseOptimizations:
        def replaced(target: SparseTarget) -> SparseTarget:
            others = tuple(found for found in target.formats if found.tensor != tensor)
            return replace(target, formats=(*others, TensorFormat(tensor, ranks)) if ranks else others)

        return _at_level(sparse, level, replaced)

    return change


def _rank(name: str, part: str, text: str, row: int) -> FormatRank:
    """`row`: bits of the level's metadata row."""
    found = _RANK.fullmatch(part.strip())
    if found is None:
        raise axis_error(name, f'"{text}" is no representation format', FORMAT_FORMS)
    kind, bits = RankFormat(found[1].upper()), None if found[2] is None else int(found[2])
    if kind is RankFormat.UB and bits is not None:
        raise axis_error(name, f'"{text}": UB has no words of its own', "write UB without bits")
    if kind is RankFormat.B and bits is None:
        bits = 1
    if bits is not None and bits > row:
        raise axis_error(name, f'"{text}": {bits} bits do not fit a metadata row of {row} bits', "write fewer bits")
    if bits is not None and bits != (fitting := fitting_bits(bits, row)):
        told = f"over[{name!r}]: {bits} bits are raised to {fitting}, which divides the metadata row of {row} bits"
        warnings.warn(told, stacklevel=2)
        bits = fitting
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
    if tensor in leaders:
        raise axis_error(name, f'"{text}" makes tensor "{tensor}" depend on itself', "name other tensors")
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
