"""What walks over occupancies look at, as arrays, for comparison with exact distributions."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxloop.kernel.density.base import AbstractDensity, Box, Nonzeros, Visit, Walk

from ..helpers import QUICK


class Seen(NamedTuple):
    """`count` [node, ...], its `probability` [node, ...] and the chances of parts to be empty, `part_empty`
    [node, part, ...]. Beyond the `length` [...] of a walk the probability is 0."""

    count: Any
    probability: Any
    part_empty: Any
    length: Any


def scan(walk: Walk, visit: Callable[[Walk, Any], tuple[Visit, Any]], nodes: int) -> Seen:
    """The first `nodes` occupancies, traced."""

    def step(state: Any, index: jax.Array) -> tuple[Any, tuple[Any, Any, Any]]:
        found, following = visit(Walk(walk.length, walk.fixed, state), index)
        probability = jnp.where(index < walk.length, found.probability, 0.0)
        return following, (found.count, probability, found.part_empty)

    return Seen(*jax.lax.scan(step, walk.state, jnp.arange(nodes))[1], walk.length)


def all_seen(seen: Seen) -> Seen:
    """As numpy arrays, once it is known that the nodes held whole walks."""
    seen = Seen(*(np.asarray(leaf) for leaf in seen))
    assert seen.length.min() >= 1.0 and seen.length.max() <= seen.count.shape[0]
    return seen


@partial(jax.jit, static_argnames=("model", "nodes"), compiler_options=QUICK)
def _look(model: AbstractDensity, nonzeros: Nonzeros, tile: Box, parts: Box, nodes: int) -> Seen:
    walk = model.walk(nonzeros, tile, parts)
    return scan(walk, lambda at, index: model.visit(nonzeros, tile, parts, at, index), nodes)


def look(model: AbstractDensity, nonzeros: Nonzeros, tile: Box, nodes: int, parts: Box | None = None) -> Seen:
    """Every occupancy of tiles, of which there are at most `nodes`, with `parts` [part, ...], by default none."""
    return all_seen(_look(model, nonzeros, tile, no_parts(tile) if parts is None else parts, nodes))


def no_parts(tile: Box) -> Box:
    return jax.tree.map(lambda leaf: leaf[None][:0], tile)


def likely(size: int, filled: int, words: int) -> tuple[np.ndarray, np.ndarray]:
    """Occupancies of uniformly random tensors within 12 standard deviations and 60 of the mean, and their probabilities
    but for 1e-11."""
    mean = filled * words / size
    reach = 60.0 + 12.0 * math.sqrt(mean * (1.0 - filled / size) * (size - words) / max(size - 1, 1))
    first = max(0, filled + words - size, math.floor(mean - reach))
    count = np.arange(first, min(filled, words, math.ceil(mean + reach)) + 1)
    before = count[:-1].astype(float)
    steps = (filled - before) * (words - before) / ((before + 1.0) * (size - filled - words + before + 1.0))
    log = np.cumsum(np.log([1.0, *steps]))
    chance = np.exp(log - log.max())
    return count, chance / chance.sum()
