"""States of reductions on disk, so that an interrupted sweep goes on where it was."""

import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .partials import partial_of, remove
from .reduce import State


@dataclass(frozen=True)
class Checkpoint:
    """A file beside the output, gone when that is complete. `definition`: of the sweep and its reductions."""

    path: Path
    definition: dict[str, Any]

    @staticmethod
    def beside(out: Path, definition: dict[str, Any]) -> "Checkpoint":
        return Checkpoint(out.with_name(f".{out.name}.checkpoint.npz"), definition)

    def save(self, done: int, states: dict[str, State]) -> None:
        """Replaces the file in one step."""
        flat: dict[str, Any] = {
            f"{name}/{leaf}": array for name, state in states.items() for leaf, array in state.items()
        }
        notes = json.dumps({"definition": self.definition, "done": done, "leaves": sorted(flat)})
        partial = partial_of(self.path)
        try:
            with partial.open("wb") as file:
                np.savez(file, notes=np.asarray(notes), **flat)
            os.replace(partial, self.path)
        finally:
            remove(partial)

    def load(self) -> tuple[int, dict[str, State]] | None:
        """The number of blocks done and the states; None where there is nothing, something damaged, or what another
        sweep has left."""
        try:
            with self.path.open("rb") as file, np.load(file) as found:
                notes = json.loads(str(found["notes"]))
                flat = {name: found[name] for name in found.files if name != "notes"}
        except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile):
            return None
        if notes["definition"] != self.definition or notes["leaves"] != sorted(flat):
            return None
        states: dict[str, State] = {}
        for name, array in flat.items():
            reduction, _, leaf = name.rpartition("/")
            states.setdefault(reduction, {})[leaf] = array
        return notes["done"], states

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
