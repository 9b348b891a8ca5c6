"""The contract between `lower` and `kernel`: what one evaluation takes.

Axis glossary, used in every shape below: `level` storage levels, innermost first; `rank` dimensions of the iteration
space; `tensor`; `axis` coordinates of a tensor; `action` read, fill, update. Every leaf carries one more, trailing
axis, the *lane*: 1 (shared by the batch) or B. The kernel is written for one mapping, indexes from the left and never
looks at the lane; without the lane axis the same code runs under `jax.vmap`.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import equinox as eqx
from jaxtyping import Float, Int

from .conventions import Conventions


class Action(IntEnum):
    """Rows of `Program.action_energy`."""

    READ = 0
    FILL = 1
    UPDATE = 2


@dataclass(frozen=True, slots=True)
class Structure:
    """What changes the traced graph, and nothing else: sizes, presence, conventions. This is the compile key.

    **Attributes:**

    - `levels`, `ranks`, `tensors`, `axes`: sizes of the padded arrays.
    - `sliding`: most axes per tensor that two ranks move (sliding windows); `sliding_tensors`: tensors with such axes.
    - `multicast`: largest multiplicity that the closed form of the multicast histogram can hold (1 without sliding
      windows): the integer square root of the compute units.
    - `keys`: numbers that stand for one motion of a tile (`Program.motion_key`); 1 unless tensors are huge or the
      dtype is short.
    - `irregular`: some tensor has an axis moved by three or more ranks, or a rank that moves two of its axes: multicast
      groups are then enumerated.
    - `elements`: children of one fan-out that the enumeration of spec/dense.md 4.6 can hold; 0 leaves links out and
      only reports whether they might matter (`Evaluation.needs_enumeration`).
    - `conventions`: the switches.
    """

    levels: int
    ranks: int
    tensors: int
    axes: int
    sliding: int
    sliding_tensors: int
    multicast: int
    keys: int
    irregular: bool
    elements: int
    conventions: Conventions

    def with_elements(self, elements: int) -> "Structure":
        return replace(self, elements=elements)


AnyArray = Any
"""Leaves are numpy arrays in `lower` and in the user's hands, jax arrays in the kernel."""


class Program(eqx.Module):
    """Workload and hardware as arrays. Unlimited capacities and bandwidths are +inf; a negative `tile_width`,
    `energy_per_hop` or `wire_energy` means "not given". Masks are 0 or 1 in the dtype of all other leaves.

    **Attributes:** (units; energies in pJ, areas in um^2, bandwidths in words per cycle and instance)

    - `rank_sizes`: iterations per rank.
    - `projection`: coefficient of each rank in each tensor axis; `projection_extent`: the same as a sum of absolute
      values (they differ where one rank enters an axis twice with opposite signs).
    - `motion_key`: what one step of a rank adds to the keys of a tensor's motion: equal keys mean equal motions along
      all axes.
    - `window`: one column per tensor with sliding axes, 1 in that tensor's row; `window_rank`, `window_coefficient`:
      the two ranks of each of its sliding axes and their absolute coefficients (0 where there is none); `window_axis`:
      mask over its axes.
    - `is_output`, `is_tensor`: masks over tensors; a padding tensor is neither kept nor counted.
    - `size`: words; `multiple_buffering`; `min_utilization`: share of the effective size.
    - `word_bits`, `block_size` (words per vector access), `cluster_size`, `mesh_x`, `mesh_y`.
    - `latency`: fill plus drain cycles of the level's network.
    - `reduction_supported`: mask.
    - `action_energy`: per vector access; `address_energy`: per generated address; `area`: per instance.
    - `network_word_bits`, `wire_energy` (per bit and mm), `tile_width` (um), `energy_per_hop`, `router_energy`.
    - `compute_energy` (per operation), `compute_area`, `compute_mesh_x`, `compute_mesh_y`.
    """

    structure: Structure = eqx.field(static=True)
    rank_sizes: Float[AnyArray, "rank *#lane"]
    projection: Float[AnyArray, "tensor axis rank *#lane"]
    projection_extent: Float[AnyArray, "tensor axis rank *#lane"]
    motion_key: Float[AnyArray, "tensor key rank *#lane"]
    window: Float[AnyArray, "tensor window *#lane"]
    window_rank: Int[AnyArray, "window sliding 2 *#lane"]
    window_coefficient: Float[AnyArray, "window sliding 2 *#lane"]
    window_axis: Float[AnyArray, "tensor axis *#lane"]
    is_output: Float[AnyArray, "tensor *#lane"]
    is_tensor: Float[AnyArray, "tensor *#lane"]
    size: Float[AnyArray, "level *#lane"]
    multiple_buffering: Float[AnyArray, "level *#lane"]
    min_utilization: Float[AnyArray, "level *#lane"]
    word_bits: Float[AnyArray, "level *#lane"]
    block_size: Float[AnyArray, "level *#lane"]
    cluster_size: Float[AnyArray, "level *#lane"]
    mesh_x: Float[AnyArray, "level *#lane"]
    mesh_y: Float[AnyArray, "level *#lane"]
    read_bandwidth: Float[AnyArray, "level *#lane"]
    write_bandwidth: Float[AnyArray, "level *#lane"]
    shared_bandwidth: Float[AnyArray, "level *#lane"]
    latency: Float[AnyArray, "level *#lane"]
    reduction_supported: Float[AnyArray, "level *#lane"]
    action_energy: Float[AnyArray, "action level tensor *#lane"]
    address_energy: Float[AnyArray, "level *#lane"]
    area: Float[AnyArray, "level *#lane"]
    network_word_bits: Float[AnyArray, "level *#lane"]
    wire_energy: Float[AnyArray, "level *#lane"]
    tile_width: Float[AnyArray, "level *#lane"]
    energy_per_hop: Float[AnyArray, "level *#lane"]
    router_energy: Float[AnyArray, "level *#lane"]
    compute_energy: Float[AnyArray, " *#lane"]
    compute_area: Float[AnyArray, " *#lane"]
    compute_mesh_x: Float[AnyArray, " *#lane"]
    compute_mesh_y: Float[AnyArray, " *#lane"]


def leaf_names(program: Program) -> list[str]:
    """The names of the array leaves."""
    return [name for name in program.__dataclass_fields__ if name != "structure"]


class Mapping(eqx.Module):
    """A mapping as arrays. Orders list rank indices innermost first; a factor 1 leaves its place neutral. Spatial loops
    along X lie inside those along Y; both follow `spatial_order`.

    **Attributes:**

    - `temporal`, `spatial_x`, `spatial_y`: loop bounds; their product over levels must equal the rank's size.
    - `temporal_order`, `spatial_order`: permutations of the ranks.
    - `keep`: 1 where the level stores the tensor.
    - `no_temporal_reuse`, `no_link_transfer`, `no_multicast`: 1 where that kind of reuse is switched off.
    """

    temporal: Float[AnyArray, "level rank *#lane"]
    spatial_x: Float[AnyArray, "level rank *#lane"]
    spatial_y: Float[AnyArray, "level rank *#lane"]
    temporal_order: Int[AnyArray, "level rank *#lane"]
    spatial_order: Int[AnyArray, "level rank *#lane"]
    keep: Float[AnyArray, "level tensor *#lane"]
    no_temporal_reuse: Float[AnyArray, "level tensor *#lane"]
    no_link_transfer: Float[AnyArray, "level tensor *#lane"]
    no_multicast: Float[AnyArray, "level tensor *#lane"]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of what the leaves hold, unpadded, for reports: they never enter the kernel."""

    ranks: tuple[str, ...]
    tensors: tuple[str, ...]
    levels: tuple[str, ...]
    compute: str
    networks: tuple[str, ...]
