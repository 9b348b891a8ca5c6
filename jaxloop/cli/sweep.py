"""`jaxloop sweep`."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._errors import Diagnostic, Place, SpecError
from ..conventions import PRESETS
from ..designs import is_shipped
from .common import check_names, errors_as_messages, fail, show_warnings

if TYPE_CHECKING:
    import xarray as xr

    from ..spec.design import Design
    from ..sweeps.reduce import Reduction

INTERRUPTED = 130
_EXPORTS = (".parquet", ".csv", ".nc")
_BREAKDOWN = ("energy_pj_by_activity", "energy_pj_by_tensor", "compute_energy_pj")
_MOST_BROKEN_DOWN = 10**5
"""Points of a sweep whose energy is drawn by level and activity unasked."""


@click.command("sweep")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--over",
    "axes",
    metavar="AXIS=VALUES",
    multiple=True,
    help="An axis of the sweep, such as 'density.A=logspace(0.01,1,100)', 'Buffer.size=1024,4096', "
    "'rank.M=range(64,512,64)', 'format.Buffer.A=UOP-CP,B,none', 'saf.Buffer.B=none,gating(A),skipping(A)', "
    "'sparse=a.yaml,b.yaml' (whole sparse optimizations). 'AXIS,AXIS=VALUES' varies several together.",
)
@click.option("--zip", "zipped", is_flag=True, help="All axes vary together instead of in all combinations.")
@click.option("--fields", metavar="NAME,...", help="More results of each point than cycles, energy_pj and valid.")
@click.option(
    "--best",
    metavar="OBJECTIVE[:AXIS,...]",
    help="Keep only the best point by edp, energy, cycles, area, ...; for each value of the axes named.",
)
@click.option("--pareto", metavar="OBJECTIVE,OBJECTIVE,...", help="Keep only the points that no other point beats.")
@click.option("--out", metavar="SWEEP.zarr", help="Write the results there, piece by piece; run again to go on.")
@click.option("--to", "export_path", metavar="FILE", help="Write a table as well: .parquet, .csv or .nc (netCDF).")
@click.option("--plot", "plot", metavar="FOLDER", help="Draw the results: PNG and SVG files in this folder.")
@click.option("--conventions", type=click.Choice(list(PRESETS)), default="timeloop_2022", show_default=True)
@click.option("--float32", is_flag=True, help="Single precision, with the smooth conventions: twice as fast.")
def sweep_command(
    files: tuple[str, ...],
    axes: tuple[str, ...],
    zipped: bool,
    fields: str | None,
    best: str | None,
    pareto: str | None,
    out: str | None,
    export_path: str | None,
    plot: str | None,
    conventions: str,
    float32: bool,
) -> None:
    """Evaluate the design in FILES at every combination of the values of some axes.

    FILES are those of `jaxloop evaluate`. Without --out the results are only printed, drawn or exported.

    \b
    jaxloop sweep coordinate_list:matmul-0.1 --plot plots \\
      --over 'density.A,density.B=logspace(0.01,1,50)' \\
      --over sparse=bitmask:matmul-0.1,coordinate_list:matmul-0.1

    \b
    Exit status: 0 fine
                 2 bad input, or an output that cannot be written
                 130 stopped by Ctrl-C; what is in --out is kept
    """
    with errors_as_messages(), _stoppable(out):
        _check_outputs(out, export_path, plot)
        check_names(files)
        if float32 and PRESETS[conventions].integer_counts:
            fail([f"--float32 cannot hold the counts of --conventions {conventions}: add --conventions smooth"])
        from .._api import load
        from ..sweeps import sweep
        from ..sweeps.axes import read_dimensions
        from ..sweeps.fields import DEFAULT_FIELDS

        design = load(*files)
        show_warnings(design.warnings)
        results = (*DEFAULT_FIELDS, *(name.strip() for name in (fields or "").split(",") if name.strip()))
        reduce = _reductions(best, pareto, results)
        over = _over(design, axes, files)
        # whether there are plots must not make another sweep of what --out keeps
        if plot and not out and not reduce:
            points = prod(dimension.size for dimension in read_dimensions(design, over, zipped, None))
            results = (*results, *(_BREAKDOWN if points <= _MOST_BROKEN_DOWN else ()))
        with _warnings_as_messages():
            found = sweep(
                design,
                over,
                fields=results,
                zipped=zipped,
                reduce=next(iter(reduce.values())) if len(reduce) == 1 else reduce or None,
                out=out,
                conventions=PRESETS[conventions],
                dtype="float32" if float32 else "float64",
                progress=True,
            )
        _deliver(found if isinstance(found, dict) else {"": found}, out, export_path, plot)


def _reductions(best: str | None, pareto: str | None, results: tuple[str, ...]) -> "dict[str, Reduction]":
    """What to keep in place of all points, by name."""
    from ..sweeps import Best, Pareto

    found: dict[str, Reduction] = {}
    if best is not None:
        objective, _, per = best.partition(":")
        found["best"] = Best(objective, per=tuple(filter(None, map(str.strip, per.split(",")))), results=results)
    if pareto is not None:
        found["pareto"] = Pareto(tuple(name.strip() for name in pareto.split(",")), results=results)
    return found


def _over(design: "Design", texts: tuple[str, ...], files: tuple[str, ...]) -> dict[Any, Any]:
    over: dict[Any, Any] = {}
    for text in texts:
        name, values = _axis(design, text, files)
        if name in over:
            raise SpecError([Diagnostic(Place("", 0, f"--over {text}"), "the axis is given twice", "merge the two")])
        over[name] = values
    return over


def _axis(design: "Design", text: str, files: tuple[str, ...]) -> tuple[Any, Any]:
    """The name or names of an axis, and its values."""
    from .._api import load
    from ..sweeps.values import FORMS, split

    names, equals, values = text.partition("=")
    named = tuple(split(names))
    if not equals or not named:
        missing = "no axis" if equals else "no `=`"
        raise SpecError(
            [Diagnostic(Place("", 0, f"--over {text}"), f"there is {missing}", f"write AXIS=VALUES; {FORMS}")]
        )
    if named == ("sparse",):
        return "sparse", {name: load(name) if is_shipped(name) else load(*files, name) for name in split(values)}
    return (named[0] if len(named) == 1 else named), values


def _check_outputs(out: str | None, export_path: str | None, plot: str | None) -> None:
    """Before any work: what could not be written in the end."""
    for path in (out, export_path, plot):
        parent = Path(path).parent if path else Path()
        if path and not (parent.is_dir() and os.access(parent, os.W_OK)):
            raise OSError(f"cannot write {path}: there is no folder {parent} that can be written")
    if export_path and Path(export_path).suffix not in _EXPORTS:
        raise OSError(f"cannot write {export_path}: tables are {', '.join(_EXPORTS)}")
    if plot and Path(plot).exists() and not Path(plot).is_dir():
        raise OSError(f"cannot write {plot}: it is no folder")


def _deliver(results: "dict[str, xr.Dataset]", out: str | None, export_path: str | None, plot: str | None) -> None:
    from ..report.export import export
    from ..report.sweep_plots import write_plots
    from ..report.sweep_table import print_sweep

    for name, dataset in results.items():
        print_sweep(dataset, name)
        if export_path:
            target = Path(export_path)
            target = target.with_stem(f"{target.stem}-{name}") if name else target
            export(dataset, target)
            click.echo(f"wrote {target}")
        if plot:
            Path(plot).mkdir(exist_ok=True)
            for path in write_plots(dataset, Path(plot) / name if name else Path(plot)):
                click.echo(f"wrote {path}")
    if out:
        click.echo(f"wrote {out}")


@contextmanager
def _warnings_as_messages() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        click.secho(f"warning: {text}", err=True, dim=True)


@contextmanager
def _stoppable(out: str | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        kept = f": {out} keeps what is done, the same command goes on" if out else ""
        click.echo(f"stopped{kept}", err=True)
        # a compiler at work in another thread must not hold up the end
        os._exit(INTERRUPTED)
