"""The parts of the table that only sparse designs have: operations, tiles and accesses by what becomes of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from ..program import Action
from ..result import Context, Evaluation, Violation
from .columns import Columns, Group
from .numbers import count_text, energy_unit, percent
from .sparse import accessed_bits, compacted, may_overbook, metadata_bits, used_instances

_ACTIONS = {Action.READ: "reads", Action.FILL: "fills", Action.UPDATE: "updates"}
_DIM, _BAD = "dim", "bold red"

Cells = tuple[RenderableType, ...]


def operations(evaluation: Evaluation, context: Context) -> Columns:
    """What becomes of the operations that the workload asks for."""
    wanted = float(evaluation.computes)
    counts = np.asarray(evaluation.computes_by_fate, dtype=float)
    numbers = (wanted, *counts, wanted - counts.sum())
    shares = tuple(f"{percent(number / wanted)} %" if wanted else "-" for number in numbers)
    labels = ("algorithmic", "actual", "gated", "skipped", "eliminated")
    group = Group(
        heads=tuple((label, "") for label in labels),
        cells=(tuple(map(count_text, numbers)), tuple(Text(share, style=_DIM) for share in shares)),
    )
    name = context.names.compute
    return Columns("Operations", "of all units", (("unit", ""),), ((name,), (name,)), (group,))


def tiles(evaluation: Evaluation, context: Context) -> Columns:
    """What levels hold, on average and at most, and what it costs."""
    rows: list[tuple[str, str]] = []
    words: list[Cells] = []
    metadata: list[Cells | None] = []
    costs: list[Cells | None] = []
    scale, unit = energy_unit(evaluation.energy_pj)
    expected_bits = metadata_bits(context, np.asarray(evaluation.metadata_units))
    for s in reversed(range(len(context.names.levels))):
        for t in context.tensors_at(s):
            rows.append((context.names.levels[s], context.names.tensors[t]))
            words.append(
                (
                    count_text(evaluation.tile_words[s, t]),
                    count_text(evaluation.expected_words[s, t]),
                    count_text(evaluation.stored_words[s, t]),
                    _share(evaluation.tile_empty[s, t]),
                )
            )
            bits = expected_bits[s, t], evaluation.metadata_bits[s, t]
            metadata.append(tuple(map(count_text, bits)) if max(bits) > 0 else None)
            energy = evaluation.energy_pj_by_tensor[s, t] + evaluation.address_energy_pj[s, t]
            costs.append((_average(evaluation.instances[s, t]), f"{energy / scale:,.3f}"))
        if context.tensors_at(s):
            rows.append((context.names.levels[s], "capacity"))
            words.append(("", "", _capacity(evaluation, s, Violation.CAPACITY), ""))
            has_metadata = evaluation.metadata_bits[s].sum() > 0
            metadata.append(("", _capacity(evaluation, s, Violation.METADATA_CAPACITY)) if has_metadata else None)
            costs.append((Text(f"of {count_text(used_instances(evaluation, context)[s].max())}", style=_DIM), ""))
    groups = (
        Group((("tile", ""), ("nonzero", "expected"), ("stored", "at most"), ("empty", "%")), tuple(words)),
        Group((("metadata", "expected"), ("metadata", "at most")), tuple(metadata)),
        Group((("instances", "average"), ("energy", unit)), tuple(costs)),
    )
    hint = "words, and bits of metadata, per instance"
    return Columns("Tiles", hint, (("level", ""), ("tensor", "")), tuple(rows), groups)


def accesses(evaluation: Evaluation, context: Context) -> Columns:
    """Words and bits of metadata that are read, filled and updated."""
    rows: list[tuple[str, str, str]] = []
    words: list[Cells | None] = []
    bits: list[Cells | None] = []
    for s in reversed(range(len(context.names.levels))):
        for t in context.tensors_at(s):
            for action, of_words, of_bits in _nonzero(evaluation, context, s, t):
                rows.append((context.names.levels[s], context.names.tensors[t], action))
                words.append(_access_cells(of_words) if of_words[0] > 0 else None)
                bits.append(tuple(map(_or_dot, of_bits)) if of_bits.any() else None)
    labels = ("algorithmic", "actual", "gated", "skipped", "eliminated")
    groups = (
        Group(tuple((label, "words") for label in labels), tuple(words)),
        Group(tuple((label, "bits") for label in labels[1:4]), tuple(bits)),
    )
    hint = "words, and bits of metadata, per instance; rows of zeros are left out"
    return Columns("Accesses", hint, (("level", ""), ("tensor", ""), ("", "")), tuple(rows), groups)


def notes(context: Context) -> list[str]:
    """What the words in the heads mean."""
    planned = [name for s, name in enumerate(context.names.levels) if may_overbook(context, s)]
    found = [*_NOTES, *(f"Stored at most: {name} may be overbooked, the planned tiles are shown." for name in planned)]
    if compacted(context):
        tensors = " and ".join(context.names.tensors[t] for t in compacted(context))
        found.append(
            f"Position skipping of {tensors} at {context.names.levels[0]}: reads of steps left out are eliminated too; "
            "data are averages over all tiles, empty ones included."
        )
    return found


_NOTES = (
    "Eliminated: zeros that a compressed tensor does not store, and what SAFs further out keep from arriving.",
    "Empty: tiles without nonzeros; below a level with metadata they do not arrive, and averages are over the others.",
)


def _nonzero(evaluation: Evaluation, context: Context, s: int, t: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """For each action that happens: its name, words (algorithmic, then by fate) and bits (by fate)."""
    bits = accessed_bits(evaluation, context)
    for action, name in _ACTIONS.items():
        dense = float(getattr(evaluation, name)[s, t])
        words = np.array([dense, *evaluation.accesses[:, action, s, t]])
        if words.any() or bits[:, action, s, t].any():
            yield name, words, bits[:, action, s, t]


def _access_cells(words: np.ndarray) -> Cells:
    algorithmic, by_fate = words[0], words[1:]
    return (count_text(algorithmic), *map(_or_dot, [*by_fate, algorithmic - by_fate.sum()]))


def _or_dot(number: float) -> RenderableType:
    return count_text(number) if number else Text("-", style=_DIM)


def _share(chance: Any) -> RenderableType:
    return percent(chance) if chance else Text("-", style=_DIM)


def _average(instances: Any) -> str:
    return f"{float(instances):,.2f}"


def _capacity(evaluation: Evaluation, s: int, violation: Violation) -> Text:
    capacity = evaluation.capacity_words[s] if violation == Violation.CAPACITY else evaluation.capacity_bits[s]
    if not np.isfinite(capacity):
        return Text("unlimited", style=_DIM)
    over = int(evaluation.violation[s + 1]) == violation
    return Text(f"of {count_text(capacity)}", style=_BAD if over else _DIM)
