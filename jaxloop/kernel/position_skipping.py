"""Position skipping: a tensor is compacted by its own metadata, its nonzeros dealt to the children of the innermost
level as many at a time as there are (docs/model.md 24). Known from the answers of the paper's artifact only.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._math import ceil_div, exact_divide, valued
from ..program import SAF_KINDS, Program, SparseProgram
from ..spec.sparse import ActionKind
from .density import Densities
from .density.base import Box, Visit
from .nest import Nest
from .occupancy import Occupancy


class PositionSkipping(eqx.Module):
    """What compacting a tensor at level 0 does.

    **Attributes:**

    - `present`: the tensor is compacted; the others are neutral.
    - `use`: share of the children that have something to do in a step, on average.
    - `reads`: share of a tensor's reads at level 0 that the steps of the others leave. Outputs are not told apart in
      any answer of the artifact: all of theirs stay.
    - `density`: share of the operations that is left.
    """

    present: Bool[Array, "tensor *#lane"]
    use: Float[Array, "tensor *#lane"]
    reads: Float[Array, "tensor *#lane"]
    density: Float[Array, "tensor *#lane"]

    @property
    def unit_share(self) -> Array:
        """Share of the compute units in use, on average."""
        return jnp.prod(self.use, axis=0)

    @property
    def is_present(self) -> Array:
        """Whether any tensor is compacted."""
        return jnp.any(self.present, axis=0)

    def unconditioned(self, occupancy: Occupancy, tile: Box, mean: Array) -> Occupancy:
        """Data of compacted tensors are averages over all tiles, empty ones included. `mean` [level, tensor]: nonzeros
        of the tiles."""
        levels = jnp.arange(occupancy.words.shape[0]).reshape((-1,) + (1,) * (occupancy.words.ndim - 1))
        here = self.present[None] & (levels == 0)
        density = exact_divide(mean, jnp.maximum(tile.words, 1.0))
        return replace(
            occupancy,
            removed=jnp.where(here, 0.0, occupancy.removed),
            words=jnp.where(here, mean, occupancy.words),
            density=jnp.where(here, density, occupancy.density),
        )


def position_skipping(
    program: Program, sparse: SparseProgram, nest: Nest, tile: Box, densities: Densities
) -> PositionSkipping:
    """`tile` [level, tensor]: tiles of the levels, whether or not they are stored there."""
    present = _directives(program, sparse)
    tile = jax.tree.map(lambda leaf: leaf[0] + 0.0 * nest.spatial[0, 0], tile)
    element = jax.tree.map(jnp.ones_like, tile)
    children = jnp.prod(jnp.where(nest.relevant, nest.spatial[0][None], 1.0), axis=1)
    given, mean = jax.lax.stop_gradient(children), densities.mean(tile)

    def add(sums: tuple[Array, Array, Array], visit: Visit) -> tuple[Array, Array, Array]:
        count, chance = visit.count, visit.probability
        steps = jnp.maximum(ceil_div(count, given), 1.0)
        used = exact_divide(count, given * steps)
        return sums[0] + chance * used, sums[1] + chance * steps, sums[2] + jnp.where(count > 0.0, chance, 0.0)

    zero = jnp.zeros_like(mean + children)
    walk = densities.walk(tile, jax.tree.map(lambda leaf: leaf[None], element))
    used, steps, filled = walk.sum(add, (zero, zero, zero), present)
    # sums carry no tangent: that of the mean occupancy stands for it, in the operations per step likewise
    steps = valued(mean / children, jnp.where(present, steps, 1.0))
    left = exact_divide(steps, ceil_div(tile.words, children))
    use = valued(mean / (children * steps), exact_divide(used, jnp.where(filled > 0.0, filled, 1.0)))
    use, left, density = (jnp.where(present, value, 1.0) for value in (use, left, densities.mean(element)))
    others = ~jnp.eye(program.structure.tensors, dtype=bool).reshape((*present.shape[:1] * 2, *(1,) * (left.ndim - 1)))
    reads = jnp.prod(jnp.where(others, left[None], 1.0), axis=1)
    return PositionSkipping(present, use, jnp.where(program.is_output > 0.0, 1.0, reads), density)


def _directives(program: Program, sparse: SparseProgram) -> Array:
    """Whether a tensor is compacted [tensor]."""
    groups = (sparse.saf_kind == SAF_KINDS[ActionKind.POSITION_SKIPPING])[:, None]
    tensors = range(program.structure.tensors)
    return jnp.stack([jnp.any(groups & (sparse.saf_target == t), axis=(0, 1)) for t in tensors])
