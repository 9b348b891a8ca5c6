"""An evaluation on the screen: what an architect looks at first, then level by level, then words by tensor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ..result import Context, Evaluation, Violation
from .energy import level_energy_pj, network_energy_pj
from .numbers import area_text, count_text, energy_text, energy_unit, percent

_DIM, _BAD, _GOOD, _SLOW = "dim", "bold red", "bold green", "yellow"
_BANDWIDTH_MARK = "*"
_WIDEST = 10_000
"""Columns of a screen on which everything fits: rich tells no table's width without one."""


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
        _Words(evaluation, context, tuple(range(len(context.names.tensors)))),
        *_notes(evaluation, context),
    )


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


def _heads(columns: Sequence[tuple[str, str]]) -> Table:
    """An empty table with a left-aligned column of names and right-aligned columns of numbers, which never wrap."""
    result = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    for head, unit in columns:
        label = Text.assemble(f"{head}\n", (f"[{unit}]" if unit else "", "not bold dim"))
        result.add_column(label, justify="right", no_wrap=True)
    names = result.columns[0]
    names.justify, names.no_wrap, names.overflow = "left", False, "fold"
    return result


def _levels(evaluation: Evaluation, context: Context) -> RenderableType:
    scale, unit = energy_unit(evaluation.energy_pj)
    total = float(evaluation.energy_pj)
    networks, levels = network_energy_pj(evaluation), level_energy_pj(evaluation)
    result = _heads(
        [
            ("level", ""),
            ("cycles", ""),
            ("speed", "ratio"),
            ("instances", "used/all"),
            ("capacity", "% used"),
            ("energy", unit),
            ("share", "%"),
        ]
    )

    def energy_cells(energy_pj: float) -> tuple[str, str]:
        return f"{energy_pj / scale:,.3f}", percent(energy_pj / total) if total else "-"

    for s in reversed(range(len(context.names.levels))):
        result.add_row(Text(context.names.levels[s]), *_level_cells(evaluation, context, s), *energy_cells(levels[s]))
        if networks.any():
            child = context.names.levels[s - 1] if s else context.names.compute
            result.add_row(Text(f"  to {child}"), "", "", "", "", *energy_cells(networks[s]), style=_DIM)
    result.add_row(
        Text(context.names.compute),
        count_text(evaluation.compute_cycles),
        "",
        _instances(evaluation, context, -1),
        "",
        *energy_cells(float(evaluation.compute_energy_pj)),
    )
    result.add_section()
    result.add_row("total", count_text(evaluation.cycles), "", "", "", *energy_cells(total), style="bold")
    return Group(Text(), result)


def _level_cells(evaluation: Evaluation, context: Context, s: int) -> tuple[RenderableType, ...]:
    speed = float(evaluation.slowdown[s])
    mark, style = (_BANDWIDTH_MARK, _SLOW) if speed < 1 else (" ", "")
    capacity = float(evaluation.capacity_words[s])
    over = Violation(int(evaluation.violation[s + 1])) in (Violation.CAPACITY, Violation.UTILIZATION)
    used = percent(evaluation.tile_words[s].sum() / capacity) if 0 < capacity < np.inf else "-"
    return (
        Text(count_text(evaluation.level_cycles[s]), style=style),
        Text(f"{speed:.2f}{mark}", style=style),
        _instances(evaluation, context, s),
        Text(used, style=_BAD if over else ""),
    )


def _instances(evaluation: Evaluation, context: Context, s: int) -> Text:
    """Used and existing instances of level `s` (-1: of the compute units)."""
    program = context.program
    if s < 0:
        used, exist = evaluation.compute_instances, program.compute_mesh_x * program.compute_mesh_y
    else:
        used, exist = evaluation.instances[s].max(), program.mesh_x[s] * program.mesh_y[s]
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
        wanted = Measurement.get(console, options.update(max_width=_WIDEST), whole).maximum
        if len(self.tensors) == 1 or wanted <= options.max_width:
            yield Text()
            yield whole
        else:
            half = len(self.tensors) // 2
            yield _Words(self.evaluation, self.context, self.tensors[:half])
            yield _Words(self.evaluation, self.context, self.tensors[half:])

    def _table(self) -> Table:
        names = self.context.names
        result = _heads([("words", "per instance"), ("", ""), *((names.tensors[t], "") for t in self.tensors)])
        result.columns[1].justify = "left"
        result.show_lines = True
        for s in reversed(range(len(names.levels))):
            cells = [self._cell(s, t) for t in self.tensors]
            counts = "tile\nreads\nfills\nupdates" if self.context.mapping.keep[s].any() else "bypassed"
            result.add_row(Text(names.levels[s]), Text(counts, style=_DIM), *cells)
        return result

    def _cell(self, s: int, t: int) -> Text:
        if not self.context.mapping.keep[s, t]:
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
    notes.append(Text("Energy is dynamic only: no leakage, no clock tree.", style=_DIM))
    return [Text(), *notes]


def _bandwidth_limits(evaluation: Evaluation, context: Context) -> list[str]:
    """For each level that bandwidth slows down: what it needs at full speed and what it has (spec/dense.md 7.4)."""
    program = context.program
    reads = evaluation.reads.sum(1) / evaluation.compute_cycles
    writes = (evaluation.fills + evaluation.updates).sum(1) / evaluation.compute_cycles
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
