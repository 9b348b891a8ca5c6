"""How far a sweep is."""

from collections.abc import Callable
from threading import Lock
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress as Bar,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s", style="progress.data.speed")


class Progress:
    """A bar on the standard error with rate and time left."""

    def __init__(self, points: int, description: str = "points"):
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=10.0)
        self._task = self._bar.add_task(description, total=points)

    def advance(self, points: int, is_old: bool = False) -> None:
        """`is_old`: found done, so that they do not count for the rate."""
        if is_old:
            self._bar.update(self._task, completed=points)
            self._bar.reset(self._task, completed=points)
        else:
            self._bar.advance(self._task, points)

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


class silent:
    """Tells a function, or nobody."""

    def __init__(self, points: int, tell: Callable[[int, int], None] | None):
        self._points, self._tell, self._done, self._lock = points, tell, 0, Lock()

    def advance(self, points: int, is_old: bool = False) -> None:
        del is_old
        with self._lock:
            self._done += points
            if self._tell is not None:
                self._tell(self._done, self._points)

    def __enter__(self) -> "silent":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass
