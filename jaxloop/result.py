"""The contract between `kernel` and `report`: what one evaluation gives."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ._errors import Diagnostic
from ._reasons import reasons
from ._schema import to_dict
from .program import Fate, Mapping, Names, Program
from .spec.design import Design
from .status import FormatViolation as FormatViolation, Status as Status, Violation as Violation


@dataclass(frozen=True, eq=False)
class Context:
    """What an evaluation was made from, so that it can explain itself: the design, its names, and the program and
    mapping (numpy leaves without lanes, unpadded) that were evaluated. `provenance` tells where each energy came from:
    `{(level, action): "ERT entry read" | ...}`."""

    design: Design
    names: Names
    program: Program
    mapping: Mapping
    provenance: dict[tuple[str, str], str]

    def tensors_at(self, s: int) -> list[int]:
        """Those that level `s` stores or, where the conventions count that, lets through."""
        streams = self.program.structure.conventions.streams
        here = self.mapping.keep[s] + streams * self.mapping.stream[s] > 0.0
        return [t for t in range(len(self.names.tensors)) if here[t]]


class Evaluation(eqx.Module):
    """Counts, cycles and energy of one mapping (or, with leading batch axes, of many).

    Levels are storage levels, innermost first. Counts are words per instance over the whole execution unless said
    otherwise. A mapping that is not valid holds finite numbers and a nonzero `status`; nothing here is ever NaN.

    **Attributes:**

    - `status`: `Status` bits. `violation`: `Violation` of the compute units (entry 0) and of each level (entry s + 1).
    - `needs_enumeration`: link transfers might change this result, but were not enumerated (`Structure.elements`).
    - `cycles`: total cycles; `energy_pj`: total energy; `area_um2`: area of the whole design.
    - `computes`: operations of all units; `compute_cycles`; `compute_instances`: units in use, in total and as
      `compute_x`, `compute_y`; `compute_energy_pj`.
    - `level_cycles`, `slowdown` (share of full speed in (0, 1]).
    - `tile_words`: words that a level holds; `partition_size`: words that it is responsible for.
    - `reads`, `fills`, `updates`, `temporal_reductions`, `address_generations` (per cluster).
    - `instances`, `clusters`: in use, instances on average; `instances_x`, `instances_y` per level.
    - `energy_pj_by_tensor`: data accesses, all instances; `address_energy_pj`: address generation, all clusters;
      `energy_pj_by_activity`: of all tensors, split by `Activity`, which with `compute_energy_pj` sums to `energy_pj`.
    - `network_energy_pj`, `link_transfers`, `link_energy_pj`, `spatial_reductions`, `fanout`, `ingresses` (words
      entering), `hops` (average per word): the network below each level; energies of all instances, counts per
      instance.
    - `record_multicast`, `record_scatter`, `record_accesses`: the multicast histogram of each network, one record per
      distinct pair of multicast factor and number of groups, in ascending order; empty places have 0 accesses.
    - `accesses`: words read, filled and updated, by what becomes of them (`Fate`); `reads`, `fills`, `updates` are what
      they would be without sparsity. What gating or skipping further out keeps from arriving is in none of them.
    - `metadata_accesses`: units of metadata and payload (last axis) per format rank, innermost first.
    - `decompressions`, `compressions`: words whose representation a level changes.
    - `computes_by_fate`: operations of all units.
    - `expected_words`, `expected_density`, `metadata_units`: what a tile holds on average, given that it is there;
      `tile_empty`: chance that it is empty and not there. `stored_words`, `stored_units`, `metadata_bits`: what the
      fullest tile takes.
    - `fiber_length`: elements per fiber of each format rank.
    - `saf_kind` (0 none, 1 gating, 2 skipping), `saf_chance`: of all accesses; `saf_local_chance`: of those that SAFs
      further out have left. `leader_words`, `leader_empty` [level, target, condition]: leader tiles and their chances
      to be empty.
    - `format_violation`: `FormatViolation` of each representation.
    - `hop_energy_pj`: pJ per word and hop of the network below each level. `capacity_words`, `capacity_bits`: effective
      sizes per level for data and metadata (inf: unlimited).
    - `context`: what was evaluated; None inside the kernel and for batches.
    """

    status: Int[Array, "*#lane"]
    violation: Int[Array, "level1 *#lane"]
    needs_enumeration: Bool[Array, "*#lane"]
    cycles: Float[Array, "*#lane"]
    energy_pj: Float[Array, "*#lane"]
    area_um2: Float[Array, "*#lane"]
    computes: Float[Array, "*#lane"]
    compute_cycles: Float[Array, "*#lane"]
    compute_instances: Float[Array, "*#lane"]
    compute_x: Float[Array, "*#lane"]
    compute_y: Float[Array, "*#lane"]
    compute_energy_pj: Float[Array, "*#lane"]
    level_cycles: Float[Array, "level *#lane"]
    slowdown: Float[Array, "level *#lane"]
    instances_x: Float[Array, "level *#lane"]
    instances_y: Float[Array, "level *#lane"]
    tile_words: Float[Array, "level tensor *#lane"]
    partition_size: Float[Array, "level tensor *#lane"]
    reads: Float[Array, "level tensor *#lane"]
    fills: Float[Array, "level tensor *#lane"]
    updates: Float[Array, "level tensor *#lane"]
    temporal_reductions: Float[Array, "level tensor *#lane"]
    address_generations: Float[Array, "level tensor *#lane"]
    instances: Float[Array, "level tensor *#lane"]
    clusters: Float[Array, "level tensor *#lane"]
    energy_pj_by_tensor: Float[Array, "level tensor *#lane"]
    address_energy_pj: Float[Array, "level tensor *#lane"]
    energy_pj_by_activity: Float[Array, "level activity *#lane"]
    network_energy_pj: Float[Array, "level tensor *#lane"]
    link_transfers: Float[Array, "level tensor *#lane"]
    link_energy_pj: Float[Array, "level tensor *#lane"]
    spatial_reductions: Float[Array, "level tensor *#lane"]
    fanout: Float[Array, "level tensor *#lane"]
    ingresses: Float[Array, "level tensor *#lane"]
    hops: Float[Array, "level tensor *#lane"]
    record_multicast: Float[Array, "record level tensor *#lane"]
    record_scatter: Float[Array, "record level tensor *#lane"]
    record_accesses: Float[Array, "record level tensor *#lane"]
    hop_energy_pj: Float[Array, "level *#lane"]
    capacity_words: Float[Array, "level *#lane"]
    capacity_bits: Float[Array, "level *#lane"]
    accesses: Float[Array, "fate action level tensor *#lane"]
    metadata_accesses: Float[Array, "fate action level tensor format_rank 2 *#lane"]
    decompressions: Float[Array, "level tensor *#lane"]
    compressions: Float[Array, "level tensor *#lane"]
    computes_by_fate: Float[Array, "fate *#lane"]
    expected_words: Float[Array, "level tensor *#lane"]
    expected_density: Float[Array, "level tensor *#lane"]
    tile_empty: Float[Array, "level tensor *#lane"]
    metadata_units: Float[Array, "level tensor format_rank 2 *#lane"]
    stored_words: Float[Array, "level tensor *#lane"]
    stored_units: Float[Array, "level tensor format_rank 2 *#lane"]
    metadata_bits: Float[Array, "level tensor *#lane"]
    fiber_length: Float[Array, "level tensor format_rank *#lane"]
    saf_kind: Int[Array, "level tensor *#lane"]
    saf_chance: Float[Array, "level tensor *#lane"]
    saf_local_chance: Float[Array, "level tensor *#lane"]
    leader_words: Float[Array, "level tensor tensor *#lane"]
    leader_empty: Float[Array, "level tensor tensor *#lane"]
    format_violation: Int[Array, "level tensor *#lane"]
    context: Context | None = eqx.field(static=True, default=None)

    @property
    def valid(self) -> Any:
        """True where the mapping can run on the hardware; shape of `status`."""
        return self.status == 0

    @property
    def edp(self) -> Any:
        """Energy-delay product in J * cycles (float32 as in the reference's report)."""
        return np.float32(self.cycles) * self.energy_pj / 1e12

    @property
    def utilization(self) -> float:
        """Share of the compute units' cycles that do work, gated operations included. One evaluation with its
        `context` only."""
        units = float(self._context.program.compute_mesh_x * self._context.program.compute_mesh_y)
        busy = float(self.computes_by_fate[Fate.ACTUAL] + self.computes_by_fate[Fate.GATED])
        return busy / units / max(float(self.cycles), 1.0)

    @property
    def reasons(self) -> list[str]:
        """Why the mapping is not valid, the reference's own reason first. One evaluation with its `context` only."""
        return reasons(self, self._context)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What reading and lowering the design had to say. One evaluation with its `context` only."""
        return self._context.design.warnings

    @property
    def _context(self) -> Context:
        if self.context is None:
            raise ValueError("a batch of evaluations has no single context: evaluate the one mapping of interest")
        return self.context

    def to_dict(self) -> dict[str, Any]:
        """Plain Python numbers under the names of the golden schema (JSON-ready); one evaluation only.

        Of a storage level, `energy_pj` is that of one instance in use (as the reference reports it) and
        `energy_pj_total` that of all; the totals of the whole design count all instances."""
        return to_dict(self, self._context)


def own_axes(field: str) -> tuple[str, ...]:
    """The axes of a field of `Evaluation` in one evaluation, such as `("level", "tensor")`."""
    return tuple(Evaluation.__dataclass_fields__[field].type.dim_str.split()[:-1])  # without the lanes
