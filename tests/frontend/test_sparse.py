"""Sparse optimizations: malformed ones, spellings, and what they become."""

import pytest

from jaxloop import SpecError
from jaxloop.frontend import read_texts
from jaxloop.spec.sparse import (
    ActionKind,
    ActionOptimization,
    FormatRank,
    Intersection,
    RankFormat,
    SparseOptimizations,
    SparseTarget,
    TensorFormat,
)
from tests.frontend.base import SPARSE, Malformed, check, edited, malformed

CP = "{format: CP, metadata-word-bits: 4, flattened-rankIDs: [[M, K]]}"
OPTION = "{target: B, condition-on: [A]}"
GATING = "{type: gating, target: Z, condition-on: [A, B]}"
FORMATS = "sparse_optimizations.targets[0].representation-format.data-spaces[0]"
ACTIONS = "sparse_optimizations.targets[0].action-optimization"


def rank(name: str, new: str, path: str, message: str, remedy: str) -> Malformed:
    """Another innermost rank of A's format."""
    return Malformed(name, CP, new, new, f"{FORMATS}.ranks[1]{path}", message, remedy)


def option(name: str, new: str, path: str, message: str, remedy: str) -> Malformed:
    """Another option of the skipping."""
    return Malformed(name, OPTION, new, new, f"{ACTIONS}[0].options[0]{path}", message, remedy)


def gating(name: str, new: str, path: str, message: str, remedy: str) -> Malformed:
    """Another second action."""
    return Malformed(name, GATING, new, new, f"{ACTIONS}[1]{path}", message, remedy)


MALFORMED = [
    rank(
        "format",
        "{format: CSR}",
        ".format",
        'unknown rank format "CSR" in the format of tensor "A" at level "Spad"',
        "CSR is UOP then CP",
    ),
    rank("no-format", "{metadata-word-bits: 4}", "", "has no `format`", "UOP, CP, B, RLE, UB"),
    rank(
        "wide",
        "{format: CP, metadata-word-bits: 9}",
        ".metadata-word-bits",
        "metadata-word-bits 9 of CP do not fit",
        "metadata_storage_width",
    ),
    rank("bits", "{format: CP, payload_word_bits: x}", ".payload_word_bits", '"x" is not a whole number', "from 0"),
    rank(
        "flattened",
        "{format: CP, flattened_rankIDs: [[M, L]]}",
        ".flattened_rankIDs[0][1]",
        'unknown dimension "L"',
        "M, N, K",
    ),
    rank("flat-flattened", "{format: CP, flattened-rankIDs: [M]}", ".flattened-rankIDs[0]", '"M" is not a list', "[M]"),
    option(
        "self", "{target: B, condition-on: [A, B]}", ".condition-on", '"B" is conditioned on itself', "other tensors"
    ),
    option(
        "empty",
        "{target: B, condition-on: []}",
        ".condition-on",
        '`condition-on` of target "B" at level "Spad" is empty',
        "or write `type: position-skipping`",
    ),
    option("no-condition", "{target: B}", "", 'target "B" at level "Spad" is empty', "name the tensors"),
    option("condition", "{target: B, condition-on: [W]}", ".condition-on[0]", 'unknown tensor "W"', "A, B, Z"),
    option("target", "{target: W, condition-on: [A]}", ".target", 'unknown tensor "W"', "A, B, Z"),
    option("no-target", "{condition-on: [A]}", "", "an action optimization has no `target`", "tensor to act on"),
    gating("type", "{type: skip, target: Z, condition-on: [A]}", ".type", 'type "skip"', '"skipping"'),
    gating(
        "position-conditions",
        "{type: position-skipping, target: A, condition-on: [B]}",
        ".condition-on",
        'position skipping of target "A" at level "Spad" has conditions',
        "write `condition-on: []`",
    ),
    gating(
        "position-options",
        "{type: position-skipping, options: [{target: A, condition-on: []}, {target: B, condition-on: []}]}",
        ".options",
        "position skipping takes one option",
        "keep one",
    ),
    gating(
        "spatial", f"{{type: skipping-spatial, options: [{OPTION}, {OPTION}]}}", ".options", "one option", "keep one"
    ),
    Malformed(
        "no-type", "type: skipping\n      options:", "options:", "- options", f"{ACTIONS}[0]", "no `type`", "gating"
    ),
    Malformed(
        "order", "inner-to-outer", "inwards", "inwards", f"{FORMATS}.rank-application-order", '"inwards"', "inner"
    ),
    Malformed(
        "level", "- name: Spad", "- name: Spat", "Spat", "sparse_optimizations.targets[0].name", '"Spat"', '"Spad"'
    ),
    Malformed("tensor", "- name: A", "- name: W", "name: W", f"{FORMATS}.name", 'unknown tensor "W"', "A, B, Z"),
    Malformed(
        "no-ranks", "ranks:", "rank:", "name: A", FORMATS, 'tensor "A" at level "Spad" has no `ranks`', "outermost"
    ),
    Malformed(
        "compute",
        "- name: Mac",
        "- name: Glb",
        "compute-",
        "sparse_optimizations.targets[1].compute-optimization",
        '"Glb" is a storage level and cannot have',
        'belongs to "Mac"',
    ),
    Malformed(
        "compute-type",
        "- {type: gating}",
        "- {type: gate}",
        "gate}",
        "sparse_optimizations.targets[1].compute-optimization[0].type",
        '"gate"',
        '"gating"',
    ),
    Malformed(
        "outer-compressed",
        "{format: UOP, payload-word-bits: 4}",
        "{format: RLE}\n        - {format: UOP}",
        "RLE",
        f"{FORMATS}.ranks[0]",
        "rank 0 (RLE, counted from the outermost) is compressed above the uncompressed rank 1",
        "uncompressed ranks (UOP, UB) outermost",
    ),
    Malformed(
        "rate",
        f"        - {CP}\n",
        "        compression-rate: 0.5\n",
        "0.5",
        f"{FORMATS}.compression-rate",
        "compresses nothing",
        "remove",
    ),
    Malformed(
        "twice",
        "  - name: Mac",
        "  - {name: Spad, action_optimization: []}\n  - name: Mac",
        "name: Spad, ",
        "sparse_optimizations.targets[1].action_optimization",
        "already has `action_optimization` at line 11",
        "merge",
    ),
    Malformed(
        "two-formats",
        "    action-optimization:",
        "      - {name: A, ranks: [{format: B}]}\n    action-optimization:",
        "{name: A",
        f"{FORMATS[:-3]}[1]",
        'two formats for tensor "A"',
        "keep one",
    ),
    Malformed(
        "no-name", "- name: Mac\n    ", "- ", "compute-", "sparse_optimizations.targets[1]", "no name", "a level"
    ),
]


@malformed(MALFORMED)
def test_malformed(case: Malformed):
    check("sparse.yaml", case)


def sparse_of(text: str) -> SparseOptimizations:
    """What a section becomes beside the base design."""
    return read_texts(edited() | {"sparse.yaml": text}).sparse


BASE = SparseOptimizations(
    (
        SparseTarget(
            "Spad",
            (
                TensorFormat(
                    "A",
                    (FormatRank(RankFormat.UOP, 4), FormatRank(RankFormat.CP, None, 4, (("M", "K"),))),
                    inner_to_outer=True,
                ),
            ),
            (
                ActionOptimization(ActionKind.SKIPPING, (Intersection("B", ("A",)),)),
                ActionOptimization(ActionKind.GATING, (Intersection("Z", ("A", "B")),)),
            ),
        ),
        SparseTarget("Mac", compute=(ActionKind.GATING,)),
    ),
    is_present=True,
)


@pytest.mark.parametrize(
    "old, new",
    [
        ("", ""),
        ("sparse_optimizations:", "sparse-optimizations:"),
        ("- name: Spad", "- target: Spad"),
        ("inner-to-outer", "inner_to_outer"),
        ("format: CP", "format: cp"),
        ("flattened-rankIDs", "flattened_rankIDs"),
        ("condition-on: [A]}", "condition-on: A}"),
        ("condition-on", "condition_on"),
        ("-optimization:", "_optimization:"),
        ("options:\n      - ", "<<: "),
        ("- {type: gating}", "- {type: gate-on-zero-operand}"),
        ("compute-optimization:\n    - {type: gating}", "compute_optimization: {type: gating}"),
        ("    action-optimization:", "  - name: Spad\n    action-optimization:"),
    ],
)
def test_spellings(old: str, new: str):
    text = SPARSE.replace(old, new) if old else SPARSE
    assert not old or text != SPARSE
    assert sparse_of(text) == BASE


@pytest.mark.parametrize("kind", ["skipping-spatial", "skipping_spatial", "spatial_skipping", "spatial-skipping"])
def test_spatial_skipping(kind: str):
    sparse = sparse_of(SPARSE.replace("type: skipping", f"type: {kind}"))
    assert sparse.targets[0].actions[0].kind is ActionKind.SPATIAL_SKIPPING


@pytest.mark.parametrize(
    "text",
    [
        "{type: position-skipping, target: A, condition-on: []}",
        "{type: position_skipping, target: A}",
        "{type: position-skipping, options: [{target: A, condition-on: []}]}",
    ],
)
def test_position_skipping(text: str):
    sparse = sparse_of(SPARSE.replace(GATING, text))
    assert sparse.targets[0].actions[1] == ActionOptimization(ActionKind.POSITION_SKIPPING, (Intersection("A", ()),))


def test_a_later_item_inherits_the_type():
    sparse = sparse_of(SPARSE.replace("{type: gating, target: Z", "{target: Z"))
    assert [action.kind for action in sparse.targets[0].actions] == [ActionKind.SKIPPING, ActionKind.SKIPPING]


@pytest.mark.parametrize("text", ["sparse_optimizations:\n", "sparse_optimizations: {targets: []}\n"])
def test_present_without_effect(text: str):
    sparse = sparse_of(text)
    assert (sparse.is_present, sparse.has_effect) == (True, False)
    assert not sparse_of("").is_present


@pytest.mark.parametrize(
    "rank, expected",
    [
        ("{format: CP, metadata-word-bits: 3}", FormatRank(RankFormat.CP, None, 4)),
        ("{format: CP, payload-word-bits: 5}", FormatRank(RankFormat.CP, 8)),
        ("{format: CP, payload-word-bits: 0}", FormatRank(RankFormat.CP, 0)),
        ("{format: B}", FormatRank(RankFormat.B, None, 1)),
        ("{format: UB, metadata-word-bits: 3}", FormatRank(RankFormat.UB)),
    ],
)
def test_word_bits(rank: str, expected: FormatRank):
    assert sparse_of(SPARSE.replace(CP, rank)).targets[0].formats[0].ranks[1] == expected


def test_words_without_a_metadata_row_are_refused():
    with pytest.raises(
        SpecError, match=r'metadata-word-bits 4 of CP do not fit level "Spad": it declares no metadata row'
    ):
        read_texts(
            edited(("arch.yaml", ", metadata_storage_width: 8", ""), ("sparse.yaml", ", payload-word-bits: 4", ""))
        )


@pytest.mark.parametrize(
    "old, new, message",
    [
        (CP, "{format: CP, metadata-word-bits: 3}", "metadata-word-bits 3 are raised to 4"),
        (CP, "{format: CP, rank: 3}", 'the key "rank" is not used'),
        (GATING, "{type: gating, target: B, condition-on: [A]}", 'both gates and skips tensor "B"'),
        ("- {type: gating}", "- {type: gating}\n  - {name: Glb}", "nothing to optimize"),
        ("- name: A", "- {name: Z, ranks: [{format: B}]}\n      - name: A", "the mapping bypasses the tensor there"),
        ("  targets:\n", "  zero_cost: false\n  targets:\n", 'the key "zero_cost" is not used'),
    ],
)
def test_warnings(old: str, new: str, message: str):
    (warning,) = read_texts(edited(("sparse.yaml", old, new))).warnings
    assert message in warning.message
    assert warning.place.file == "sparse.yaml"
