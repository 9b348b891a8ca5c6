"""Metadata and expected occupancy of tiles (spec/sparse.md sections 2.1 and 2.5 to 2.8)."""

import math
from dataclasses import dataclass, field

from jaxloop.spec.sparse import FormatRank, RankFormat, TensorFormat

from .sparse_density import DensityModel, Tile, density_model
from .sparse_errors import Refusal
from .sparse_geometry import Geometry, tile_of
from .sparse_ranks import Ranks, apply_ranks, is_compressed

Units = list[list[float]]
"""Metadata and payload units per rank, innermost first."""


def rank_units(form: RankFormat, fiber: int, fibers: int, empty: float, below_empty: float) -> list[float]:
    """Units of one rank with `fibers` fibers of `fiber` elements; the chances that a fiber and that an element is
    empty (2.1)."""
    filled = fibers * (1.0 - empty)
    expected = fiber * (1.0 - below_empty)
    if form is RankFormat.UOP:
        return [0.0, filled * (fiber + 1)]
    if form is RankFormat.UB:
        return [float(fibers * fiber), float(fibers * fiber)]
    if form is RankFormat.B:
        return [filled * fiber, filled * math.ceil(expected)]
    units = (math.ceil(expected) if form is RankFormat.CP else expected) * filled
    return [units, units]


def tile_units(ranks: Ranks, model: DensityModel, tile: Tile, nonzeros: int) -> Units:
    """Units of a tile that holds `nonzeros` (2.5)."""
    units: Units = [[0.0, 0.0] for _ in ranks.ranks]
    fibers, current = 1, tile
    for r in range(len(ranks.ranks) - 1, -1, -1):
        fiber = ranks.ranks[r].fiber
        if fiber > 1 or r == ranks.anchor:
            empty = model.empty(current, (tile, nonzeros))
            below = model.empty(ranks.subtiles[r], (tile, nonzeros))
            units[r] = rank_units(ranks.formats[r].format, fiber, fibers, empty, below)
        fibers *= fiber
        current = ranks.subtiles[r]
    innermost = next((entry for entry in units if any(entry)), None)
    if innermost is not None:
        innermost[1] = 0.0  # the payload is the data itself
    return units


@dataclass
class Held:
    """What a level holds of one tensor.

    - `shape`: elements; `chance_empty`: of a tile, where it is conditioned away, else 0; `reuse_share`: 1 less that.
    - `occupancy`, `density`: expected nonzeros and their share; `units`: expected metadata.
    """

    tile: Tile
    shape: int
    ranks: Ranks
    has_metadata: bool
    compressed: bool
    chance_empty: float = 0.0
    occupancy: float = 0.0
    density: float = 0.0
    units: Units = field(default_factory=list)


def check_formats(geometry: Geometry, formats: dict[str, dict[int, TensorFormat]]) -> None:
    """**Raises:** `Refusal` where a level would have to (de)compress and cannot (2.7)."""
    for name, tensor in geometry.tensors.items():
        for outer in range(geometry.depth - 1, -1, -1):
            inner = geometry.child(name, outer)
            if inner is None or not geometry.keeps(name, outer):
                continue
            level = geometry.design.architecture.levels[inner]
            wide, narrow = (formats.get(name, {}).get(s) for s in (outer, inner))
            if not compresses(wide):
                continue
            if not compresses(narrow):
                if not level.decompression_supported:
                    raise Refusal(level.name, f"decompression needed but not supported. dataspace name: {name}")
                if tensor.is_output and not level.compression_supported:
                    raise Refusal(level.name, f"compression needed but not supported. dataspace name: {name}")
            elif wide and narrow and len(wide.ranks) < len(narrow.ranks):
                raise Refusal(level.name, f"runtime partition not supported. dataspace name: {name}")


def compresses(form: TensorFormat | None) -> bool:
    return form is not None and any(is_compressed(rank) for rank in form.ranks)


def _expect(held: Held, model: DensityModel, parent_has_metadata: bool) -> None:
    """Expected occupancy and metadata, conditioned on nonempty tiles below a level with metadata (2.6)."""
    entries = model.entries(held.tile)
    if parent_has_metadata and model.minimum(held.tile) == 0 and entries:
        held.chance_empty = entries[0][1]
        left = 1.0 - held.chance_empty
        entries = [(k, p / left) for k, p in entries[1:]] if left else []
    held.occupancy = sum(p * k for k, p in entries)
    held.density = held.occupancy / held.shape
    if held.has_metadata:
        held.units = [[0.0, 0.0] for _ in held.ranks.ranks]
        for nonzeros, chance in entries:
            for total, units in zip(held.units, tile_units(held.ranks, model, held.tile, nonzeros), strict=True):
                for i in range(2):
                    total[i] += chance * units[i]


def hold(geometry: Geometry, formats: dict[str, dict[int, TensorFormat]]) -> dict[tuple[int, str], Held]:
    """What every level holds of the tensors that it keeps, by level and tensor.

    **Raises:** `Refusal`.
    """
    check_formats(geometry, formats)
    found: dict[tuple[int, str], Held] = {}
    for level in range(geometry.depth):
        for name in geometry.tensors:
            if not geometry.keeps(name, level):
                continue
            own = formats.get(name, {})
            child = geometry.child(name, level)
            inner = found[child, name] if child is not None else None
            pretiled = compresses(own.get(level)) and inner is not None and inner.shape > 1
            ranks = apply_ranks(geometry, name, level, own, inner.ranks if inner else None, pretiled)
            tile = geometry.tile(name, level)
            found[level, name] = Held(
                tile, geometry.shape(name, level), ranks, level in own, compresses(own.get(level))
            )
    models = density_models(geometry)
    for (level, name), held in found.items():
        parent = geometry.parent(name, level)
        _expect(held, models[name], parent is not None and found[parent, name].has_metadata)
    return found


def density_models(geometry: Geometry) -> dict[str, DensityModel]:
    densities = geometry.design.densities
    return {n: density_model(densities.get(n), tile_of(t, geometry.whole)) for n, t in geometry.tensors.items()}


def word_bits(rank: FormatRank, default: int) -> tuple[int, int]:
    """Bits of a metadata and of a payload word; `default` is the level's."""
    metadata, payload = rank.metadata_word_bits, rank.payload_word_bits
    return default if metadata is None else metadata, default if payload is None else payload
