"""The blocks of the networks in a stats file (spec/dense.md sections 9 and 13.1)."""

from ..result import Context, Evaluation
from .sparse import mapped_instances
from .stats_format import count, fixed, heading, line, optional


def network_order(context: Context) -> list[int]:
    """The levels in the order in which the reference lists the networks below them: by name."""
    return sorted(range(len(context.names.networks)), key=context.names.networks.__getitem__)


def network_block(evaluation: Evaluation, context: Context, index: int, s: int) -> list[str]:
    """The lines about the network below level `s`, which is the `index`-th in the list."""
    tensors = range(len(context.names.tensors))
    return [
        *heading(f"Network {index}"),
        context.names.networks[s],
        "",
        *heading("SPECS", 1),
        *_specs(context, s),
        "",
        *heading("STATS", 1),
        *(text for t in tensors for text in _tensor_lines(evaluation, context, s, t)),
        "",
    ]


def _specs(context: Context, s: int) -> list[str]:
    program, network = context.program, context.design.architecture.levels[s].network
    router, wire = float(program.router_energy[s]), float(program.wire_energy[s])
    rows = [
        ("Type", "Legacy", ""),
        ("Legacy sub-type", "", ""),
        ("ConnectionType", "3", ""),
        ("Word bits", count(program.network_word_bits[s]), ""),
        ("Router energy", optional(fixed(router), network.router_energy is not None or router > 0), "pJ"),
        ("Wire energy", optional(fixed(wire), wire >= 0), "pJ/b/mm"),
    ]
    latencies = (("Fill latency", network.fill_latency), ("Drain latency", network.drain_latency))
    return [
        *(line(*row, width=15, indent=2) for row in rows),
        # One blank more than their neighbors, whatever their length: so prints the reference.
        *(f"        {label}     : {cycles}" for label, cycles in latencies),
    ]


def _tensor_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    used = [r for r in range(evaluation.record_accesses.shape[0]) if evaluation.record_accesses[r, s, t] > 0]
    factors = evaluation.record_multicast[:, s, t]
    records = [
        f"            @multicast {count(factors[r])} @scatter {count(evaluation.record_scatter[r, s, t])}: "
        f"{fixed(evaluation.record_accesses[r, s, t])}"
        for r in used
    ]
    before = [
        ("Fanout", count(evaluation.fanout[s, t])),
        ("Fanout (distributed)", "0"),
        ("Multicast factor", count(max((factors[r] for r in used), default=0))),
        ("Ingresses", fixed(evaluation.ingresses[s, t])),
    ]
    after = [
        ("Link transfers", count(evaluation.link_transfers[s, t])),
        ("Spatial reductions", count(evaluation.spatial_reductions[s, t])),
        ("Average number of hops", fixed(evaluation.hops[s, t])),
    ]
    return [
        f"    {context.names.tensors[t]}:",
        *(line(*row, width=39, indent=2) for row in before),
        *records,
        *(line(*row, width=39, indent=2) for row in after),
        *(line(*row, width=39, indent=2) for row in _energy_rows(evaluation, context, s, t)),
    ]


def _energy_rows(evaluation: Evaluation, context: Context, s: int, t: int) -> list[tuple[str, str, str]]:
    instances = mapped_instances(context)[s]  # networks do not know of zeros
    rows = [("Energy (per-hop)", fixed(1000 * evaluation.hop_energy_pj[s]), "fJ")]
    totals = {
        "Energy": evaluation.network_energy_pj[s, t],
        "Link transfer energy": evaluation.link_energy_pj[s, t],
        # The reference charges a spatial reduction with its adder, whose public energy is 0 (section 9.4).
        "Spatial Reduction Energy": 0.0,
    }
    for label, total in totals.items():
        rows.append((f"{label} (per-instance)", fixed(total / instances), "pJ"))
        rows.append((f"{label} (total)", fixed(total), "pJ"))
    return rows
