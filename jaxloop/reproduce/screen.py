"""The results on the screen."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..report.columns import heads
from .page import differences, summary
from .results import Outcome, Sheet


def print_outcomes(outcomes: Sequence[Outcome], console: Console) -> None:
    """Prints per result the claim, the tables, the findings and what differs, and in the end all results in a table."""
    for outcome in outcomes:
        console.print(Text(f"\n{outcome.title}", style="bold"))
        for label, text in (("shows", outcome.claim), ("artifact", outcome.artifact)):
            console.print(Text.assemble((f"{label}: ", "dim"), text))
        for sheet in (*outcome.sheets, *([differences(outcome)] if outcome.differences else [])):
            if not sheet.long:
                _print_sheet(sheet, console)
        console.print()
        for finding in outcome.findings:
            console.print(Text.assemble(("ours: ", "bold green"), finding))
        for deviation in outcome.deviations:
            console.print(Text(f"note: {deviation}", style="dim"))
    _print_sheet(summary(outcomes), console)


def _print_sheet(sheet: Sheet, console: Console) -> None:
    table = heads([(head, "") for head in sheet.heads], sheet.names)
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    above: tuple[str, ...] = ("",) * sheet.names
    for row in sheet.rows:
        names = row[: sheet.names]
        if sheet.names > 1 and above[0] and names[0] != above[0]:
            table.add_section()
        table.add_row(*map(Text, row))
        above = names
    console.print()
    if sheet.title:
        console.print(Text(sheet.title, style="bold"))
    if sheet.note:
        console.print(Text(sheet.note, style="dim"))
    console.print(table)
