"""The command line: `jaxloop --help`.

Exit statuses: 0 fine; 1 the mapping cannot run on the hardware (it is reported all the same); 2 bad input or an output
that cannot be written. JAX is imported by the commands that compute, so that help is quick.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from . import __version__
from ._errors import Diagnostic, SpecError
from .conventions import PRESETS
from .designs import is_shipped, shipped

if TYPE_CHECKING:
    from .result import Evaluation

_INVALID_MAPPING, _BAD_INPUT = 1, 2
_STDOUT = "-"


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"jaxloop {__version__}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def main() -> None:
    """Cycles, energy and traffic of an accelerator that runs a tensor workload under a given mapping.

    Reads the YAML files of Timeloop and Sparseloop as they are.

    \b
    jaxloop designs                         what comes with jaxloop
    jaxloop evaluate eyeriss:alexnet_conv2  one of these
    jaxloop evaluate arch.yaml problem.yaml mapping.yaml ERT.yaml ART.yaml
    jaxloop reproduce fig1 --out results    the Sparseloop paper's results
    """


@main.command("evaluate")
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
    from ._api import evaluate, load
    from .report import explanation, find_subjects, print_table, stats_text

    _check_options(json_path, stats_path, subjects)
    with _errors_as_messages():
        for path in (json_path, stats_path):
            _check_writable(path, files)
        _check_names(files)
        design = load(*files)
        to_explain = find_subjects(design, subjects)
        if not strict:
            _show_warnings(design.warnings)
        evaluation = evaluate(design, conventions=PRESETS[conventions])
        if strict and evaluation.warnings:
            _fail(str(warning) for warning in evaluation.warnings)
        _show_warnings(warning for warning in evaluation.warnings if warning not in design.warnings)
        if json_path:
            _deliver(json_path, json.dumps(evaluation.to_dict(), indent=2, allow_nan=False) + "\n")
        if stats_path and evaluation.valid:
            _deliver(stats_path, stats_text(evaluation))
    if _STDOUT not in (json_path, stats_path):
        print_table(evaluation)
        for subject in to_explain:
            click.echo("\n" + explanation(evaluation, subject), nl=False)
    if not evaluation.valid:
        _reject(evaluation, stats_path)


@main.command("designs")
def designs_command() -> None:
    """List the designs that come with jaxloop.

    `jaxloop evaluate NAME` evaluates one.
    """
    from rich.columns import Columns
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console()
    for accelerator, group in groupby(shipped(), key=lambda design: design.name.partition(":")[0]):
        designs = list(group)
        texts = (Text(accelerator, style="bold"), Text(designs[0].description), Text(designs[0].source, style="dim"))
        for indent, text in zip((0, 2, 2), texts, strict=True):
            console.print(Padding(text, (0, 0, 0, indent)))
        names = Columns([Text(design.name, no_wrap=True) for design in designs], padding=(0, 2))
        console.print(Padding(names, (0, 0, 1, 2)))


@main.command("reproduce")
@click.argument("names", nargs=-1, metavar="[fig1|fig12|fig13|fig15|table7|all]...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a page with all tables (README.md) and the figures (PNG and SVG) into this folder.",
)
@click.option(
    "--masks",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the artifact's masks of real tensors: L07_iacts.txt, L07_weights.txt, ... Without it, fig12 draws "
    "masks of the same densities.",
)
def reproduce_command(names: tuple[str, ...], out: Path | None, masks: Path | None) -> None:
    """Compute the results of the Sparseloop paper anew (arXiv 2205.05826; all without a name) and print them beside
    those of its artifact.

    \b
    Exit status: 0 fine, also where numbers differ: they are listed
                 2 bad input, or an output that cannot be written
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from .reproduce import RESULTS, Options, check_folder_of_masks, chosen
    from .reproduce.page import check_folder, deliver
    from .reproduce.screen import print_outcomes

    with _errors_as_messages():
        wanted = chosen(names)
        if out is not None:
            check_folder(out)
        if masks is not None:
            check_folder_of_masks(masks, wanted)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("", total=sum(RESULTS[name].evaluations for name in wanted))
            options = Options(masks, lambda: progress.advance(task))
            outcomes = []
            for name in wanted:
                progress.update(task, description=name)
                outcomes.append(RESULTS[name].reproduce(options))
        files = deliver(outcomes, out) if out is not None else []
    print_outcomes(outcomes, Console())
    for path in files:
        click.echo(f"wrote {path}")


def _check_options(json_path: str | None, stats_path: str | None, subjects: tuple[str, ...]) -> None:
    if json_path and json_path == stats_path:
        raise click.UsageError(f"--json and --stats cannot both go to {json_path}")
    if subjects and _STDOUT in (json_path, stats_path):
        raise click.UsageError("--explain prints to the standard output: send --json and --stats to files")


def _check_names(names: tuple[str, ...]) -> None:
    if len(names) > 1 and any(map(is_shipped, names)):
        _fail(f"{name}: no such file (a shipped design is given alone)" for name in names if is_shipped(name))


def _check_writable(path: str | None, inputs: tuple[str, ...]) -> None:
    """Ends the command before any work is done, and anything written, where `path` cannot be written."""
    if path is None or path == _STDOUT:
        return
    target = Path(path)
    if target.is_dir():
        _fail([f"cannot write {path}: it is a folder"])
    if not target.parent.is_dir():
        _fail([f"cannot write {path}: there is no folder {target.parent}"])
    if not os.access(target.parent, os.W_OK):
        _fail([f"cannot write {path}: no permission to write in the folder {target.parent}"])
    if any(target.resolve() == Path(name).resolve() for name in inputs):
        _fail([f"cannot write {path}: it is one of the input files"])


def _deliver(path: str, text: str) -> None:
    from .report import write_atomically

    if path == _STDOUT:
        click.echo(text, nl=False)
    else:
        write_atomically(path, text)


def _show_warnings(warnings: Iterable[Diagnostic]) -> None:
    """One line for each thing said, however often the input gives rise to it."""
    first: dict[tuple[str, str], Diagnostic] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for warning in warnings:
        said = (warning.message, warning.remedy)
        first.setdefault(said, warning)
        repeats[said] += 1
    for said, warning in first.items():
        more = f" [and {repeats[said] - 1} more like it]" if repeats[said] > 1 else ""
        click.secho(f"warning: {warning}{more}", err=True, dim=True)


def _reject(evaluation: "Evaluation", stats_path: str | None) -> NoReturn:
    for reason in evaluation.reasons:
        click.echo(f"ERROR: {reason}", err=True)
    if stats_path:
        click.echo("no stats file is written: it could not say that the mapping is invalid", err=True)
    raise SystemExit(_INVALID_MAPPING)


@contextmanager
def _errors_as_messages() -> Iterator[None]:
    """What is wrong with the user's files ends the command with messages, not with a traceback."""
    try:
        yield
    except SpecError as error:
        _fail(map(str, error.errors))
    except BrokenPipeError:
        raise  # the reader of a pipe has seen enough: click ends quietly
    except OSError as error:
        _fail([str(error)])


def _fail(messages: Iterable[str]) -> NoReturn:
    for message in messages:
        click.echo(f"error: {message}", err=True)
    raise SystemExit(_BAD_INPUT)


if __name__ == "__main__":
    main(prog_name="jaxloop")
