"""`jaxloop designs`."""

from itertools import groupby

import click

from ..designs import shipped


@click.command("designs")
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
