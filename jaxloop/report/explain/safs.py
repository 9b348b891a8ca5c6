"""Gating and skipping: which directive counts, and the chance that it removes an access."""

from dataclasses import dataclass

import numpy as np

from ...program import SAF_KINDS, Action
from ...result import Context, Evaluation
from ...spec.sparse import ActionKind
from ..sparse import compacted, is_joint, outer_level, sparse_program
from .text import aligned, amount, chance, number, picojoules, section
from .tile import tile_size

_OF_ACCESSES = [SAF_KINDS[ActionKind.GATING], SAF_KINDS[ActionKind.SKIPPING]]
KIND_NAMES = {code: kind.value for kind, code in SAF_KINDS.items()} | {
    SAF_KINDS[ActionKind.SPATIAL_SKIPPING]: "spatial skipping",
    SAF_KINDS[ActionKind.POSITION_SKIPPING]: "position skipping",
}


@dataclass(frozen=True)
class Option:
    """One alternative of a group: what it does where.

    **Attributes:** `target`, `leaders`: tensors; `level`: where the accesses are removed, None if no level stores the
    target; `chance`: that an access is removed; `saving`: pJ of reading a tile once, times the chance.
    """

    target: int
    leaders: tuple[int, ...]
    level: int | None
    chance: float
    saving: float


def options_of(evaluation: Evaluation, context: Context, group: int) -> list[Option]:
    """The alternatives of a group of gating or skipping."""
    sparse = sparse_program(context)
    found = []
    for option, target in enumerate(np.asarray(sparse.saf_target)[group]):
        if target >= 0:
            leaders = np.flatnonzero(np.asarray(sparse.saf_leaders)[group, option])
            found.append(
                _option(evaluation, context, int(sparse.saf_level[group]), int(target), tuple(map(int, leaders)))
            )
    return found


def chosen_of(options: list[Option]) -> Option:
    """The one that saves most, the later one of equals (3.3)."""
    best = max(option.saving for option in options)
    return [option for option in options if option.saving == best][-1]


def _option(evaluation: Evaluation, context: Context, level: int, target: int, leaders: tuple[int, ...]) -> Option:
    keep = context.mapping.keep
    source = level if keep[level, target] else outer_level(context, level, target)
    if source is None:
        return Option(target, leaders, None, 0.0, 0.0)
    survives = np.prod([1.0 - float(evaluation.leader_empty[source, target, leader]) for leader in leaders])
    removed = 1.0 - float(survives)
    return Option(target, leaders, source, removed, _at_stake(evaluation, context, source, target) * removed)


def _at_stake(evaluation: Evaluation, context: Context, s: int, t: int) -> float:
    """pJ of reading a tile: data, and the metadata of the next inner level in whole words per unit (3.3)."""
    program, sparse = context.program, sparse_program(context)
    inner = next((q for q in reversed(range(s)) if context.mapping.keep[q, t]), s)
    units = float(np.asarray(evaluation.metadata_units)[inner, t].sum())
    words = float(evaluation.expected_words[s, t])
    words += float(np.floor(sparse.metadata_word_bits[s] / program.word_bits[s])) * units
    return float(program.action_energy[Action.READ, s, t] / program.block_size[s]) * words


def outer_saf(evaluation: Evaluation, context: Context, s: int, t: int) -> int | None:
    """The next level further out with gating or skipping of the tensor."""
    return next((q for q in range(s + 1, len(context.names.levels)) if evaluation.saf_kind[q, t]), None)


def saf_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    """What is gated or skipped here, and what levels further out have left."""
    sparse = sparse_program(context)
    lines = [*spatial_lines(evaluation, context, s, t), *position_lines(evaluation, context, s, t)]
    for group in np.flatnonzero(np.isin(sparse.saf_kind, _OF_ACCESSES)):
        options = options_of(evaluation, context, int(group))
        if any(option.target == t and option.level == s for option in options):
            lines += _group(evaluation, context, int(group), options)
    outer = outer_saf(evaluation, context, s, t)
    removed = float(evaluation.saf_chance[outer, t]) if outer is not None else 0.0
    if outer is not None:
        kind = KIND_NAMES[int(evaluation.saf_kind[outer, t])]
        lines.append(f"{kind} at {context.names.levels[outer]} further out removes p = {chance(removed)}")
    kind = KIND_NAMES.get(int(evaluation.saf_kind[s, t]))
    if kind is None:
        return section("Gating and skipping", "saf", [*lines, "nothing is gated or skipped here"])
    if not gates_or_skips(evaluation, s, t):
        return section("Gating and skipping", "saf", lines)
    own, local = evaluation.saf_chance[s, t], evaluation.saf_local_chance[s, t]
    lines.append(f"in effect: {kind} with q = {chance(own)} of all accesses")
    if outer is not None:
        formula = f"1 - (1 - {chance(own)}) / (1 - {chance(removed)})"
        lines.append(f"of those that are left: 1 - (1 - q) / (1 - p) = {formula} = {chance(local)}")
    return section("Gating and skipping", "saf", lines)


def has_saf(evaluation: Evaluation, s: int, t: int) -> bool:
    """Whether the level gates or skips the tensor, spatial skipping included."""
    return int(evaluation.saf_kind[s, t]) not in (0, SAF_KINDS[ActionKind.POSITION_SKIPPING])


def gates_or_skips(evaluation: Evaluation, s: int, t: int) -> bool:
    """Whether accesses to the tensor are removed at the level."""
    return int(evaluation.saf_kind[s, t]) in _OF_ACCESSES


def spatial_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    """Spatial skipping removes no access of its level; it leaves out children (3.5)."""
    sparse, names, lines = sparse_program(context), context.names, []
    for group in np.flatnonzero(np.asarray(sparse.saf_kind) == SAF_KINDS[ActionKind.SPATIAL_SKIPPING]):
        if sparse.saf_level[group] == s and sparse.saf_target[group, 0] == t:
            leaders = [names.tensors[c] for c in np.flatnonzero(np.asarray(sparse.saf_leaders)[group, 0])]
            idle = chance(evaluation.saf_chance[s, t])
            lines.append(
                f"spatial skipping of {names.tensors[t]} on {' and '.join(leaders)}, asked for at {names.levels[s]}: "
                f"a child has nothing to do with chance {idle} and is left out"
            )
    return lines


def position_lines(evaluation: Evaluation, context: Context, s: int, t: int) -> list[str]:
    """Position skipping removes no access of its target; it leaves out steps (docs/model.md 24)."""
    tensors = compacted(context)
    if s > 0 or t not in tensors:
        return []
    name, dense = context.names.tensors[t], float(evaluation.compute_x * evaluation.compute_y)
    words, children = tile_size(context, 0, t), _children(context, t)
    steps = np.ceil(words / children)
    together = f" of {' and '.join(context.names.tensors[q] for q in tensors)} together" if len(tensors) > 1 else ""
    share = float(evaluation.compute_instances) / dense if dense else 0.0
    return [
        f"position skipping of {name}: the nonzeros among {amount(words, 'word')} are dealt to "
        f"{number(children)} {'child' if children == 1 else 'children'} at a time, the other positions left out; "
        f"{amount(steps, 'step')} where all are nonzero, 1 where none is",
        f"  share of the children in use{together}: {chance(share)}",
        f"  average units = dense units x share = {number(dense)} x {chance(share)} = "
        f"{number(evaluation.compute_instances)}",
    ]


def _children(context: Context, t: int) -> float:
    """Children of level 0 that hold different words of a tensor."""
    moves = (np.asarray(context.program.projection_extent)[t] > 0).any(axis=0)
    bounds = np.asarray(context.mapping.spatial_x)[0] * np.asarray(context.mapping.spatial_y)[0]
    return float(np.where(moves, bounds, 1.0).prod())


def steps_of_others(context: Context, s: int, t: int) -> list[int]:
    """The tensors whose position skipping leaves out reads of this one."""
    is_output = bool(context.program.is_output[t])
    return [] if s > 0 or is_output else [other for other in compacted(context) if other != t]


def _group(evaluation: Evaluation, context: Context, group: int, options: list[Option]) -> list[str]:
    names, sparse = context.names, sparse_program(context)
    kind, level = KIND_NAMES[int(sparse.saf_kind[group])], names.levels[int(sparse.saf_level[group])]
    choice = chosen_of(options)
    lines = []
    for place, option in enumerate(options, start=1):
        what = f"{kind} of {names.tensors[option.target]} on {' and '.join(names.tensors[c] for c in option.leaders)}"
        where = _where(context, int(sparse.saf_level[group]), option)
        if len(options) > 1:
            verdict = "chosen" if option is choice else "not chosen"
            what = f"option {place} of {len(options)}, {verdict}: {what}"
            where += f"; estimated to save {picojoules(option.saving)} pJ per tile"
        lines += [f"{what}, asked for at {level}{where}", *_leaders(evaluation, context, option)]
    return lines


def _where(context: Context, asked: int, option: Option) -> str:
    if option.level is None:
        return "; no level stores it"
    return "" if option.level == asked else f", which takes place at {context.names.levels[option.level]}"


def _leaders(evaluation: Evaluation, context: Context, option: Option) -> list[str]:
    if option.level is None:
        return []
    tensors = context.names.tensors
    words = evaluation.leader_words[option.level, option.target]
    empty = evaluation.leader_empty[option.level, option.target]
    rows = [
        (f"  leader tile of {tensors[c]}:", f"{amount(words[c], 'word')},", f"P(empty) = {chance(empty[c])}")
        for c in option.leaders
    ]
    if is_joint(context):
        return [*aligned(rows, left=(0, 2)), "  counted where the tiles of both operands meet (docs/model.md 25)"]
    factors = " x ".join(f"(1 - {chance(empty[c])})" for c in option.leaders)
    return [*aligned(rows, left=(0, 2)), f"  chance = 1 - {factors} = {chance(option.chance)}"]
