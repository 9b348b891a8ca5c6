"""Two real tensors: what their tiles around one iteration hold together (docs/model.md 25).

Where all nonzeros are known, operands need not be taken for independent: the tiles that an iteration meets are at known
places.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._math import exact_divide
from ..program import Masks, Program, SparseProgram
from .density.real import box_index, without_lanes
from .leaders import Leaders
from .rank_loops import FormatRanks


class Pairs(eqx.Module):
    """What becomes of operations of two real tensors.

    **Attributes:** `applies`; `left`: share of operations that the operands' SAFs leave; of these, chances that `both`
    operands, only the `first`, only the `second` and `neither` are nonzero.
    """

    applies: Bool[Array, "*#lane"]
    left: Float[Array, "*#lane"]
    both: Float[Array, "*#lane"]
    first: Float[Array, "*#lane"]
    second: Float[Array, "*#lane"]
    neither: Float[Array, "*#lane"]


class Joint(eqx.Module):
    """**Attributes:** `operands`: their tensors; `leaders`: numbers of their boxes as leader tiles, of the whole tensor
    where a condition has no effect; `whole`: those of the whole tensors."""

    masks: Masks
    operands: tuple[int, int] = eqx.field(static=True)
    leaders: Int[Array, "operand level tensor *#lane"]
    whole: Int[Array, " operand"]

    @property
    def applies(self) -> Array:
        """Whether both operands are real data, so that their places are known."""
        return self.masks.joint[0, 0] > 0.0

    @property
    def both_leaders(self) -> Array:
        """Chance that the leader tiles of both operands hold something [level, target]."""
        return self.masks.both[self.leaders[0], self.leaders[1]]

    def empty_beside_words(self, empty: Array, ranks: FormatRanks) -> Array:
        """Chances that leader tiles are empty [level, target, condition] for the accesses to stored words: these are
        nonzero. `empty`: regardless of that."""
        rows = [[empty[:, t, c] for c in range(empty.shape[2])] for t in range(empty.shape[1])]
        for own, other in ((0, 1), (1, 0)):
            target, condition = self.operands[own], self.operands[other]
            both = self.masks.both if own == 0 else self.masks.both.T
            filled, word = both[0, self.leaders[other][:, target]], both[0, self.whole[other]]
            given = 1.0 - exact_divide(filled, jnp.where(word > 0.0, word, 1.0) + 0.0 * filled)
            stored = ranks.has_metadata[:, target] & self.applies & (word > 0.0)
            rows[target][condition] = jnp.where(stored, given, rows[target][condition])
        return jnp.stack([jnp.stack(jnp.broadcast_arrays(*row), axis=1) for row in rows], axis=1)

    def pairs(self, present: Array) -> Pairs:
        """`present` [level, tensor]: where there is a SAF. Those of operands remove operations, the innermost one
        decides."""
        first, second = self.operands
        tile = []
        # the condition of a SAF of one operand is the other one's leader tile
        for condition, target in ((0, second), (1, first)):
            leader, found = self.whole[condition], jnp.zeros_like(present[0, target])
            for s in range(present.shape[0]):
                here = present[s, target] & ~found
                leader = jnp.where(here, self.leaders[condition][s, target], leader)
                found = found | here
            tile.append(leader)
        both = self.masks.both
        left = both[tile[0], tile[1]]
        of_left = 1.0 / jnp.where(left > 0.0, left, 1.0)
        nonzero = both[0, 0]
        full = (nonzero * of_left, (both[0, tile[1]] - nonzero) * of_left, (both[tile[0], 0] - nonzero) * of_left)
        return Pairs(self.applies, left, *full, jnp.maximum(1.0 - full[0] - full[1] - full[2], 0.0))


def joint_leaders(program: Program, sparse: SparseProgram, leaders: Leaders) -> Joint | None:
    """None without real data."""
    structure = program.structure.sparse
    if structure is None or structure.boxes is None or sparse.masks is None:
        return None
    masks, operands = without_lanes(sparse.masks), structure.operands
    places = jnp.sum(jnp.isfinite(masks.divisors).astype(masks.radix.dtype), axis=1) - 1.0
    whole = jnp.sum(masks.operand_radix * places, axis=1).astype(jnp.int32)
    found = []
    for operand, tensor in enumerate(operands):
        box, ineffective = leaders.box[:, :, tensor], leaders.ineffective[:, :, tensor]
        sides = [box[:, :, rank] for rank in range(box.shape[2])]
        index = box_index(masks, masks.operand_radix[operand], sides)
        found.append(jnp.where(ineffective, whole[operand], index))
    return Joint(masks, operands, jnp.stack(found), whole)


def without_removed(pairs: Pairs, chances: Array, operands: tuple[int, int]) -> Array:
    """Chances [tensor] that the operands' SAFs remove an operation, one after the other: together they leave
    `pairs.left`."""
    first, second = operands
    left = 1.0 - chances[first]
    rest = 1.0 - exact_divide(pairs.left, jnp.where(left > 0.0, left, 1.0))
    rows = list(chances)
    rows[second] = jnp.where(pairs.applies & (chances[second] > 0.0), jnp.clip(rest, 0.0, 1.0), chances[second])
    return jnp.stack(jnp.broadcast_arrays(*rows))
