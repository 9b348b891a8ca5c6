"""Pieces <-> `Mapping`, and the loop nest of one mapping."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..program import Mapping
from ..spec.design import Design
from ..spec.mapping import LevelNest, Loop, LoopNest
from .pieces import Pieces, ranked
from .slots import Slot, count_of

SWITCHES = ("no_temporal_reuse", "no_link_transfer", "no_multicast")


class Arrays:
    """Builds mappings of the design's own sizes, and takes them apart.

    **Arguments:**

    - `slots`, `tables`: the tiling levels, and per rank its factorizations [choice, slot].
    - `switches`: [level, tensor] per kind of reuse, 1 where it is switched off.
    """

    def __init__(
        self,
        design: Design,
        slots: tuple[Slot, ...],
        tables: tuple[np.ndarray, ...],
        switches: dict[str, np.ndarray],
    ):
        self._slots, self._tables, self._switches = slots, tables, switches
        self._levels, self._ranks = len(design.architecture.levels), len(tables)
        self._tensors = len(design.einsum.tensors)
        self._slot_of = {(slot.level, slot.is_spatial): t for t, slot in enumerate(slots)}
        self._rows = {
            is_spatial: tuple(self._factor_rows(table, is_spatial) for table in tables) for is_spatial in (False, True)
        }
        self._codes = [codes_of(table, table) for table in tables]
        self._sorted = [np.argsort(codes) for codes in self._codes]

    def mapping(self, pieces: Pieces, keeps: np.ndarray) -> Mapping:
        """`keeps` are [lane, level, tensor]. Masks that all lanes share are read-only views."""
        lanes = len(keeps)
        shape = (lanes, self._levels, self._ranks)
        factors = {is_spatial: np.empty(shape) for is_spatial in (False, True)}
        for is_spatial, values in factors.items():
            for rank, rows in enumerate(self._rows[is_spatial]):
                values[:, :, rank] = rows[pieces.choices[rank]]
        spatial_x, spatial_y = np.ones(shape), np.ones(shape)
        orders = {is_spatial: np.empty(shape, np.int32) for is_spatial in (False, True)}
        for level in range(self._levels):
            for is_spatial, order in orders.items():
                if (level, is_spatial) not in self._slot_of:
                    order[:, level] = np.arange(self._ranks)
                    continue
                slot = self._slot_of[level, is_spatial]
                flat, base = order.reshape(-1), np.arange(lanes) * (self._levels * self._ranks) + level * self._ranks
                for rank, position in enumerate(pieces.positions[slot]):
                    flat[base + position] = rank
                    if is_spatial:
                        along_x = position < pieces.split[slot]
                        values = factors[True][:, level, rank]
                        spatial_x[:, level, rank] = np.where(along_x, values, 1.0)
                        spatial_y[:, level, rank] = np.where(along_x, 1.0, values)
        leaves: dict[str, Any] = {
            "temporal": factors[False],
            "spatial_x": spatial_x,
            "spatial_y": spatial_y,
            "temporal_order": orders[False],
            "spatial_order": orders[True],
            "keep": keeps,
            "stream": np.broadcast_to(0.0, keeps.shape),
            **{name: np.broadcast_to(mask, keeps.shape) for name, mask in self._switches.items()},
        }
        return Mapping(**leaves)

    def pieces(self, mapping: Mapping) -> Pieces:
        """What the mapping chose; choices are -1 where its factors are none of the space's."""
        spatial = mapping.spatial_x * mapping.spatial_y
        factors = [(spatial if slot.is_spatial else mapping.temporal)[:, slot.level] for slot in self._slots]
        choices = [self._choice(rank, np.stack([f[:, rank] for f in factors], -1)) for rank in range(self._ranks)]
        positions, splits = [], []
        for slot, values in zip(self._slots, factors, strict=True):
            order = (mapping.spatial_order if slot.is_spatial else mapping.temporal_order)[:, slot.level]
            place = np.argsort(order, axis=-1)
            on = values > 1
            along_x = on & (mapping.spatial_x[:, slot.level] > 1) if slot.is_spatial else np.zeros_like(on)
            behind = np.where(on, place + np.where(along_x, 0, self._ranks), np.arange(self._ranks) + 2 * self._ranks)
            if not slot.is_ordered:
                behind = np.where(on, np.arange(self._ranks), behind)
            positions.append(ranked(list(behind.T)))
            splits.append(count_of(list(along_x.T)))
        return Pieces(choices, positions, splits)

    def _choice(self, rank: int, factors: np.ndarray) -> np.ndarray:
        codes, order = self._codes[rank], self._sorted[rank]
        wanted = codes_of(self._tables[rank], factors)
        found = order[np.minimum(np.searchsorted(codes, wanted, sorter=order), len(codes) - 1)]
        return np.where((self._tables[rank][found] == factors).all(-1), found, -1)

    def _factor_rows(self, table: np.ndarray, is_spatial: bool) -> np.ndarray:
        rows = np.ones((len(table), self._levels))
        for t, slot in enumerate(self._slots):
            if slot.is_spatial == is_spatial:
                rows[:, slot.level] = table[:, t]
        return rows


def codes_of(table: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """One number per row of factors, distinct for the rows of the table."""
    code = np.zeros(len(factors), np.int64)
    for t in range(table.shape[1]):
        values = np.unique(table[:, t])
        code = code * len(values) + np.minimum(np.searchsorted(values, factors[:, t]), len(values) - 1)
    return code


def batched(mapping: Mapping) -> Mapping:
    """With numpy leaves and one leading batch axis."""
    leaves: dict[str, Any] = {}
    for name in mapping.__dataclass_fields__:
        leaf = np.asarray(getattr(mapping, name))
        leaves[name] = leaf.reshape((-1, *leaf.shape[-2:]))
    lanes = max(len(leaf) for leaf in leaves.values())
    return Mapping(**{name: np.broadcast_to(leaf, (lanes, *leaf.shape[1:])) for name, leaf in leaves.items()})


def nest_of(design: Design, mapping: Mapping) -> LoopNest:
    """The loop nest of one mapping without batch axes: loops of bound 1 behind the others, along Y where the level has
    children, else along X, as the reader of mappings has it."""
    architecture, einsum = design.architecture, design.einsum
    tensors = [tensor.name for tensor in einsum.tensors]
    nests: list[LevelNest] = []
    for s, level in enumerate(architecture.levels):
        bounds = {name: np.asarray(getattr(mapping, name))[s] for name in ("temporal", "spatial_x", "spatial_y")}
        order = np.asarray(mapping.spatial_order)[s].tolist()
        along_x = [r for r in order if bounds["spatial_x"][r] > 1 or architecture.fanout(s) == (1, 1)]
        along_y = sorted((r for r in order if r not in along_x), key=lambda r, y=bounds["spatial_y"]: y[r] <= 1)
        masks = {
            name: tuple(t for t, on in zip(tensors, np.asarray(getattr(mapping, name))[s], strict=True) if on)
            for name in ("keep", *SWITCHES, "stream")
        }
        temporal = _loops(einsum.ranks, np.asarray(mapping.temporal_order)[s].tolist(), bounds["temporal"])
        x, y = (
            _loops(einsum.ranks, ranks, bounds[name])
            for ranks, name in ((along_x, "spatial_x"), (along_y, "spatial_y"))
        )
        nests.append(LevelNest(level.name, temporal, x, y, **masks))
    return LoopNest(tuple(nests))


def _loops(ranks: tuple[str, ...], order: Sequence[int], bounds: np.ndarray) -> tuple[Loop, ...]:
    return tuple(Loop(ranks[r], int(bounds[r]), int(bounds[r])) for r in order)
