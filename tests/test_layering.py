"""The house rules that a reader of one file cannot see: who imports whom, sizes, no global state."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "jaxloop"
FILES = sorted(PACKAGE.rglob("*.py"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))

MAY_IMPORT = {
    "_errors": set(),
    "_math": set(),
    "_twofold": set(),
    "status": set(),
    "conventions": set(),
    "spec": {"_errors"},
    "designs": {"_errors"},
    "frontend": {"_errors", "spec"},
    "program": {"conventions", "spec"},
    "_reasons": {"result", "status"},
    "_schema": {"_reasons", "result"},
    "result": {"_errors", "_reasons", "_schema", "conventions", "program", "spec", "status"},
    "lower": {"_errors", "_math", "conventions", "program", "spec"},
    "kernel": {"_math", "_twofold", "conventions", "program", "result", "spec"},
    "run": {"kernel", "lower", "program", "result"},
    "sweeps": {"__init__", "__version__", "_errors", "conventions", "lower", "program", "result", "run", "spec"},
    "searches": {
        "_api",
        "_errors",
        "conventions",
        "kernel",
        "lower",
        "program",
        "result",
        "run",
        "spec",
        "status",
        "sweeps",
    },
    "report": {"_errors", "conventions", "program", "result", "spec"},
    "reproduce": {
        "__init__",
        "__version__",
        "_api",
        "_errors",
        "_schema",
        "conventions",
        "designs",
        "lower",
        "program",
        "report",
        "result",
        "spec",
    },
}
"""Part of the package -> the other parts that it may import. The front door, the command line and the package itself
may import all."""
FRONT = {"__init__", "__main__", "_api", "cli"}
FORBIDDEN = {
    "spec": {"jax", "jaxlib", "equinox", "jaxtyping", "numpy"},
    "frontend": {"jax", "jaxlib", "equinox", "jaxtyping", "numpy"},
    "designs": {"jax", "jaxlib", "equinox", "jaxtyping", "numpy"},
    "conventions": {"jax", "jaxlib", "equinox", "jaxtyping", "numpy"},
    "_errors": {"jax", "jaxlib", "equinox", "jaxtyping", "numpy"},
    "report": {"jax", "jaxlib", "equinox", "jaxtyping"},
    "kernel": {"yaml", "click", "rich"},
}
"""Part -> libraries that it must do without."""
MAX_LINES, MAX_FUNCTION = 400, 60
PRESETS = {"TIMELOOP_2022", "MICRO22", "SMOOTH"}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imported(path: Path) -> Iterator[str]:
    """Absolute names of all imported modules, those inside functions included."""
    package = ("jaxloop", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            yield from (
                ".".join((*base, name)) for name in ([node.module] if node.module else [a.name for a in node.names])
            )
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def test_all_parts_are_known():
    assert {part_of(path) for path in FILES} == set(MAY_IMPORT) | FRONT


@each_file
def test_imports_go_one_way(path: Path):
    part = part_of(path)
    own = {name.split(".")[1] for name in imported(path) if name.startswith("jaxloop.")}
    assert part in FRONT or own <= MAY_IMPORT[part] | {part}


@each_file
def test_libraries_stay_in_their_layers(path: Path):
    libraries = {name.split(".")[0] for name in imported(path)}
    assert not libraries & FORBIDDEN.get(part_of(path), set())
    assert not [name for name in imported(path) if name.startswith("jax._src")]


@each_file
def test_configuration_of_jax_is_the_users(path: Path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and node.attr == "config":
            assert ast.unparse(node.value) != "jax"
    assert "jax.config" not in imported(path)


@each_file
def test_sizes(path: Path):
    assert len(path.read_text().splitlines()) <= MAX_LINES
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None and node.end_lineno - node.lineno < MAX_FUNCTION, node.name


@each_file
def test_code_asks_switches_not_presets(path: Path):
    """No comparison with a preset, by object or by name."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Compare | ast.Match):
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            names |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            texts = {
                n.value.upper() for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            }
            assert not (names | texts) & PRESETS, f"line {node.lineno}"


IMPORT_ALL = """
import json, pkgutil, sys, warnings
import jax
before = dict(jax.config.values)
warnings.simplefilter("error")
import jaxloop
for module in pkgutil.walk_packages(jaxloop.__path__, "jaxloop."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
after = dict(jax.config.values)
print(json.dumps([name for name in before if before[name] != after[name]]))
"""


def test_import_changes_no_configuration():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


def test_public_names_are_what_type_checkers_see():
    """The names that load on first use are those declared to type checkers."""
    import jaxloop

    (block,) = [node for node in tree_of(PACKAGE / "__init__.py").body if isinstance(node, ast.If)]
    declared = {a.asname for node in block.body if isinstance(node, ast.ImportFrom) for a in node.names}
    assert declared == set(jaxloop._HOMES) and declared <= set(dir(jaxloop))
    for name in declared:
        assert getattr(jaxloop, str(name)).__module__.startswith("jaxloop")
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        _ = jaxloop.evaluat
