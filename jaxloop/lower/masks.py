"""Real tensors: counts of the nonzeros in all boxes that a mapping may tile them by (docs/model.md 25)."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import Diagnostics, Place, nearest
from ..program import Masks, Structure
from ..spec.density import Density, Distribution, mask_of_text
from ..spec.design import Design
from ..spec.einsum import Einsum, Tensor

LARGEST_TABLE = 2**27
"""Entries of one table of counts, a gigabyte; more is refused."""

Term = tuple[int, int]
Axes = tuple[tuple[Term, ...], ...]


def divisors(size: int) -> list[int]:
    return [n for n in range(1, size + 1) if size % n == 0]


def is_real(design: Design, tensor: Tensor) -> bool:
    density = design.densities.get(tensor.name)
    return density is not None and density.distribution is Distribution.REAL_DATA


def has_real_data(design: Design) -> bool:
    return any(is_real(design, tensor) for tensor in design.einsum.tensors)


def mask_sizes(design: Design) -> dict[str, Any]:
    """The fields of `SparseStructure` that concern real data: `boxes` of the operands, 1 where one is no real data."""
    if not has_real_data(design):
        return {}
    einsum, boxes = design.einsum, []
    places = [t for t, tensor in enumerate(einsum.tensors) if not tensor.is_output]
    for tensor in (einsum.tensors[t] for t in places):
        moving = zip(einsum.sizes, _moves(tensor, einsum), strict=True)
        found = math.prod(len(divisors(size)) for size, moves in moving if moves)
        boxes.append(found if is_real(design, tensor) else 1)
    most = max(len(divisors(size)) for size in einsum.sizes)
    return {"boxes": tuple(boxes), "operands": tuple(places), "divisors": most}


def table_entries(design: Design) -> int:
    """Entries of the largest table that counting needs: boxes of an operand by places of the ranks that both have."""
    sizes = mask_sizes(design)
    shared = _shared(design, sizes["operands"])
    places = math.prod(design.einsum.sizes[r] for r in shared)
    return max(max(sizes["boxes"]) * places, math.prod(sizes["boxes"]))


def _shared(design: Design, operands: tuple[int, ...]) -> tuple[int, ...]:
    """The ranks that move both operands, if both are real data: elsewhere nothing is counted of them together."""
    einsum = design.einsum
    tensors = [einsum.tensors[t] for t in operands]
    if not all(is_real(design, tensor) for tensor in tensors):
        return ()
    moves = zip(*(_moves(tensor, einsum) for tensor in tensors), strict=True)
    return tuple(r for r, both in enumerate(moves) if all(both) and einsum.sizes[r] > 1)


def _moves(tensor: Tensor, einsum: Einsum) -> list[bool]:
    moving = {term.rank for axis in tensor.axes for term in axis.terms}
    return [rank in moving for rank in einsum.ranks]


@lru_cache(maxsize=8)
def _count(mask: bytes, axes: Axes, sizes: tuple[int, ...], shared: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Counts of one tensor.

    **Arguments:** `axes`: per axis the ranks that move it with their coefficients; `sizes` of the ranks; `shared`: the
    ranks of which the places are kept.

    **Returns:** [statistic, box]: share of empty tiles, mean, least and most nonzeros; [box, place]: share of nonempty
    tiles at each place of the shared ranks.
    """
    shape = tuple(1 + sum(c * (sizes[r] - 1) for r, c in axis) for axis in axes)
    sums = np.frombuffer(mask, np.uint8).reshape(shape, order="F").astype(np.int64)
    for axis in range(sums.ndim):
        sums = np.insert(np.cumsum(sums, axis=axis), 0, 0, axis=axis)
    ranks = sorted({rank for axis in axes for rank, _ in axis})
    statistics, profiles = [], []
    for sides in itertools.product(*(divisors(sizes[rank]) for rank in ranks)):
        side = dict(zip(ranks, sides, strict=True))
        counts, order = _tiles(sums, axes, sizes, side)
        statistics.append((np.mean(counts == 0), counts.mean(), counts.min(), counts.max()))
        others = tuple(axis for axis, rank in enumerate(order) if rank not in shared)
        filled = (counts > 0).mean(axis=others)
        kept = [rank for rank in order if rank in shared]
        filled = np.transpose(filled, [kept.index(rank) for rank in sorted(kept)])
        for axis, rank in enumerate(sorted(kept)):
            filled = np.repeat(filled, side[rank], axis=axis)
        profiles.append(filled.reshape(-1))
    return np.array(statistics, float).T, np.array(profiles, float)


def _tiles(sums: np.ndarray, axes: Axes, sizes: tuple[int, ...], side: dict[int, int]) -> tuple[np.ndarray, list[int]]:
    """Nonzeros of all aligned tiles, from sums over all elements before each: one axis per rank, and which rank."""
    counts, order, blocks = sums, [], []
    for a, axis in enumerate(axes):
        starts, reach = np.zeros((), np.int64), 1
        for rank, coefficient in axis:
            places = np.arange(0, sizes[rank], side[rank]) * coefficient
            starts = starts[..., None] + places
            reach += coefficient * (side[rank] - 1)
            order.append(rank)
            blocks.append(len(places))
        flat = starts.reshape(-1)
        counts = np.take(counts, flat + reach, axis=a) - np.take(counts, flat, axis=a)
    return counts.reshape(blocks), order


def mask_leaves(design: Design, structure: Structure) -> Masks | None:
    """The counts as numpy arrays without lanes, padded to `structure`; None without real data."""
    sparse, einsum = structure.sparse, design.einsum
    if sparse is None or sparse.boxes is None:
        return None
    boxes = max(sparse.boxes)
    leaves: dict[str, Any] = {name: np.zeros((structure.tensors, boxes)) for name in ("empty", "mean", "least", "most")}
    leaves["divisors"] = np.full((structure.ranks, sparse.divisors), np.inf)
    leaves["divisors"][:, 0] = 1.0
    for r, size in enumerate(einsum.sizes):
        found = divisors(size)
        leaves["divisors"][r, : len(found)] = found
    leaves["radix"] = np.zeros((structure.tensors, structure.ranks))
    leaves["operand_radix"] = np.zeros((2, structure.ranks))
    shared, profiles = _shared(design, sparse.operands), []
    for operand, t in enumerate(sparse.operands):
        tensor = einsum.tensors[t]
        if not is_real(design, tensor):
            continue
        leaves["radix"][t, : len(einsum.ranks)] = _radix(tensor, einsum)
        leaves["operand_radix"][operand] = leaves["radix"][t]
        mask = design.densities[tensor.name].mask
        assert mask is not None
        statistics, profile = _count(mask, _axes(tensor, einsum), einsum.sizes, shared)
        for name, row in zip(("empty", "mean", "least", "most"), statistics, strict=True):
            leaves[name][t, : len(row)] = row
        profiles.append(profile)
    leaves["both"], leaves["joint"] = np.zeros(sparse.boxes), np.array([[float(len(profiles) == 2)]])
    if len(profiles) == 2:
        both = profiles[0] @ profiles[1].T / profiles[0].shape[1]
        leaves["both"][: both.shape[0], : both.shape[1]] = both
    return Masks(**leaves)


def _axes(tensor: Tensor, einsum: Einsum) -> Axes:
    places = {rank: r for r, rank in enumerate(einsum.ranks)}
    return tuple(tuple((places[term.rank], term.coefficient) for term in axis.terms) for axis in tensor.axes)


def _radix(tensor: Tensor, einsum: Einsum) -> list[int]:
    """What one more divisor of each rank adds to the number of a box: the last rank that moves the tensor counts 1."""
    radix, step = [], 1
    for size, moves in reversed(list(zip(einsum.sizes, _moves(tensor, einsum), strict=True))):
        radix.insert(0, step if moves else 0)
        step *= len(divisors(size)) if moves else 1
    return radix


def with_masks(design: Design, masks: Mapping[str, Any]) -> Design:
    """A design whose tensors have these nonzeros: arrays (numpy, or of scipy.sparse) of the tensors' extents along the
    axes of their projections, or paths of .npy files or of text files of 0 and 1.

    **Raises:** `SpecError` for tensors that do not exist, files that cannot be read and other shapes.
    """
    report, densities = Diagnostics(), dict(design.densities)
    tensors = {tensor.name: tensor for tensor in design.einsum.tensors}
    for name, given in masks.items():
        place = Place("", 0, f"masks[{name!r}]")
        if name not in tensors:
            report.error(place, f'no tensor "{name}"', nearest(name, tensors))
            continue
        try:
            mask = _read(given)
        except (OSError, ValueError) as error:
            report.error(place, f"cannot read {given}: {error}", "give an array, a .npy file or a text of 0 and 1")
            continue
        wanted = tensors[name].extents(design.einsum.size_of)
        if mask.shape not in (wanted, (math.prod(wanted),)):
            report.error(place, f"the shape is {mask.shape}", f"the axes of tensor {name} are {wanted}")
            continue
        elements = np.asfortranarray(mask != 0).tobytes(order="F")
        densities[name] = Density(Distribution.REAL_DATA, mask=elements)
    report.raise_if_errors()
    return replace(design, densities=densities)


def _read(given: Any) -> np.ndarray:
    """A mask; a flat one has the first axis of the projection fastest."""
    if not isinstance(given, str | PathLike):
        return given.toarray() if hasattr(given, "toarray") else np.asarray(given)
    path = Path(given)
    if path.suffix == ".npy":
        return np.load(path)
    return np.frombuffer(mask_of_text(path.read_bytes()), np.uint8)
