"""How far a search is: evaluated, valid, rate, best, time left."""

import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Live:
    """A line on the standard error while a search runs. `total`: evaluations, None without a limit; `seconds`: time
    limit, None without."""

    def __init__(self, total: int | None, seconds: float | None):
        columns = (
            TextColumn("{task.fields[told]}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._seconds = seconds
        self._task = self._progress.add_task("", total=seconds if total is None else total, told="compiling")
        self._by_time = total is None
        self._started = time.monotonic()

    def tell(self, search: Any) -> None:
        """**Arguments:** `search`: the running search, with its `tally`."""
        tally = search.tally
        rate = tally.evaluated / max(time.monotonic() - self._started, 1e-9)
        told = f"{tally.evaluated:,} evaluated, {tally.valid:,} valid, {rate:,.0f}/s, best {float(tally.best[0]):.6g}"
        done = time.monotonic() - self._started if self._by_time else search.spent
        self._progress.update(self._task, completed=done, told=told)

    def __enter__(self) -> "Live":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
