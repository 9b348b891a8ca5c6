"""The results as one Markdown page, and as a folder with the page and its figures.

`python -m jaxloop.reproduce.page [MASKS]` writes the page of all results to the standard output, without figures.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from .._errors import Diagnostic, Place, SpecError
from . import RESULTS, Options, Outcome, Sheet
from .figures import render

PAGE = "README.md"
LISTED = 40
"""Differences of one result that the page lists one by one."""


def page(outcomes: Sequence[Outcome], figures: bool) -> str:
    """All results, one section each. `figures`: with links to the PNG files beside the page."""
    parts = [
        "# The results of the Sparseloop paper",
        f"Computed by jaxloop {__version__} from the designs that come with it, conventions `MICRO22`, beside the "
        "answers of the artifact of MICRO'22 (arXiv 2205.05826). Errors are ours less the artifact's, as a share of "
        "the artifact's.",
        _sheet(summary(outcomes)),
        *(_section(outcome, figures) for outcome in outcomes),
    ]
    return "\n\n".join(parts) + "\n"


def summary(outcomes: Sequence[Outcome]) -> Sheet:
    """One row per result: how many numbers, and the largest errors."""
    heads = ("result", "numbers", "largest error", "counts and energies of levels", "of these differ")
    rows = tuple(
        (
            outcome.title,
            str(len(outcome.rows)),
            ", ".join(
                f"{quantity} {100.0 * outcome.largest_error(quantity):.2g} %" for quantity in _quantities(outcome)
            ),
            f"{outcome.compared:,}",
            str(len(outcome.differences)),
        )
        for outcome in outcomes
    )
    return Sheet("", heads, rows)


def differences(outcome: Outcome) -> Sheet:
    """The counts and energies of levels that are not the artifact's."""
    rows = tuple(
        (d.design, d.place, d.what, f"{d.reference:,.10g}", f"{d.ours:,.10g}") for d in outcome.differences[:LISTED]
    )
    more = len(outcome.differences) - len(rows)
    title = "counts and energies of levels that differ" + (f" (the first {LISTED}; {more} more)" if more else "")
    return Sheet(title, ("design", "level", "what", "reference", "ours"), rows, names=3)


def deliver(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Writes the page and the figures (PNG and SVG) into `folder`, all of them or none: they are made in a temporary
    folder beside it first. Other files in `folder` stay as they are.

    **Returns:** the paths of the files.

    **Raises:** `SpecError` where `folder` cannot be written; `OSError`.
    """
    check_folder(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp"))
    try:
        for outcome in outcomes:
            for kind, content in render(outcome.draw).items():
                (staging / f"{outcome.name}.{kind}").write_bytes(content)
        (staging / PAGE).write_text(page(outcomes, figures=True), encoding="utf-8")
        folder.mkdir(exist_ok=True)
        names = sorted(path.name for path in staging.iterdir())
        for name in names:
            os.replace(staging / name, folder / name)
    finally:
        shutil.rmtree(staging)
    return [folder / name for name in names]


def check_folder(folder: Path) -> None:
    """**Raises:** `SpecError` where `folder` is a file or lies where nothing can be written."""
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not above.is_dir():
        raise SpecError([Diagnostic(Place(str(folder)), f"cannot write there: {above} is a file", "name a folder")])
    if not os.access(above, os.W_OK):
        raise SpecError([Diagnostic(Place(str(folder)), f"no permission to write in {above}", "name another folder")])


def _quantities(outcome: Outcome) -> list[str]:
    return list(dict.fromkeys(row.quantity for row in outcome.rows))


def _section(outcome: Outcome, figures: bool) -> str:
    parts = [
        f"## {outcome.title}",
        f"**What it shows.** {outcome.claim}",
        f"**The artifact.** {outcome.artifact}",
        "**Ours.**",
        "\n".join(f"- {finding}" for finding in outcome.findings),
    ]
    if figures:
        parts.append(f"![{outcome.title}]({outcome.name}.png)")
    parts += [_titled(sheet) for sheet in outcome.sheets]
    if outcome.differences:
        parts.append(_titled(differences(outcome)))
    elif outcome.compared:
        parts.append(f"All {outcome.compared:,} counts and energies of single levels agree.")
    parts.append("**Known deviations.** " + " ".join(outcome.deviations))
    return "\n\n".join(parts)


def _titled(sheet: Sheet) -> str:
    parts = (f"### {sheet.title[:1].upper()}{sheet.title[1:]}", sheet.note, _sheet(sheet))
    return "\n\n".join(part for part in parts if part)


def _sheet(sheet: Sheet) -> str:
    rule = ("---",) * sheet.names + ("---:",) * (len(sheet.heads) - sheet.names)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (sheet.heads, rule, *sheet.rows))


def main(arguments: Sequence[str]) -> None:
    options = Options(masks=Path(arguments[0]) if arguments else None)
    sys.stdout.write(page([result.reproduce(options) for result in RESULTS.values()], figures=False))


if __name__ == "__main__":
    main(sys.argv[1:])
