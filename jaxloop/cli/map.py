"""`jaxloop map`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..conventions import PRESETS
from .common import (
    INVALID_MAPPING,
    check_names,
    check_writable,
    deliver,
    errors_as_messages,
    names_in,
    read_axes,
    show_warnings,
    warnings_as_messages,
)

if TYPE_CHECKING:
    from ..searches import SearchResult
    from ..spec.design import Design


@click.command("map")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--method",
    type=click.Choice(["exhaustive", "random", "population", "gradient"]),
    help="[default: exhaustive for small spaces, else population]",
)
@click.option(
    "--objective",
    metavar="NAME,...",
    help="edp, energy, delay, ed2p, area, accesses-N, ...; of several the first that differs by more than 0.1 % "
    "decides. [default: the mapper section's, else edp]",
)
@click.option("--budget", type=click.IntRange(min=1), help="Evaluations. [default: 100000; all if exhaustive]")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Time to search for.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--over", "over", metavar="AXIS=VALUES", multiple=True, help="Values for which one mapping must be good.")
@click.option(
    "--aggregate",
    type=click.Choice(["mean", "max", "sum"]),
    default="mean",
    show_default=True,
    help="How the objective combines over them.",
)
@click.option(
    "--choose", "choose", metavar="AXIS=VALUES", multiple=True, help="Formats, SAFs, hardware to choose the best of."
)
@click.option("--limit", "limits", metavar="RESULT=MOST", multiple=True, help="What must not be exceeded, as area=1e6.")
@click.option("--out", metavar="FILE", help="Write the mapping here, as YAML that jaxloop and Timeloop read.")
@click.option("--log", metavar="FILE", help="Write each improvement here: evaluations, scores, mapping.")
@click.option("--plot", metavar="STEM", help="Draw the best so far against evaluations: STEM.png and STEM.svg.")
@click.option("--checkpoint", metavar="FILE", help="Keep the state of the search here; the same command goes on.")
@click.option("--conventions", type=click.Choice(list(PRESETS)), default="timeloop_2022", show_default=True)
def map_command(files: tuple[str, ...], **options: Any) -> None:
    """Search the best mapping of the architecture and the problem in FILES.

    FILES are those of Timeloop's mapper: constraints and the mapper section's metrics are honored.

    \b
    jaxloop map arch.yaml problem.yaml constraints.yaml ERT.yaml ART.yaml --out best.yaml
    jaxloop evaluate arch.yaml problem.yaml best.yaml ERT.yaml ART.yaml

    \b
    Exit status: 0 fine; also after Ctrl-C, with the best mapping so far
                 1 no valid mapping was found
                 2 bad input, or an output that cannot be written
    """
    with errors_as_messages():
        stem = options["plot"]
        for path in (options["out"], options["log"], options["checkpoint"], f"{stem}.png" if stem else None):
            check_writable(path, files)
        check_names(files)
        from .._api import load

        design = load(*files)
        show_warnings(design.warnings)
        result = _search(design, files, options)
        _deliver(design, result, options)
    if result.nest is None:
        click.echo("ERROR: no valid mapping was found", err=True)
        raise SystemExit(INVALID_MAPPING)


def _search(design: "Design", files: tuple[str, ...], options: dict[str, Any]) -> "SearchResult":
    from ..report.search_progress import Live
    from ..searches import Budget, MapSpace, search
    from ..searches.search import is_searched_completely

    space = MapSpace(design)
    show_warnings(space.warnings)
    click.echo(space.summary())
    budget, seconds = options["budget"], options["seconds"]
    is_whole = options["method"] == "exhaustive" or (
        options["method"] is None and is_searched_completely(space, budget or DEFAULT_EVALUATIONS)
    )
    if budget is None and seconds is None and not is_whole:
        budget = DEFAULT_EVALUATIONS
    total = min(space.size, budget) if is_whole and budget is not None else space.size if is_whole else budget
    with Live(total, seconds) as live, warnings_as_messages():
        return search(
            design,
            space,
            names_in(options["objective"]) if options["objective"] else None,
            method=options["method"],
            budget=Budget(evaluations=budget, seconds=seconds),
            seed=options["seed"],
            choose=read_axes(options["choose"], files),
            over=read_axes(options["over"], files),
            aggregate=options["aggregate"],
            limits=_limits(options["limits"]),
            conventions=PRESETS[options["conventions"]],
            checkpoint=options["checkpoint"],
            tell=live.tell,
        )


DEFAULT_EVALUATIONS = 10**5


def _limits(texts: tuple[str, ...]) -> dict[str, float]:
    from ..sweeps.values import axis_error

    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise axis_error("limit", f'"{text}" is no RESULT=NUMBER', "write for example area=1e6") from None
    return found


def _deliver(design: "Design", result: "SearchResult", options: dict[str, Any]) -> None:
    from ..report import mapping_text, print_table
    from ..report.files import write_atomically
    from ..report.search_report import history_files, nest_line, print_failures, scores_text

    spent = f"{result.evaluated:,} evaluations, {result.valid:,} valid, {result.seconds:.1f} s: {result.stopped}"
    click.echo(f"{spent}{'; the optimum of the space' if result.is_complete and result.valid else ''}")
    failures = result.failures
    if result.nest is None:
        print_failures(failures.reasons, failures.levels, failures.nearest, result.evaluated)
        return
    click.echo(f"best {scores_text(result.metrics, result.scores.tolist())}")
    for name, value in result.alternative.items():
        click.echo(f"{name} = {value}")
    click.echo(nest_line(result.nest))
    print_table(result.evaluation())
    if options["out"]:
        deliver(options["out"], mapping_text(design, result.nest))
    if options["log"]:
        deliver(options["log"], _log_text(result))
    if options["plot"]:
        history = result.history | {"evaluated": result.evaluated}
        for kind, content in history_files({"best": history}, result.metrics[0]).items():
            path = Path(f"{options['plot']}.{kind}")
            write_atomically(str(path), content)
            click.echo(f"wrote {path}")


def _log_text(result: "SearchResult") -> str:
    """CSV: evaluations and the metrics of each improvement."""
    rows = [",".join(("evaluations", *result.metrics))]
    for count, scores in zip(result.history["evaluations"], result.history["scores"], strict=True):
        rows.append(",".join((str(count), *(repr(float(score)) for score in scores))))
    return "\n".join(rows) + "\n"
