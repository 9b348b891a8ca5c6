"""Search by gradients: descent of relaxed factors, rounding to divisors, and a walk along small exact steps."""

from dataclasses import dataclass, field

import numpy as np

from ..program import Mapping
from .driver import Search
from .genes import Genes
from .scorer import Scores
from .space import MapSpace

TEMPERATURES = (0.0, 0.1, 0.2, 0.4, 0.8)
"""Of the roundings of one relaxed mapping, in units of log factors: the nearest divisors first, then wider draws."""

NEAREST = 64
"""Rows of a rank's factorizations among which a rounding draws."""


@dataclass
class Gradient:
    """Rounds of: random mappings, of which the best start; descent; rounding; steps to better neighbors.

    **Attributes:** `lanes`: mappings that descend together; `draws`: random ones per round; `steps` of the descent;
    `stale`: generations of neighbors without a gain after which a round ends; `taken`: steps so far, which number the
    random streams.
    """

    space: MapSpace
    seed: int
    lanes: int = 48
    draws: int = 960
    steps: int = 30
    stale: int = 12
    round: int = 0
    phase: str = "draw"
    rows: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), int))
    scores: np.ndarray = field(default_factory=lambda: np.zeros((0, 1)))
    rows_without_gain: int = 0
    taken: int = 0

    def __post_init__(self) -> None:
        self._genes = Genes(self.space)

    def step(self, search: Search) -> str | None:
        rng = np.random.default_rng((self.seed, self.taken))
        self.taken += 1
        genes = self._genes
        if self.phase == "draw":
            self._draw(genes, rng, search)
        elif self.phase == "descend":
            self._descend(genes, rng, search)
        else:
            self._walk(genes, rng, search)
        return None

    def _draw(self, genes: Genes, rng: np.random.Generator, search: Search) -> None:
        rows = genes.random(rng, self.draws)
        self._keep_best(rows, search.evaluate(genes.mapping(rows)), self.lanes)
        self.phase = "descend"

    def _keep_best(self, rows: np.ndarray, found: Scores, count: int) -> None:
        """The best rows, valid ones first, then those with least against them."""
        rows = rows[: len(found.status)]
        order = np.lexsort((np.arange(len(rows)), found.metrics[:, 0], found.against))[:count]
        self.rows, self.scores = rows[order], found.metrics[order]

    def _descend(self, genes: Genes, rng: np.random.Generator, search: Search) -> None:
        """Descent of all lanes and roundings of where they arrive."""
        descent = search.scorer.descent
        choices, orders, _, _ = genes.parts(self.rows)
        tables = self.space.factorizations
        factors = np.stack([table[choices[:, rank]] for rank, table in enumerate(tables)], axis=1).astype(float)
        base = genes.mapping(self.rows)
        skeleton = descent.relaxed.skeleton(orders, self._along_x(base, rng), base)
        steps = min(self.steps, search.left // len(self.rows))
        search.is_cut |= steps < self.steps
        logs = descent.run(descent.relaxed.parameters(factors), skeleton, steps)
        search.count_relaxed(len(self.rows) * steps)
        near = self._near(logs)
        rounded = np.concatenate([_rounded(rng, near, temperature) for temperature in TEMPERATURES])
        rows = np.tile(self.rows, (len(TEMPERATURES), 1))
        rows[:, : len(tables)] = rounded
        old, kept = self.rows, self.scores
        found = search.evaluate(genes.mapping(rows))
        self._keep_best(rows, found, len(rows))
        rows, scores = np.concatenate([old, self.rows]), np.concatenate([kept, self.scores])
        best = np.lexsort((np.arange(len(rows)), scores[:, 0]))[: self.lanes]
        self.rows, self.scores = rows[best], scores[best]
        self.phase, self.rows_without_gain = "walk", 0

    def _along_x(self, base: Mapping, rng: np.random.Generator) -> np.ndarray:
        """Where the factors of spatial slots go, [lane, slot, rank]: as in the mapping, at random where that has
        none."""
        slots = self.space.freedom.slots
        lanes, ranks = base.temporal.shape[0], base.temporal.shape[2]
        result = rng.random((lanes, len(slots), ranks)) < 0.5
        for t, slot in enumerate(slots):
            if slot.is_spatial and slot.axis != "XY":
                result[:, t] = slot.axis == "X"
            elif slot.is_spatial:
                x, y = base.spatial_x[:, slot.level] > 1, base.spatial_y[:, slot.level] > 1
                result[:, t] = x | (result[:, t] & ~y)
        return result

    def _near(self, logs: np.ndarray) -> "list[Near]":
        """Per rank, the factorizations nearest to log factors [lane, rank, slot]."""
        result = []
        for rank, table in enumerate(self.space.factorizations):
            far = np.zeros((len(logs), len(table)))
            for slot, own in enumerate(np.log(table).T):
                far += np.abs(own - logs[:, rank, slot, None])
            near = np.argsort(far, axis=1, kind="stable")[:, :NEAREST]
            result.append((near, np.take_along_axis(far, near, axis=1)))
        return result

    def _walk(self, genes: Genes, rng: np.random.Generator, search: Search) -> None:
        """Each lane takes a small change of it if that is better; the worst lanes give way to the best."""
        rows = genes.mutate(rng, self.rows, 1 + (self.rows_without_gain % 3))
        found = search.evaluate(genes.mapping(rows))
        count = len(found.status)
        before = self.scores[:, 0].min()
        wins = found.metrics[:, 0] < self.scores[:count, 0]
        self.rows[:count][wins], self.scores[:count][wins] = rows[:count][wins], found.metrics[wins]
        order = np.lexsort((np.arange(len(self.rows)), self.scores[:, 0]))
        quarter = len(order) // 4
        self.rows[order[-quarter:]], self.scores[order[-quarter:]] = (
            self.rows[order[:quarter]],
            self.scores[order[:quarter]],
        )
        self.rows_without_gain = 0 if self.scores[:, 0].min() < before else self.rows_without_gain + 1
        if self.rows_without_gain >= self.stale * len(self.space.freedom.slots):
            self.round, self.phase, self.rows_without_gain = self.round + 1, "draw", 0


Near = tuple[np.ndarray, np.ndarray]
"""Choices [lane, place] by their distance, and the distances."""


def _rounded(rng: np.random.Generator, near: list[Near], temperature: float) -> np.ndarray:
    """One of the nearest choices for each rank, [lane, rank]."""
    result = []
    for choices, far in near:
        score = far / temperature + rng.gumbel(size=far.shape) * -1.0 if temperature else far
        result.append(np.take_along_axis(choices, score.argmin(axis=1)[:, None], axis=1)[:, 0])
    return np.stack(result, axis=1)
