"""`jaxloop reproduce`."""

from pathlib import Path

import click

from .common import errors_as_messages


@click.command("reproduce")
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

    from ..reproduce import RESULTS, Options, check_folder_of_masks, chosen
    from ..reproduce.page import check_folder, deliver
    from ..reproduce.screen import print_outcomes

    with errors_as_messages():
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
