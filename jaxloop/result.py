"""The contract between `kernel` and `report`: what one evaluation gives."""

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ._errors import Diagnostic
from .program import Mapping, Names, Program
from .spec.design import Design


class Status(IntFlag):
    """Why a mapping is not valid; 0 when it is. Several bits may be set."""

    OK = 0
    OVER_CAPACITY = 1
    """A level's tiles exceed its effective size."""
    UNDER_UTILIZED = 2
    """A level's tiles are less than its minimum utilization."""
    OVER_INSTANCES = 4
    """More instances of a level (or of the compute units) are used than exist."""
    OVER_MESH_X = 8
    OVER_MESH_Y = 16
    NOT_STORED = 32
    """A tensor is bypassed at every level."""
    NOT_COVERING = 64
    """The product of a rank's factors differs from its size."""
    NEGATIVE_READS = 128
    """An output is read less often than its partition is first touched: the reference aborts here; reads are 0."""
    UNCOUNTED_LINKS = 256
    """The enumeration of a fan-out's children could not hold them, or the kinds of groups that they form, where links
    or irregular tensors need it: counts are those of the closed form, or lack some links."""


class Violation(IntEnum):
    """What is wrong with one level, at most one per level, in the order in which the reference tests."""

    NONE = 0
    CAPACITY = 1
    UTILIZATION = 2
    INSTANCES = 3
    MESH_X = 4
    MESH_Y = 5


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
    - `instances`, `clusters`: in use; `instances_x`, `instances_y` per level.
    - `energy_pj_by_tensor`: data accesses, all instances; `address_energy_pj`: address generation, all clusters.
    - `network_energy_pj`, `link_transfers`, `link_energy_pj`, `spatial_reductions`, `fanout`, `ingresses` (words
      entering), `hops` (average per word): the network below each level; energies of all instances, counts per
      instance.
    - `record_multicast`, `record_scatter`, `record_accesses`: the multicast histogram of each network, one record per
      distinct pair of multicast factor and number of groups, in ascending order; empty places have 0 accesses.
    - `hop_energy_pj`: pJ per word and hop of the network below each level. `capacity_words`: effective size per level
      (inf: unlimited).
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
        """Share of the compute units' cycles that do work. One evaluation with its `context` only."""
        units = float(self._context.program.compute_mesh_x * self._context.program.compute_mesh_y)
        return float(self.computes) / units / float(self.cycles)

    @property
    def reasons(self) -> list[str]:
        """Why the mapping is not valid, the reference's own reason first. One evaluation with its `context` only."""
        return _reasons(self, self._context)

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
        return _to_dict(self, self._context)


def _number(value: Any) -> int | float:
    """A count as an int where it is one, so that JSON shows `12`, not `12.0`."""
    number = float(value)
    return int(number) if number.is_integer() else number


def _violation_text(evaluation: Evaluation, context: Context, row: int) -> str:
    """The reference's words for what is wrong with level `row - 1` (0: the compute units)."""
    code, s = Violation(int(evaluation.violation[row])), row - 1
    program, storage = context.program, row > 0
    name = context.names.levels[s] if storage else context.names.compute
    mesh_x = float(program.mesh_x[s] if storage else program.compute_mesh_x)
    mesh_y = float(program.mesh_y[s] if storage else program.compute_mesh_y)
    used_x = float(evaluation.instances_x[s] if storage else evaluation.compute_x)
    used_y = float(evaluation.instances_y[s] if storage else evaluation.compute_y)
    what = "mapped" if storage else "mapped max Arithmetic"
    if code == Violation.CAPACITY:
        tiles = ", ".join(
            f"{t} {_number(w)}" for t, w in zip(context.names.tensors, evaluation.tile_words[s], strict=True) if w > 0
        )
        used, capacity = evaluation.tile_words[s].sum(), evaluation.capacity_words[s]
        text = f"mapped tile size {_number(used)} exceeds buffer capacity {_number(capacity)} (words: {tiles})"
    elif code == Violation.UTILIZATION:
        least = float(evaluation.capacity_words[s] * program.min_utilization[s])
        used = evaluation.tile_words[s].sum()
        text = f"mapped tile size {_number(used)} is less than constrained minimum utilization {_number(least)}"
    elif code == Violation.INSTANCES:
        used = evaluation.instances[s].max() if storage else evaluation.compute_instances
        text = f"{what} instances {_number(used)} exceeds hardware instances {_number(mesh_x * mesh_y)}"
    elif code == Violation.MESH_X:
        text = f"{what} X expansion {_number(used_x)} exceeds hardware instances {_number(mesh_x)}"
    else:
        text = f"{what} Y expansion {_number(used_y)} exceeds hardware instances {_number(mesh_y)}"
    if code in (Violation.INSTANCES, Violation.MESH_X, Violation.MESH_Y):
        text += f" (X {_number(used_x)} of {_number(mesh_x)}, Y {_number(used_y)} of {_number(mesh_y)}; "
        text += "the first `split` loops of a spatial directive go to X)"
    return f"couldn't map level {name}: {text}"


def _reasons(evaluation: Evaluation, context: Context) -> list[str]:
    status, names = Status(int(evaluation.status)), context.names
    reasons = []
    if Status.NOT_COVERING in status:
        factors = context.mapping.temporal * context.mapping.spatial_x * context.mapping.spatial_y
        reasons += [
            f"product of all factors of rank {r} is {_number(p)}, its size is {_number(size)}"
            for r, p, size in zip(names.ranks, factors.prod(0), context.program.rank_sizes, strict=True)
            if p != size
        ]
    if Status.NOT_STORED in status:
        stored = context.mapping.keep.max(0)
        lost = [t for t, kept in zip(names.tensors, stored, strict=True) if not kept]
        reasons.append(f"tensor {', '.join(lost)} is bypassed at every storage level")
    rows = range(len(names.levels) + 1)
    reasons += [_violation_text(evaluation, context, r) for r in rows if evaluation.violation[r] != Violation.NONE]
    if Status.NEGATIVE_READS in status:
        reasons.append("an output's partition exceeds its accesses: no count of reads exists")
    if Status.UNCOUNTED_LINKS in status:
        reasons.append(
            "which children share or hand over words could not be enumerated (a fan-out wider than 4096 children, or "
            "too many kinds of groups): switch links off with no_link_transfer or conventions with link_transfers=False"
        )
    return reasons


def _to_dict(evaluation: Evaluation, context: Context) -> dict[str, Any]:
    names = context.names
    computes = _number(evaluation.computes)
    levels: list[dict[str, Any]] = [
        {
            "name": names.compute,
            "kind": "compute",
            "energy_pj": float(evaluation.compute_energy_pj),
            "area": float(context.program.compute_area),
            "cycles": _number(evaluation.compute_cycles),
            "utilized_instances": _number(evaluation.compute_instances),
            "avg_utilized_instances": _number(evaluation.compute_instances),
            "algorithmic_computes": computes,
            "actual_computes": computes,
            "gated_computes": 0,
            "skipped_computes": 0,
        }
    ]
    levels += [_level_dict(evaluation, context, s) for s in range(len(names.levels))]
    return {
        "valid": bool(evaluation.valid),
        "reasons": evaluation.reasons,
        "cycles": _number(evaluation.cycles),
        "energy_pj": float(evaluation.energy_pj),
        "utilization": evaluation.utilization,
        "edp": float(evaluation.edp),
        "area_um2": float(evaluation.area_um2),
        "levels": levels,
        "networks": {name: _network_dict(evaluation, context, s) for s, name in enumerate(names.networks)},
    }


def _level_dict(evaluation: Evaluation, context: Context, s: int) -> dict[str, Any]:
    tensors = context.names.tensors

    def per_tensor(values: Any) -> dict[str, int | float]:
        return {t: _number(v) for t, v in zip(tensors, values[s], strict=True)}

    def by_name(energies: Any) -> dict[str, float]:
        return {t: float(e) for t, e in zip(tensors, energies, strict=True)}

    energy = evaluation.energy_pj_by_tensor[s]

    level: dict[str, Any] = {
        "name": context.names.levels[s],
        "kind": "storage",
        "keep": {t: int(k) for t, k in zip(tensors, context.mapping.keep[s], strict=True)},
        "partition_size": per_tensor(evaluation.partition_size),
        "occupancy_words": per_tensor(evaluation.tile_words),
        "utilized_instances": per_tensor(evaluation.instances),
        "utilized_clusters": per_tensor(evaluation.clusters),
    }
    for action in ("reads", "fills", "updates"):
        counts = per_tensor(getattr(evaluation, action))
        none = dict.fromkeys(tensors, 0)
        level |= {f"algorithmic_{action}": counts, f"actual_{action}": counts}
        level |= {f"gated_{action}": none, f"skipped_{action}": none}
        level |= {f"{kind}_metadata_{action}": {t: [] for t in tensors} for kind in ("actual", "gated", "skipped")}
    return level | {
        "temporal_reductions": per_tensor(evaluation.temporal_reductions),
        "address_generations": per_tensor(evaluation.address_generations),
        "energy_pj": by_name(energy / np.maximum(evaluation.instances[s], 1.0)),
        "energy_pj_total": by_name(energy),
        "address_energy_pj_total": by_name(evaluation.address_energy_pj[s]),
        "temporal_reduction_energy_pj": dict.fromkeys(tensors, 0.0),
        "cycles": _number(evaluation.level_cycles[s]),
        "slowdown": float(evaluation.slowdown[s]),
    }


def _network_dict(evaluation: Evaluation, context: Context, s: int) -> dict[str, Any]:
    network = {}
    for t, name in enumerate(context.names.tensors):
        used = evaluation.record_accesses[:, s, t] > 0
        factors = evaluation.record_multicast[:, s, t][used]
        network[name] = {
            "Fanout": _number(evaluation.fanout[s, t]),
            "Multicast factor": _number(factors.max()) if used.any() else 0,
            "Ingresses": float(evaluation.ingresses[s, t]),
            "Link transfers": _number(evaluation.link_transfers[s, t]),
            "Spatial reductions": _number(evaluation.spatial_reductions[s, t]),
            "Average number of hops": float(evaluation.hops[s, t]),
            "Energy (total)": float(evaluation.network_energy_pj[s, t]),
            "Link transfer energy (total)": float(evaluation.link_energy_pj[s, t]),
        }
    return network
