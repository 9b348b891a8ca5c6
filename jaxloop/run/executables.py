"""The executables of this process: how many it has made, and room for more."""

from collections import Counter
from collections.abc import Callable

from .room import is_crowded

KINDS = ("closed_form", "enumerating", "grid")

_TRACES: Counter[str] = Counter()
_HOLDERS: list[Callable[[], None]] = []


def count_trace(kind: str) -> None:
    """To be called from inside a traced function: once per executable."""
    _TRACES[kind] += 1


def compilations() -> dict[str, int]:
    """Executables that this process has made, by kind: what the tests count."""
    return {kind: _TRACES[kind] for kind in KINDS}


def on_crowding(let_go: Callable[[], None]) -> None:
    """Registers what drops the executables that somebody holds."""
    _HOLDERS.append(let_go)


def make_room() -> None:
    """Lets go of all executables if the process can hold few more. Looks only where something was compiled since."""
    traces = sum(compilations().values())
    if traces != _TRACES["known"] and is_crowded():
        for let_go in _HOLDERS:
            let_go()
    _TRACES["known"] = traces
