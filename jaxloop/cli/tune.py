"""`jaxloop tune`."""

import json
from typing import TYPE_CHECKING, Any

import click

from .._errors import Diagnostic, Place, SpecError
from ..conventions import PRESETS
from .common import INVALID_MAPPING, check_names, check_writable, deliver, errors_as_messages, show_warnings, stoppable

if TYPE_CHECKING:
    from ..searches import TuneResult


@click.command("tune")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--vary",
    metavar="NAME=LEAST:MOST",
    multiple=True,
    required=True,
    help="What may change and between which bounds: LEVEL.ATTRIBUTE, density.TENSOR, or a name that --model uses.",
)
@click.option(
    "--model",
    "models",
    metavar="LEVEL.ATTRIBUTE=FORMULA",
    multiple=True,
    help="What follows from it, such as 'Buffer.read_energy=0.02*sqrt(Buffer.size)'. Without, prices stay as they are.",
)
@click.option("--limit", "limits", metavar="RESULT=MOST", multiple=True, help="What must not be exceeded, as area=1e6.")
@click.option("--objective", default="edp", show_default=True, help="edp, energy, delay, area, ...")
@click.option("--steps", type=click.IntRange(min=1), default=200, show_default=True, help="Of the optimizer (Adam).")
@click.option("--starts", type=click.IntRange(min=1), default=16, show_default=True, help="Random starts.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), default=0.1, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON ('-': to the standard output).")
@click.option("--conventions", type=click.Choice(list(PRESETS)), default="timeloop_2022", show_default=True)
def tune_command(files: tuple[str, ...], **options: Any) -> None:
    """Find the numbers of the hardware, and densities, at which the mapping in FILES is best, by gradient.

    \b
    jaxloop tune coordinate_list:matmul-0.1 --vary Buffer.size=128:65536 \\
      --model 'Buffer.read_energy=0.02*sqrt(Buffer.size)' --model 'Buffer.area=3*Buffer.size' \\
      --limit area=700000

    \b
    Exit status: 0 fine
                 1 nothing within the bounds can run and holds the limits
                 2 bad input, or an output that cannot be written
                 130 stopped by Ctrl-C
    """
    with errors_as_messages(), stoppable(""):
        check_writable(options["json_path"], files)
        check_names(files)
        from .._api import load

        design = load(*files)
        show_warnings(design.warnings)
        result = _tune(design, options)
        if options["json_path"]:
            deliver(options["json_path"], json.dumps(_told(result), indent=2, allow_nan=True) + "\n")
    if options["json_path"] != "-":
        _print(result)
    if not result.is_valid:
        click.echo("ERROR: nothing found within the bounds can run and holds the limits", err=True)
        raise SystemExit(INVALID_MAPPING)


def _tune(design: Any, options: dict[str, Any]) -> "TuneResult":
    from ..searches.expressions import read_formula
    from ..searches.tune import tune

    vary = {name: _bounds(name, text) for name, text in _pairs("--vary", options["vary"]).items()}
    formulas = {
        name: read_formula(f"--model {name}", text, set(vary))
        for name, text in _pairs("--model", options["models"]).items()
    }
    limits = {name: _number(f"--limit {name}", text) for name, text in _pairs("--limit", options["limits"]).items()}
    return tune(
        design,
        vary,
        options["objective"],
        model=(lambda values: {name: formula(values) for name, formula in formulas.items()}) if formulas else None,
        limits=limits,
        steps=options["steps"],
        starts=options["starts"],
        rate=options["rate"],
        seed=options["seed"],
        conventions=PRESETS[options["conventions"]],
    )


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise SpecError([Diagnostic(Place("", 0, f"{option} {text}"), "there is no `=`", "write NAME=VALUE")])
        found[name.strip()] = value.strip()
    return found


def _bounds(name: str, text: str) -> tuple[float, float]:
    least, colon, most = text.partition(":")
    if not colon:
        place = Place("", 0, f"--vary {name}={text}")
        raise SpecError([Diagnostic(place, "there is no `:` between two bounds", "write NAME=LEAST:MOST")])
    return _number(f"--vary {name}", least), _number(f"--vary {name}", most)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SpecError([Diagnostic(Place("", 0, option), f'"{text}" is no number', "write one")]) from None


def _told(result: "TuneResult") -> dict[str, Any]:
    names = ("metric", "score", "start", "values", "hardware", "densities", "elasticity", "is_valid")
    limits = {name: {"value": value, "limit": bound} for name, (value, bound) in result.limits.items()}
    return {name: getattr(result, name) for name in names} | {"limits": limits}


def _print(result: "TuneResult") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("varied", "value", "elasticity", title=f"{result.metric} {result.score:.6g}", title_justify="left")
    for name, value in result.values.items():
        table.add_row(name, f"{value:.6g}", f"{result.elasticity[name]:+.3f}")
    console.print(table)
    for name, value in {**result.hardware, **{f"density.{t}": d for t, d in result.densities.items()}}.items():
        if name not in result.values:
            console.print(f"{name} = {value:.6g}", highlight=False)
    for name, (value, bound) in result.limits.items():
        console.print(f"{name} {value:.6g} of {bound:.6g}", highlight=False)
    console.print(f"as in the files: {result.metric} {result.start:.6g}", highlight=False)
    console.print(
        "elasticity: relative change of the result per relative change of the number",
        style="dim",
    )
