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
from .spec.density import Distribution
from .spec.sparse import ActionKind, RankFormat

RANK_FORMATS: dict[RankFormat, int] = {rank_format: code for code, rank_format in enumerate(RankFormat, start=1)}
"""Codes of `SparseProgram.rank_format`; 0 stands for no format rank."""

DENSITY_KINDS: dict[Distribution, int] = {distribution: code for code, distribution in enumerate(Distribution)}
"""Codes of `SparseProgram.density_kind`."""

OCCUPANCIES = 4096
"""Numbers of nonzeros in a tile that are looked at one by one; where a design may need more, some of them are."""

SAF_KINDS: dict[ActionKind, int] = {kind: code for code, kind in enumerate(ActionKind, start=1)}
"""Codes of `SparseProgram.saf_kind`; 0 is padding."""


class Action(IntEnum):
    """What a storage level does with words, and with units of metadata."""

    READ = 0
    FILL = 1
    UPDATE = 2


class Fate(IntEnum):
    """What becomes of an access or an operation. Gated ones cost energy of their own kind and time, skipped ones no
    time."""

    ACTUAL = 0
    GATED = 1
    SKIPPED = 2


class Activity(IntEnum):
    """What the energy of a level goes into: accesses to words, whatever becomes of them, metadata, changes of
    representation, generated addresses, and its network."""

    READ = 0
    FILL = 1
    UPDATE = 2
    METADATA = 3
    CONVERSION = 4
    ADDRESS = 5
    NETWORK = 6


class Conversion(IntEnum):
    """Changes of representation at a level."""

    DECOMPRESSION = 0
    COMPRESSION = 1


@dataclass(frozen=True, slots=True)
class SparseStructure:
    """The sparse part of the compile key: sizes and presence.

    **Attributes:**

    - `format_ranks`: most ranks of a representation (0: no tensor has one).
    - `flattening`: some format rank merges several ranks.
    - `groups`, `options`: gating and skipping groups, and most alternatives in one of them.
    - `hypergeometric`: some tensor is uniformly random. `band`: largest half width of a band, -1 without banded
      tensors.
    - `strided`: tiles may have too many likely occupancies to look at each of them.
    - `cells`: pairs of a level and a tensor that may have a representation, or lie inside one; None for all.
    - `fans_out`: some level has several children.
    - `overbooking`: some level may hold tiles larger than itself.
    - `boxes`: boxes of the two operands for which real data were counted, None without such tensors; `operands`: which
      tensors these are; `divisors`: most of one rank.
    - `spatial_skipping`: some group leaves out children of a level. `position_skipping`: some group compacts a tensor.
    """

    format_ranks: int = 0
    flattening: bool = False
    groups: int = 0
    options: int = 1
    hypergeometric: bool = False
    band: int = -1
    strided: bool = False
    cells: tuple[tuple[int, int], ...] | None = None
    fans_out: bool = False
    overbooking: bool = False
    spatial_skipping: bool = False
    boxes: tuple[int, int] | None = None
    operands: tuple[int, int] = (0, 1)
    divisors: int = 0
    position_skipping: bool = False


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
    - `sparse`: sizes of the sparse part; None for dense designs.
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
    sparse: SparseStructure | None = None

    def with_elements(self, elements: int) -> "Structure":
        return replace(self, elements=elements)


AnyArray = Any
"""Leaves are numpy arrays in `lower` and in the user's hands, jax arrays in the kernel."""


class Masks(eqx.Module):
    """What was counted in the masks of real tensors, for boxes of the iteration space whose sides are divisors of the
    rank sizes. Further axes: `divisor`; `box`: of a tensor, a number in the radix of its ranks; `operand`: the two
    tensors that are only read.

    **Attributes:**

    - `divisors`: of each rank, ascending (inf: padding).
    - `radix`: what one more divisor of a rank adds to the number of a box (0: the rank does not move the tensor);
      `operand_radix`: the same of the operands.
    - `empty`: share of the aligned tiles without nonzeros; `mean`, `least`, `most`: their nonzeros.
    - `both`: chance that the tiles of both operands around one iteration hold something; `joint`: 1 where both are
      real data, else the chances are independent.
    """

    divisors: Float[AnyArray, "rank divisor *#lane"]
    radix: Float[AnyArray, "tensor rank *#lane"]
    operand_radix: Float[AnyArray, "operand rank *#lane"]
    empty: Float[AnyArray, "tensor box *#lane"]
    mean: Float[AnyArray, "tensor box *#lane"]
    least: Float[AnyArray, "tensor box *#lane"]
    most: Float[AnyArray, "tensor box *#lane"]
    both: Float[AnyArray, "box box2 *#lane"]
    joint: Float[AnyArray, "1 1 *#lane"]


class SparseProgram(eqx.Module):
    """Densities, representation formats and sparse acceleration features (SAFs) as arrays.

    Further axes: `format_rank`, innermost first; `group`, gating and skipping groups ordered by level, innermost first,
    then as listed; `option`, the alternatives of a group; `fate` (`Fate`); `action` (`Action`).

    **Attributes:** (bits; energies in pJ per vector access)

    - `rank_count`: ranks of the iteration space without padding.
    - `density_kind`: code of `DENSITY_KINDS`; `density`: share of nonzeros; `band_width`: half width
      of a band in elements.
    - `rank_format`: code of `RANK_FORMATS`, 0 where there is no format rank; `metadata_bits`,
      `payload_bits`: word bits of each format rank.
    - `inner_to_outer`: 1 where format ranks are applied to loops from the innermost outward.
    - `has_groups`: 1 where a format rank lists the ranks that it may flatten; `merges`: for a first rank of a flattened
      run (second last axis), 1 at the ranks that may follow it (last axis), itself included. None without flattening.
    - `metadata_word_bits`: the level's own; `metadata_width`: bits per row of the metadata storage; `metadata_size`:
      its bits (0 where there is none).
    - `decompression_supported`, `compression_supported`, `allow_overbooking`: masks.
    - `saf_kind`: 0 none, 1 gating, 2 skipping, 3 spatial skipping, 4 position skipping; `saf_level`: where the group
      is specified; `saf_target`: tensor whose accesses are removed, -1 for padding; `saf_leaders`: mask of the tensors
      on whose emptiness this depends.
    - `compute_gating`, `compute_skipping`: masks.
    - `masks`: counts of real tensors, None where there are none.
    - `gated_energy`, `skipped_energy`: per action, beside `Program.action_energy`; `metadata_energy`;
      `conversion_energy`: per word (`Conversion`); `gated_compute_energy`, `skipped_compute_energy`: per operation.
    """

    rank_count: Float[AnyArray, " *#lane"]
    density_kind: Int[AnyArray, "tensor *#lane"]
    density: Float[AnyArray, "tensor *#lane"]
    band_width: Float[AnyArray, "tensor *#lane"]
    rank_format: Int[AnyArray, "level tensor format_rank *#lane"]
    metadata_bits: Float[AnyArray, "level tensor format_rank *#lane"]
    payload_bits: Float[AnyArray, "level tensor format_rank *#lane"]
    inner_to_outer: Float[AnyArray, "level tensor *#lane"]
    has_groups: Float[AnyArray, "level tensor format_rank *#lane"] | None
    merges: Float[AnyArray, "level tensor format_rank rank rank *#lane"] | None
    metadata_word_bits: Float[AnyArray, "level *#lane"]
    metadata_width: Float[AnyArray, "level *#lane"]
    metadata_size: Float[AnyArray, "level *#lane"]
    decompression_supported: Float[AnyArray, "level *#lane"]
    compression_supported: Float[AnyArray, "level *#lane"]
    allow_overbooking: Float[AnyArray, "level *#lane"]
    saf_kind: Int[AnyArray, "group *#lane"]
    saf_level: Int[AnyArray, "group *#lane"]
    saf_target: Int[AnyArray, "group option *#lane"]
    saf_leaders: Float[AnyArray, "group option tensor *#lane"]
    compute_gating: Float[AnyArray, " *#lane"]
    compute_skipping: Float[AnyArray, " *#lane"]
    gated_energy: Float[AnyArray, "action level tensor *#lane"]
    skipped_energy: Float[AnyArray, "action level tensor *#lane"]
    metadata_energy: Float[AnyArray, "fate action level tensor *#lane"]
    conversion_energy: Float[AnyArray, "conversion level tensor *#lane"]
    gated_compute_energy: Float[AnyArray, " *#lane"]
    skipped_compute_energy: Float[AnyArray, " *#lane"]
    masks: Masks | None = None


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
    - `sparse`: densities, formats and SAFs; None for a dense design.
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
    sparse: SparseProgram | None = None


def leaf_names(program: Program) -> list[str]:
    """The names of the array leaves of the dense part."""
    return [name for name in program.__dataclass_fields__ if name not in ("structure", "sparse")]


class Mapping(eqx.Module):
    """A mapping as arrays. Orders list rank indices innermost first; a factor 1 leaves its place neutral. Spatial loops
    along X lie inside those along Y; both follow `spatial_order`.

    **Attributes:**

    - `temporal`, `spatial_x`, `spatial_y`: loop bounds; their product over levels must equal the rank's size.
    - `temporal_order`, `spatial_order`: permutations of the ranks.
    - `keep`: 1 where the level stores the tensor.
    - `no_temporal_reuse`, `no_link_transfer`, `no_multicast`: 1 where that kind of reuse is switched off.
    - `stream`: 1 where the tensor passes through a level that does not store it (switch `streams`).
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
    stream: Float[AnyArray, "level tensor *#lane"]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of what the leaves hold, unpadded, for reports: they never enter the kernel."""

    ranks: tuple[str, ...]
    tensors: tuple[str, ...]
    levels: tuple[str, ...]
    compute: str
    networks: tuple[str, ...]
