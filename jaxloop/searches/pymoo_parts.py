"""pymoo's genetic algorithms with the operators of a map space."""

from typing import Any

import numpy as np
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem

from .genes import Genes

GENERATIONS = 10**9
MOST_CHANGES = 3


class _Cross(Crossover):
    def __init__(self, genes: Genes):
        super().__init__(2, 2)
        self._genes = genes

    def _do(self, problem: Any, X: np.ndarray, *args: Any, random_state: Any = None, **kwargs: Any) -> np.ndarray:
        first, second = X.astype(int)
        return np.stack(
            [self._genes.cross(random_state, first, second), self._genes.cross(random_state, second, first)]
        )


class _Mutate(Mutation):
    def __init__(self, genes: Genes):
        super().__init__(prob=1.0)
        self._genes = genes

    def _do(self, problem: Any, X: np.ndarray, *args: Any, random_state: Any = None, **kwargs: Any) -> np.ndarray:
        rows = X.astype(int)
        changes = random_state.integers(1, MOST_CHANGES + 1, len(rows))
        for number in range(1, MOST_CHANGES + 1):
            at = np.flatnonzero(changes == number)
            if len(at):
                rows[at] = self._genes.mutate(random_state, rows[at], number)
        return rows


def make_algorithm(genes: Genes, rows: np.ndarray, seed: int, objectives: int, size: int) -> tuple[Any, Any]:
    """The algorithm, which starts from `rows`, and its problem."""
    problem = Problem(n_var=genes.length, n_obj=objectives, xl=0, xu=2**31, vtype=int)
    kind: Any = GA if objectives == 1 else NSGA2
    algorithm = kind(
        pop_size=size,
        sampling=rows,
        crossover=_Cross(genes),
        mutation=_Mutate(genes),
        eliminate_duplicates=True,
    )
    algorithm.setup(problem, termination=("n_gen", GENERATIONS), seed=seed, verbose=False)
    return algorithm, problem
