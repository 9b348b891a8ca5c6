"""What becomes of the operations at the compute units (spec/sparse.md section 4)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._math import ceil, exact_divide, floor, round_half_up, stack
from .._twofold import shielded
from ..program import Fate, Program, SparseProgram
from .accesses import Accesses
from .joint import Pairs
from .nest import Nest
from .position_skipping import PositionSkipping
from .rank_loops import FormatRanks


class Computes(eqx.Module):
    """**Attributes:**

    - `counts`: operations of all units, by fate.
    - `cycles`: those of the busiest schedule: gated operations take their cycle, skipped ones do not.
    - `units`: compute units in use on average.
    - `full`, `zero`, `absent`: chances that an operand is nonzero, is there and zero, is not there.
    """

    counts: Float[Array, "fate *#lane"]
    cycles: Float[Array, "*#lane"]
    units: Float[Array, "*#lane"]
    full: Float[Array, "operand *#lane"]
    zero: Float[Array, "operand *#lane"]
    absent: Float[Array, "operand *#lane"]


def _six_decimals(x: Array) -> Array:
    return exact_divide(round_half_up(x * 1e6), jnp.full_like(x, 1e6))


def _of_operands(program: Program, values: Array) -> Array:
    """`values` [tensor] of the two tensors that are only read, in their order."""
    operand = (program.is_output == 0.0) & (program.is_tensor > 0.0)
    place = jnp.cumsum(operand, axis=0)
    return stack([jnp.sum(jnp.where(operand & (place == i), values, 0), axis=0) for i in (1, 2)])


def count_computes(
    program: Program,
    sparse: SparseProgram,
    nest: Nest,
    ranks: FormatRanks,
    density: Array,
    accesses: Accesses,
    units: Array,
    positions: PositionSkipping | None,
    pairs: Pairs | None,
) -> Computes:
    """**Arguments:** `density` [tensor]: expected share of nonzeros of one element; `units`: compute units in use on
    average."""
    conventions = program.structure.conventions
    innermost = jnp.zeros_like(nest.keep[0])
    has_metadata = innermost
    for s in range(nest.keep.shape[0]):
        has_metadata = has_metadata | (nest.keep[s] & ~innermost & ranks.has_metadata[s])
        innermost = innermost | nest.keep[s]
    share = _of_operands(program, density)
    full = _six_decimals(share) if conventions.six_decimal_densities else share
    removed = _of_operands(program, accesses.operand_chance)
    removed = _six_decimals(removed) if conventions.six_decimal_safs else removed
    present = _of_operands(program, accesses.operand_present) > 0
    # what is left was conditioned on the other operand; where only one has a SAF, the other was its condition
    conditioned = present[::-1] & (present | (jnp.sum(present, axis=0) == 1))
    left = jnp.where(conditioned, 1.0 - removed[::-1], 1.0)
    full = jnp.where(left > 0.0, exact_divide(full, jnp.where(left > 0.0, left, 1.0)), full)
    with_metadata = _of_operands(program, has_metadata) > 0
    zero, absent = jnp.where(with_metadata, 0.0, 1.0 - full), jnp.where(with_metadata, 1.0 - full, 0.0)
    if positions is not None:
        # a compacted operand is only ever met nonzero
        met = _of_operands(program, positions.present) > 0
        full, zero, absent = (jnp.where(met, value, s) for value, s in ((1.0, full), (0.0, zero), (0.0, absent)))
    if conventions.clamped_states:
        full, zero, absent = (jnp.clip(state, 0.0, 1.0) for state in (full, zero, absent))
    states = [[full[i], zero[i], absent[i]] for i in (0, 1)]
    chances = [[of_first * of_second for of_second in states[1]] for of_first in states[0]]
    if pairs is not None:
        chances = _of_known_pairs(pairs, with_metadata, chances)
    counts = _by_fate(program, sparse, accesses.computes, chances, jnp.all(present, axis=0))
    busy = counts[Fate.ACTUAL] + counts[Fate.GATED]
    if conventions.whole_average_units:
        keeps = False if positions is None else positions.is_present
        units = jnp.where(keeps, units, floor(units))
    # spatial skipping may leave less than one
    cycles = exact_divide(busy, jnp.where(units > 0.0, units, 1.0))
    return Computes(counts, ceil(cycles) if conventions.whole_cycles else cycles, units, full, zero, absent)


def _of_known_pairs(pairs: Pairs, absent: Array, chances: list[list[Array]]) -> list[list[Array]]:
    """Chances of pairs of states [first][second] where real data tell which operands meet; `absent` [operand]: what is
    not nonzero is not there, else it is zero."""
    first, second = absent.astype(pairs.both.dtype)
    alone = (pairs.first * (1.0 - second), pairs.first * second)
    neither = [[pairs.neither * a * b for b in (1.0 - second, second)] for a in (1.0 - first, first)]
    known = [
        [pairs.both, *alone],
        [pairs.second * (1.0 - first), *neither[0]],
        [pairs.second * first, *neither[1]],
    ]
    return [
        [jnp.where(pairs.applies, value, old) for value, old in zip(row, others, strict=True)]
        for row, others in zip(known, chances, strict=True)
    ]


def _by_fate(program: Program, sparse: SparseProgram, total: Array, chances: list[list[Array]], both: Array) -> Array:
    """`chances` of pairs of states (nonzero, zero, absent) [first][second]: an operand that is not there lets the
    operation be skipped, one that is zero only lets it be gated, and nothing is left of it where both are absent. Sums
    in the reference's order."""
    conventions = program.structure.conventions
    down = floor if conventions.integer_counts else (lambda x: x)
    gates, skips = sparse.compute_gating > 0.0, sparse.compute_skipping > 0.0
    (nonzero, *_), (zero, *_), (absent, *_) = chances
    lonely = [chances[0][1], zero]
    missing = [chances[0][2], absent]
    rest = [chances[1][1]]
    halves = [chances[1][2], chances[2][1]]
    nothing = chances[2][2]
    gated = skipped = 0.0 * total
    for pairs, is_missing in ((lonely, False), (missing, True), (rest, False), (halves, True)):
        for pair in pairs:
            to_skip = skips if is_missing else False
            skipped = skipped + jnp.where(to_skip, shielded(total * pair), 0.0)
            gated = gated + jnp.where(gates & ~jnp.asarray(to_skip), shielded(total * pair), 0.0)
    if conventions.double_sided_complement:
        nothing = jnp.where(both, 1.0 - nonzero, nothing)
    gated, skipped, gone = down(gated), down(skipped), down(total * nothing)
    if conventions.double_sided_complement or not conventions.clamped_states:
        # pairs that count twice, or chances beyond 0 and 1, may add up to more than there is; -1 is a rounding
        gated = jnp.clip(gated, 0.0, total)
        skipped = jnp.clip(skipped, 0.0, total - gated)
        gone = jnp.clip(gone, -1.0, total - gated - skipped)
    return stack([total - gated - skipped - gone, gated, skipped])
