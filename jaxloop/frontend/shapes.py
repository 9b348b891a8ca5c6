"""Problem shapes that a file may name instead of writing them out (spec/inputs.md 2.1)."""

import os
from collections.abc import Iterator
from pathlib import Path

from .._errors import Diagnostics, Place
from .nodes import Map, Node, canonical, parse
from .schema import Reader

DEFAULT_SHAPE = "cnn-layer"

_CNN_LAYER = """
shape:
  name: CNN-Layer
  dimensions: [R, S, P, Q, C, K, N]
  coefficients:
  - {name: Wstride, default: 1}
  - {name: Hstride, default: 1}
  - {name: Wdilation, default: 1}
  - {name: Hdilation, default: 1}
  data-spaces:
  - {name: Weights, projection: [C, K, R, S]}
  - name: Inputs
    projection: [[[N]], [[C]], [[R, Wdilation], [P, Wstride]], [[S, Hdilation], [Q, Hstride]]]
  - {name: Outputs, projection: [N, K, Q, P], read-write: true}
"""

_GEMM_ABZ = """
shape:
  name: GEMM-ABZ
  dimensions: [M, N, K]
  data-spaces:
  - {name: A, projection: [M, K]}
  - {name: B, projection: [N, K]}
  - {name: Z, projection: [M, N], read-write: true}
"""

_BUILT_IN = {"cnn_layer": _CNN_LAYER, "gemm_ABZ": _GEMM_ABZ}


def find_shape(reader: Reader, name: str, place: Place) -> Map | None:
    """The shape called `name`: from the directories in the environment, else built in. None and an error that lists
    where it was sought when there is none."""
    file_name = name if Path(name).suffix in (".yaml", ".yml", ".cfg") else f"{name}.yaml"
    directories = list(_directories())
    for directory in directories:
        path = directory / file_name
        if path.is_file():
            return _from_text(reader, str(path), path.read_text(encoding="utf-8"), place)
    built_in = canonical(Path(name).stem)
    if built_in in _BUILT_IN:
        return _from_text(reader, f"<built-in {name}>", _BUILT_IN[built_in], place)
    sought = ", ".join(str(directory / file_name) for directory in directories)
    reader.error(
        place,
        f'there is no problem shape "{name}"' + (f" (sought as {sought})" if sought else ""),
        "write it out, take cnn-layer or gemm-ABZ, or set TIMELOOP_PROBLEM_SHAPE_DIRS to the folder that holds it",
    )
    return None


def _directories() -> Iterator[Path]:
    if first := os.environ.get("TIMELOOP_PROBLEM_SHAPE_DIR"):
        yield Path(first)
    for directory in os.environ.get("TIMELOOP_PROBLEM_SHAPE_DIRS", "").split(":"):
        if directory:
            yield Path(directory)
    if home := os.environ.get("TIMELOOP_DIR"):
        yield Path(home) / "problem-shapes"


def _from_text(reader: Reader, file: str, text: str, place: Place) -> Map | None:
    if file.endswith(".cfg"):
        reader.error(place, f"{file} is a libconfig file, which is not read", "write the shape as YAML")
        return None
    diagnostics = Diagnostics()
    shape: Node | None = parse({file: text}, diagnostics).root.get("shape")
    reader.diagnostics.errors.extend(diagnostics.errors)
    if shape is None and not diagnostics.errors:
        reader.error(Place(file), "the file has no key `shape`", "start it with `shape:`")
    return reader.map(shape, "the shape")
