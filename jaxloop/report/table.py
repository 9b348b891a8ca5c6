"""An evaluation on the screen: what an architect looks at first, then level by level, then words by tensor."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from ..program import Fate
from ..result import Context, Evaluation, Violation
from . import table_sparse
from .columns import fits, heads
from .energy import level_energy_pj, network_energy_pj
from .numbers import area_text, count_text, energy_text, energy_unit, percent
from .sparse import READS, WRITES, timed_words, used_instances

_DIM, _BAD, _GOOD, _SLOW = "dim", "bold red", "bold green", "yellow"
_BANDWIDTH_MARK = "*"


def table(evaluation: Evaluation) -> RenderableType:
    """What `jaxloop evaluate` shows of one mapping, as something that a rich `Console` prints.

    Levels run from the outermost down to the compute units. Every unit stands in the head of its column.

    **Raises:** `ValueError` for a batch.
    """
    context = evaluation.context
    if context is None:
        raise ValueError("a table shows one evaluation: evaluate the one mapping of interest")
    return Group(
        _title(evaluation, context),
        Text(),
        _summary(evaluation, context),
        _levels(evaluation, context),
        *_details(evaluation, context),
        *_notes(evaluation, context),
    )


def _details(evaluation: Evaluation, context: Context) -> list[RenderableType]:
    if context.program.sparse is None:
        return [_Words(evaluation, context, tuple(range(len(context.names.tensors))))]
    parts = (table_sparse.operations, table_sparse.tiles, table_sparse.accesses)
    return [part(evaluation, context) for part in parts]


def print_table(evaluation: Evaluation, console: Console | None = None) -> None:
    """Prints `table(evaluation)`, by default to the standard output."""
    (console or Console()).print(table(evaluation))


def _title(evaluation: Evaluation, context: Context) -> RenderableType:
    name = Text(f"{context.design.name or context.design.einsum.name or 'design'}: ", style="bold")
    if evaluation.valid:
        return name.append("valid mapping", style=_GOOD)
    name.append("INVALID mapping", style=_BAD).append(", the numbers below are what it would take", style=_DIM)
    return Group(name, *(Text(f"  {reason}", style="red") for reason in evaluation.reasons))


def _summary(evaluation: Evaluation, context: Context) -> Table:
    per_compute = float(evaluation.energy_pj) / float(evaluation.computes)
    facts = [
        ("cycles", count_text(evaluation.cycles)),
        ("energy", energy_text(evaluation.energy_pj)),
        ("computes", count_text(evaluation.computes)),
        ("utilization", f"{percent(evaluation.utilization)} %"),
        ("EDP", f"{float(evaluation.edp):.3e} J*cycle"),
        ("per compute", energy_text(per_compute)),
        ("limited by", _bottleneck(evaluation, context)),
        ("area", area_text(evaluation.area_um2)),
    ]
    if context.program.sparse is not None:
        facts.append(("actual computes", count_text(evaluation.computes_by_fate[Fate.ACTUAL])))
    grid = Table.grid(padding=(0, 2, 0, 0))
    for first in range(0, len(facts), 3):
        cells = [(Text(name, style=_DIM), Text(value, style="bold")) for name, value in facts[first : first + 3]]
        grid.add_row(*(text for pair in cells for text in pair))
    return grid


def _bottleneck(evaluation: Evaluation, context: Context) -> str:
    slowest = int(np.argmax(evaluation.level_cycles))
    if evaluation.level_cycles[slowest] > evaluation.compute_cycles:
        return f"bandwidth of {context.names.levels[slowest]}"
    return "compute"


def _levels(evaluation: Evaluation, context: Context) -> RenderableType:
    scale, unit = energy_unit(evaluation.energy_pj)
    total = float(evaluation.energy_pj)
    networks, levels = network_energy_pj(evaluation), level_energy_pj(evaluation)
    with_metadata = bool(evaluation.metadata_bits.any())
    blanks = ("",) * with_metadata
    result = heads(
        [
            ("level", ""),
            ("cycles", ""),
            ("speed", "ratio"),
            ("instances", "used/all"),
            ("capacity", "% used"),
            *([("metadata", "% used")] if with_metadata else []),
            ("energy", unit),
            ("share", "%"),
        ]
    )

    def energy_cells(energy_pj: float) -> tuple[str, str]:
        return f"{energy_pj / scale:,.3f}", percent(energy_pj / total) if total else "-"

    for s in reversed(range(len(context.names.levels))):
        metadata = (_metadata_used(evaluation, s),) * with_metadata
        cells = (*_level_cells(evaluation, context, s), *metadata, *energy_cells(levels[s]))
        result.add_row(Text(context.names.levels[s]), *cells)
        if networks.any():
            child = context.names.levels[s - 1] if s else context.names.compute
            result.add_row(Text(f"  to {child}"), "", "", "", "", *blanks, *energy_cells(networks[s]), style=_DIM)
    result.add_row(
        Text(context.names.compute),
        count_text(evaluation.compute_cycles),
        "",
        _instances(evaluation, context, -1),
        "",
        *blanks,
        *energy_cells(float(evaluation.compute_energy_pj)),
    )
    result.add_section()
    result.add_row("total", count_text(evaluation.cycles), "", "", "", *blanks, *energy_cells(total), style="bold")
    return Group(Text(), result)


def _level_cells(evaluation: Evaluation, context: Context, s: int) -> tuple[RenderableType, ...]:
    speed = float(evaluation.slowdown[s])
    mark, style = (_BANDWIDTH_MARK, _SLOW) if speed < 1 else (" ", "")
    capacity = float(evaluation.capacity_words[s])
    over = Violation(int(evaluation.violation[s + 1])) in (Violation.CAPACITY, Violation.UTILIZATION)
    used = percent(_stored(evaluation, context, s) / capacity) if 0 < capacity < np.inf else "-"
    return (
        Text(count_text(evaluation.level_cycles[s]), style=style),
        Text(f"{speed:.2f}{mark}", style=style),
        _instances(evaluation, context, s),
        Text(used, style=_BAD if over else ""),
    )


def _metadata_used(evaluation: Evaluation, s: int) -> Text:
    capacity, bits = float(evaluation.capacity_bits[s]), float(evaluation.metadata_bits[s].sum())
    over = Violation(int(evaluation.violation[s + 1])) == Violation.METADATA_CAPACITY
    used = percent(bits / capacity) if 0 < capacity < np.inf else "-"
    return Text(used, style=_BAD if over else "")


def _stored(evaluation: Evaluation, context: Context, s: int) -> float:
    """Words that the fullest tiles of level `s` take."""
    return float((evaluation.stored_words[s] * context.mapping.keep[s]).sum())


def _instances(evaluation: Evaluation, context: Context, s: int) -> Text:
    """Used and existing instances of level `s` (-1: of the compute units)."""
    program = context.program
    if s < 0:
        used, exist = evaluation.compute_instances, program.compute_mesh_x * program.compute_mesh_y
    else:
        used = evaluation.instances[s].max() if program.sparse is None else used_instances(evaluation, context)[s].max()
        exist = program.mesh_x[s] * program.mesh_y[s]
    code = Violation(int(evaluation.violation[s + 1]))
    over = code in (Violation.INSTANCES, Violation.MESH_X, Violation.MESH_Y)
    return Text(f"{count_text(used)}/{count_text(exist)}", style=_BAD if over else "")


@dataclass(frozen=True)
class _Words:
    """Tile, reads, fills and updates, tensors across. Where the screen is too narrow for all tensors it becomes several
    tables one below the other, for a shortened number would be a wrong one."""

    evaluation: Evaluation
    context: Context
    tensors: tuple[int, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = self._table()
        if len(self.tensors) == 1 or fits(console, options, whole):
            yield Text()
            yield whole
        else:
            half = len(self.tensors) // 2
            yield _Words(self.evaluation, self.context, self.tensors[:half])
            yield _Words(self.evaluation, self.context, self.tensors[half:])

    def _table(self) -> Table:
        names = self.context.names
        result = heads([("words", "per instance"), ("", ""), *((names.tensors[t], "") for t in self.tensors)])
        result.columns[1].justify = "left"
        result.show_lines = True
        for s in reversed(range(len(names.levels))):
            cells = [self._cell(s, t) for t in self.tensors]
            counts = "tile\nreads\nfills\nupdates" if self.context.tensors_at(s) else "bypassed"
            result.add_row(Text(names.levels[s]), Text(counts, style=_DIM), *cells)
        return result

    def _cell(self, s: int, t: int) -> Text:
        if t not in self.context.tensors_at(s):
            return Text("-", style=_DIM)
        values: tuple[Any, ...] = (
            self.evaluation.tile_words[s, t],
            self.evaluation.reads[s, t],
            self.evaluation.fills[s, t],
            self.evaluation.updates[s, t],
        )
        return Text("\n".join(count_text(value) for value in values))


def _notes(evaluation: Evaluation, context: Context) -> list[Text]:
    notes = [Text(f"{_BANDWIDTH_MARK} {reason}", style=_SLOW) for reason in _bandwidth_limits(evaluation, context)]
    if not network_energy_pj(evaluation).any():
        notes.append(Text(f"Networks take no energy: {_why_networks_are_free(context)}.", style=_DIM))
    if context.program.sparse is not None:
        notes += [Text(note, style=_DIM) for note in table_sparse.notes(context)]
    notes.append(Text("Energy is dynamic only: no leakage, no clock tree.", style=_DIM))
    return [Text(), *notes]


def _bandwidth_limits(evaluation: Evaluation, context: Context) -> list[str]:
    """For each level that bandwidth slows down: what it needs at full speed and what it has (spec/dense.md 7.4)."""
    program = context.program
    reads, writes = (
        timed_words(evaluation, context, actions).evened.sum(1) / evaluation.compute_cycles
        for actions in (READS, WRITES)
    )
    kinds = (
        ("reads", reads, program.read_bandwidth),
        ("writes", writes, program.write_bandwidth),
        ("reads and writes", reads + writes, program.shared_bandwidth),
    )
    return [
        f"{context.names.levels[s]} {kind} {needed[s]:.4g} words/cycle per instance at full speed, "
        f"its bandwidth is {limit[s]:.4g}"
        for s in reversed(range(len(context.names.levels)))
        if evaluation.slowdown[s] < 1
        for kind, needed, limit in kinds
        if needed[s] > limit[s]
    ]


def _why_networks_are_free(context: Context) -> str:
    program = context.program
    if (program.wire_energy > 0).any() and not (program.energy_per_hop > 0).any():
        return "wire energy is given, but hops have no length (neither areas nor tile-width)"
    return "no wire, router or hop energy is given"
