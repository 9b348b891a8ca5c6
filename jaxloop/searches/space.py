"""The map space of a design: what a search can choose from (spec/inputs.md sections 4 and 5)."""

import hashlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._errors import Diagnostic, Diagnostics, Place, SpecError
from ..conventions import TIMELOOP_2022
from ..lower import check_mapping, lower_mapping
from ..lower.classes import exact_structure
from ..program import Mapping
from ..spec.constraints import LoopKind, Reuse
from ..spec.design import Design
from ..spec.mapping import LoopNest
from .arrays import Arrays, batched, nest_of
from .clashes import Clashes, named
from .draw import draw
from .full import FullOrder
from .pieces import Pieces, compacted, keys_of
from .pruned import WORD, PrunedOrder, TooManyStates
from .slots import Slot, build_slots
from .tables import factor_tables, keep_bits

_CHUNK = 1 << 13
"""Lanes that are decoded at once, so that intermediate results stay in the cache."""


@dataclass(frozen=True)
class Freedom:
    """What a member of the space can choose, for `MapSpace.assemble`.

    **Attributes:**

    - `ranks`: names; `slots`: the tiling levels, innermost first.
    - `factorizations`: per rank [choice, slot], whole numbers whose rows multiply to the rank's size.
    - `bits`: the pairs of a level and a tensor (indices) that may be kept or bypassed.
    """

    ranks: tuple[str, ...]
    slots: tuple[Slot, ...]
    factorizations: tuple[np.ndarray, ...]
    bits: tuple[tuple[int, int], ...]


class MapSpace:
    """All mappings of a design that its constraints allow: perfect factorizations, orders, splits of spatial loops
    between X and Y, and what each level stores.

    Every distinct nest has one number from 0 to `size - 1`. Loops of bound 1 have no order. As in the reference the
    innermost tiling level, if it is temporal, has the order of the ranks (another makes a difference only where a
    sparse design has formats or conditions at that level), and so have spatial levels with children along one axis
    only, unless their permutation is constrained. Spatial factors do not exceed the fan-out, except with spatial
    skipping. Numbers from `2**62` on need Python integers: index arrays then have the dtype `object`.

    **Arguments:**

    - `prune`: False for the space as the reference counts it, repetitions included and numbered in the order of its
      exhaustive search.

    **Raises:** `SpecError` that names the constraints which contradict each other, or what is not supported.

    **Attributes:**

    - `design`; `freedom`: what can be chosen; `warnings`: constraints without effect.
    - `size`: mappings in the space.
    - `dimensions`: the reference's four sizes; `full_size`: their product.
    """

    def __init__(self, design: Design, *, prune: bool = True):
        report = Diagnostics()
        clashes = Clashes(report)
        _refuse_unsupported(design, clashes, report)
        slots = build_slots(design, clashes, report)
        tables = factor_tables(design, slots, prune, clashes, report)
        keeps, bits = keep_bits(design, clashes)
        switches = _switches(design, clashes)
        self._minimum = _parallelism(design, slots, tables, clashes)
        report.raise_if_errors()
        self.design, self.warnings = design, tuple(report.warnings)
        self.freedom = Freedom(design.einsum.ranks, slots, tables, bits)
        self._keeps = keeps
        self._arrays = Arrays(design, slots, tables, switches)
        self._is_pruned = prune
        full = FullOrder(slots, _all_factors(design, slots))
        self.dimensions = {
            "factorizations": full.factorizations,
            "permutations": full.permutations,
            "splits": full.splits,
            "bypass": 1 << len(bits),
        }
        self.full_size = math.prod(self.dimensions.values())
        self._order: PrunedOrder | FullOrder = _pruned_order(slots, tables) if prune else full
        self.size = self._order.size << len(bits)

    @property
    def factorizations(self) -> tuple[np.ndarray, ...]:
        """Per rank, its factors [choice, slot]; `freedom.slots` tells what the slots are."""
        return self.freedom.factorizations

    def __repr__(self) -> str:
        """Tells two spaces apart, also in another process."""
        parts = (self.freedom.ranks, self.freedom.slots, self.freedom.bits, self._is_pruned)
        digest = hashlib.sha256(repr(parts).encode())
        for array in (*self.freedom.factorizations, self._keeps):
            digest.update(np.ascontiguousarray(array).tobytes())
        return f"MapSpace({self.size} mappings, {digest.hexdigest()[:16]})"

    def __len__(self) -> int:
        if self.size > sys.maxsize:
            raise OverflowError(f"the space holds {self.size:,} mappings, more than len() can tell: use .size")
        return self.size

    def __getitem__(self, index: int) -> LoopNest:
        """The nest of this number; negative ones count from the end."""
        number = int(index)
        if not -self.size <= number < self.size:
            raise IndexError(f"{number} is not in a space of {self.size:,} mappings")
        one = self.decode([number % self.size])
        return nest_of(self.design, Mapping(**{name: getattr(one, name)[0] for name in one.__dataclass_fields__}))

    def nest_of(self, mapping: Mapping) -> LoopNest:
        """The loops of one mapping (arrays without batch axes)."""
        return nest_of(self.design, mapping)

    def decode(self, indices: Sequence[int] | np.ndarray) -> Mapping:
        """The mappings of these numbers, as arrays of the design's own sizes with one leading batch axis.

        **Raises:** `IndexError` for numbers outside the space.
        """
        numbers = self._numbers(indices)
        parts = [self._decode(numbers[start : start + _CHUNK]) for start in range(0, len(numbers), _CHUNK)]
        return _joined(parts or [self._decode(numbers)])

    def sample(self, seed: Any, count: int, start: int = 0) -> np.ndarray:
        """Uniform numbers of the space, [count]. Draw `n` of a seed is the same however the draws are split into calls.

        **Arguments:**

        - `seed`: an integer from 0, or a jax PRNG key.
        - `start`: how many draws of this seed to leave out.
        """
        numbers = draw(seed, start, count, self.size)
        return numbers.astype(np.int64) if self.size < WORD else numbers

    def assemble(
        self,
        choices: np.ndarray,
        orders: np.ndarray | None = None,
        splits: np.ndarray | None = None,
        keeps: np.ndarray | None = None,
    ) -> Mapping:
        """Members of the space out of free choices; what the constraints pin stays as they pin it.

        **Arguments:** (leading axis: lanes)

        - `choices`: [lane, rank], rows of `factorizations`.
        - `orders`: [lane, slot, rank], permutations of the ranks, innermost first, of which the order of the free ranks
          counts; that of the ranks by default.
        - `splits`: [lane, slot], how many loops of bound above 1 go along X, brought to the nearest that is allowed; as
          many as possible by default.
        - `keeps`: [lane, bit], 1 to keep the tensor of `freedom.bits`; all are kept by default.
        """
        choices = np.asarray(choices)
        chosen = [choices[:, rank] for rank in range(choices.shape[1])]
        lanes, slots, ranks = len(choices), self.freedom.slots, len(chosen)
        if orders is None:
            orders = np.broadcast_to(np.arange(ranks), (lanes, len(slots), ranks))
        positions, allowed = [], []
        for t, slot in enumerate(slots):
            on = [table[choice, t] > 1 for table, choice in zip(self.factorizations, chosen, strict=True)]
            place = np.argsort(orders[:, t], axis=-1)
            keys = keys_of(slot, {rank: place[:, rank] for rank in slot.free}, ranks, lanes)
            positions.append(compacted(keys, on))
            allowed.append(_allowed_split(slot, on, None if splits is None else np.asarray(splits)[:, t]))
        bits = np.ones((lanes, len(self.freedom.bits))) if keeps is None else np.asarray(keeps, float)
        return self._arrays.mapping(Pieces(chosen, positions, allowed), self._kept(bits))

    def index_of(self, nest: LoopNest | Mapping) -> Any:
        """The number of a nest, or the numbers of a batch of mappings, [lane]. Orders that the space does not look at
        (see above) are not compared.

        **Raises:** `ValueError` where one is not in the space, and for spaces that are not pruned.
        """
        if not isinstance(self._order, PrunedOrder):
            raise ValueError("a space that is not pruned holds the same nest several times")
        mapping = lower_mapping(nest, self.design.einsum, self._structure) if isinstance(nest, LoopNest) else nest
        check_mapping(mapping, self._structure)
        is_one = isinstance(nest, LoopNest) or np.ndim(mapping.temporal) == 2
        mapping = batched(mapping)
        pieces = self._arrays.pieces(mapping)
        outside = np.stack(pieces.choices).min(0) < 0
        if outside.any():
            raise ValueError(f"mapping {int(outside.argmax())} is not in the space: its factors are not")
        numbers = self._order.rank(pieces)
        bits = self.freedom.bits
        kind = object if self.size >= WORD else np.int64
        number = numbers.astype(kind) << len(bits)
        for place, (level, tensor) in enumerate(bits):
            number = number + ((mapping.keep[:, level, tensor] > 0).astype(kind) << place)
        self._check_same(mapping, pieces, number)
        return int(number[0]) if is_one else number

    def admissible(self, mapping: Mapping) -> np.ndarray:
        """Whether mappings pass the checks that need no evaluation, [lane]: spatial loops fit the fan-out (left out
        with spatial skipping), enough of it is used, every tensor is stored somewhere, and the temporal loops are no
        more than the mapper's limit. Capacities are checked by `evaluate`."""
        mapping = batched(mapping)
        valid = (mapping.keep > 0).any(1).all(1)
        share = np.ones(len(valid))
        for slot in self.freedom.slots:
            if slot.is_spatial:
                x, y = (leaf[:, slot.level].prod(-1) for leaf in (mapping.spatial_x, mapping.spatial_y))
                if slot.is_bounded:
                    valid = valid & (x <= slot.fanout[0]) & (y <= slot.fanout[1])
                share = share * (x * y / math.prod(slot.fanout))
        options = self.design.mapper
        if options is not None and options.max_temporal_loops is not None:
            valid = valid & ((mapping.temporal > 1).sum((1, 2)) <= options.max_temporal_loops)
        return valid & (share >= self._minimum)

    def summary(self) -> str:
        """Lines on the size of the space and on what pruning left out."""
        parts = " x ".join(f"{name} {count:,}" for name, count in self.dimensions.items())
        lines = [f"{parts} = {self.full_size:,}"]
        if self._is_pruned:
            share = 100 * (self.size / self.full_size)
            lines.append(f"pruned to {self.size:,} ({share:.3g} %)")
        return "\n".join(lines)

    @cached_property
    def _structure(self) -> Any:
        return exact_structure(self.design.einsum, self.design.architecture, 1, TIMELOOP_2022)

    def _numbers(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        if isinstance(indices, np.ndarray) and indices.dtype != object:
            numbers = indices.astype(object if self.size >= WORD else np.int64)
        else:
            numbers = np.empty(len(indices), object)
            numbers[:] = [int(index) for index in indices]
        if len(numbers) and not (0 <= numbers.min() and numbers.max() < self.size):
            raise IndexError(f"indices must be from 0 to {self.size - 1:,}")
        return numbers if self.size >= WORD else numbers.astype(np.int64)

    def _decode(self, numbers: np.ndarray) -> Mapping:
        count = len(self.freedom.bits)
        bits = np.empty((len(numbers), count))
        for place in range(count):
            bits[:, place] = (numbers >> place) & 1
        nests = numbers >> count
        if self._order.size < WORD:
            nests = nests.astype(np.int64)
        return self._arrays.mapping(self._order.unrank(nests), self._kept(bits))

    def _kept(self, bits: np.ndarray) -> np.ndarray:
        kept = np.repeat(self._keeps[None], len(bits), axis=0)
        for place, (level, tensor) in enumerate(self.freedom.bits):
            kept[:, level, tensor] = bits[:, place]
        return kept

    def _check_same(self, mapping: Mapping, pieces: Pieces, numbers: np.ndarray) -> None:
        """**Raises:** `ValueError` where the numbers stand for other mappings."""
        inside = (numbers >= 0).astype(bool) & (numbers < self.size).astype(bool)
        again = self.decode(np.where(inside, numbers, 0))
        other = self._arrays.pieces(again)
        differs = {name: (getattr(mapping, name) != getattr(again, name)).any((1, 2)) for name in _EXACT}
        for t, slot in enumerate(self.freedom.slots):
            unequal = np.stack(pieces.positions[t]) != np.stack(other.positions[t])
            differs[f"{slot.kind} order of {self.design.architecture.levels[slot.level].name}"] = unequal.any(0)
        differs["place"] = ~inside
        for name, wrong in differs.items():
            if wrong.any():
                raise ValueError(f"mapping {int(wrong.argmax())} is not in the space: its {name} is not")


_EXACT = (
    "temporal",
    "spatial_x",
    "spatial_y",
    "keep",
    "no_temporal_reuse",
    "no_link_transfer",
    "no_multicast",
    "stream",
)


def _joined(parts: list[Mapping]) -> Mapping:
    if len(parts) == 1:
        return parts[0]
    leaves: dict[str, Any] = {}
    for name in parts[0].__dataclass_fields__:
        values = [getattr(part, name) for part in parts]
        if values[0].strides[0] == 0:
            leaves[name] = np.broadcast_to(values[0][:1], (sum(map(len, values)), *values[0].shape[1:]))
        else:
            leaves[name] = np.concatenate(values)
    return Mapping(**leaves)


def _all_factors(design: Design, slots: tuple[Slot, ...]) -> tuple[np.ndarray, ...]:
    """The factorizations that the reference counts; what there is to say was said of the pruned ones."""
    report = Diagnostics()
    tables = factor_tables(design, slots, False, Clashes(report), report)
    report.raise_if_errors()
    return tables


def _pruned_order(slots: tuple[Slot, ...], tables: tuple[np.ndarray, ...]) -> PrunedOrder:
    try:
        return PrunedOrder(slots, tables)
    except TooManyStates as error:
        place, remedy = Place("", 0, "mapspace_constraints"), "pin the permutations of some levels"
        raise SpecError([Diagnostic(place, str(error), remedy)]) from error


def _allowed_split(slot: Slot, on: list[np.ndarray], wanted: np.ndarray | None) -> np.ndarray:
    """The loops along X that come closest to what is wanted."""
    if not slot.is_spatial:
        return np.zeros(on[0].shape, np.int64)
    least, count = slot.split_range(on)
    most = least + count - 1
    return most if wanted is None else np.clip(wanted.astype(np.int64), least, most)


def _switches(design: Design, clashes: Clashes) -> dict[str, np.ndarray]:
    given = clashes.unique(design.constraints.reuses, lambda c: (c.level, c.reuse), lambda c: set(c.tensors))
    tensors = [tensor.name for tensor in design.einsum.tensors]
    masks = {str(reuse): np.zeros((len(design.architecture.levels), len(tensors))) for reuse in Reuse}
    for s, level in enumerate(design.architecture.levels):
        for reuse in Reuse:
            if (level.name, reuse) in given:
                masks[reuse][s] = [tensor in given[level.name, reuse].tensors for tensor in tensors]
    return masks


def _parallelism(design: Design, slots: tuple[Slot, ...], tables: tuple[np.ndarray, ...], clashes: Clashes) -> float:
    """The least share of all fan-outs that must be used."""
    given = clashes.unique(design.constraints.parallelism, lambda c: c.level, lambda c: c.minimum)
    innermost = design.architecture.levels[0].name
    minimum, most = 0.0, 1.0
    for t, slot in enumerate(slots):
        if slot.is_spatial and slot.is_bounded and all(len(table) for table in tables):
            children = math.prod(slot.fanout)
            most *= min(children, math.prod(int(table[:, t].max()) for table in tables)) / children
    for item in given.values():
        minimum = max(minimum, item.minimum)
        if item.level != innermost:
            clashes.add(f'{named(item)} is not at the innermost level, "{innermost}"', (item,), f"target {innermost}")
        elif most < item.minimum:
            fixed = [factor for factor in design.constraints.factors if factor.kind is LoopKind.SPATIAL]
            names = ", ".join(named(c) for c in fixed)
            message = f"{named(item)} is out of reach: spatial factors use a share of {most:.3g} at most"
            clashes.add(message + (f" under {names}" if names else ""), (item,), "lower it or relax the factors")
    return minimum


def _refuse_unsupported(design: Design, clashes: Clashes, report: Diagnostics) -> None:
    constraints = design.constraints
    if constraints.template != "uber":
        message = f'the template "{constraints.template}" (imperfect factors) is not supported'
        report.error(constraints.template_place, message, "leave it out: factors are perfect")
    levels = {level.name: level for level in design.architecture.levels}
    for item in clashes.unique(constraints.overbooking, lambda c: c.level, lambda c: c.proportion).values():
        if levels[item.level].allow_overbooking:
            report.error(item.place, f"{item} is not supported", "leave it out")
        else:
            report.warnings.append(
                Diagnostic(item.place, f"{item} has no effect: the level does not set `allow_overbooking`")
            )
