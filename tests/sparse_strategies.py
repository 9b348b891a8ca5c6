"""Small random sparse designs: those of `tests/strategies.py` with densities, formats, SAFs and prices of their own.

Most are legal. Some exceed a capacity, lack a converter or a format rank, or have a compressed level inside an
uncompressed one, as users' designs do.
"""

import math
import random
from dataclasses import dataclass, replace

from jaxloop.spec.architecture import Architecture, Metadata, Storage
from jaxloop.spec.density import Density, Distribution
from jaxloop.spec.design import Design
from jaxloop.spec.einsum import Einsum, Tensor
from jaxloop.spec.sparse import (
    ActionKind,
    ActionOptimization,
    FormatRank,
    Intersection,
    RankFormat,
    SparseOptimizations,
    SparseTarget,
    TensorFormat,
)
from jaxloop.spec.tables import EnergyTable
from tests.oracles.sparse_geometry import Geometry, tile_of
from tests.strategies import random_design

SHARES = (0.05, 0.1, 0.25, 1 / 3, 0.5, 0.5, 0.625, 0.75, 0.9, 1.0)
UNCOMPRESSED = (RankFormat.UOP, RankFormat.UB)
COMPRESSED = (RankFormat.CP, RankFormat.B, RankFormat.RLE)
STORAGE_ENTRIES = (
    *("random_read", "random_fill", "random_update", "idle"),
    *("gated_read", "gated_fill", "gated_update", "gated_write"),
    *("skipped_read", "skipped_fill", "skipped_update", "skipped_write"),
    *("metadata_read", "metadata_write", "metadata_idle"),
    *("random_metadata_read", "random_metadata_fill", "random_metadata_update"),
    *("gated_metadata_read", "gated_metadata_fill", "gated_metadata_update", "gated_metadata_write"),
    *("skipped_metadata_read", "skipped_metadata_fill", "skipped_metadata_update", "skipped_metadata_write"),
    *("decompression_count", "compression_count"),
)
COMPUTE_ENTRIES = ("mac_random", "mac_gated", "mac_skipped", "mult", "compute_gated")


@dataclass(frozen=True)
class Family:
    """`kinds` of problems; `band`: largest half width, some tensor is banded (-1: none); `flattens`: some format rank
    merges loops; `most_ranks`: of a format."""

    kinds: tuple[str, ...] = ("matmul", "batched_matmul", "matvec")
    band: int = -1
    flattens: bool = False
    most_ranks: int = 4


FAMILIES = {
    "plain": Family(),
    "flattened": Family(flattens=True),
    "banded": Family(("matmul", "matvec"), band=3),
    "windows": Family(("conv1d",), flattens=True),
    "many ranks": Family(("batched_matmul", "conv1d"), most_ranks=8),
    "everything": Family(("matmul", "matvec"), band=15, flattens=True, most_ranks=8),
}
"""The designs of each of the first four families share a size class."""


def extents(einsum: Einsum, tensor: Tensor) -> tuple[int, ...]:
    return tile_of(tensor, einsum.size_of)


def _is_square(einsum: Einsum, tensor: Tensor) -> bool:
    found = extents(einsum, tensor)
    return len(found) == 2 and found[0] == found[1] > 2


def random_sparse_design(
    rng: random.Random, family: str = "plain", least_words: int = 1, most_words: int = 900
) -> Design:
    """One design of a family (a key of `FAMILIES`) with at least one format or SAF. `least_words`, `most_words`: of the
    largest tensor, which bounds the sums over occupancies."""
    chosen = FAMILIES[family]
    while True:
        computes = rng.choice((64, 512, 4096)) if least_words == 1 else 64 * most_words
        design = random_design(rng, rng.choice(chosen.kinds), max_computes=computes)
        einsum = design.einsum
        largest = max(math.prod(extents(einsum, tensor)) for tensor in einsum.tensors)
        square = any(_is_square(einsum, tensor) for tensor in einsum.tensors)
        if least_words <= largest <= most_words and (square or chosen.band < 0):
            break
    architecture = _architecture(rng, design.architecture)
    design = replace(design, architecture=architecture, energy_table=_energies(rng, architecture))
    design = replace(design, densities=_densities(rng, einsum, chosen.band))
    while not (design.sparse.has_effect and _flattens(design.sparse) == chosen.flattens):
        design = replace(design, sparse=_optimizations(rng, design, chosen))
    return design


def _flattens(sparse: SparseOptimizations) -> bool:
    return any(rank.flattened for target in sparse.targets for form in target.formats for rank in form.ranks)


def _architecture(rng: random.Random, dense: Architecture) -> Architecture:
    return replace(dense, levels=tuple(_storage(rng, level) for level in dense.levels))


def _storage(rng: random.Random, level: Storage) -> Storage:
    width = rng.choice((0, 8, 16, 64, 64))
    words = rng.choice([bits for bits in (0, 4, 8, 8, 16) if bits <= width])
    tight = level.size is not None and rng.random() < 0.25
    return replace(
        level,
        block_size=rng.choice((1, 1, 2, 4, 8)),
        size=max(1, round(level.size * rng.uniform(0.2, 1.0))) if level.size is not None and tight else level.size,
        min_utilization=rng.choice((0.0, 0.0, 0.0, 0.1)),
        metadata=Metadata(words, 1, width, rng.choice((0, 4, 64)) if tight else 4096),
        decompression_supported=rng.random() < 0.97,
        compression_supported=rng.random() < 0.97,
    )


def _energies(rng: random.Random, architecture: Architecture) -> EnergyTable:
    """Always reads and writes, at random what is finer: prices fall back on each other."""
    share = rng.choice((0.0, 0.3, 0.8))

    def some(names: tuple[str, ...], scale: float) -> dict[str, float]:
        return {name: round(scale * rng.random(), 3) for name in names if rng.random() < share}

    components = {architecture.compute.name: {"compute": 1.0} | some(COMPUTE_ENTRIES, 1.0)}
    for order, level in enumerate(architecture.levels):
        scale = 4.0 * 8**order
        components[level.name] = {"read": scale, "write": 1.25 * scale} | some(STORAGE_ENTRIES, scale)
    return EnergyTable(components, None, "random")


def _densities(rng: random.Random, einsum: Einsum, band: int) -> dict[str, Density]:
    found = {}
    square = [tensor.name for tensor in einsum.tensors if _is_square(einsum, tensor)]
    bands = {rng.choice(square), *(name for name in square if rng.random() < 0.3)} if band >= 0 else set()
    for tensor in einsum.tensors:
        share = rng.choice((*SHARES, round(rng.random(), 3))) if rng.random() < 0.98 else 0.0
        if tensor.name in bands:
            widest = min(extents(einsum, tensor)[0] - 1, band)
            found[tensor.name] = Density(Distribution.BANDED, band_width=rng.randint(0, widest))
        elif rng.random() < 0.9:
            kind = rng.choice((Distribution.FIXED_STRUCTURED, Distribution.HYPERGEOMETRIC, Distribution.HYPERGEOMETRIC))
            found[tensor.name] = Density(kind, share)
    return found


def _optimizations(rng: random.Random, design: Design, family: Family) -> SparseOptimizations:
    formats: dict[int, list[TensorFormat]] = {}
    geometry = Geometry(design)
    for tensor in design.einsum.tensors:
        if rng.random() < 0.75:
            for level, ranks in _formats(rng, geometry, tensor, family).items():
                formats.setdefault(level, []).append(ranks)
    activity = rng.choice((0.0, 0.5, 1.0))
    targets = []
    for s, level in enumerate(design.architecture.levels):
        stored = {name for nest in design.nest.levels[s:] for name in nest.keep} if design.nest else set()
        names = sorted(stored) if rng.random() < 0.98 else [tensor.name for tensor in design.einsum.tensors]
        wanted = rng.choice((0, 1, 1, 2)) if names and rng.random() < activity else 0
        groups = tuple(_group(rng, design, names) for _ in range(wanted))
        targets.append(SparseTarget(level.name, tuple(formats.get(s, ())), groups))
    kinds = tuple(k for k in (ActionKind.GATING, ActionKind.SKIPPING) if rng.random() < 0.4)
    targets.append(SparseTarget(design.architecture.compute.name, compute=kinds))
    rng.shuffle(targets)
    return SparseOptimizations(tuple(targets), True)


def _group(rng: random.Random, design: Design, targets: list[str]) -> ActionOptimization:
    options = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        target = rng.choice(targets)
        others = [tensor.name for tensor in design.einsum.tensors if tensor.name != target]
        options.append(Intersection(target, tuple(rng.sample(others, rng.choice((1, 1, 2))))))
    return ActionOptimization(rng.choice((ActionKind.GATING, ActionKind.SKIPPING)), tuple(options))


def _loops(geometry: Geometry, tensor: Tensor, child: int | None, level: int, pretiled: bool) -> int:
    """Loops that need a format rank of their own."""
    start = 0 if child is None else child + 1
    steps = [step for nest in geometry.nest[start : level + 1] for step in nest if step.rank in tensor.ranks]
    below = geometry.nest[child][-1].box if child is not None and not pretiled else {}
    nontrivial, scaled = 0, set()
    for step in steps:
        bound = step.bound * (below.get(step.rank, 1) if step.rank not in scaled else 1)
        scaled.add(step.rank)
        nontrivial += bound > 1
    return nontrivial


def _formats(rng: random.Random, geometry: Geometry, tensor: Tensor, family: Family) -> dict[int, TensorFormat]:
    """Of one tensor by level: usually of all levels from the outermost to some inner one."""
    kept = [s for s in range(geometry.depth) if geometry.keeps(tensor.name, s)]
    levels = kept[rng.randrange(len(kept)) :] if rng.random() < 0.95 else [s for s in kept if rng.random() < 0.5]
    is_compressed = rng.random() < 0.75
    backwards = rng.random() < 0.3
    style = rng.choice(("", "outermost", "outermost", "all", "all", "some")) if family.flattens else ""
    found: dict[int, TensorFormat] = {}
    pattern: list[RankFormat] = []  # innermost first
    for level in levels:
        child = geometry.child(tensor.name, level)
        below = found.get(child) if child is not None else None
        pretiled = is_compressed and child is not None and geometry.shape(tensor.name, child) > 1
        count = _loops(geometry, tensor, child, level, pretiled)
        count += (len(below.ranks) if below else 1) if pretiled else 0
        if count > family.most_ranks and not style:
            return {}
        spare = rng.choice((*(0,) * 10, *(1,) * 4, -1)) - (rng.choice((0, 0, 1)) if style else 0)
        count = min(max(count + spare, 1), family.most_ranks)
        while len(pattern) < count:
            may_compress = is_compressed and all(form in COMPRESSED for form in pattern)
            compresses = may_compress and (not pattern or rng.random() < 0.5)
            pattern.append(rng.choice(COMPRESSED if compresses else UNCOMPRESSED))
        forms = pattern[:count]
        if rng.random() < 0.03:  # not what the neighbors expect
            forms = [rng.choice(UNCOMPRESSED) for _ in forms]
        storage = geometry.design.architecture.levels[level]
        ranks = tuple(_rank(rng, form, storage, _groups(rng, tensor, style)) for form in reversed(forms))
        if style == "outermost":
            ranks = (replace(ranks[0], flattened=(tensor.ranks,)), *ranks[1:])
        found[level] = TensorFormat(tensor.name, ranks, backwards != (rng.random() < 0.05))
    return found


def _rank(rng: random.Random, form: RankFormat, level: Storage, groups: tuple[tuple[str, ...], ...]) -> FormatRank:
    def bits() -> int | None:
        return rng.choice((None, None, 0, *(b for b in (1, 2, 4, 8) if level.metadata.width)))

    metadata, payload = (None, None) if form is RankFormat.UB else (bits(), bits())
    if form is RankFormat.B and metadata is None:
        metadata = 1 if level.metadata.width else 0  # as the reader has it
    return FormatRank(form, payload, metadata, groups)


def _groups(rng: random.Random, tensor: Tensor, style: str) -> tuple[tuple[str, ...], ...]:
    """The ranks that a format rank may merge: all, or some in one or two groups."""
    if style == "all":
        return (tensor.ranks,)
    if style != "some" or rng.random() < 0.5:
        return ()
    ranks = rng.sample(tensor.ranks, len(tensor.ranks))
    cut = rng.randrange(len(ranks))
    return tuple(tuple(part) for part in (ranks[cut:], ranks[:cut]) if part and rng.random() < 0.9)
