"""`Evaluation.to_dict`: plain numbers under the names of the golden schema."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ._reasons import number

if TYPE_CHECKING:
    from .result import Context, Evaluation


ACTIONS = ("reads", "fills", "updates")
FATES = ("actual", "gated", "skipped")


def to_dict(evaluation: "Evaluation", context: "Context") -> dict[str, Any]:
    names = context.names
    computes = number(evaluation.computes)
    levels: list[dict[str, Any]] = [
        {
            "name": names.compute,
            "kind": "compute",
            "energy_pj": float(evaluation.compute_energy_pj),
            "area": float(context.program.compute_area),
            "cycles": number(evaluation.compute_cycles),
            "utilized_instances": number(evaluation.compute_x * evaluation.compute_y),
            "avg_utilized_instances": number(evaluation.compute_instances),
            "algorithmic_computes": computes,
            **{f"{fate}_computes": number(evaluation.computes_by_fate[i]) for i, fate in enumerate(FATES)},
        }
    ]
    levels += [_level_dict(evaluation, context, s) for s in range(len(names.levels))]
    return {
        "valid": bool(evaluation.valid),
        "reasons": evaluation.reasons,
        "cycles": number(evaluation.cycles),
        "energy_pj": float(evaluation.energy_pj),
        "utilization": evaluation.utilization,
        "edp": float(evaluation.edp),
        "area_um2": float(evaluation.area_um2),
        "levels": levels,
        "networks": {name: _network_dict(evaluation, context, s) for s, name in enumerate(names.networks)},
    }


def _level_dict(evaluation: "Evaluation", context: "Context", s: int) -> dict[str, Any]:
    tensors = context.names.tensors

    def per_tensor(values: Any) -> dict[str, int | float]:
        return {t: number(v) for t, v in zip(tensors, values[s], strict=True)}

    def by_name(energies: Any) -> dict[str, float]:
        return {t: float(e) for t, e in zip(tensors, energies, strict=True)}

    counts = {t: _rank_count(context, s, i) for i, t in enumerate(tensors)}

    def by_rank(units: Any, tensor: str) -> list[list[int | float]]:
        """[[metadata, payload], ...], innermost rank first."""
        return [[number(u) for u in rank] for rank in units[tensors.index(tensor), : counts[tensor]]]

    energy, used = evaluation.energy_pj_by_tensor[s], evaluation.instances[s]

    level: dict[str, Any] = {
        "name": context.names.levels[s],
        "kind": "storage",
        "keep": {t: int(k) for t, k in zip(tensors, context.mapping.keep[s], strict=True)},
        "partition_size": per_tensor(evaluation.partition_size),
        "occupancy_words": per_tensor(evaluation.stored_words * context.mapping.keep),
        "utilized_instances": per_tensor(evaluation.instances),
        "utilized_clusters": per_tensor(evaluation.clusters),
    }
    for i, action in enumerate(ACTIONS):
        level[f"algorithmic_{action}"] = per_tensor(getattr(evaluation, action))
        for j, fate in enumerate(FATES):
            level[f"{fate}_{action}"] = per_tensor(evaluation.accesses[j, i])
            units = evaluation.metadata_accesses[j, i, s]
            level[f"{fate}_metadata_{action}"] = {t: by_rank(units, t) for t in tensors}
    return level | {
        "metadata_occupancy_units": {t: by_rank(np.ceil(evaluation.stored_units[s]), t) for t in tensors},
        "metadata_occupancy_bits": per_tensor(evaluation.metadata_bits),
        "expected_occupancy_words": by_name(evaluation.expected_words[s] * context.mapping.keep[s]),
        "expected_density": by_name(evaluation.expected_density[s] * context.mapping.keep[s]),
        "expected_metadata_units": {t: by_rank(evaluation.metadata_units[s], t) for t in tensors},
        "decompressions": per_tensor(evaluation.decompressions),
        "compressions": per_tensor(evaluation.compressions),
        "temporal_reductions": per_tensor(evaluation.temporal_reductions),
        "address_generations": per_tensor(evaluation.address_generations),
        "energy_pj": by_name(np.divide(energy, used, out=np.zeros_like(energy), where=used > 0.0)),
        "energy_pj_total": by_name(energy),
        "address_energy_pj_total": by_name(evaluation.address_energy_pj[s]),
        "temporal_reduction_energy_pj": dict.fromkeys(tensors, 0.0),
        "cycles": number(evaluation.level_cycles[s]),
        "slowdown": float(evaluation.slowdown[s]),
    }


def _rank_count(context: "Context", s: int, tensor: int) -> int:
    """Format ranks of a tensor at a level that keeps it."""
    sparse = context.program.sparse
    if sparse is None or not context.mapping.keep[s, tensor]:
        return 0
    return int((np.asarray(sparse.rank_format)[s, tensor] > 0).sum())


def _network_dict(evaluation: "Evaluation", context: "Context", s: int) -> dict[str, Any]:
    network = {}
    for t, name in enumerate(context.names.tensors):
        used = evaluation.record_accesses[:, s, t] > 0
        factors = evaluation.record_multicast[:, s, t][used]
        network[name] = {
            "Fanout": number(evaluation.fanout[s, t]),
            "Multicast factor": number(factors.max()) if used.any() else 0,
            "Ingresses": float(evaluation.ingresses[s, t]),
            "Link transfers": number(evaluation.link_transfers[s, t]),
            "Spatial reductions": number(evaluation.spatial_reductions[s, t]),
            "Average number of hops": float(evaluation.hops[s, t]),
            "Energy (total)": float(evaluation.network_energy_pj[s, t]),
            "Link transfer energy (total)": float(evaluation.link_energy_pj[s, t]),
        }
    return network
