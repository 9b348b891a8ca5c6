"""Designs that differ in formats and SAFs alone, as one program: their leaves side by side along a lane axis."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import jax
import numpy as np

from ..conventions import Conventions
from ..program import SparseStructure
from ..spec.design import Design
from .program import Lowered, lower


def lower_variants(designs: Sequence[Design], conventions: Conventions, **options: Any) -> Lowered:
    """Lowers designs of one workload and architecture to arrays of common sizes.

    **Arguments:** `options` as those of `lower`.

    **Returns:** the first one's `Lowered`; leaves of its program that differ between the designs have a trailing lane
    axis of their number, the others one of 1.

    **Raises:** `SpecError` as `lower`.
    """
    each = [lower(design, conventions, exact=True, **options) for design in designs]
    sparse = [found.own.sparse for found in each if found.own.sparse is not None]
    if sparse and any(found.own.sparse != sparse[0] for found in each):
        shared = _union(sparse)
        each = [lower(design, conventions, exact=True, shared=shared, **options) for design in designs]
    programs = [found.program for found in each]
    stacked = jax.tree.map(lambda *leaves: _side_by_side([np.asarray(leaf) for leaf in leaves]), *programs)
    warnings = tuple(dict.fromkeys(warning for found in each for warning in found.warnings))
    return replace(each[0], program=stacked, warnings=warnings)


def _side_by_side(leaves: list[np.ndarray]) -> np.ndarray:
    if all(np.array_equal(leaf, leaves[0], equal_nan=True) for leaf in leaves[1:]):
        return leaves[0][..., None]
    return np.stack(leaves, axis=-1)


def _union(structures: list[SparseStructure]) -> SparseStructure:
    """The least sizes that hold all of them."""
    merged: dict[str, Any] = {}
    for field in fields(SparseStructure):
        values = [getattr(structure, field.name) for structure in structures]
        if field.name == "cells":
            merged["cells"] = tuple(sorted({cell for cells in values for cell in cells}))
        elif field.name in ("boxes", "operands"):
            merged[field.name] = values[0]  # what was counted in real data, which all variants share
        else:
            merged[field.name] = max(values)
    return SparseStructure(**merged)
