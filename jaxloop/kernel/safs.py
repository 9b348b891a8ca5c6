"""Gating and skipping: with which chance an access to a tensor is removed (spec/sparse.md 3.2 to 3.4)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import floor_div
from ..program import SAF_KINDS, Action, Program, SparseProgram
from ..spec.sparse import ActionKind
from .cells import Cells
from .joint import Joint
from .nest import Nest, of_child
from .occupancy import Occupancy
from .rank_loops import FormatRanks


class Safs(eqx.Module):
    """What is removed at each level of each tensor.

    **Attributes:**

    - `present`; `skips`: by skipping, else by gating.
    - `chance`: that an access is removed; `operation_chance`: that the operation is which it serves. They differ where
      real data tell that stored words and the tiles of a condition go together.
    - `unsourced`: per group and option, no level keeps the target at or above the group's level.
    """

    present: Bool[Array, "level tensor *#lane"]
    skips: Bool[Array, "level tensor *#lane"]
    chance: Float[Array, "level tensor *#lane"]
    operation_chance: Float[Array, "level tensor *#lane"]
    unsourced: Bool[Array, "group option *#lane"]


def find_safs(
    program: Program,
    sparse: SparseProgram,
    nest: Nest,
    ranks: FormatRanks,
    occupancy: Occupancy,
    cells: Cells,
    leader_empty: Array,
    joint: Joint | None,
) -> Safs:
    """`leader_empty` [level, target, condition]: chance that the leader tile is empty, 0 for ineffective conditions;
    `joint`: of real data."""
    levels, tensors = nest.keep.shape[:2]
    dtype = leader_empty.dtype
    # from the level of the directive to the nearest one at or above it that keeps the target
    sources = jnp.stack([_source(nest, level) for level in range(levels)])  # [directive level, level, tensor]
    of_level = [(sparse.saf_level == level).astype(dtype) for level in range(levels)]
    of_target = jnp.stack([(sparse.saf_target == t).astype(dtype) for t in range(tensors)])  # [tensor, group, option]
    source = sum(of_level[s][:, None, None, None] * sources[s][None, None] for s in range(levels))
    target = jnp.moveaxis(of_target, 0, 2)[:, :, None]  # [group, option, 1, tensor]
    where = source * target  # [group, option, level, tensor]

    operation_chance = 1.0 - _survives(sparse, leader_empty, joint)
    chance = operation_chance
    if joint is not None:
        chance = 1.0 - _survives(sparse, joint.empty_beside_words(leader_empty, ranks), joint)
    saving = jnp.sum(where * _savings(program, sparse, nest, ranks, occupancy, cells)[None, None] * chance, axis=(2, 3))
    chosen = _largest(jnp.where(sparse.saf_target >= 0, saving, -1.0))
    here = jnp.sum(jnp.where(chosen[:, :, None, None], where, 0.0), axis=1) > 0.0  # [group, level, tensor]
    kind = sparse.saf_kind[:, None, None]

    def largest(chance: Array) -> list[Array]:
        own = jnp.sum(jnp.where(chosen[:, :, None, None], where * chance, 0.0), axis=1)
        actions = (ActionKind.GATING, ActionKind.SKIPPING)
        return [jnp.max(jnp.where(here & (kind == SAF_KINDS[action]), own, -1.0), axis=0) for action in actions]

    # gating is applied first and only a larger chance replaces it
    gating, skipping = largest(chance)
    best = jnp.maximum(gating, skipping)
    of_operations = best if joint is None else jnp.where(skipping > gating, *reversed(largest(operation_chance)))
    missing = (jnp.sum(where, axis=(2, 3)) == 0.0) & (sparse.saf_target >= 0) & (sparse.saf_kind > 0)[:, None]
    return Safs(
        present=best >= 0.0,
        skips=skipping > gating,
        chance=jnp.maximum(best, 0.0),
        operation_chance=jnp.maximum(of_operations, 0.0),
        unsourced=missing,
    )


def _survives(sparse: SparseProgram, leader_empty: Array, joint: Joint | None) -> Array:
    """Chance that no condition holds [group, option, level, target]."""
    tensors = leader_empty.shape[2]
    leads = [sparse.saf_leaders[:, :, condition][:, :, None, None] for condition in range(tensors)]
    factors = [1.0 - leads[c] * leader_empty[None, None, :, :, c] for c in range(tensors)]
    survives = 1.0
    for factor in factors:
        survives = survives * factor
    if joint is None:
        return jnp.asarray(survives)
    first, second = joint.operands
    together = joint.both_leaders[None, None] + 0.0 * survives
    for condition in set(range(tensors)) - {first, second}:
        together = together * factors[condition]
    return jnp.where(joint.applies & (leads[first] * leads[second] > 0.0), together, survives)


def _source(nest: Nest, level: int) -> Array:
    """[level, tensor]: 1 at the nearest level at or above `level` that keeps the tensor."""
    found, rows = jnp.zeros_like(nest.keep[0]), []
    for s in range(nest.keep.shape[0]):
        here = nest.keep[s] & ~found if s >= level else jnp.zeros_like(found)
        rows.append(here)
        found = found | here
    return jnp.stack(rows).astype(nest.spatial.dtype)


def _savings(
    program: Program, sparse: SparseProgram, nest: Nest, ranks: FormatRanks, occupancy: Occupancy, cells: Cells
) -> Array:
    """Energy at stake at each level and tensor in the reference's estimate (3.3) [level, tensor]: that of reading a
    tile of data, and the metadata of the next inner level, in whole words per unit."""
    own = cells.put(jnp.sum(occupancy.units, axis=(2, 3)))
    inner = of_child(nest, own, jnp.zeros_like(own[0]))
    units = jnp.where(ranks.has_child, inner, own)
    whole_words = floor_div(sparse.metadata_word_bits, program.word_bits)
    words = occupancy.words + whole_words[:, None] * units
    return program.action_energy[Action.READ] / program.block_size[:, None] * words


def _largest(saving: Array) -> Array:
    """The option of each group that saves most, the later one of equals [group, option]."""
    best, index = saving[:, 0], jnp.zeros_like(saving[:, 0])
    for option in range(1, saving.shape[1]):
        better = saving[:, option] >= best
        best, index = jnp.where(better, saving[:, option], best), jnp.where(better, option, index)
    return jnp.stack([index == option for option in range(saving.shape[1])], axis=1)
