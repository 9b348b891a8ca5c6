"""The loop around a method: evaluations in order, budgets, checkpoints, progress."""

import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .._errors import Diagnostic, Place, SpecError
from ..program import Mapping
from ..sweeps.partials import partial_of, remove
from .scorer import Scorer, Scores
from .tally import Tally, some_of

CHECKPOINT_SECONDS = 5.0


class Exhausted(Exception):
    """The budget is spent; the reason in words."""


@dataclass(frozen=True)
class Budget:
    """When to stop: after so many evaluations, seconds, valid mappings, or valid mappings in a row that are no better.
    None: never."""

    evaluations: int | None = None
    seconds: float | None = None
    valid: int | None = None
    patience: int | None = None


@dataclass
class Search:
    """What a method works with.

    **Attributes:** `batch`: mappings evaluated at once; results do not depend on it. `tell`: called with this object
    after every batch.
    """

    scorer: Scorer
    tally: Tally
    budget: Budget
    batch: int
    tell: Callable[["Search"], None]
    started: float = field(default_factory=time.monotonic)
    before: float = 0.0

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started

    @property
    def spent(self) -> int:
        return self.tally.evaluated + self.tally.relaxed

    @property
    def left(self) -> int:
        """Evaluations, those of the relaxed model included."""
        return 2**62 if self.budget.evaluations is None else max(0, self.budget.evaluations - self.spent)

    def evaluate(self, mapping: Mapping) -> Scores:
        """Scores of mappings [lane], of fewer if the budget ends before.

        **Raises:** `Exhausted` when no evaluation is left.
        """
        parts: list[Scores] = []
        count = min(len(mapping.temporal), self.left)
        for start in range(0, count, self.batch):
            self._check(bool(parts))
            piece = some_of(mapping, slice(start, min(start + self.batch, count)))
            scores = self.scorer(piece)
            self.tally.add(piece, scores)
            parts.append(scores)
            self.tell(self)
        if not parts:
            raise Exhausted("the budget of evaluations is spent")
        return Scores(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in Scores.__dataclass_fields__)
        )

    def count_relaxed(self, evaluations: int) -> None:
        """Evaluations of the relaxed model."""
        self._check(False)
        self.tally.relaxed += evaluations
        self.tell(self)

    def _check(self, is_within: bool) -> None:
        """`is_within` a step of the method: only the clock stops that, so that results do not depend on batches."""
        if self.budget.seconds is not None and self.seconds >= self.budget.seconds:
            raise Exhausted("the time is up")
        if is_within:
            return
        if self.budget.valid is not None and self.tally.valid >= self.budget.valid:
            raise Exhausted("enough valid mappings")
        if self.budget.patience is not None and self.tally.since_best >= self.budget.patience:
            raise Exhausted("no improvement for as long as was asked")


class Method(Protocol):
    """A way to search. What it needs to go on after an interruption are its attributes."""

    def step(self, search: Search) -> str | None:
        """Some evaluations; the reason why there are no more, or None.

        **Raises:** `Exhausted`.
        """
        ...


@dataclass(frozen=True)
class Checkpoint:
    """A file with the state of a search. `definition` tells which search it belongs to."""

    path: Path
    definition: str

    def save(self, method: Method, search: Search) -> None:
        partial = partial_of(self.path)
        try:
            with partial.open("wb") as file:
                pickle.dump((self.definition, method, search.tally, search.seconds), file)
            os.replace(partial, self.path)
        finally:
            remove(partial)

    def load(self) -> tuple[Method, Tally, float] | None:
        """None where there is no file.

        **Raises:** `SpecError` for what is damaged or belongs to another search.
        """
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file:
                definition, method, tally, seconds = pickle.load(file)
        except (pickle.UnpicklingError, EOFError, ValueError, AttributeError, ImportError, IndexError) as error:
            raise self._refusal(f"no checkpoint can be read there: {error}") from None
        if definition != self.definition:
            raise self._refusal("there is the checkpoint of another search")
        return method, tally, seconds

    def _refusal(self, message: str) -> SpecError:
        return SpecError([Diagnostic(Place(str(self.path)), message, "delete it, or give another path")])


def drive(method: Method, search: Search, checkpoint: Checkpoint | None) -> str:
    """Steps until a reason to stop, which it returns; on Ctrl-C as well, the checkpoint written."""
    saved = time.monotonic()
    try:
        while True:
            try:
                reason = method.step(search)
            except Exhausted as spent:
                reason = str(spent)
            if reason is not None:
                break
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                checkpoint.save(method, search)
                saved = time.monotonic()
    except KeyboardInterrupt:
        reason = "stopped by the user"
    if checkpoint is not None:
        checkpoint.save(method, search)
    return reason


def definition_of(parts: dict[str, Any]) -> str:
    return repr(sorted(parts.items()))
