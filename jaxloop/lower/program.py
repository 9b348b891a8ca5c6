"""Design -> `Program`: workload and hardware as padded arrays."""

from collections.abc import Callable, Mapping as Dict
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import Diagnostic, Diagnostics, Place
from ..conventions import Conventions
from ..program import Names, Program, SparseStructure, Structure
from ..spec.architecture import Architecture, Storage
from ..spec.design import Design
from ..spec.einsum import Einsum, Tensor
from .classes import class_structure, exact_structure, sliding_axes
from .costs import Costs, lower_costs
from .masks import has_real_data
from .refusals import check_densities, refuse_unmodeled_sparse, warn_of_full_tensors
from .sparse import crop_sparse, sparse_leaves, sparse_structure

LEVEL_LEAVES: dict[str, tuple[Callable[[Storage], Any], float]] = {
    "size": (lambda level: level.size, np.inf),
    "multiple_buffering": (lambda level: level.multiple_buffering, 1.0),
    "min_utilization": (lambda level: level.min_utilization, 0.0),
    "word_bits": (lambda level: level.word_bits, 16.0),
    "block_size": (lambda level: level.block_size, 1.0),
    "cluster_size": (lambda level: level.cluster_size, 1.0),
    "mesh_x": (lambda level: level.mesh_x, 1.0),
    "mesh_y": (lambda level: level.mesh_y, 1.0),
    "read_bandwidth": (lambda level: level.read_bandwidth, np.inf),
    "write_bandwidth": (lambda level: level.write_bandwidth, np.inf),
    "shared_bandwidth": (lambda level: level.shared_bandwidth, np.inf),
    "latency": (lambda level: level.network.fill_latency + level.network.drain_latency, 0.0),
    "reduction_supported": (lambda level: level.reduction_supported, 1.0),
    "network_word_bits": (lambda level: level.network.word_bits, 16.0),
    "tile_width": (lambda level: level.network.tile_width, -1.0),
    "energy_per_hop": (lambda level: level.network.energy_per_hop, -1.0),
    "router_energy": (lambda level: level.network.router_energy, 0.0),
}
"""Leaf of `Program` -> where it comes from, and its value where the file gives none or the level is padding."""


@dataclass(frozen=True, eq=False)
class Lowered:
    """A design as arrays: `program` with numpy leaves without lanes, its `names`, the true (unpadded) `sizes`, where
    each energy came from, and what lowering had to say."""

    program: Program
    names: Names
    own: Structure
    provenance: dict[tuple[str, str], str]
    warnings: tuple[Diagnostic, ...]


def lower(
    design: Design,
    conventions: Conventions,
    *,
    exact: bool = False,
    dtype: Any = np.float64,
    largest: Dict[str, int] | None = None,
    densities: Dict[str, Any] | None = None,
    shared: SparseStructure | None = None,
) -> Lowered:
    """Lowers workload and hardware.

    **Arguments:**

    - `exact`: arrays of the design's own sizes instead of its size class: for hot batches.
    - `dtype`: what the leaves will be held in; motions of tiles must stay exact in it.
    - `largest`: rank sizes that a sweep will reach, where they exceed the design's own.
    - `densities`: shares of nonzeros that a sweep will put in place of the design's own, by tensor.
    - `shared`: sizes of the sparse part that several designs share, in place of the design's own.

    **Raises:** `SpecError` for what the kernel does not model, and for densities that make no sense.
    """
    report = Diagnostics()
    refuse_unmodeled_sparse(design, report)
    if largest and design.sparse.has_effect and has_real_data(design):
        report.error(Place("", 0, "sizes"), "real data have the size that they have", "leave the sizes out")
    check_densities(design, densities or {}, report)
    report.raise_if_errors()
    warn_of_full_tensors(design, conventions, report)
    costs = lower_costs(design, conventions, report)
    bounds = design.einsum.size_of | {r: max(n, design.einsum.size_of[r]) for r, n in (largest or {}).items()}
    key_weights = [_key_weights(tensor, bounds, dtype) for tensor in design.einsum.tensors]
    keys = max(len(weights) for weights in key_weights)
    sparse = shared or sparse_structure(design, conventions, bounds, densities or {})
    own = exact_structure(design.einsum, design.architecture, keys, conventions, sparse)
    structure = own if exact else class_structure(own)
    leaves = _workload_leaves(design.einsum, structure, key_weights) | _hardware_leaves(
        design.architecture, costs, structure
    )
    sparse_program = None if sparse is None else sparse_leaves(design, structure, costs)
    program = Program(structure=structure, **leaves, sparse=sparse_program)
    return Lowered(program, _names(design), own, costs.provenance, tuple(report.warnings))


def _names(design: Design) -> Names:
    architecture = design.architecture
    return Names(
        ranks=design.einsum.ranks,
        tensors=tuple(t.name for t in design.einsum.tensors),
        levels=tuple(level.name for level in architecture.levels),
        compute=architecture.compute.name,
        networks=tuple(architecture.network_name(s) for s in range(len(architecture.levels))),
    )


def _key_weights(tensor: Tensor, sizes: dict[str, int], dtype: Any) -> list[list[float]]:
    """Weights [key][axis] that turn a motion into numbers. Motions along an axis stay below the tensor's extent, so
    that a radix of four extents keeps sums and differences of two motions apart; a new key starts where the next axis
    would not fit into the mantissa."""
    limit = 2.0 ** np.finfo(dtype).nmant
    keys, radix = [[0.0] * len(tensor.axes)], 1.0
    for a, axis in enumerate(tensor.axes):
        extent = sum(abs(term.coefficient) * (sizes[term.rank] - 1) for term in axis.terms)
        if radix > 1.0 and radix * (4.0 * extent + 1.0) > limit:
            keys.append([0.0] * len(tensor.axes))
            radix = 1.0
        keys[-1][a] = radix
        radix *= 4.0 * extent + 1.0
    return keys


def _workload_leaves(einsum: Einsum, sizes: Structure, key_weights: list[list[list[float]]]) -> dict[str, Any]:
    index = {rank: i for i, rank in enumerate(einsum.ranks)}
    rank_sizes = np.ones(sizes.ranks)
    rank_sizes[: len(einsum.ranks)] = einsum.sizes
    projection = np.zeros((sizes.tensors, sizes.axes, sizes.ranks))
    extent = np.zeros_like(projection)
    motion_key = np.zeros((sizes.tensors, sizes.keys, sizes.ranks))
    is_output, is_tensor = np.zeros(sizes.tensors), np.zeros(sizes.tensors)
    for t, tensor in enumerate(einsum.tensors):
        is_output[t], is_tensor[t] = tensor.is_output, 1.0
        for a, axis in enumerate(tensor.axes):
            for term in axis.terms:
                projection[t, a, index[term.rank]] += term.coefficient
                extent[t, a, index[term.rank]] += abs(term.coefficient)
        for k, weights in enumerate(key_weights[t]):
            motion_key[t, k] = np.array(weights) @ projection[t, : len(tensor.axes)]
    return {
        "rank_sizes": rank_sizes,
        "projection": projection,
        "projection_extent": extent,
        "motion_key": motion_key,
        "is_output": is_output,
        "is_tensor": is_tensor,
        **_window_leaves(einsum, sizes, projection),
    }


def _window_leaves(einsum: Einsum, sizes: Structure, projection: np.ndarray) -> dict[str, Any]:
    """The sliding windows: axes that two ranks move."""
    index = {rank: i for i, rank in enumerate(einsum.ranks)}
    window = np.zeros((sizes.tensors, sizes.sliding_tensors))
    rank = np.zeros((sizes.sliding_tensors, sizes.sliding, 2), np.int32)
    coefficient = np.zeros((sizes.sliding_tensors, sizes.sliding, 2))
    mask = np.zeros((sizes.tensors, sizes.axes))
    with_windows = [t for t, tensor in enumerate(einsum.tensors) if sliding_axes(tensor)]
    for column, t in enumerate(with_windows):
        window[t, column] = 1.0
        for place, a in enumerate(sliding_axes(einsum.tensors[t])):
            mask[t, a] = 1.0
            for side, name in enumerate(einsum.tensors[t].axes[a].ranks):
                rank[column, place, side] = index[name]
                coefficient[column, place, side] = abs(projection[t, a, index[name]])
    return {"window": window, "window_rank": rank, "window_coefficient": coefficient, "window_axis": mask}


def _hardware_leaves(architecture: Architecture, costs: Costs, sizes: Structure) -> dict[str, Any]:
    count = len(architecture.levels)

    def padded(values: Any, default: float) -> np.ndarray:
        leaf = np.full(sizes.levels, default, float)
        leaf[:count] = [default if value is None else value for value in values]
        return leaf

    leaves = {
        name: padded([read(level) for level in architecture.levels], default)
        for name, (read, default) in LEVEL_LEAVES.items()
    }
    energy = np.zeros((costs.energy.shape[0], sizes.levels, sizes.tensors))
    energy[:, :count] = costs.energy[:, :, None]
    compute = architecture.compute
    return leaves | {
        "action_energy": energy,
        "address_energy": padded(costs.address_energy, 0.0),
        "area": padded(costs.area, 0.0),
        "wire_energy": padded(costs.wire_energy, -1.0),
        "compute_energy": np.asarray(costs.compute_energy, float),
        "compute_area": np.asarray(costs.compute_area, float),
        "compute_mesh_x": np.asarray(compute.mesh_x, float),
        "compute_mesh_y": np.asarray(compute.mesh_y, float),
    }


def crop(program: Program, sizes: Structure) -> Program:
    """The program without its padding, for reports. Leaves without lanes."""
    level, rank, tensor, axis = (slice(n) for n in (sizes.levels, sizes.ranks, sizes.tensors, sizes.axes))
    by_level = [*LEVEL_LEAVES, "address_energy", "area", "wire_energy"]
    places: dict[str, tuple[slice, ...]] = dict.fromkeys(by_level, (level,))
    places |= {
        "rank_sizes": (rank,),
        "projection": (tensor, axis, rank),
        "projection_extent": (tensor, axis, rank),
        "motion_key": (tensor, slice(None), rank),
        "window": (tensor,),
        "window_rank": (slice(None), slice(sizes.sliding)),
        "window_coefficient": (slice(None), slice(sizes.sliding)),
        "window_axis": (tensor, axis),
        "is_output": (tensor,),
        "is_tensor": (tensor,),
        "action_energy": (slice(None), level, tensor),
    }
    leaves: dict[str, Any] = {name: getattr(program, name)[index] for name, index in places.items()}
    scalars = ("compute_energy", "compute_area", "compute_mesh_x", "compute_mesh_y")
    leaves |= {name: getattr(program, name) for name in scalars}
    sparse = None if program.sparse is None else crop_sparse(program.sparse, sizes)
    return Program(structure=sizes, **leaves, sparse=sparse)


def to_device(tree: Any, dtype: Any) -> Any:
    """The crossing from numpy to jax: every float leaf in `dtype`, every integer leaf in int32, masks as they are."""

    def convert(leaf: Any) -> jax.Array:
        array = np.asarray(leaf)
        if array.dtype == bool:
            return jnp.asarray(array)
        return jnp.asarray(array.astype(np.int32 if np.issubdtype(array.dtype, np.integer) else dtype))

    return jax.tree.map(convert, tree)
