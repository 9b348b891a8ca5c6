"""The deliveries of a mapped loop nest as index arrays: which words move when, and which iterations use them.

A *connection* leads from a level that keeps a tensor to the next level inward that keeps it, or to the compute units.
Its *deliveries* are found by walking: the child is sent a tile when its place moves, and holds it for as long as it
stays put; compute units hold nothing and are sent one word per iteration. Children of one instance that are sent the
same tile at the same time share one delivery (multicast, and reduction for outputs). Of a window that moves, only the
words that the child lacks are sent.

Tensors are flat arrays, row-major; a place is the flat index of a tile's lowest corner. Factors must be perfect and
coefficients positive.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaxloop.spec.design import Design
from jaxloop.spec.einsum import Tensor

from .loopnest import FlatLoop, View, box_of, flatten

COMPUTE = -1
"""The level number of the compute units."""


@dataclass(frozen=True)
class Deliveries:
    """All deliveries over one connection, in order of time, then sender, then place.

    **Attributes:**

    - `of_iteration` [iterations]: the delivery that an iteration uses; `example` [deliveries]: one iteration of each.
    - `place`, `receivers` [deliveries]: flat index of the lowest corner; children that are sent it.
    - `words` [all words], `starts` [deliveries]: flat indices of the words sent, delivery by delivery.
    - `is_first` [all words]: the sender never handled this word before.
    """

    of_iteration: np.ndarray
    example: np.ndarray
    place: np.ndarray
    receivers: np.ndarray
    words: np.ndarray
    starts: np.ndarray
    is_first: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        """Words of each delivery."""
        return np.diff(np.append(self.starts, len(self.words)))

    def total(self, per_word: np.ndarray) -> np.ndarray:
        """Sums over the words of each delivery: [..., words] to [..., deliveries]."""
        return np.add.reduceat(per_word, self.starts, axis=-1)

    @cached_property
    def _grouped(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.of_iteration, kind="stable")
        return order, np.searchsorted(self.of_iteration[order], np.arange(len(self.place)))

    def any(self, per_iteration: np.ndarray) -> np.ndarray:
        """Whether any iteration that uses a delivery is marked: [..., iterations] to [..., deliveries]."""
        order, starts = self._grouped
        return np.logical_or.reduceat(per_iteration[..., order], starts, axis=-1)


class Walk:
    """Every iteration of a design's mapping. `used` are the flat indices of the words that each iteration uses."""

    def __init__(self, design: Design):
        if design.nest is None:
            raise ValueError("the design has no mapping")
        self.design = design
        self.loops = flatten(design.einsum, design.nest)
        self.depth = len(design.nest.levels)
        self.tensors = {tensor.name: tensor for tensor in design.einsum.tensors}
        self._views = {name: View.of(design.einsum, tensor) for name, tensor in self.tensors.items()}
        if any(c < 0 for view in self._views.values() for terms in view.axes for _, c in terms):
            raise ValueError("negative coefficients are not walked")
        self._keep = [level.keep for level in design.nest.levels]
        bounds = [loop.bound for loop in self.loops]
        self.iterations = math.prod(bounds)
        grid = np.unravel_index(np.arange(self.iterations), bounds[::-1])
        self._index = dict(enumerate(grid[::-1]))
        self.units = math.prod(loop.bound for loop in self.loops if loop.spatial)
        self.used = {name: self._places(name, list(enumerate(self.loops))) for name in self.tensors}

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Of the whole tensor."""
        return self.tile_shape(tensor, self.depth)

    def tile_shape(self, tensor: str, level: int) -> tuple[int, ...]:
        """Extents of the tile that the loops up to and including a level touch."""
        ranks = len(self.design.einsum.ranks)
        box = box_of([loop for loop in self.loops if loop.level <= level], ranks)
        return tuple(high + 1 for _, high in self._views[tensor].bounds((0,) * ranks, box))

    def strides(self, tensor: str) -> tuple[int, ...]:
        shape = self.shape(tensor)
        return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))

    def keeps(self, tensor: str, level: int) -> bool:
        return tensor in self._keep[level]

    def child(self, tensor: str, level: int) -> int:
        return next((s for s in range(level - 1, -1, -1) if self.keeps(tensor, s)), COMPUTE)

    def parent(self, tensor: str, level: int) -> int | None:
        return next((s for s in range(level + 1, self.depth) if self.keeps(tensor, s)), None)

    def instances(self, level: int) -> int:
        """Instances of a level that the mapping uses."""
        return math.prod(loop.bound for loop in self.loops if loop.spatial and loop.level > level)

    def offsets(self, tensor: str, level: int) -> np.ndarray:
        """Flat indices of a tile's words, less its place."""
        grid = np.indices(self.tile_shape(tensor, level)).reshape(len(self.shape(tensor)), -1)
        return np.array(self.strides(tensor)) @ grid

    def unit_and_step(self) -> tuple[np.ndarray, np.ndarray]:
        """Compute unit and time step of every iteration."""
        numbered = list(enumerate(self.loops))
        return self._number([x for x in numbered if x[1].spatial]), self._number(
            [x for x in numbered if not x[1].spatial]
        )

    def step_of(self, tensor: str, loop: FlatLoop) -> int:
        """How far one iteration of a loop moves the tensor's tile."""
        return int(np.dot(self._views[tensor].motion(loop), self.strides(tensor)))

    def _places(self, tensor: str, loops: list[tuple[int, FlatLoop]]) -> np.ndarray:
        """How far the loops have moved the tensor's tile, per iteration."""
        place = np.zeros(self.iterations, np.int64)
        for number, loop in loops:
            place += self._index[number] * self.step_of(tensor, loop)
        return place

    def _number(self, loops: list[tuple[int, FlatLoop]]) -> np.ndarray:
        """Numbers the iterations of some loops (innermost first), outer loops counting most."""
        number = np.zeros(self.iterations, np.int64)
        for position, loop in reversed(loops):
            number = number * loop.bound + self._index[position]
        return number

    def deliveries(self, tensor: str, outer: int, inner: int) -> Deliveries:
        """From level `outer` (`depth`: from beyond all) to level `inner` (`COMPUTE`: the compute units)."""
        above = [(n, loop) for n, loop in enumerate(self.loops) if loop.level > inner]
        temporal = [(n, loop) for n, loop in above if not loop.spatial]
        step, place = self._number(temporal), self._places(tensor, temporal)
        places = np.zeros(step.max() + 1, np.int64)
        places[step] = place
        moves = np.ones(len(places), bool)
        if inner != COMPUTE:
            moves[1:] = places[1:] != places[:-1]
        run = np.cumsum(moves)[step] - 1
        sender = self._number([(n, loop) for n, loop in above if loop.spatial and loop.level > outer])
        shift = self._places(tensor, [(n, loop) for n, loop in above if loop.spatial])
        child = self._number([(n, loop) for n, loop in above if loop.spatial])
        keys = np.stack([run, sender, shift])
        unique, example, of_iteration = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        of_iteration = of_iteration.reshape(-1)
        pairs = np.unique(np.stack([of_iteration, child]), axis=1)
        receivers = np.bincount(pairs[0], minlength=unique.shape[1])
        run_places = places[moves]
        words = self._sent(self.tensors[tensor], inner, run_places)
        sent = [words[r] + run_places[r] + s for r, s in zip(unique[0], unique[2], strict=True)]
        starts = np.cumsum([0] + [len(w) for w in sent[:-1]])
        every = np.concatenate(sent)
        owner = np.repeat(unique[1], [len(w) for w in sent])
        first = np.zeros(len(every), bool)
        first[np.unique(owner * (every.max() + 1) + every, return_index=True)[1]] = True
        return Deliveries(of_iteration, example, run_places[unique[0]] + unique[2], receivers, every, starts, first)

    def _sent(self, tensor: Tensor, inner: int, places: np.ndarray) -> list[np.ndarray]:
        """What each delivery must contain, less the place: of a window only what the child does not hold."""
        tile = self.offsets(tensor.name, inner)
        is_window = any(len(axis.terms) > 1 for axis in tensor.axes)
        if inner == COMPUTE or not is_window:
            return [tile] * len(places)
        moved = np.diff(places)
        return [tile] + [np.setdiff1d(tile, tile - distance) for distance in moved]
