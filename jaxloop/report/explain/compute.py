"""Operations: which arrive, and what the states of their operands make of them (spec/sparse.md section 4)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from ...program import Fate
from ...result import Context, Evaluation
from ..sparse import compacted, is_joint, rank_formats, sparse_program
from .energy import compute_items, item_table
from .safs import has_saf
from .text import aligned, amount, chance, number, picojoules, section
from .tile import operand_density

NONZERO, ZERO, ABSENT = "nonzero", "zero", "absent"


@dataclass(frozen=True)
class Operand:
    """One of the two tensors that are only read.

    **Attributes:** `density`: share of nonzeros; `saf_level`: the innermost level that gates or skips it, None if
    there is none; `removed`: chance that it removes an operation; `has_metadata`: zeros do not reach the compute units;
    `states`: chances of an operand that arrives to be nonzero, zero, absent; `is_compacted`: by position skipping.
    """

    tensor: int
    density: float
    saf_level: int | None
    removed: float
    has_metadata: bool
    states: dict[str, float]
    is_compacted: bool


@dataclass(frozen=True)
class Removal:
    """What a directive removes of the operations: `share` of those that come to it, `left` remain."""

    tensor: int
    what: str
    share: float
    left: float


def arriving(evaluation: Evaluation, context: Context) -> list[Removal]:
    """Operations that are left after the SAF of each operand that has one and its position skipping, in the order of
    the tensors."""
    left, stages = float(evaluation.computes), []
    for t in _read_only(context):
        s = _innermost_saf(evaluation, context, t)
        shares: list[tuple[str, float]] = []
        if s is not None:
            shares.append((f"gating or skipping at {context.names.levels[s]}", float(evaluation.saf_chance[s, t])))
        if t in compacted(context):
            where = f"position skipping at {context.names.levels[0]}"
            shares.append((where, 1.0 - operand_density(evaluation, context, t)))
        for what, share in shares:
            removed = left * share
            left -= float(np.floor(removed)) if context.program.structure.conventions.integer_counts else removed
            stages.append(Removal(t, what, share, left))
    return stages


def operands(evaluation: Evaluation, context: Context) -> list[Operand]:
    """The operands and their states, given what SAFs have removed."""
    conventions, tensors = context.program.structure.conventions, _read_only(context)
    levels = [_innermost_saf(evaluation, context, t) for t in tensors]
    chances = [0.0 if s is None else float(evaluation.saf_chance[s, t]) for s, t in zip(levels, tensors, strict=True)]
    found = []
    for place, t in enumerate(tensors):
        density = _rounded(operand_density(evaluation, context, t), conventions.six_decimal_densities)
        # the SAF of the other operand is taken to be conditioned on this one: what it lets through is not zero
        passed = 1.0 - _rounded(chances[1 - place], conventions.six_decimal_safs)
        full = density / passed if passed > 0 else density
        full = min(full, 1.0) if conventions.clamped_states else full
        inner = next(s for s in range(len(context.names.levels)) if context.mapping.keep[s, t])
        has_metadata = bool(rank_formats(context, inner, t))
        missing, present = (ABSENT, ZERO) if has_metadata else (ZERO, ABSENT)
        is_compacted = t in compacted(context)
        full = 1.0 if is_compacted else full
        states = {NONZERO: full, missing: 1.0 - full, present: 0.0}
        found.append(Operand(t, density, levels[place], chances[place], has_metadata, states, is_compacted))
    return found


@dataclass(frozen=True)
class Pair:
    """A pair of operand states, its chance, and what becomes of the operation; None: it is eliminated."""

    states: tuple[str, str]
    chance: float
    fate: Fate | None


def pairs(evaluation: Evaluation, context: Context) -> list[Pair]:
    """All pairs of states that occur."""
    first, second = operands(evaluation, context)
    found = []
    for states in product((NONZERO, ZERO, ABSENT), (NONZERO, ZERO, ABSENT)):
        likely = first.states[states[0]] * second.states[states[1]]
        if states == (ABSENT, ABSENT) and _complements(context, first, second):
            likely = 1.0 - first.states[NONZERO] * second.states[NONZERO]
        if likely > 0:
            found.append(Pair(states, likely, _fate(context, states)))
    return found


def _complements(context: Context, first: Operand, second: Operand) -> bool:
    """Whether all pairs that are not both nonzero count as eliminated."""
    both = first.saf_level is not None and second.saf_level is not None
    return both and context.program.structure.conventions.double_sided_complement


def _fate(context: Context, states: tuple[str, str]) -> Fate | None:
    sparse = sparse_program(context)
    if states == (ABSENT, ABSENT):
        return None
    if ABSENT in states and sparse.compute_skipping:
        return Fate.SKIPPED
    return Fate.GATED if states != (NONZERO, NONZERO) and sparse.compute_gating else Fate.ACTUAL


def compute_lines(evaluation: Evaluation, context: Context) -> list[str]:
    """Operations, energy and cycles of the compute units."""
    items = compute_items(evaluation, context)
    total = picojoules(evaluation.compute_energy_pj)
    unit, units = context.names.compute, amount(evaluation.compute_instances, "unit")
    lines = [f"{unit}: the compute units", *section("Operations", "computes", _operations(evaluation, context))]
    lines += section("Energy", "energy", [*item_table(items, "operations"), f"all units: {total} pJ"])
    busy = evaluation.computes_by_fate[Fate.ACTUAL] + evaluation.computes_by_fate[Fate.GATED]
    cycles = f"{number(busy)} actual and gated operations / {units} = {number(evaluation.compute_cycles)} cycles"
    return [*lines, *section("Time", "time", [cycles])]


def _operations(evaluation: Evaluation, context: Context) -> Iterator[str]:
    yield f"algorithmic: {number(evaluation.computes)}, the product of all loop bounds"
    if context.program.sparse is None:
        return
    if is_joint(context):
        yield "both operands are real data: pairs of nonzeros are counted where operations meet them (docs/model.md 25)"
        yield _in_all(evaluation)
        return
    names, left = context.names, float(evaluation.computes)
    down = "floor" if context.program.structure.conventions.integer_counts else ""
    for stage in arriving(evaluation, context):
        formula = f"{number(left)} - {down}({number(left)} x {chance(stage.share)})"
        what, _, where = stage.what.partition(" at ")
        yield f"{what} of {names.tensors[stage.tensor]} at {where} leaves {formula} = {number(stage.left)}"
        left = stage.left
    first, second = operands(evaluation, context)
    yield from _state_lines(context, first, second)
    yield from _state_lines(context, second, first)
    yield f"what becomes of the {number(left)} that arrive, by pairs of operand states:"
    yield from aligned([_pair_row(context, pair, left) for pair in pairs(evaluation, context)], left=(0, 1, 2, 4))
    yield _in_all(evaluation)


def _in_all(evaluation: Evaluation) -> str:
    counts = [float(count) for count in evaluation.computes_by_fate]
    eliminated = float(evaluation.computes) - sum(counts)
    actual, gated, skipped, gone = map(number, (*counts, eliminated))
    return f"in whole operations: actual {actual}, gated {gated}, skipped {skipped}; eliminated {gone}"


def _state_lines(context: Context, operand: Operand, other: Operand) -> Iterator[str]:
    names, full = context.names.tensors, chance(operand.states[NONZERO])
    if operand.is_compacted:
        yield f"operand {names[operand.tensor]}: density {chance(operand.density)}; only its nonzeros are dealt out"
        return
    zeros = "absent, for only nonzeros are stored" if operand.has_metadata else "there, for it has no metadata"
    yield f"operand {names[operand.tensor]}: density {chance(operand.density)}; on arrival its zeros are {zeros}"
    if other.saf_level is not None:
        formula = f"{chance(operand.density)} / (1 - {chance(other.removed)}) = {full}"
        yield f"  nonzero with P = {formula}, given what gating or skipping of {names[other.tensor]} lets through"
    else:
        yield f"  nonzero with P = {full}"


def _pair_row(context: Context, pair: Pair, left: float) -> tuple[str, ...]:
    names = [context.names.tensors[t] for t in _read_only(context)]
    first, second = (f"{name} {state}" for name, state in zip(names, pair.states, strict=True))
    fate = "eliminated" if pair.fate is None else pair.fate.name.lower()
    return f"  {first},", second, "chance", chance(pair.chance), f"-> {fate}", number(pair.chance * left)


def _read_only(context: Context) -> list[int]:
    return [t for t, is_output in enumerate(np.asarray(context.program.is_output)) if not is_output]


def _innermost_saf(evaluation: Evaluation, context: Context, t: int) -> int | None:
    return next((s for s in range(len(context.names.levels)) if has_saf(evaluation, s, t)), None)


def _rounded(value: float, six_decimals: bool) -> float:
    return float(np.floor(value * 1e6 + 0.5) / 1e6) if six_decimals else value
