"""Files as one document: merging, anchors, duplicates, syntax errors, and errors of several sections at once."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from jaxloop import SpecError
from jaxloop._errors import Diagnostics
from jaxloop.frontend import read_files, read_texts
from jaxloop.frontend.nodes import Map, Scalar, parse
from tests.frontend.base import TEXTS, edited


def write(folder: Path, texts: dict[str, str]) -> list[Path]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [folder / name for name in texts]


def test_files_texts_and_order_do_not_matter(tmp_path: Path):
    paths = write(tmp_path, TEXTS)
    design = read_files(paths)
    reverse = read_files([str(path) for path in reversed(paths)] + [paths[0]])
    assert design == reverse
    assert design.energy_table is not None
    assert design.energy_table.source == str(tmp_path / "ert.yaml")
    assert (design.name, design.einsum) == ("matmul", read_texts(TEXTS).einsum)


def test_one_document_with_leading_markers():
    one = read_texts({"all.yaml": "".join(TEXTS.values())})
    assert one.nest == read_texts({name: f"---\n{text}" for name, text in TEXTS.items()}).nest
    assert read_texts({name: f"\ufeff{text}...\n---\n" for name, text in TEXTS.items()}).nest == one.nest


def test_unreadable_files_are_errors_beside_the_others(tmp_path: Path):
    texts = edited(("mapping.yaml", "target: Main", "target: Mian"))
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    paths = [
        *write(tmp_path, texts),
        tmp_path / "absent.yaml",
        tmp_path,
        tmp_path / "binary.yaml",
        tmp_path / "old.cfg",
    ]
    with pytest.raises(SpecError) as info:
        read_files(paths)
    assert [(Path(error.place.file).name, error.message.split()[0]) for error in info.value.errors] == [
        ("absent.yaml", "cannot"),
        (tmp_path.name, "cannot"),
        ("binary.yaml", "the"),
        ("old.cfg", "libconfig"),
        ("mapping.yaml", "unknown"),
    ]


def test_anchors_are_visible_in_later_files():
    anchor = "globals: &shared [A, B]\n"
    texts = {"anchors.yaml": anchor} | edited(("mapping.yaml", "keep: [A, B]", "keep: *shared"))
    assert read_texts(texts).nest == read_texts(TEXTS).nest
    with pytest.raises(SpecError, match=r'mapping.yaml:6: .*the alias "\*shared" has no anchor'):
        read_texts(dict(reversed(texts.items())))


def test_merge_keys():
    old = "{name: read, arguments: {}, energy: 8.0}"
    base = "globals:\n- &one {energy: 8.0, name: write}\n- &two {energy: 9.0, arguments: {}}\n"
    texts = {"base.yaml": base} | edited(("ert.yaml", old, "{<<: [*one, *two], name: read}"))
    assert read_texts(texts).energy_table == read_texts(TEXTS).energy_table
    with pytest.raises(SpecError, match=r'ert.yaml:10: .*"<<" merges "x"'):
        read_texts(edited(("ert.yaml", old, "{<<: x, name: read, energy: 8.0}")))


def test_variables():
    variables = {"variables.yaml": "variables: {version: 0.4, ROWS: 64, LEVEL: Spad, RATE: 0.25, bad: 4*2}\n"}
    texts = variables | edited(
        ("arch.yaml", "{depth: 64,", "{depth: ROWS,"),
        ("mapping.yaml", "{target: Spad, type: bypass", "{target: LEVEL, type: bypass"),
        ("problem.yaml", "density: 0.25", "density: RATE"),
    )
    assert read_texts(texts) == read_texts(TEXTS)
    with pytest.raises(SpecError, match=r'arch.yaml:\d+: .*"bad" is not a whole number .*`variables:`'):
        read_texts(variables | edited(("arch.yaml", "{depth: 64,", "{depth: bad,")))


@pytest.mark.parametrize(
    "extra, place, message",
    [
        ("problem: {}\n", "extra.yaml:1: problem", 'the top-level key "problem" was already given at problem.yaml:1'),
        ("sparse-optimizations: {}\n", "extra.yaml:1: sparse-optimizations", "already given at sparse.yaml:1"),
        ("arch: {}\n", "arch.yaml:1: architecture", "both `arch` and `architecture` are given"),
        ("mapper: {a: 1, b: 2, a: 3}\n", "extra.yaml:1: mapper.a", 'the key "a" was already given at extra.yaml:1'),
        ("- a\n- b\n", "extra.yaml:1", "the top level is a list"),
        ("mapper: {}\n---\nmodel: {}\n", "extra.yaml:3", "a second YAML document"),
        ("mapper: {a: [1\nb: 2\n", "extra.yaml:2", "not valid YAML"),
        ("mapper:\n\t- a\n", "extra.yaml:2", "not valid YAML"),
        ("mapper: {[a]: 1}\n", "extra.yaml:1: mapper", "a key is a list, not text"),
        ("globals: &a [*a]\n", "extra.yaml:1: globals[0]", 'the alias "*a" has no anchor'),
        ("mapper: " + "[" * 200 + "]" * 200 + "\n", "extra.yaml:1", "nested deeper than"),
        ("mapper: \x00\n", "extra.yaml", "not valid YAML"),
        ("variables: !include x.yaml\n", "extra.yaml:1: variables", 'unknown YAML tag "!include"'),
    ],
)
def test_malformed_documents(extra: str, place: str, message: str):
    with pytest.raises(SpecError) as info:
        read_texts(TEXTS | {"extra.yaml": extra})
    (error,) = info.value.errors
    assert str(error.place) == place
    assert message in error.message


def test_unread_sections_may_repeat():
    parts = {f"part{n}.yaml": "compound_components: {version: 0.3}\nmodel: {verbose: true}\n" for n in range(2)}
    assert read_texts(TEXTS | parts).warnings == ()


@pytest.mark.parametrize(
    "extra, message, remedy",
    [
        ("maping: []", 'unknown top-level key "maping"', '"mapping"'),
        ("energies: {}", 'unknown top-level key "energies"', "problem, architecture"),
        ("mapspace-constraints: {}", "constraints are not checked", ""),
        ("architecture_constraints: {}", "constraints are not checked", ""),
        ("layout: {}", "bank conflicts", ""),
    ],
)
def test_top_level_warnings(extra: str, message: str, remedy: str):
    (warning,) = read_texts(TEXTS | {"extra.yaml": extra}).warnings
    assert message in warning.message
    assert remedy in warning.remedy


def test_templates_are_recognized():
    with pytest.raises(SpecError, match=r"arch.yaml:2: not valid YAML: .*jinja2 template of the v0.4 dialect"):
        read_texts(TEXTS | {"arch.yaml": "architecture:\n  {% if x %}\n  version: 0.4\n"})
    with pytest.raises(SpecError, match=r"arch.yaml:1: .*a key is a mapping, not text \(.*jinja2 template"):
        read_texts(TEXTS | {"arch.yaml": "architecture: {{include}}\n"})


@pytest.mark.parametrize("missing", ["problem", "architecture"])
def test_missing_sections(missing: str):
    texts = dict(TEXTS)
    del texts["arch.yaml" if missing == "architecture" else "problem.yaml"]
    with pytest.raises(SpecError, match=rf"^<input>: no file has the key `{missing}` \(give a file with the") as info:
        read_texts(texts)
    assert len(info.value.errors) == 1


def places_of(texts: dict[str, str]) -> list[str]:
    with pytest.raises(SpecError) as info:
        read_texts(texts)
    return [f"{error.place.file}:{error.place.line}" for error in info.value.errors]


def test_errors_of_all_sections_come_together_in_the_order_of_the_files():
    texts = edited(
        ("arch.yaml", "          depth: 64\n", "          depth: -1\n"),
        ("problem.yaml", "N: 8", "N: none"),
        ("problem.yaml", "density: 0.25", "density: 25"),
        ("mapping.yaml", "keep: [A, B]", "keep: [A, C]"),
        ("ert.yaml", "energy: 64.0", "energy: free"),
        ("art.yaml", "area: 20.0", "area: -1"),
        ("sparse.yaml", "format: CP", "format: CSR"),
    )
    assert places_of(texts) == [
        "arch.yaml:15",
        "problem.yaml:17",
        "problem.yaml:20",
        "mapping.yaml:6",
        "ert.yaml:6",
        "art.yaml:5",
        "sparse.yaml:10",
    ]


@pytest.mark.parametrize(
    "file, text, line",
    [
        ("arch.yaml", "architecture: {version: 0.4, nodes: []}\n", 1),
        ("arch.yaml", "architecture: {version: 0.3, subtree: []}\n", 1),
        ("arch.yaml", "architecture: [\n", 2),
        ("problem.yaml", "problem: {shape: {dimensions: []}}\n", 1),
        ("problem.yaml", "problem: {shape: {dimensions: [M]}, M: 4}\n", 1),
        ("problem.yaml", "problem: {shape: nowhere}\n", 1),
        ("problem.yaml", "problem: {a: b: c}\n", 1),
    ],
)
def test_a_broken_section_does_not_hide_errors_of_the_others(file: str, text: str, line: int):
    texts = edited(
        ("mapping.yaml", "K=4, permutation: KNM", "K=4 !, permutation: KNM"),
        ("sparse.yaml", "{format: CP, metadata-word-bits: 4", "{format: COO, metadata-word-bits: 4"),
    )
    assert set(places_of(texts | {file: text})) == {f"{file}:{line}", "mapping.yaml:5", "sparse.yaml:10"}


def test_nodes_know_their_place_and_spelling():
    tree = parse({"a.yaml": "x:\n  a-b: 1\n  c: [~, {d: 'null'}]\n"}, Diagnostics())
    section = tree.root.get("x")
    assert isinstance(section, Map)
    value = section.get("a_b")
    assert isinstance(value, Scalar)
    assert (str(value.place), value.text) == ("a.yaml:2: x.a-b", "1")
    assert str(section.place_of("c")) == "a.yaml:3: x.c"
    assert section.get("absent") is None


TOKENS = [(name, match.span()) for name, text in TEXTS.items() for match in re.finditer(r"[\w.-]+|\[[^\[\]]*\]", text)]
REPLACEMENTS = [
    "",
    "~",
    "[]",
    "{}",
    "{a: b}",
    "[a]",
    "-1",
    "0",
    "2.5",
    "1e999",
    ".nan",
    "K=4,3",
    "'",
    "- ",
    "&a ",
    "!t x",
]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(TOKENS), st.sampled_from(REPLACEMENTS)), min_size=1, max_size=3))
def test_any_edit_gives_a_design_or_errors_with_a_place_and_a_remedy(
    edits: list[tuple[tuple[str, tuple[int, int]], str]],
):
    texts = dict(TEXTS)
    for (name, (start, end)), new in sorted(edits, key=lambda edit: edit[0][1], reverse=True):
        texts[name] = texts[name][:start] + new + texts[name][end:]
    try:
        design = read_texts(texts)
    except SpecError as error:
        assert all(finding.message and finding.remedy for finding in error.errors)
        assert all(finding.place.line or "no file has the key" in finding.message for finding in error.errors)
    else:
        assert design.architecture.levels
