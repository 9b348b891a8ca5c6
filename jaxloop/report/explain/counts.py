"""From the accesses of the dense model to those that take place."""

from collections.abc import Iterator

import numpy as np

from ...program import Action
from ...result import Context, Evaluation
from ..sparse import rank_formats, sparse_program
from .safs import gates_or_skips, has_saf, outer_saf, steps_of_others
from .text import aligned, chance, number, section

ACTIONS = {Action.READ: "reads", Action.FILL: "fills", Action.UPDATE: "updates"}
_HEAD = ("algorithmic", "stored", "arriving", "actual", "gated", "skipped")


def count_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    """Words, and in a sparse design metadata, from stage to stage."""
    if context.program.sparse is None:
        rows = [(name, number(getattr(evaluation, name)[s, t])) for name in ACTIONS.values()]
        return section("Words per instance", "words", aligned(rows))
    rows: list[tuple[str, ...]] = [("", *_HEAD)]
    for action, name in ACTIONS.items():
        fates = np.asarray(evaluation.accesses)[:, action, s, t]
        stages = (*stages_of(evaluation, context, action, s, t), *fates)
        rows.append((name, *map(number, stages)))
    lines = [*aligned(rows), *_rules(evaluation, context, s, t)]
    return [*section("Words per instance", "words", lines), *_metadata_lines(evaluation, context, s, t)]


def stages_of(evaluation: Evaluation, context: Context, action: Action, s: int, t: int) -> tuple[float, float, float]:
    """Words of the dense model, those that the representation stores, and those that SAFs further out let through."""
    dense = float(getattr(evaluation, ACTIONS[action])[s, t])
    removed = _down(context, dense * (1.0 - float(evaluation.expected_density[s, t])))
    stored = dense - removed if rank_formats(context, s, t) else dense
    return dense, stored, float(np.asarray(evaluation.accesses)[:, action, s, t].sum())


def _down(context: Context, value: float) -> float:
    return float(np.floor(value)) if context.program.structure.conventions.integer_counts else value


def _rules(evaluation: Evaluation, context: Context, s: int, t: int) -> Iterator[str]:
    whole = context.program.structure.conventions.integer_counts
    down, up = ("floor", "ceil") if whole else ("", "")
    if rank_formats(context, s, t):
        yield f"stored = n - {down}(n x (1 - {chance(evaluation.expected_density[s, t])})): zeros are left out"
    else:
        yield "stored = algorithmic: without metadata zeros are stored too"
    outer, others = outer_saf(evaluation, context, s, t), steps_of_others(context, s, t)
    if others:
        names = " and ".join(context.names.tensors[other] for other in others)
        _, stored, arriving = stages_of(evaluation, context, Action.READ, s, t)
        share = f", {chance(arriving / stored)} of the stored" if outer is None and stored > 0 else ""
        yield f"arriving reads: as below, and once in each step that position skipping of {names} leaves{share}"
    if outer is None:
        yield "arriving = stored: nothing is gated or skipped further out"
    else:
        level = context.names.levels[outer]
        yield f"arriving = n - {down}(n x {chance(evaluation.saf_chance[outer, t])}): the rest ends at {level}"
    if gates_or_skips(evaluation, s, t):
        local = chance(evaluation.saf_local_chance[s, t])
        is_output = bool(context.program.is_output[t])
        reads = up if is_output else down
        updates = f", of updates {down}(n x {local})" if is_output else ""
        yield f"removed of arriving reads: {reads}(n x {local}){updates}; of fills none"


def _metadata_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    ranks = len(rank_formats(context, s, t))
    if not ranks:
        return []
    sparse, tile = sparse_program(context), max(float(evaluation.tile_words[s, t]), 1.0)
    expected = np.asarray(evaluation.metadata_units)[s, t, :ranks]
    accesses = np.asarray(evaluation.metadata_accesses)[:, :, s, t, :ranks]
    bits = np.stack([sparse.metadata_bits[s, t, :ranks], sparse.payload_bits[s, t, :ranks]], axis=-1)
    rows: list[tuple[str, ...]] = [("", "", "stored", "arriving", "actual", "gated", "skipped", "word bits")]
    for action, name in ACTIONS.items():
        tiles = float(getattr(evaluation, name)[s, t]) / tile
        for rank in reversed(range(ranks)):
            for kind, label in enumerate(("metadata", "payload")):
                stored = _up(context, expected[rank, kind] * tiles)
                fates = accesses[:, action, rank, kind]
                if stored or fates.any():
                    numbers = (stored, fates.sum(), *fates, bits[rank, kind])
                    rows.append((name, f"rank {rank} {label}", *map(number, numbers)))
    if len(rows) == 1:
        return section("Units of metadata per instance", "metadata", ["none"])
    ceil = "ceil" if context.program.structure.conventions.integer_counts else ""
    rules = [
        f"stored = {ceil}(expected units x n / {number(tile)}), n words of the dense model",
        "arriving: what SAFs further out let through; each of the fates as for words, on ranks of the next inner level",
    ]
    two_levels = outer_saf(evaluation, context, s, t) is not None and has_saf(evaluation, s, t)
    if two_levels and context.program.structure.conventions.update_counts_for_metadata_reads:
        rules.append("reads arrive in the number of updates, as in the reference where two levels gate or skip (Q3)")
    return section("Units of metadata per instance", "metadata", [*aligned(rows, left=(0, 1)), *rules])


def _up(context: Context, value: float) -> float:
    return float(np.ceil(value)) if context.program.structure.conventions.integer_counts else value
