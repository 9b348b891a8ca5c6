"""The loop around a method: evaluations in order, budgets, checkpoints, progress."""

import io
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
from .space import MapSpace
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
    after every batch. `is_cut`: the budget left a step with fewer evaluations than it asked for.
    """

    scorer: Scorer
    tally: Tally
    budget: Budget
    batch: int
    tell: Callable[["Search"], None]
    started: float = field(default_factory=time.monotonic)
    before: float = 0.0
    is_cut: bool = False

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
        self.is_cut |= count < len(mapping.temporal)
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

    def save(self, state: bytes, search: Search) -> None:
        """`state`: of `frozen`."""
        partial = partial_of(self.path)
        try:
            with partial.open("wb") as file:
                pickle.dump((self.definition, search.scorer.space, state, search.seconds), file)
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
                definition, space, state, seconds = pickle.load(file)
        except (pickle.UnpicklingError, EOFError, ValueError, AttributeError, ImportError, IndexError) as error:
            raise self._refusal(f"no checkpoint can be read there: {error}") from None
        if definition != self.definition:
            raise self._refusal("there is the checkpoint of another search")
        return *_Thawing(io.BytesIO(state), space).load(), seconds

    def _refusal(self, message: str) -> SpecError:
        return SpecError([Diagnostic(Place(str(self.path)), message, "delete it, or give another path")])


class _Freezing(pickle.Pickler):
    """Leaves out the space, which is large and never changes."""

    def persistent_id(self, obj: Any) -> str | None:
        return "space" if isinstance(obj, MapSpace) else None


class _Thawing(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, space: MapSpace):
        super().__init__(file)
        self._space = space

    def persistent_load(self, pid: Any) -> MapSpace:
        return self._space


def frozen(method: Method, search: Search) -> bytes:
    """The state between two steps."""
    file = io.BytesIO()
    _Freezing(file).dump((method, search.tally))
    return file.getvalue()


def drive(method: Method, search: Search, checkpoint: Checkpoint | None) -> str:
    """Steps until a reason to stop, which it returns; on Ctrl-C as well. A checkpoint holds the state after the last
    complete step, so that the search goes on as if it had not been interrupted."""
    saved, state = time.monotonic(), b""
    try:
        while True:
            if checkpoint is not None and not search.is_cut:
                state = frozen(method, search)
                if time.monotonic() - saved > CHECKPOINT_SECONDS:
                    checkpoint.save(state, search)
                    saved = time.monotonic()
            try:
                reason = method.step(search)
            except Exhausted as spent:
                reason = str(spent)
            if reason is not None:
                return reason
    except KeyboardInterrupt:
        return "stopped by the user"
    finally:
        if checkpoint is not None and state:
            checkpoint.save(state, search)


def definition_of(parts: dict[str, Any]) -> str:
    return repr(sorted(parts.items()))
