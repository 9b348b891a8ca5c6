"""A simulator of sparse designs: walks the loop nest over sampled tensors and counts what really happens.

It exists to check the statistical model (spec/sparse.md) and shares no formula with it. Its rules:

- A level whose format has metadata stores, reads and receives nonzeros only; other levels all words of a tile. Below a
  level with metadata an empty tile is not delivered, and nothing further inward happens for it.
- Metadata is what encoding the tile really stores (`sampled_format.py`); words that are read or written take their
  share of their tile's metadata along.
- A SAF removes a delivery to the next level inward if, in the iterations for which the delivered tile stays put (one
  iteration for compute units; all receivers of a multicast together), the words used of one of its condition tensors
  are all zero. It counts as gated or skipped where the target is stored. Of the same tensor nothing happens further
  inward, and a compute that lacks an operand for this reason does not exist. Skipping goes before gating.
- Metadata of the ranks that a removed tile has at the receiving level is gated or skipped with it (of all ranks if the
  receiver is a compute unit); what leads to the tile is read all the same.
- The first update of an output word by an instance needs no read.
- An operand that is zero is absent if its innermost level has metadata, else there with the value zero. A compute with
  one absent operand is skipped if the compute units skip, one with a zero operand is gated if they gate; without any
  operand it does not exist; all others happen. Computes that happen or are gated take a cycle.
- Blocks of one word, unlimited bandwidth.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jaxloop.spec.design import Design
from jaxloop.spec.sparse import ActionKind, TensorFormat

from .sampled_format import Layout, count_units, layouts
from .sampled_tensors import Masks, sample_all
from .sampled_walk import COMPUTE, Deliveries, Walk

Key = tuple[str | int, ...]
"""What is counted, over all instances: `("reads" | "fills" | "updates", kind, level, tensor)`,
`("metadata_" + action, kind, level, tensor, rank, "metadata" | "payload")` with ranks innermost first,
`("instances", level, tensor)`: average number in use, `("temporal_reductions" | "decompressions" | "compressions",
level, tensor)`, `("computes", kind)`, `("cycles",)`: of evenly loaded units, `("lockstep_cycles",)`: if a step takes a
cycle as soon as one unit works, `("longest_cycles",)`: of the unit with most work; `("largest_tile", level, tensor)`:
nonzeros, `("tile_words", level, tensor)` and `("tile_units", level, tensor, rank, "metadata" | "payload")`: what a tile
holds on average, nothing if it is not there. Kinds are actual, gated, skipped."""
Counts = dict[Key, np.ndarray]
"""Per sample."""
KINDS = ("actual", "gated", "skipped")


@dataclass(frozen=True)
class Estimate:
    mean: float
    error: float
    """Standard error of the mean."""


@dataclass(frozen=True)
class Condition:
    """A directive on a stored tensor: where its target is stored, the condition tensors, what is done."""

    level: int
    target: str
    leaders: tuple[str, ...]
    kind: ActionKind


class Simulation:
    """One design, ready to be run on masks.

    Raises `ValueError` for what is not simulated: imperfect factors, negative coefficients, groups with several
    options, spatial skipping, formats that split windows.
    """

    def __init__(self, design: Design):
        self.design = design
        self.walk = Walk(design)
        names = [level.name for level in design.architecture.levels]
        self.formats: dict[str, dict[int, TensorFormat]] = {name: {} for name in self.walk.tensors}
        self.conditions: list[Condition] = []
        self.compute: tuple[ActionKind, ...] = ()
        for target in design.sparse.targets:
            if target.level == design.architecture.compute.name:
                self.compute = target.compute
                continue
            level = names.index(target.level)
            for form in target.formats:
                self.formats[form.tensor][level] = form
            for action in target.actions:
                if len(action.options) != 1 or action.kind is ActionKind.SPATIAL_SKIPPING:
                    raise ValueError(f"{target.level}: options and spatial skipping are not simulated")
                option = action.options[0]
                stored = next(s for s in range(level, self.walk.depth) if self.walk.keeps(option.target, s))
                self.conditions.append(Condition(stored, option.target, option.condition_on, action.kind))
        self.layouts = {name: layouts(self.walk, name, self.formats[name]) for name in self.walk.tensors}

    @cached_property
    def given(self) -> dict[tuple[int, str], Deliveries]:
        """What each level delivers inward."""
        walk, found = self.walk, {}
        for name in walk.tensors:
            for level in range(walk.depth):
                if walk.keeps(name, level):
                    found[level, name] = walk.deliveries(name, level, walk.child(name, level))
        return found

    def held(self, level: int, tensor: str) -> Deliveries:
        """What a level holds, as it was delivered."""
        parent = self.walk.parent(tensor, level)
        return self._beyond[level, tensor] if parent is None else self.given[parent, tensor]

    @cached_property
    def _beyond(self) -> dict[tuple[int, str], Deliveries]:
        walk = self.walk
        tops = {name: max(s for s in range(walk.depth) if walk.keeps(name, s)) for name in walk.tensors}
        return {(top, name): walk.deliveries(name, walk.depth, top) for name, top in tops.items()}

    def run(self, masks: Masks) -> Counts:
        """Counts on given tensors, `masks[tensor]` of shape [samples, ...]. Pure function of its argument."""
        return _Run(self, masks).counts()


Sampler = Callable[[Simulation, np.random.Generator, int], Masks]


def _as_promised(simulation: Simulation, rng: np.random.Generator, samples: int) -> Masks:
    return sample_all(simulation.design, simulation.walk, rng, samples)


def estimate(
    simulation: Simulation,
    rng: np.random.Generator,
    samples: int,
    sampler: Sampler = _as_promised,
    batch: int = 64,
) -> dict[Key, Estimate]:
    """Means over `samples` draws of all tensors; `largest_tile` is the maximum."""
    parts: dict[Key, list[np.ndarray]] = defaultdict(list)
    for start in range(0, samples, batch):
        for key, values in simulation.run(sampler(simulation, rng, min(batch, samples - start))).items():
            parts[key].append(values)
    out = {}
    for key, found in parts.items():
        values = np.concatenate(found)
        if key[0] == "largest_tile":
            out[key] = Estimate(float(values.max()), 0.0)
        else:
            error = float(values.std(ddof=1)) / np.sqrt(samples) if samples > 1 else 0.0
            out[key] = Estimate(float(values.mean()), error)
    return out


class _Run:
    """One run: `masks` flat [samples, elements]; all truth arrays are [samples, deliveries]."""

    def __init__(self, simulation: Simulation, masks: Masks):
        self.simulation, self.walk = simulation, simulation.walk
        self.masks = {name: mask.reshape(len(mask), -1) for name, mask in masks.items()}
        self.samples = len(next(iter(self.masks.values())))
        self.out: Counts = {}

    def counts(self) -> Counts:
        for name in self.walk.tensors:
            for level in reversed(range(self.walk.depth)):
                if self.walk.keeps(name, level):
                    self._level(level, name)
        self._computes()
        return self.out

    def _used(self, tensor: str) -> np.ndarray:
        """Values that the iterations use: [samples, iterations]."""
        return self.masks[tensor][:, self.walk.used[tensor]]

    @cached_property
    def removals(self) -> dict[tuple[int, str], dict[str, np.ndarray]]:
        """Deliveries that a level's SAFs gate or skip."""
        found: dict[tuple[int, str], dict[str, np.ndarray]] = {}
        for condition in self.simulation.conditions:
            key = condition.level, condition.target
            given = self.simulation.given[key]
            empty = np.zeros((self.samples, len(given.place)), bool)
            for leader in condition.leaders:
                empty |= ~given.any(self._used(leader))
            kinds = found.setdefault(key, {kind: np.zeros_like(empty) for kind in ("gated", "skipped")})
            kinds["gated" if condition.kind is ActionKind.GATING else "skipped"] |= empty
        for kinds in found.values():
            kinds["gated"] &= ~kinds["skipped"]
        return found

    def _removed(self, level: int, tensor: str, iterations: np.ndarray) -> np.ndarray:
        """Whether SAFs of levels beyond `level` leave nothing of the tensor for some iterations."""
        gone = np.zeros((self.samples, len(iterations)), bool)
        for (outer, target), kinds in self.removals.items():
            if target == tensor and outer > level:
                delivery = self.simulation.given[outer, target].of_iteration[iterations]
                gone |= (kinds["gated"] | kinds["skipped"])[:, delivery]
        return gone

    def _present(self, level: int, tensor: str) -> np.ndarray:
        """Whether the tiles that a level holds were delivered to it, SAFs aside."""
        held = self.simulation.held(level, tensor)
        parent = self.walk.parent(tensor, level)
        if parent is None:
            return np.ones((self.samples, len(held.place)), bool)
        outer = self.simulation.held(parent, tensor)
        present = self._present(parent, tensor)[:, outer.of_iteration[held.example]]
        if parent in self.simulation.layouts[tensor]:
            present = present & self._tiles(level, tensor, self.walk.offsets(tensor, level)).any(-1)
        return present

    def _tiles(self, level: int, tensor: str, offsets: np.ndarray) -> np.ndarray:
        """Contents of the tiles that a level holds: [samples, tiles, elements]."""
        return self.masks[tensor][:, self.simulation.held(level, tensor).place[:, None] + offsets]

    def _level(self, level: int, tensor: str) -> None:
        """Everything about one tensor at one level: what it holds, receives and gives."""
        walk, is_output = self.walk, self.walk.tensors[tensor].is_output
        held, given = self.simulation.held(level, tensor), self.simulation.given[level, tensor]
        layout, parent = self.simulation.layouts[tensor].get(level), walk.parent(tensor, level)
        present = self._present(level, tensor)
        share = held.receivers / held.receivers.sum()
        self.out["instances", level, tensor] = walk.instances(level) * (present @ share)
        nonzeros = self._tiles(level, tensor, walk.offsets(tensor, level)).sum(-1)
        self.out["largest_tile", level, tensor] = nonzeros.max(1)
        self.out["tile_words", level, tensor] = (present * nonzeros) @ share
        units = None if layout is None else count_units(self._tiles(level, tensor, layout.offsets), layout)
        self._metadata(("tile_units",), level, tensor, units, present * share)
        size = len(walk.offsets(tensor, level))
        if parent is not None:
            alive = present & ~self._removed(parent, tensor, held.example)
            for kind in self.removals.get((parent, tensor), {}).values():
                alive = alive & ~kind
            words = held.total(self._stored(tensor, layout, held.words))
            self.out["fills", "actual", level, tensor] = (alive * words) @ held.receivers
            passes = alive * (held.sizes * held.receivers) / size
            self._metadata(("metadata_fills", "actual"), level, tensor, units, passes)
            self._conversions(level, tensor, parent, alive)
        tile = held.of_iteration[given.example]
        alive = present[:, tile] & ~self._removed(level, tensor, given.example)
        stored = self._stored(tensor, layout, given.words)
        again = ~given.is_first if is_output else np.ones(len(given.words), bool)
        for action, counted in (("reads", again), ("updates", np.ones(len(again), bool))):
            if action == "updates" and not is_output:
                continue
            words, passes = given.total(stored * counted), given.total(counted.astype(float)) / size
            self._split(action, level, tensor, alive, words, units, passes)
        if is_output:
            self.out["temporal_reductions", level, tensor] = self.out["reads", "actual", level, tensor]

    def _stored(self, tensor: str, layout: Layout | None, words: np.ndarray) -> np.ndarray:
        """Which words a level stores (all without a format): [samples, words]."""
        if layout is None:
            return np.ones((self.samples, len(words)))
        return self.masks[tensor][:, words].astype(float)

    def _split(
        self,
        action: str,
        level: int,
        tensor: str,
        alive: np.ndarray,
        words: np.ndarray,
        units: np.ndarray | None,
        passes: np.ndarray,
    ) -> None:
        """Accesses that happen, are gated or skipped by the level's own SAFs. `passes`: share of the tile's elements
        that a delivery covers."""
        given, removed = self.simulation.given[level, tensor], self.removals.get((level, tensor))
        tile = self.simulation.held(level, tensor).of_iteration[given.example]
        ones = np.eye(len(self.simulation.held(level, tensor).place))[tile]
        gone = {"gated": np.zeros_like(alive), "skipped": np.zeros_like(alive)} | (removed or {})
        kinds = {"actual": alive & ~gone["gated"] & ~gone["skipped"]} | {k: alive & g for k, g in gone.items()}
        followed = self._followed(level, tensor)
        for kind, flags in kinds.items():
            self.out[action, kind, level, tensor] = (flags * words).sum(1)
            everything = alive if kind == "actual" else np.zeros_like(alive)
            for ranks, shown in ((range(followed), flags), (range(followed, 99), everything)):
                self._metadata((f"metadata_{action}", kind), level, tensor, units, (shown * passes) @ ones, ranks)

    def _followed(self, level: int, tensor: str) -> int:
        """Ranks whose metadata is removed with a delivery."""
        child, known = self.walk.child(tensor, level), self.simulation.layouts[tensor]
        source = level if child == COMPUTE else child
        return len(known[source].ranks) if source in known else 0

    def _metadata(
        self,
        what: Key,
        level: int,
        tensor: str,
        units: np.ndarray | None,
        passes: np.ndarray,
        ranks: range = range(99),
    ) -> None:
        """`passes` [samples, tiles]: how often each tile's metadata is traversed."""
        if units is None:
            return
        for rank in (r for r in ranks if r < units.shape[2]):
            for i, part in enumerate(("metadata", "payload")):
                self.out[*what, level, tensor, rank, part] = (passes * units[:, :, rank, i]).sum(1)

    def _conversions(self, level: int, tensor: str, parent: int, alive: np.ndarray) -> None:
        """Words that change between a compressed representation at the parent and none here."""
        known, held = self.simulation.layouts[tensor], self.simulation.held(level, tensor)
        own = known.get(level)
        if parent not in known or not known[parent].is_compressed or (own and own.is_compressed):
            return
        self.out["decompressions", level, tensor] = self.out["fills", "actual", level, tensor]
        if self.walk.tensors[tensor].is_output:
            words = held.total(self._stored(tensor, known[parent], held.words))
            self.out["compressions", level, tensor] = (alive * words) @ held.receivers

    def _computes(self) -> None:
        walk, everything = self.walk, np.arange(self.walk.iterations)
        operands = [name for name, tensor in walk.tensors.items() if not tensor.is_output]
        alive = np.ones((self.samples, walk.iterations), bool)
        absent, zero = [], []
        for name in operands:
            alive &= ~self._removed(COMPUTE, name, everything)
            inner = min(level for level in range(walk.depth) if walk.keeps(name, level))
            has_metadata = inner in self.simulation.layouts[name]
            values = self._used(name)
            absent.append(~values if has_metadata else np.zeros_like(values))
            zero.append(np.zeros_like(values) if has_metadata else ~values)
        nothing = np.logical_and.reduce(absent)
        some_absent = np.logical_or.reduce(absent)
        some_lacking = some_absent | np.logical_or.reduce(zero)
        alive &= ~nothing
        skips = ActionKind.SKIPPING in self.simulation.compute
        gates = ActionKind.GATING in self.simulation.compute
        skipped = alive & some_absent & skips
        gated = alive & ~skipped & some_lacking & gates
        actual = alive & ~skipped & ~gated
        for kind, flags in zip(KINDS, (actual, gated, skipped), strict=True):
            self.out["computes", kind] = flags.sum(1).astype(float)
        self._cycles(actual | gated)

    def _cycles(self, works: np.ndarray) -> None:
        unit, step = self.walk.unit_and_step()
        order = np.lexsort((unit, step))
        grid = works[:, order].reshape(self.samples, -1, self.walk.units)
        self.out["cycles",] = works.sum(1) / self.walk.units
        self.out["lockstep_cycles",] = grid.any(2).sum(1).astype(float)
        self.out["longest_cycles",] = grid.sum(1).max(1).astype(float)


def compare(
    counts: dict[Key, Estimate], model: dict[Key, float], samples: int
) -> Iterator[tuple[Key, Estimate, float]]:
    """The model's counts that differ by more than 1 % and 3 standard errors. What happens in no sample may have a
    chance of up to 3 in `samples`, of all accesses of its kind."""
    for key, value in model.items():
        truth = counts.get(key, Estimate(0.0, 0.0))
        total = sum(model.get((key[0], kind, *key[2:]), 0.0) for kind in KINDS)
        unseen = 3 * total / samples if truth.mean == 0.0 or truth.mean == total else 0.0
        if abs(truth.mean - value) > max(0.01 * abs(value), 3 * truth.error, unseen, 1e-9):
            yield key, truth, value
