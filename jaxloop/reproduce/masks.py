"""The nonzeros of the real tensors of Fig. 12, or drawn ones in their place."""

import zlib
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import Diagnostic, Place, SpecError
from ..spec.design import Design

FILES = {"Inputs": "{layer}_iacts.txt", "Weights": "{layer}_weights.txt"}
"""Files of a layer by tensor: one character per element, 0 or 1."""


def masks_of(layer: str, design: Design, folder: Path | None) -> Mapping[str, Any]:
    """Where the nonzeros of a layer are: files of `folder`, or without one drawn at random with the densities of
    `design` and a seed of the layer's own.
    """
    if folder is None:
        return {tensor: _drawn(layer, tensor, design) for tensor in FILES}
    return {tensor: str(path) for tensor, path in _paths(layer, folder).items()}


def check_masks(layers: Iterable[str], folder: Path) -> None:
    """**Raises:** `SpecError` naming all files of the layers that are not in the folder."""
    missing = [path for layer in layers for path in _paths(layer, folder).values() if not path.is_file()]
    if missing:
        remedy = "--masks takes the folder that holds L07_iacts.txt, L07_weights.txt, ..."
        raise SpecError([Diagnostic(Place(str(path)), "there is no such file", remedy) for path in missing])


def _paths(layer: str, folder: Path) -> dict[str, Path]:
    return {tensor: folder / pattern.format(layer=layer) for tensor, pattern in FILES.items()}


def _drawn(layer: str, tensor: str, design: Design) -> np.ndarray:
    shape = next(t for t in design.einsum.tensors if t.name == tensor).extents(design.einsum.size_of)
    words = prod(shape)
    mask = np.zeros(words, np.uint8)
    mask[: round(design.densities[tensor].density * words)] = 1
    generator = np.random.default_rng(zlib.crc32(f"{layer} {tensor}".encode()))
    return generator.permutation(mask).reshape(shape)
