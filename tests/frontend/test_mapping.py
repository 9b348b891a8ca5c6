"""Mappings: malformed ones, the spellings of factors and permutations, and what is filled in."""

import pytest

from jaxloop import LevelNest, Loop, SpecError
from jaxloop.frontend import read_texts
from tests.frontend.base import Malformed, check, edited, malformed

SPAD = "{target: Spad, type: temporal, factors: M=1 N=2 K=4, permutation: KNM}"
SPATIAL = "{target: Glb, type: spatial, factors: M=4 N=1 K=1, permutation: MNK, split: 1}"
BYPASS = "{target: Spad, type: bypass, keep: [A, B], bypass: [Z]}"


def spad(name: str, rest: str, path: str, message: str, remedy: str) -> Malformed:
    """Another temporal directive of Spad."""
    new = f"{{target: Spad, type: temporal, {rest}}}"
    return Malformed(name, SPAD, new, new, f"mapping[3]{path}", message, remedy)


def bypass(name: str, rest: str, path: str, message: str, remedy: str) -> Malformed:
    """Another bypass directive."""
    return Malformed(name, BYPASS, f"{{{rest}}}", rest, f"mapping[4]{path}", message, remedy)


def product(name: str, rest: str, message: str, remedy: str) -> Malformed:
    """Factors of Spad with a wrong product."""
    new = f"{{target: Spad, type: temporal, factors: {rest}, permutation: KNM}}"
    return Malformed(name, SPAD, new, "target: Main", "mapping", message, remedy)


MALFORMED = [
    product(
        "product", "M=1 N=2 K=2", "product of all factors of dimension K is 8, which is", "Main 2 x Glb 2 x Spad 2"
    ),
    product("product-over", "M=1 N=3 K=4", "dimension N is 12, which is not equal to the dimension size", "Spad 3"),
    product("factor-0", "M=1 N=2 K=0", "dimension K is 64, which is not equal", "factor 0 stands for the full size"),
    product("residual-product", '"M=1 N=2 K=4,3"', "dimension K is 15, which is not equal", "Spad 4,3"),
    spad("dimension", "factors: M=1 N=2 K=4 Q=1, permutation: KNM", ".factors", 'unknown dimension "Q"', "M, N, K"),
    spad("two-factors", "factors: M=1 N=2 K=4 K=1, permutation: KNM", ".factors", '"K" has two factors', "one loop"),
    spad("residual", 'factors: "M=1 N=2 K=4,5", permutation: KNM', ".factors", '"K=4,5" is not from 1 to 4', "last"),
    spad("bound", "factors: M=1 N=2 K<=4, permutation: KNM", ".factors", 'cannot read "K<=4"', 'write "M=4 K=2"'),
    spad("expression", "factors: M=1 N=2 K=2*2, permutation: KNM", ".factors", 'cannot read "*2"', "M=4"),
    spad("factor-map", "factors: {M: 1}, permutation: KNM", ".factors", "the factors is a mapping", "list"),
    spad("letter", "factors: M=1 N=2 K=4, permutation: KNMQ", ".permutation", 'unknown dimension "Q"', "M, N, K"),
    spad("letter-twice", "factors: M=1 N=2 K=4, permutation: KKNM", ".permutation", 'names "K" twice', "further"),
    spad(
        "reuse", "factors: M1 N2 K4, permutation: KNM, no_temporal_reuse: [W]", ".no_temporal_reuse[0]", '"W"', "A, B"
    ),
    bypass("level", "target: Spda, type: bypass, keep: [A]", ".target", 'unknown level "Spda"', '"Spad"'),
    bypass(
        "compute", "target: Mac, type: bypass, keep: [A]", ".target", '"Mac" is the compute unit', "innermost level"
    ),
    bypass("number", "target: 2, type: bypass, keep: [A]", ".target", 'unknown level "2"', "Spad, Glb, Main"),
    bypass("no-target", "type: bypass, keep: [A]", "", "a directive has no `target`", "name of a storage level"),
    bypass("no-type", "target: Spad, keep: [A]", "", "a directive has no `type`", "temporal, spatial or bypass"),
    bypass("type", "target: Spad, type: temporel", ".type", 'unknown directive type "temporel"', '"temporal"'),
    bypass("skew", "target: Glb, type: skew, modulo: 4", ".type", "`skew` directives are not modeled", "remove"),
    bypass("tensor", "target: Spad, type: bypass, keep: [A, C]", ".keep[1]", 'unknown tensor "C"', "A, B, Z"),
    bypass("keep-scalar", "target: Spad, type: bypass, keep: A", ".keep", '"A" is not a list', "write [A]"),
    bypass(
        "both", "target: Spad, type: bypass, keep: [A], bypass: [A]", ".bypass", '"A" is both kept and bypassed', "one"
    ),
    bypass(
        "again",
        "target: Spad, type: temporal, factors: M2 N1 K1, permutation: KNM",
        "",
        'a second temporal directive for level "Spad"; the first is at mapping.yaml:5',
        "merge",
    ),
    bypass(
        "again-spatial",
        "target: Glb, type: spatial, factors: M2 N1 K1, permutation: KNM",
        "",
        'a second spatial directive for level "Glb"',
        "merge",
    ),
    bypass(
        "no-fanout", "target: Main, type: spatial, factors: M=2", "", '"Main" has no fan-out', "level above replicas"
    ),
    bypass("innermost", "target: Spad, type: spatial, factors: M=2", "", 'it and "Mac" below it have 4', "Mac"),
    Malformed("split", "split: 1", "split: -1", "split", "mapping[2].split", '"-1" is not a whole number', "from 0"),
    Malformed("item", f"- {BYPASS}", "- Spad", "- Spad", "mapping[4]", 'a mapping directive is "Spad"', "key: value"),
]


@malformed(MALFORMED)
def test_malformed(case: Malformed):
    texts = edited()
    del texts["sparse.yaml"]
    check("mapping.yaml", case, texts)


def test_base_mapping():
    design = read_texts(edited())
    assert design.warnings == ()
    assert design.nest is not None
    assert design.nest.levels == (
        LevelNest("Spad", loops(K=4, N=2, M=1), loops(M=1, N=1, K=1), (), ("A", "B")),
        LevelNest("Glb", loops(K=2, N=2, M=2), loops(M=4), loops(N=1, K=1), ("A", "B", "Z")),
        LevelNest("Main", loops(K=2, N=2, M=1), loops(M=1, N=1, K=1), (), ("A", "B", "Z")),
    )


def loops(**bounds: int) -> tuple[Loop, ...]:
    return tuple(Loop(rank, bound, bound) for rank, bound in bounds.items())


def levels(*edits: tuple[str, str]) -> tuple[LevelNest, ...]:
    """The nest after edits of the mapping."""
    nest = read_texts(edited(*(("mapping.yaml", old, new) for old, new in edits))).nest
    assert nest is not None
    return nest.levels


@pytest.mark.parametrize(
    "directive",
    [
        "factors: M1 N2 K4, permutation: K N M",
        'factors: "M=1, N=2, K=4", permutation: "K,N,M"',
        "factors: [M=1, N=2, K=4], permutation: [K, N, M]",
        "factors: ['M=1 N=2', K 4], permutation: [K, NM]",
        'factors: "M = 1; N==2 K=4,4", permutation: KNM',
        'factors: "M1N2K4 # K=9", permutation: "KNM # MNK"',
    ],
)
def test_spellings(directive: str):
    assert levels((SPAD, f"{{target: Spad, type: temporal, {directive}}}")) == levels()


def test_residual():
    texts = edited(
        ("problem.yaml", "N: 8", "N: 7"),
        (
            "mapping.yaml",
            "{target: Glb, type: temporal, factors: M=2 N=2 K=2,",
            '{target: Glb, type: temporal, factors: "M2 N4,3 K2",',
        ),
        ("mapping.yaml", "M=1 N=2 K=4", "M=1 N=1 K=4"),
    )
    nest = read_texts(texts).nest
    assert nest is not None
    assert nest.levels[1].temporal[1] == Loop("N", 4, 3)


def test_factor_0_is_the_full_size():
    nest = levels(
        (SPAD, SPAD.replace("N=2", "N=0")), ("factors: M=1 N=2", "factors: M=1 N=1"), ("M=2 N=2 K=2", "M=2 N=1 K=2")
    )
    assert nest[0].temporal[1] == Loop("N", 8, 8)


@pytest.mark.parametrize(
    "split, x, y",
    [
        ("split: 0", "", "MNK"),
        ("split: 2", "MN", "K"),
        ("split: 3", "MNK", ""),
        ("split: 999", "MNK", ""),
        ("", "MNK", ""),
    ],
)
def test_split(split: str, x: str, y: str):
    level = levels((SPATIAL, SPATIAL.replace("split: 1", split)))[1]
    assert ["".join(loop.rank for loop in side) for side in (level.spatial_x, level.spatial_y)] == [x, y]


def test_reuse_switches_and_types():
    switches = "no_link_transfer: [Z, A], no-multicast-no-reduction: [B], split: 1"
    nest = levels(
        ("split: 1", switches),
        (SPAD, SPAD.replace("KNM", "KNM, no_temporal_reuse: [B, A]")),
        ("type: bypass", "type: datatype"),
    )
    assert nest[0].no_temporal_reuse == ("A", "B")
    assert (nest[1].no_link_transfer, nest[1].no_multicast) == (("A", "Z"), ("B",))
    assert nest[0].keep == ("A", "B")


@pytest.mark.parametrize(
    "directives, keep",
    [
        ([], ("A", "B", "Z")),
        (["keep: , bypass: []"], ("A", "B", "Z")),
        (["bypass: [A]", "bypass: [Z]"], ("B",)),
        (["keep: [B]", "keep: [B], bypass: [A]"], ("B", "Z")),
        (["keep: [], bypass: [A, B, Z]"], ()),
    ],
)
def test_keep(directives: list[str], keep: tuple[str, ...]):
    texts = edited(("mapping.yaml", f"- {BYPASS}\n", ""))
    for directive in directives:
        texts["mapping.yaml"] += f"- {{target: Spad, type: bypass, {directive}}}\n"
    nest = read_texts(texts).nest
    assert nest is not None
    assert nest.levels[0].keep == keep


@pytest.mark.parametrize(
    "old, new, messages",
    [
        (SPAD, SPAD.replace("M=1 ", ""), ['the temporal directive of level "Spad" has no factor for M: 1 is taken']),
        (SPAD, SPAD.replace("KNM", "K"), ["leaves out M N: appended outermost in problem order"]),
        (SPAD, SPAD.replace("KNM", "# none\n  "), ["leaves out M N K: appended outermost in problem order"]),
        (BYPASS, BYPASS.replace("bypass: [Z]", "bypass: [Z], stream: [Z]"), []),
        (BYPASS, BYPASS.replace("bypass: [Z]", "bypass: [Z], stream: []"), []),
        (BYPASS, "{target: Main, type: spatial, factors: M1 N1 K1, permutation: MNK}", ["the directive has no effect"]),
    ],
)
def test_warnings(old: str, new: str, messages: list[str]):
    warnings = read_texts(edited(("mapping.yaml", old, new))).warnings
    assert len(warnings) == len(messages)
    assert all(message in warning.message for message, warning in zip(messages, warnings, strict=True))


@pytest.mark.parametrize("permutation, order", [("K", "KMN"), ("N", "NMK"), ("", "MNK"), ("NK", "NKM")])
def test_a_short_permutation_is_filled_outermost_in_problem_order(permutation: str, order: str):
    (level, *_) = levels((SPAD, SPAD.replace("KNM", permutation)))
    assert "".join(loop.rank for loop in level.temporal) == order


def test_missing_directives_are_filled_with_ones():
    mapping = "mapping:\n- {target: Main, type: temporal, factors: M8 N8 K16, permutation: KNM}\n"
    design = read_texts(edited() | {"mapping.yaml": mapping})
    assert [warning.message for warning in design.warnings] == [
        'level "Spad" has no temporal directive: all its factors are 1',
        'level "Glb" has no temporal directive: all its factors are 1',
        'level "Glb" has no spatial directive: its fan-out 4 x 1 is not used',
    ]
    assert design.nest is not None
    ones = loops(M=1, N=1, K=1)
    assert design.nest.levels[1] == LevelNest("Glb", ones, ones, (), ("A", "B", "Z"))


def test_every_faulty_product_is_reported():
    with pytest.raises(SpecError) as info:
        read_texts(edited(("mapping.yaml", "M=1 N=2 K=4", "M=2 N=1 K=4")))
    assert [error.message.partition(", which")[0] for error in info.value.errors] == [
        "product of all factors of dimension M is 16",
        "product of all factors of dimension N is 4",
    ]


def test_unmodeled_component_as_target():
    with pytest.raises(SpecError, match=r'mapping.yaml:5: mapping\[3\].target: "Spad" has the class "reg".*`subclass`'):
        read_texts(edited(("arch.yaml", "class: storage", "class: reg")))


@pytest.mark.parametrize("mapping", ["mapping: []\n", "mapping:\n", ""])
def test_without_mapping(mapping: str):
    design = read_texts(edited() | {"mapping.yaml": mapping})
    assert (design.nest, design.warnings) == (None, ())
