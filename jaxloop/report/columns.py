"""Tables whose numbers are never cut: what does not fit side by side goes below each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

WIDEST = 10_000
"""Columns of a screen on which everything fits: rich tells no table's width without one."""

Head = tuple[str, str]
"""The name of a column and its unit."""


def heads(columns: Sequence[Head], names: int = 1) -> Table:
    """An empty table: the first `names` columns are left-aligned and may fold, those of numbers do neither."""
    result = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    below = "\n" if any(unit for _, unit in columns) else ""
    for head, unit in columns:
        label = Text.assemble(head + below, (f"[{unit}]" if unit else "", "not bold dim"))
        result.add_column(label, justify="right", no_wrap=True)
    for column in result.columns[:names]:
        column.justify, column.no_wrap, column.overflow = "left", False, "fold"
    return result


def fits(console: Console, options: ConsoleOptions, table: Table) -> bool:
    """Whether the screen is wide enough for a table."""
    return Measurement.get(console, options.update(max_width=WIDEST), table).maximum <= options.max_width


@dataclass(frozen=True)
class Group:
    """Columns of numbers that belong together. `cells`: one tuple per row, None where there is nothing to say."""

    heads: tuple[Head, ...]
    cells: tuple[tuple[RenderableType, ...] | None, ...]


@dataclass(frozen=True)
class Columns:
    """Rows with names, and groups of columns. Where the screen is too narrow for all groups they become several tables,
    each with the names and without the rows in which it has nothing to say.

    **Attributes:** `title`, `hint`: a line above; `names`: heads of the columns of names; `rows`: names of each row. A
    name that is that of the row above is not repeated, and rows with another first name stand apart.
    """

    title: str
    hint: str
    names: tuple[Head, ...]
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[Group, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text()
        yield Text.assemble((self.title, "bold"), (f"  {self.hint}", "dim"))
        waiting = [group for group in self.groups if any(group.cells)]
        while waiting:
            number = len(waiting)
            while number > 1 and not fits(console, options, self._table(waiting[:number])):
                number -= 1
            yield Text()
            yield self._table(waiting[:number])
            waiting = waiting[number:]

    def _table(self, groups: Sequence[Group]) -> Table:
        result = heads([*self.names, *(head for group in groups for head in group.heads)], len(self.names))
        above: tuple[str, ...] = ("",) * len(self.names)
        for row, names in enumerate(self.rows):
            cells = [group.cells[row] for group in groups]
            if not any(cells):
                continue
            if any(above) and names[0] != above[0]:
                result.add_section()
            shown = ["" if names[: place + 1] == above[: place + 1] else name for place, name in enumerate(names)]
            numbers = [
                cell for group, given in zip(groups, cells, strict=True) for cell in (given or ("",) * len(group.heads))
            ]
            result.add_row(*map(Text, shown), *numbers)
            above = names
        return result
