"""`jaxloop sweep`."""

import os
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..conventions import PRESETS
from .common import (
    check_names,
    errors_as_messages,
    fail,
    names_in,
    read_axes,
    show_warnings,
    stoppable,
    warnings_as_messages,
)

if TYPE_CHECKING:
    import xarray as xr

    from ..spec.design import Design

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
@click.option(
    "--mappings",
    type=click.IntRange(min=1),
    metavar="N",
    help="Vary the mapping too: N random ones that the constraints in FILES allow.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random mappings.")
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
    mappings: int | None,
    seed: int,
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
    with errors_as_messages(), stoppable(f"{out} keeps what is done, the same command goes on" if out else ""):
        _check_outputs(out, export_path, plot)
        check_names(files)
        if float32 and PRESETS[conventions].integer_counts:
            fail([f"--float32 cannot hold the counts of --conventions {conventions}: add --conventions smooth"])
        from .._api import load

        design = load(*files)
        show_warnings(design.warnings)
        over = read_axes(axes, files)
        reduce = _reduction(best, pareto, fields)
        # whether there are plots must not make another sweep of what --out keeps
        is_drawn = plot is not None and out is None and reduce is None
        wanted = _fields(design, fields, over, zipped, is_drawn)
        source = _mappings(design, mappings, seed)
        precision = "float32" if float32 else "float64"
        options = {"zipped": zipped, "reduce": reduce, "out": out, "mappings": source, "fields": wanted}
        results = _sweep(design, over, conventions=PRESETS[conventions], dtype=precision, **options)
        _deliver(results if isinstance(results, dict) else {"": results}, out, export_path, plot)


def _sweep(design: "Design", over: dict[Any, Any], **options: Any) -> Any:
    from ..sweeps import sweep

    with warnings_as_messages():
        return sweep(design, over, progress=True, **options)


def _reduction(best: str | None, pareto: str | None, fields: str | None) -> Any:
    from ..sweeps import Best, Pareto
    from ..sweeps.fields import DEFAULT_FIELDS

    results = (*DEFAULT_FIELDS, *names_in(fields or ""))
    found: dict[str, Any] = {}
    if best is not None:
        objective, _, per = best.partition(":")
        found["best"] = Best(objective, per=names_in(per), results=results)
    if pareto is not None:
        found["pareto"] = Pareto(names_in(pareto), results=results)
    return found if len(found) > 1 else next(iter(found.values()), None)


def _fields(design: "Design", given: str | None, over: dict[Any, Any], zipped: bool, is_drawn: bool) -> tuple[str, ...]:
    from ..sweeps.axes import read_dimensions
    from ..sweeps.fields import DEFAULT_FIELDS

    wanted = (*DEFAULT_FIELDS, *names_in(given or ""))
    if not is_drawn:
        return wanted
    points = prod(dimension.size for dimension in read_dimensions(design, over, zipped, None))
    return (*wanted, *(_BREAKDOWN if points <= _MOST_BROKEN_DOWN else ()))


def _mappings(design: "Design", number: int | None, seed: int) -> Any:
    """Random mappings that the design's constraints allow."""
    from ..searches import MapSpace

    if number is None:
        return None
    space = MapSpace(design)
    return space.decode(space.sample(seed, number))


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
