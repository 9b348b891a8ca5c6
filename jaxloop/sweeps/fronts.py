"""Points that no other point beats in every objective."""

import numpy as np


def non_dominated(points: np.ndarray) -> np.ndarray:
    """Indices of the Pareto front, ascending along the first objective; of equal points the first.

    **Arguments:** `points`: [point, objective], the less the better; rows that are not finite take no part.
    """
    finite = np.flatnonzero(np.isfinite(points).all(axis=1))
    rows = points[finite]
    order = np.lexsort((finite, *rows.T[::-1]))
    rows, finite = rows[order], finite[order]
    if rows.shape[1] == 2 and len(rows):
        least = np.minimum.accumulate(rows[:, 1])
        better = np.concatenate([[True], rows[1:, 1] < least[:-1]])
        return finite[better]
    front: list[int] = []
    while len(rows):
        # the first of what is left in lexical order is beaten by nothing that is left
        front.append(int(finite[0]))
        stays = (rows < rows[0]).any(axis=1)
        rows, finite = rows[stays], finite[stays]
    return np.asarray(front, int)
