"""The densities of all tensors of a program: each tensor's own model, chosen by its code."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...program import DENSITY_KINDS, Program, SparseProgram, SparseStructure
from ...spec.density import Distribution
from ..cells import Cells
from .banded import Banded
from .base import AbstractDensity, Box, Nonzeros, Visit, Walk
from .fixed import FixedStructured
from .hypergeometric import Hypergeometric
from .real import RealData, without_lanes


def _models(sparse: SparseStructure) -> dict[Distribution, AbstractDensity]:
    """The models that occur in a program."""
    models: dict[Distribution, AbstractDensity] = {Distribution.FIXED_STRUCTURED: FixedStructured()}
    if sparse.hypergeometric:
        models[Distribution.HYPERGEOMETRIC] = Hypergeometric(strided=sparse.strided)
    if sparse.band >= 0:
        models[Distribution.BANDED] = Banded(sparse.band)
    if sparse.boxes is not None:
        models[Distribution.REAL_DATA] = RealData()
    return models


class Densities(eqx.Module):
    """Answers of `AbstractDensity` for every tensor by its own model. In all shapes the tensor is the last axis before
    the lanes.
    """

    nonzeros: Nonzeros
    kind: Int[Array, "tensor *#lane"]
    sparse: SparseStructure = eqx.field(static=True)

    def _models(self) -> dict[int, AbstractDensity]:
        return {DENSITY_KINDS[distribution]: model for distribution, model in _models(self.sparse).items()}

    def _by_kind(self, answer: Callable[[AbstractDensity], Any]) -> Any:
        return self._select({code: answer(model) for code, model in self._models().items()})

    def _select(self, answers: dict[int, Any]) -> Any:
        codes = list(answers)
        result = answers[codes[0]]
        for code in codes[1:]:
            result = jax.tree.map(lambda a, b, code=code: jnp.where(self.kind == code, b, a), result, answers[code])
        return result

    def pick(self, cells: Cells) -> "Densities":
        """Those of the cells' tensors, for tiles [..., 1, cell]."""
        numbers = {name: getattr(self.nonzeros, name) for name in ("words", "density", "band_width", "side")}
        numbers, kind = cells.pick_tensors((numbers, self.kind))
        masks = self.nonzeros.masks
        if masks is not None:
            tables = {name: getattr(masks, name) for name in ("radix", "empty", "mean", "least", "most")}
            masks = replace(masks, **cells.pick_tensors(tables))
        return Densities(Nonzeros(**numbers, masks=masks, conventions=self.nonzeros.conventions), kind, self.sparse)

    @property
    def is_real(self) -> Array:
        """Which tensors are real data [tensor]."""
        return self.kind == DENSITY_KINDS[Distribution.REAL_DATA]

    def prob_empty(self, tile: Box) -> Float[Array, "*any"]:
        return self._by_kind(lambda model: model.prob_empty(self.nonzeros, tile))

    def mean(self, tile: Box) -> Float[Array, "*any"]:
        return self._by_kind(lambda model: model.mean(self.nonzeros, tile))

    def least(self, tile: Box) -> tuple[Any, Any]:
        return self._by_kind(lambda model: model.least(self.nonzeros, tile))

    def largest(self, tile: Box) -> Float[Array, "*any"]:
        return self._by_kind(lambda model: model.largest(self.nonzeros, tile))

    def most_nonempty(self, fiber: Box, element: Box) -> Float[Array, "*any"]:
        return self._by_kind(lambda model: model.most_nonempty(self.nonzeros, fiber, element))

    def walk(self, tile: Box, parts: Box) -> "Occupancies":
        """The occupancies of tiles; `parts` [part, *those of `tile`]. Carries no tangent."""
        fixed, tile, parts = jax.lax.stop_gradient((self, tile, parts))
        walks = {}
        for code, model in fixed._models().items():
            # a walk takes as long as its longest tile: those of other models are empty
            own = jax.tree.map(lambda leaf, code=code: jnp.where(fixed.kind == code, leaf, 0.0), tile)
            walks[code] = model.walk(fixed.nonzeros, own, parts)
        return Occupancies(fixed, tile, parts, walks)

    def prob_empty_within(self, tile: Box, count: Any, part: Box) -> Any:
        return self._by_kind(lambda model: model.prob_empty_within(self.nonzeros, tile, count, part))

    def prob_none(self, tile: Box, count: Any) -> Any:
        return self._by_kind(lambda model: model.prob_none(self.nonzeros, tile, count))


class Occupancies(eqx.Module):
    """The numbers of nonzeros in tiles with their probabilities, to be looked at from the smallest up."""

    densities: Densities
    tile: Box
    parts: Box
    walks: dict[int, Walk]

    def _visit(self, index: Any, states: dict[int, Any]) -> tuple[Visit, dict[int, Any]]:
        visits, following = {}, {}
        for code, model in self.densities._models().items():
            walk = Walk(self.walks[code].length, self.walks[code].fixed, states[code])
            visits[code], following[code] = model.visit(self.densities.nonzeros, self.tile, self.parts, walk, index)
        return self.densities._select(visits), following

    @property
    def _states(self) -> dict[int, Any]:
        return {code: walk.state for code, walk in self.walks.items()}

    def first(self) -> Visit:
        """The smallest occupancy."""
        return self._visit(0, self._states)[0]

    def sum(self, add: Callable[[Any, Visit], Any], start: Any, wanted: Any) -> Any:
        """`add(sums, visit)` over all occupancies of the `wanted` tiles, one after another: last digits matter. Beyond
        a tile's own occupancies the probability is 0."""
        length = self.densities._select({code: walk.length for code, walk in self.walks.items()})
        length = jnp.where(wanted, length, 0.0)

        def step(index: Any, carry: tuple[Any, dict[int, Any]]) -> tuple[Any, dict[int, Any]]:
            sums, states = carry
            visit, following = self._visit(index, states)
            there = jnp.where(index < length, visit.probability, 0.0)
            return add(sums, Visit(visit.count, there, visit.part_empty)), following

        return jax.lax.fori_loop(0, jnp.max(length).astype(jnp.int32), step, (start, self._states))[0]

    def quantile(self, confidence: Any, wanted: Any) -> Any:
        """The smallest occupancy that tiles do not exceed with this chance. Of uniformly random tensors below a chance
        of one half: the largest one that they do not exceed with more (the reference rounds quantiles outward)."""
        outward = (self.densities.kind == DENSITY_KINDS[Distribution.HYPERGEOMETRIC]) & (confidence < 0.5)

        def add(state: tuple[Any, Any], visit: Visit) -> tuple[Any, Any]:
            count, below = state
            upto = below + visit.probability
            there = visit.probability > 0.0
            moves = jnp.where(outward, upto <= confidence, below < confidence) & there
            return jnp.where(moves, visit.count, count), upto

        # no confidence: the least occupancy, also where the walk passes over the unlikely ones
        start = self.densities.least(self.tile)[0]
        return self.sum(add, (start, jnp.zeros_like(start)), wanted)[0]


def tensor_densities(program: Program, sparse: SparseProgram, words: Array, side: Array) -> Densities:
    """`words` [tensor]: elements of the whole tensors; `side` [tensor]: their extents along the first axis."""
    structure = program.structure
    assert structure.sparse is not None
    masks = None if sparse.masks is None else without_lanes(sparse.masks)
    nonzeros = Nonzeros(words, sparse.density, sparse.band_width, side, structure.conventions, masks)
    return Densities(nonzeros, sparse.density_kind, structure.sparse)
