"""Gating and skipping of storage accesses: with which chance an access is removed (spec/sparse.md 3.2 to 3.4)."""

import math
from dataclasses import dataclass, field

from jaxloop.spec.sparse import ActionKind, ActionOptimization, Intersection

from .sparse_density import DensityModel
from .sparse_errors import Refusal, Undefined
from .sparse_format import Held
from .sparse_geometry import Geometry, Step, size_of, tile_of


@dataclass
class Leader:
    """A condition tensor: the box of its leader tile, the tile and its chance to be empty."""

    tensor: str
    box: dict[str, int]
    tile: tuple[int, ...]
    empty: float


@dataclass
class Saf:
    """The chance that an access to `target` at `level` is removed, and how it came about."""

    target: str
    level: int
    kind: ActionKind
    chance: float
    is_scalar: bool
    loop: tuple[int, int]
    leaders: list[Leader] = field(default_factory=list)


@dataclass
class _Scan:
    """The target loop's place, whether only one operation lies below, and the box below the target."""

    level: int
    index: int
    is_scalar: bool
    box: dict[str, int]


def _target_loop(geometry: Geometry, target: str, child: int | None, level: int) -> _Scan:
    """Step 3 of 3.2."""
    relevant = geometry.tensors[target].ranks
    if child is None:
        steps = geometry.nest[0]
        for i, step in enumerate(steps):
            if not steps[i + 1].is_spatial:
                scalar = not step.is_spatial
                return _Scan(0, i, scalar, {} if scalar else dict(step.box))
            if step.bound > 1 and step.rank in relevant:
                return _Scan(0, i, False, dict(step.box))
    assert child is not None
    for s in range(child + 1, level + 1):
        for i, step in enumerate(geometry.nest[s]):
            if step.bound > 1 and step.rank in relevant:
                return _Scan(s, i, False, dict(step.box))
    return _Scan(level, len(geometry.nest[level]) - 1, False, dict(geometry.nest[level][-1].box))


def _loops_above(geometry: Geometry, scan: _Scan, level: int) -> list[Step]:
    """The nontrivial loops above the target loop up to the end of the target level."""
    steps = geometry.nest[scan.level][scan.index + 1 :]
    for s in range(scan.level + 1, level + 1):
        steps = steps + geometry.nest[s]
    return [step for step in steps if step.bound > 1]


def _condition_box(
    geometry: Geometry, target: str, scan: _Scan, child: int | None, level: int
) -> tuple[dict[str, int], list[Step]]:
    """Step 4 of 3.2: the box that the conditions see, and the loops that made it."""
    relevant = geometry.tensors[target].ranks
    loop = geometry.nest[scan.level][scan.index]
    box, made_of = dict(scan.box), [loop]
    found_temporal = not loop.is_spatial
    for step in _loops_above(geometry, scan, level):
        stationary = child is not None and step.rank not in relevant
        if step.is_spatial or (not found_temporal and stationary):
            box[step.rank] = box.get(step.rank, 1) * step.bound
            made_of.append(step)
        if loop.is_spatial and not step.is_spatial and not stationary:
            found_temporal = True
    return box, made_of


def _co_iterated(geometry: Geometry, target: str, condition: str, made_of: list[Step]) -> dict[str, int] | None:
    """Bounds of the co-iterated loops per rank; None if the condition has no effect (step 5a)."""
    own, other = geometry.tensors[target].ranks, geometry.tensors[condition].ranks
    bounds: dict[str, int] = {}
    for step in made_of:
        if made_of[0].is_spatial and bounds and step.rank in other:
            return None
        if step.rank in own and step.rank in other:
            bounds[step.rank] = bounds.get(step.rank, 1) * step.bound
    return bounds


def _leader_box(
    geometry: Geometry, target: str, scan: _Scan, condition_box: dict[str, int], bounds: dict[str, int], block: int
) -> dict[str, int]:
    """Steps 5b to 5d of 3.2."""
    box = dict(condition_box)
    swept = size_of(geometry.tensors[target], scan.box)
    scale = float(math.ceil(block / (swept / math.prod(bounds.values()))))
    for rank in geometry.design.einsum.ranks:
        if rank in bounds:
            box[rank] = math.ceil(box.get(rank, 1) / (bounds[rank] / scale))
            scale = scale / bounds[rank]
    if scale > 1:
        rank = geometry.nest[scan.level][scan.index].rank
        box[rank] = int(box.get(rank, 1) * scale)
    return box


def source_level(geometry: Geometry, target: str, level: int) -> int:
    """Where the target of a directive of `level` is stored. **Raises:** `Refusal` if nowhere further out."""
    if geometry.keeps(target, level):
        return level
    found = geometry.parent(target, level)
    if found is None:
        name = geometry.design.architecture.levels[level].name
        raise Refusal(name, f"does not have a source storage. dataspace name: {target}")
    return found


def assess(
    geometry: Geometry, models: dict[str, DensityModel], option: Intersection, level: int, kind: ActionKind
) -> Saf:
    """One option of a directive of `level` (3.2)."""
    target = option.target
    level = source_level(geometry, target, level)
    child = geometry.child(target, level)
    if child is None and len(geometry.nest[0]) == 1:
        raise Undefined("with one loop below the target the reference reads past its list of loops")
    scan = _target_loop(geometry, target, child, level)
    condition_box, made_of = _condition_box(geometry, target, scan, child, level)
    saf = Saf(target, level, kind, 0.0, scan.is_scalar, (scan.level, scan.index))
    survives = 1.0
    block = geometry.design.architecture.levels[level].block_size
    for condition in option.condition_on:
        bounds = {} if scan.is_scalar else _co_iterated(geometry, target, condition, made_of)
        if bounds is None:
            continue
        box = _leader_box(geometry, target, scan, condition_box, bounds, block)
        tile = tile_of(geometry.tensors[condition], box)
        empty = models[condition].empty(tile)
        survives *= 1.0 - empty
        saf.leaders.append(Leader(condition, box, tile, empty))
    saf.chance = 1.0 - survives
    return saf


def _saving(geometry: Geometry, held: dict[tuple[int, str], Held], saf: Saf, read_energy: list[float]) -> float:
    """What an option saves, in the reference's estimate (3.3)."""
    level = geometry.design.architecture.levels[saf.level]
    child = geometry.child(saf.target, saf.level)
    source = held[saf.level if child is None else child, saf.target]
    metadata = sum(map(sum, source.units))
    ratio = level.metadata.word_bits // level.word_bits
    tile = held[saf.level, saf.target].occupancy + ratio * metadata
    return read_energy[saf.level] / level.block_size * tile * saf.chance


def choose(
    geometry: Geometry,
    models: dict[str, DensityModel],
    held: dict[tuple[int, str], Held],
    group: ActionOptimization,
    level: int,
    read_energy: list[float],
) -> Saf:
    """The option of a group that saves most, the later one of equals."""
    options = [assess(geometry, models, option, level, group.kind) for option in group.options]
    best = options[0]
    for option in options[1:]:
        if _saving(geometry, held, option, read_energy) >= _saving(geometry, held, best, read_energy):
            best = option
    return best


def find_safs(
    geometry: Geometry,
    models: dict[str, DensityModel],
    held: dict[tuple[int, str], Held],
    actions: list[tuple[int, ActionOptimization]],
    read_energy: list[float],
) -> dict[tuple[int, str], Saf]:
    """The SAFs by level and tensor: all gating first, then all skipping; a later one replaces a weaker one. Spatial
    skipping is left to `sparse_spatial.py`.

    **Raises:** `Refusal`.
    """
    found: dict[tuple[int, str], Saf] = {}
    for kind in (ActionKind.GATING, ActionKind.SKIPPING):
        for level, group in sorted(actions, key=lambda entry: entry[0]):
            if group.kind is kind:
                saf = choose(geometry, models, held, group, level, read_energy)
                key = (saf.level, saf.target)
                if key not in found or saf.chance > found[key].chance:
                    found[key] = saf
    return found
