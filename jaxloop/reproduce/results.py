"""What a reproduced result consists of, whichever it is: rows of numbers, tables of texts, findings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the artifact beside ours.

    **Attributes:** `what`: which; `quantity`: `"cycles"`, `"energy"`, ...; `unit`; `reference`: the artifact's;
    `ours`.
    """

    what: str
    quantity: str
    unit: str
    reference: float
    ours: float

    @property
    def error(self) -> float:
        """Ours less the reference, as a share of the reference."""
        return self.ours / self.reference - 1.0


@dataclass(frozen=True, slots=True)
class Difference:
    """A count of words or operations, or an energy (pJ), that is not the artifact's. `place`: `Level.tensor`, or the
    compute units; `what`: which count."""

    design: str
    place: str
    what: str
    reference: float
    ours: float


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of texts. `names`: how many of the first columns hold names and not numbers; `note`: what its columns
    are; `long`: too long for a screen, only the page has it."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    note: str = ""
    long: bool = False


@dataclass(frozen=True)
class Outcome:
    """One result of the paper, reproduced.

    **Attributes:**

    - `name`: as on the command line; `title`; `claim`: what the result shows; `artifact`: what its artifact answers.
    - `rows`: every number that the artifact gives, beside ours; `sheets`: the same as tables, for readers.
    - `findings`: what follows from the numbers, a sentence each; `deviations`: what is known to differ, and why.
    - `compared`: how many counts and energies of single levels were compared; `differences`: those that differ.
    - `draw`: draws the figure into a matplotlib `Figure`, which it is given empty.
    """

    name: str
    title: str
    claim: str
    artifact: str
    rows: tuple[Row, ...]
    sheets: tuple[Sheet, ...]
    findings: tuple[str, ...]
    deviations: tuple[str, ...]
    compared: int
    differences: tuple[Difference, ...]
    draw: Callable[[Any], None] = field(repr=False)

    def largest_error(self, quantity: str) -> float:
        """The largest absolute error of the rows of a quantity, as a share of the reference."""
        return max(abs(row.error) for row in self.rows if row.quantity == quantity)


def error_text(error: float) -> str:
    """A share as percent, to a thousandth of one: the published energies do not hold more."""
    rounded = round(100.0 * error, 3)
    return f"{rounded:+.3f} %" if rounded else "0 %"
