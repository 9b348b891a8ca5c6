"""What the commands share: checks before any work, delivery, and errors as messages."""

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from .._errors import Diagnostic, Place, SpecError
from ..designs import is_shipped

INVALID_MAPPING, BAD_INPUT, INTERRUPTED = 1, 2, 130
STDOUT = "-"


def check_names(names: tuple[str, ...]) -> None:
    if len(names) > 1 and any(map(is_shipped, names)):
        fail(f"{name}: no such file (a shipped design is given alone)" for name in names if is_shipped(name))


def check_writable(path: str | None, inputs: tuple[str, ...]) -> None:
    """Ends the command before any work is done, and anything written, where `path` cannot be written."""
    if path is None or path == STDOUT:
        return
    target = Path(path)
    if target.is_dir():
        fail([f"cannot write {path}: it is a folder"])
    if not target.parent.is_dir():
        fail([f"cannot write {path}: there is no folder {target.parent}"])
    if not os.access(target.parent, os.W_OK):
        fail([f"cannot write {path}: no permission to write in the folder {target.parent}"])
    if any(target.resolve() == Path(name).resolve() for name in inputs):
        fail([f"cannot write {path}: it is one of the input files"])


def deliver(path: str, text: str) -> None:
    from ..report import write_atomically

    if path == STDOUT:
        click.echo(text, nl=False)
    else:
        write_atomically(path, text)


def show_warnings(found: Iterable[Diagnostic]) -> None:
    """One line for each thing said, however often the input gives rise to it."""
    first: dict[tuple[str, str], Diagnostic] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for warning in found:
        said = (warning.message, warning.remedy)
        first.setdefault(said, warning)
        repeats[said] += 1
    for said, warning in first.items():
        more = f" [and {repeats[said] - 1} more like it]" if repeats[said] > 1 else ""
        click.secho(f"warning: {warning}{more}", err=True, dim=True)


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """What is wrong with the user's files ends the command with messages, not with a traceback."""
    try:
        yield
    except SpecError as error:
        fail(map(str, error.errors))
    except BrokenPipeError:
        raise  # the reader of a pipe has seen enough: click ends quietly
    except OSError as error:
        fail([str(error)])


def fail(messages: Iterable[str]) -> NoReturn:
    for message in messages:
        click.echo(f"error: {message}", err=True)
    raise SystemExit(BAD_INPUT)


def names_in(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def read_axes(texts: Iterable[str], files: tuple[str, ...]) -> dict[Any, Any]:
    """`AXIS=VALUES` of the command line, as `sweep` takes them.

    **Raises:** `SpecError` for text without `=` or without a name, and for an axis given twice.
    """
    over: dict[Any, Any] = {}
    for text in texts:
        name, values = _axis(text, files)
        if name in over:
            raise SpecError([Diagnostic(Place("", 0, text), "the axis is given twice", "merge the two")])
        over[name] = values
    return over


def _axis(text: str, files: tuple[str, ...]) -> tuple[Any, Any]:
    """The name or names of an axis, and its values."""
    from .._api import load
    from ..sweeps.values import FORMS, split

    names, equals, values = text.partition("=")
    named = tuple(split(names))
    if not equals or not named:
        missing = "no axis" if equals else "no `=`"
        raise SpecError([Diagnostic(Place("", 0, text), f"there is {missing}", f"write AXIS=VALUES; {FORMS}")])
    if named == ("sparse",):
        return "sparse", {name: load(name) if is_shipped(name) else load(*files, name) for name in split(values)}
    return (named[0] if len(named) == 1 else named), values


@contextmanager
def warnings_as_messages() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        click.secho(f"warning: {text}", err=True, dim=True)


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Ctrl-C ends the command with what is `kept`, in words."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"stopped{': ' if kept else ''}{kept}", err=True)
        # a compiler at work in another thread must not hold up the end
        os._exit(INTERRUPTED)
