"""From files to a checked design (spec/inputs.md sections 0.2 and 0.6)."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from .._errors import Diagnostic, Diagnostics, Place, SpecError, nearest
from ..spec.constraints import Constraints
from ..spec.design import Design
from ..spec.mapping import LoopNest
from ..spec.sparse import SparseOptimizations
from .architecture import Hardware, read_architecture
from .constraints import ARCHITECTURE_KEYS, MAPSPACE_KEYS, ConstraintReader
from .mapper import read_mapper
from .mapping import read_mapping
from .nodes import Map, Node, Tree, canonical, parse, tags_in
from .problem import Workload, read_problem
from .schema import Reader
from .sparse import SparseReader
from .tables import read_areas, read_energies

_CONSTRAINTS = (*MAPSPACE_KEYS, *ARCHITECTURE_KEYS)
_SECTIONS = (
    "problem",
    "architecture",
    "arch",
    "mapping",
    "ERT",
    "ART",
    "sparse_optimizations",
    "variables",
    "mapper",
    *_CONSTRAINTS,
)
_ELSEWHERE = ("compound_components", "components", "model", "globals")
_UNMODELED = {"layout": "data layouts (bank conflicts) are not modeled"}


def read_files(paths: Sequence[str | os.PathLike[str]]) -> Design:
    """Reads a design from YAML files, which together form one mapping.

    **Arguments:**

    - `paths`: Timeloop files of version 0.2 or 0.3, in any order.

    **Returns:**

    The `Design`; its `warnings` hold everything that was filled in or left out.

    **Raises:**

    `SpecError` with all errors of all sections, unreadable files included.
    """
    texts: dict[str, str] = {}
    unreadable: list[Diagnostic] = []
    for path in dict.fromkeys(os.fspath(path) for path in paths):
        try:
            if path.endswith(".cfg"):
                unreadable.append(Diagnostic(Place(path), "libconfig files are not read", "write the file as YAML"))
                continue
            texts[path] = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            message = f"cannot read the file: {error.strerror or error}"
            unreadable.append(Diagnostic(Place(path), message, "check the path"))
        except UnicodeDecodeError:
            unreadable.append(Diagnostic(Place(path), "the file is not UTF-8 text", "give YAML files only"))
    return _read(texts, unreadable)


def read_texts(texts: Mapping[str, str]) -> Design:
    """Reads a design from texts by name; everything else as in `read_files`."""
    return _read(texts, [])


def _read(texts: Mapping[str, str], unreadable: list[Diagnostic]) -> Design:
    """The pass over all sections. `unreadable` are the errors of files that gave no text."""
    diagnostics = Diagnostics(errors=list(unreadable))
    tree = parse(texts, diagnostics, repeatable=(*_ELSEWHERE, *_UNMODELED))
    if unreadable:
        tree = Tree(tree.root, is_complete=False)
    root = tree.root
    variables = root.get("variables")
    reader = Reader(diagnostics, variables if isinstance(variables, Map) else None)
    _check_top_level(reader, root)
    workload = _problem(reader, tree)
    hardware = _architecture(reader, tree)
    levels = None
    if hardware is not None:
        architecture = hardware.architecture
        levels = [architecture.compute.name, *(level.name for level in architecture.levels)]
    ert, art = root.get("ERT"), root.get("ART")
    energies = read_energies(reader, ert, levels) if ert is not None else None
    areas = read_areas(reader, art, levels) if art is not None else None
    section = root.get("mapping")
    nest = read_mapping(reader, section, hardware, workload) if section is not None else None
    sparse = _sparse(reader, root, hardware, workload, nest)
    constraints = _constraints(reader, root, hardware, workload, nest)
    mapper = root.get("mapper")
    options = read_mapper(reader, mapper, hardware.architecture if hardware else None) if mapper is not None else None
    order = {file: index for index, file in enumerate(texts)}
    if diagnostics.errors or hardware is None or workload is None:
        raise SpecError(sorted(diagnostics.errors, key=lambda error: _position(error, order)))
    return Design(
        einsum=workload.einsum,
        architecture=hardware.architecture,
        nest=nest,
        energy_table=energies,
        area_table=areas,
        densities=workload.densities,
        sparse=sparse,
        constraints=constraints,
        mapper=options,
        warnings=tuple(sorted(diagnostics.warnings, key=lambda warning: _position(warning, order))),
        name=workload.einsum.name,
    )


def _position(diagnostic: Diagnostic, order: dict[str, int]) -> tuple[int, int]:
    return order.get(diagnostic.place.file, -1), diagnostic.place.line


def _check_top_level(reader: Reader, root: Map) -> None:
    for key, value in root.items.items():
        name = canonical(key)
        if name in _SECTIONS and name not in ("arch", "architecture"):
            for tag, place in tags_in(value):
                reader.error(place, f'unknown YAML tag "{tag}"', "remove it: the v0.3 dialect has no tags")
        if name in _UNMODELED:
            reader.warn(root.places[key], f"`{key}` is not used: {_UNMODELED[name]}")
        elif name not in _SECTIONS and name not in _ELSEWHERE:
            reader.warn(root.places[key], f'unknown top-level key "{key}"', nearest(name, _SECTIONS))


def _problem(reader: Reader, tree: Tree) -> Workload | None:
    section = tree.root.get("problem")
    if section is None and tree.is_complete:
        reader.error(tree.root.place, "no file has the key `problem`", "give a file with the workload")
    return read_problem(reader, section) if section is not None else None


def _architecture(reader: Reader, tree: Tree) -> Hardware | None:
    root = tree.root
    if root.get("arch") is not None and root.get("architecture") is not None:
        reader.error(root.place_of("architecture"), "both `arch` and `architecture` are given", "keep one of them")
        return None
    section = root.get("arch") or root.get("architecture")
    if section is None:
        if tree.is_complete:
            reader.error(root.place, "no file has the key `architecture`", "give a file with the hardware")
        return None
    return read_architecture(reader, section)


def _sparse(
    reader: Reader, root: Map, hardware: Hardware | None, workload: Workload | None, nest: LoopNest | None
) -> SparseOptimizations:
    if "sparse_optimizations" not in root:
        return SparseOptimizations()
    architecture = hardware.architecture if hardware is not None else None
    sparse_reader = SparseReader(reader, architecture, workload.einsum if workload is not None else None)
    sparse = sparse_reader.read(root.get("sparse_optimizations"), root.place_of("sparse_optimizations"))
    if nest is not None:
        sparse_reader.report_bypassed(nest)
    return sparse


def _constraints(
    reader: Reader, root: Map, hardware: Hardware | None, workload: Workload | None, nest: LoopNest | None
) -> Constraints:
    """Both sources together: first the map space, then the first given of the architecture's."""
    architecture = root.get("arch") or root.get("architecture")
    given: list[tuple[str, Place, Node]] = []
    for keys in (MAPSPACE_KEYS, ("constraints", *ARCHITECTURE_KEYS)):
        maps = [(architecture if key == "constraints" else root, key) for key in keys]
        found = [(map, key) for map, key in maps if isinstance(map, Map) and map.get(key) is not None]
        for map, key in found[1:]:
            message = f"both `{found[0][1]}` and `{key}` are given"
            reader.error(map.place_of(key), message, "keep one of them; the reference would use the first")
        given += [(key, map.place_of(key), node) for map, key in found[:1] if (node := map.get(key)) is not None]
    constraint_reader = ConstraintReader(
        reader, hardware.architecture if hardware else None, workload.einsum if workload else None
    )
    for key, place, node in given:
        constraint_reader.read(node, key)
        if nest is not None:
            reader.warn(place, f"`{key}`: constraints are not checked when one mapping is evaluated")
    return constraint_reader.constraints()
