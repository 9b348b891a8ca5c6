"""Every result of the Sparseloop paper's artifact (MICRO'22), computed from shipped designs and put beside its answers.

`jaxloop reproduce` is this package on the command line. Cycles, energies and the counts of every level are compared;
what differs is listed, not hidden.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .._errors import Diagnostic, Place, SpecError, nearest
from . import fig1, fig12, fig13, fig15, table7
from .masks import check_masks
from .results import Difference as Difference, Outcome as Outcome, Row as Row, Sheet as Sheet
from .runs import Options as Options

ALL = "all"


@dataclass(frozen=True, slots=True)
class Result:
    """How one result is reproduced. `evaluations`: how often `Options.advance` is called on the way."""

    reproduce: Callable[[Options], Outcome]
    evaluations: int


RESULTS = {
    module.__name__.rpartition(".")[2]: Result(module.reproduce, module.EVALUATIONS)
    for module in (fig1, fig12, fig13, fig15, table7)
}
"""All results by their names on the command line, in the order of the paper."""


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """The results that `names` mean, each once and in the order of the paper; all of them for `"all"` and for no name.

    **Raises:** `SpecError` that proposes the nearest names for one that does not exist.
    """
    wanted = set(names) or {ALL}
    unknown = sorted(wanted - {ALL, *RESULTS})
    if unknown:
        known = [*RESULTS, ALL]
        raise SpecError([Diagnostic(Place(name), "no such result", nearest(name, known)) for name in unknown])
    return tuple(name for name in RESULTS if ALL in wanted or name in wanted)


def check_folder_of_masks(folder: Path, names: Iterable[str]) -> None:
    """**Raises:** `SpecError` where the results use no masks, or the folder lacks some: before anything is computed."""
    if "fig12" not in names:
        raise SpecError([Diagnostic(Place("--masks"), "no result that was asked for uses masks", "fig12 does")])
    check_masks(fig12.LAYERS, folder)
