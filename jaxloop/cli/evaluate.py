"""`jaxloop evaluate`."""

import json
from typing import TYPE_CHECKING, NoReturn

import click

from ..conventions import PRESETS
from .common import (
    INVALID_MAPPING,
    STDOUT,
    check_names,
    check_writable,
    deliver,
    errors_as_messages,
    fail,
    show_warnings,
)

if TYPE_CHECKING:
    from ..result import Evaluation


@click.command("evaluate")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--json", "json_path", metavar="FILE", help="Write all numbers as JSON ('-': to the standard output, no table)."
)
@click.option("--stats", "stats_path", metavar="FILE", help="Write a stats file in Timeloop's layout ('-': likewise).")
@click.option(
    "--conventions",
    type=click.Choice(list(PRESETS)),
    default="timeloop_2022",
    show_default=True,
    help="timeloop_2022: the public reference program, its roundings included. micro22: the artifact of the "
    "Sparseloop paper. smooth: no rounding, differentiable.",
)
@click.option(
    "--explain",
    "subjects",
    metavar="LEVEL.TENSOR",
    multiple=True,
    help="Print how the numbers of a tensor at a level came about; also of a LEVEL or of the compute units. "
    "Can be given several times.",
)
@click.option("--strict", is_flag=True, help="Treat warnings (a missing energy, an unused key, ...) as errors.")
def evaluate_command(
    files: tuple[str, ...],
    json_path: str | None,
    stats_path: str | None,
    conventions: str,
    subjects: tuple[str, ...],
    strict: bool,
) -> None:
    """Evaluate the mapping in FILES and print a table.

    FILES are YAML files that together hold architecture, problem and mapping, and usually energy and area tables (ERT,
    ART); or the one name of a shipped design, see `jaxloop designs`.

    \b
    Exit status: 0 fine
                 1 the mapping cannot run on the hardware; table and JSON are
                   made, a stats file is not
                 2 bad input, or an output that cannot be written
    """
    from .._api import evaluate, load
    from ..report import explanation, find_subjects, print_table, stats_text

    _check_options(json_path, stats_path, subjects)
    with errors_as_messages():
        for path in (json_path, stats_path):
            check_writable(path, files)
        check_names(files)
        design = load(*files)
        to_explain = find_subjects(design, subjects)
        if not strict:
            show_warnings(design.warnings)
        evaluation = evaluate(design, conventions=PRESETS[conventions])
        if strict and evaluation.warnings:
            fail(str(warning) for warning in evaluation.warnings)
        show_warnings(warning for warning in evaluation.warnings if warning not in design.warnings)
        if json_path:
            deliver(json_path, json.dumps(evaluation.to_dict(), indent=2, allow_nan=False) + "\n")
        if stats_path and evaluation.valid:
            deliver(stats_path, stats_text(evaluation))
    if STDOUT not in (json_path, stats_path):
        print_table(evaluation)
        for subject in to_explain:
            click.echo("\n" + explanation(evaluation, subject), nl=False)
    if not evaluation.valid:
        _reject(evaluation, stats_path)


def _check_options(json_path: str | None, stats_path: str | None, subjects: tuple[str, ...]) -> None:
    if json_path and json_path == stats_path:
        raise click.UsageError(f"--json and --stats cannot both go to {json_path}")
    if subjects and STDOUT in (json_path, stats_path):
        raise click.UsageError("--explain prints to the standard output: send --json and --stats to files")


def _reject(evaluation: "Evaluation", stats_path: str | None) -> NoReturn:
    for reason in evaluation.reasons:
        click.echo(f"ERROR: {reason}", err=True)
    if stats_path:
        click.echo("no stats file is written: it could not say that the mapping is invalid", err=True)
    raise SystemExit(INVALID_MAPPING)
