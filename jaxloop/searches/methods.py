"""Methods that need no gradients: everything, a sample, a population."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._errors import Diagnostic, Place, SpecError
from .driver import Method, Search
from .genes import Genes
from .gradient import Gradient
from .scorer import Scores
from .space import MapSpace

STEP = 2**14
"""Mappings between two checkpoints of a search by index."""


@dataclass
class Exhaustive:
    """All mappings in the order of their numbers, from `start` to `stop`."""

    space: MapSpace
    start: int = 0
    stop: int | None = None

    def step(self, search: Search) -> str | None:
        end = self.space.size if self.stop is None else self.stop
        if self.start >= end:
            return "all mappings are evaluated"
        count = min(STEP, end - self.start, max(search.left, 1))
        search.evaluate(self.space.decode(_numbers(self.start, count)))
        self.start += count
        return None


def _numbers(start: int, count: int) -> Any:
    return np.arange(start, start + count) if start + count < 2**62 else [start + i for i in range(count)]


@dataclass
class Sample:
    """Uniform draws from the space, with replacement."""

    space: MapSpace
    seed: int
    drawn: int = 0

    def step(self, search: Search) -> str | None:
        count = min(STEP, max(search.left, 1))
        search.evaluate(self.space.decode(self.space.sample(self.seed, count, self.drawn)))
        self.drawn += count
        return None


@dataclass
class Population:
    """A genetic algorithm (pymoo's) over choices, orders, splits and bits; NSGA-II where there are several objectives.

    **Attributes:** `size` of a generation; `start`: mappings drawn at random for the first one, of which the best stay.
    """

    space: MapSpace
    seed: int
    objectives: int = 1
    size: int = 100
    start: int = 1000
    _algorithm: Any = None
    _problem: Any = None
    _generations: int = field(default=0)

    def __getstate__(self) -> dict[str, Any]:
        """Without what pymoo holds that cannot be pickled: its operators, which have no state."""
        own = None if self._algorithm is None else vars(self._algorithm)
        return vars(self) | {"_algorithm": own and {name: value for name, value in own.items() if name != "mating"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if state["_algorithm"] is not None:
            rows = state["_algorithm"]["pop"].get("X").astype(int)
            self._algorithm, _ = _algorithm(self, Genes(self.space), rows)
            vars(self._algorithm).update(state["_algorithm"])

    def step(self, search: Search) -> str | None:
        genes = Genes(self.space)
        if self._algorithm is None:
            self._begin(genes, search)
            return None
        infills = self._algorithm.ask()
        self._tell(infills, self._fitness(search.evaluate(genes.mapping(infills.get("X")))))
        return None

    def _fitness(self, scores: Scores) -> np.ndarray:
        """The objectives; of mappings that are not valid, more than any valid one has, by how much is against them."""
        metrics = scores.metrics[:, : self.objectives]
        return np.where(scores.valid[:, None], metrics, _INVALID * (1 + scores.against[:, None]))

    def _begin(self, genes: Genes, search: Search) -> None:
        rows = genes.random(np.random.default_rng(self.seed), self.start)
        fitness = self._fitness(search.evaluate(genes.mapping(rows)))
        rows = rows[: len(fitness)]
        order = np.lexsort((np.arange(len(rows)), fitness[:, 0]))[: self.size]
        self._algorithm, self._problem = _algorithm(self, genes, rows[order])
        self._tell(self._algorithm.ask(), fitness[order])

    def _tell(self, infills: Any, fitness: np.ndarray) -> None:
        """Of mappings that the budget did not allow to evaluate there is nothing to tell: they are worse than all."""
        padded = np.full((len(infills), self.objectives), _WORST)
        padded[: len(fitness)] = fitness
        infills.set("F", padded)
        for individual in infills:
            individual.evaluated.update({"F", "G", "H"})
        self._algorithm.tell(infills=infills)
        self._generations += 1


_INVALID, _WORST = 1e298, 1e300


def _algorithm(method: Population, genes: Genes, rows: np.ndarray) -> tuple[Any, Any]:
    try:
        from .pymoo_parts import make_algorithm
    except ImportError:
        message = "the population method needs pymoo, which is not installed"
        raise SpecError([Diagnostic(Place("method"), message, "pip install 'jaxloop[search]'")]) from None
    return make_algorithm(genes, rows, method.seed, method.objectives, method.size)


METHODS: dict[str, Callable[[MapSpace, int, int], Method]] = {
    "exhaustive": lambda space, seed, objectives: Exhaustive(space),
    "random": lambda space, seed, objectives: Sample(space, seed),
    "population": lambda space, seed, objectives: Population(space, seed, objectives),
    "gradient": lambda space, seed, objectives: Gradient(space, seed),
}
"""By name: from a space, a seed and the number of objectives of a front (else 1)."""
