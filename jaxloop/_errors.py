"""Errors and warnings that speak about the user's files.

Every reader and every check appends to one `Diagnostics`; at the end of a pass `raise_if_errors` raises one
`SpecError` that holds all errors found, so that a user corrects a file once and not line by line.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the input something stands. `file` is a path or a name, `line` counts from 1 (0: unknown), `path` is
    the dotted key path, for example `architecture.subtree[0].local[1].attributes.depth`."""

    file: str = ""
    line: int = 0
    path: str = ""

    def __str__(self) -> str:
        where = self.file or "<input>"
        if self.line:
            where += f":{self.line}"
        return f"{where}: {self.path}" if self.path else where


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: the place, what is wrong there (with the offending value) and what to do instead."""

    place: Place
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}"
        return f"{text} ({self.remedy})" if self.remedy else text


class SpecError(ValueError):
    """The input describes no design that jaxloop can evaluate.

    **Attributes:**

    - `errors`: all findings of the pass, in the order of the files.
    """

    errors: tuple[Diagnostic, ...]

    def __init__(self, errors: Iterable[Diagnostic]):
        self.errors = tuple(errors)
        super().__init__("\n".join(str(e) for e in self.errors))


@dataclass
class Diagnostics:
    """Collects the errors and warnings of one pass over the input."""

    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)

    def error(self, place: Place, message: str, remedy: str = "") -> None:
        self.errors.append(Diagnostic(place, message, remedy))

    def warn(self, place: Place, message: str, remedy: str = "") -> None:
        self.warnings.append(Diagnostic(place, message, remedy))

    def raise_if_errors(self) -> None:
        """Raises `SpecError` with all errors so far, if there are any."""
        if self.errors:
            raise SpecError(self.errors)


def nearest(name: str, valid: Iterable[str]) -> str:
    """A remedy that names the closest valid names: `did you mean "depth"?`, else the list of what is valid."""
    names = list(valid)
    close = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(f'"{c}"' for c in close) + "?"
    return "valid: " + ", ".join(names) if names else ""
