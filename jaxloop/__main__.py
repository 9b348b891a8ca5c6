"""The command line: `jaxloop --help`.

Exit statuses: 0 fine; 1 the mapping cannot run on the hardware (it is reported all the same); 2 bad input or an output
that cannot be written; 130 stopped by Ctrl-C.
"""

import click

from . import __version__
from .cli.designs import designs_command
from .cli.evaluate import evaluate_command
from .cli.map import map_command
from .cli.reproduce import reproduce_command
from .cli.sweep import sweep_command
from .cli.tune import tune_command


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
    jaxloop sweep eyeriss:alexnet_conv2 --over 'shared_glb.size=65536,131072'
    jaxloop map arch.yaml problem.yaml constraints.yaml ERT.yaml ART.yaml
    jaxloop reproduce fig1 --out results    the Sparseloop paper's results
    """


for _command in (evaluate_command, designs_command, sweep_command, map_command, tune_command, reproduce_command):
    main.add_command(_command)

if __name__ == "__main__":
    main(prog_name="jaxloop")
