"""The executables of this process: how many it has made, and room for more."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

import jax

from .room import is_crowded

_T = TypeVar("_T")

KINDS = ("closed_form", "enumerating", "grid", "relaxed")

_TRACES: Counter[str] = Counter()
_HOLDERS: list[Callable[[], None]] = []


def count_trace(kind: str) -> None:
    """To be called from inside a traced function: once per executable."""
    _TRACES[kind] += 1


def compilations() -> dict[str, int]:
    """Executables that this process has made, by kind: what the tests count."""
    return {kind: _TRACES[kind] for kind in KINDS}


def quick_options() -> dict[str, Any] | None:
    """Options of executables that run seldom: on CPUs the compiler takes half the time."""
    if jax.default_backend() != "cpu":
        return None
    return {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def on_crowding(drop: Callable[[], None]) -> None:
    """Registers what drops the executables that somebody holds."""
    _HOLDERS.append(drop)


def let_go() -> None:
    """Drops all executables."""
    for drop in _HOLDERS:
        drop()


def make_room() -> None:
    """Lets go of all executables if the process can hold few more. Looks only where something was compiled since."""
    traces = sum(compilations().values())
    if traces != _TRACES["known"] and is_crowded():
        let_go()
    _TRACES["known"] = traces


def interruptible(work: Callable[[], _T]) -> _T:
    """The result of `work`, which another thread does: Ctrl-C is heard at once, and not when the compiler is done."""
    done: Future[_T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # whatever it is, it belongs to whoever waits
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return done.result()
