"""Density models of the sparse oracle: how many nonzeros a tile holds (spec/sparse.md section 1).

A tile is the tuple of its extents along the tensor's axes. A constraint `within = (outer tile, k)` says that the tile
lies in an outer tile that holds k nonzeros.
"""

import math
from fractions import Fraction
from functools import cache
from typing import Protocol

from jaxloop.spec.density import Density, Distribution

from .sparse_errors import Undefined

Tile = tuple[int, ...]
Within = tuple[Tile, int]
_EXACT = 3000
"""Largest population whose empty tiles are counted exactly; larger ones use a table of logarithms."""
_TINY = 1e-40
"""Probabilities that change no sum in double precision."""


class DensityModel(Protocol):
    """`minimum` is the least occupancy that the reference visits, None where it visits none; `entries` are the
    occupancies with their nonzero probabilities from there on; `average` is the density that compute sees."""

    def empty(self, tile: Tile, within: Within | None = None) -> float: ...
    def maximum(self, tile: Tile) -> int: ...
    def minimum(self, tile: Tile) -> int | None: ...
    def entries(self, tile: Tile) -> list[tuple[int, float]]: ...

    @property
    def average(self) -> float: ...


class FixedStructured:
    """Every tile holds its share of nonzeros, rounded down or up (1.3)."""

    def __init__(self, density: float):
        self._density = density

    @property
    def average(self) -> float:
        return self._density

    def _probability(self, expected: float, nonzeros: int) -> float:
        above = expected - math.floor(expected)
        if nonzeros == math.floor(expected):
            return 1.0 - above
        return above if nonzeros == math.ceil(expected) else 0.0

    def empty(self, tile: Tile, within: Within | None = None) -> float:
        density = self._density if within is None else within[1] / math.prod(within[0])
        return self._probability(math.prod(tile) * density, 0)

    def maximum(self, tile: Tile) -> int:
        return math.ceil(math.prod(tile) * self._density)

    def minimum(self, tile: Tile) -> int:
        size = math.prod(tile)
        return math.floor(math.floor(size * self._density) / size * size)

    def entries(self, tile: Tile) -> list[tuple[int, float]]:
        expected = math.prod(tile) * self._density
        found = ((k, self._probability(expected, k)) for k in range(self.minimum(tile), self.maximum(tile) + 1))
        return [(k, p) for k, p in found if p]


@cache
def _log_factorials(largest: int) -> list[int]:
    """Logarithms of factorials in units of 2^-80, so that sums keep their digits."""
    table = [0, 0]
    for factor in range(2, largest + 1):
        table.append(table[-1] + int(Fraction(math.log(factor)) * (1 << 80)))
    return table


def _log_choose(table: list[int], size: int, chosen: int) -> int:
    return table[size] - table[chosen] - table[size - chosen]


@cache
def none_drawn(population: int, marked: int, drawn: int) -> float:
    """Probability that none of `marked` elements is among `drawn` of `population`."""
    if drawn > population - marked:
        return 0.0
    fewer, more = sorted((drawn, marked))
    if fewer <= 64 or population <= _EXACT:
        return math.perm(population - more, fewer) / math.perm(population, fewer)
    table = _log_factorials(population)
    log = _log_choose(table, population - more, fewer) - _log_choose(table, population, fewer)
    return math.exp(log / (1 << 80))


@cache
def hypergeometric(population: int, marked: int, drawn: int) -> dict[int, float]:
    """Probabilities of the numbers of marked elements among `drawn` of `population`, each correctly rounded."""
    low, high = max(0, drawn + marked - population), min(drawn, marked)
    everything = math.comb(population, drawn)
    ways = math.comb(marked, low) * math.comb(population - marked, drawn - low)
    found = {}
    for k in range(low, high + 1):
        chance = ways / everything
        if chance > _TINY:
            found[k] = chance
        elif found:
            break
        ways = ways * ((marked - k) * (drawn - k)) // ((k + 1) * (population - marked - drawn + k + 1))
    return found


class Hypergeometric:
    """A fixed number of nonzeros spread at random over the tensor (1.4)."""

    def __init__(self, density: float, tensor: Tile):
        self._size = math.prod(tensor)
        self._nonzeros = math.ceil(density * self._size)

    @property
    def average(self) -> float:
        return self._nonzeros / self._size

    def empty(self, tile: Tile, within: Within | None = None) -> float:
        population, nonzeros = (self._size, self._nonzeros) if within is None else (math.prod(within[0]), within[1])
        return none_drawn(population, nonzeros, math.prod(tile))

    def maximum(self, tile: Tile) -> int:
        return min(math.prod(tile), self._nonzeros)

    def minimum(self, tile: Tile) -> int | None:
        size, zeros = math.prod(tile), self._size - self._nonzeros
        if size <= zeros:
            return 0
        if size == self._size:
            return math.floor(self._nonzeros / size * size)
        # the reference subtracts unsigned integers here; what does not fit 64 bits converts to 0 (quirk Q2)
        wrapped = float((1 << 64) - (self._size - size)) + float(self._nonzeros)
        return 0 if wrapped / size * size >= 2.0**64 else None

    def entries(self, tile: Tile) -> list[tuple[int, float]]:
        least = self.minimum(tile)
        if least is None:
            return []
        return list(hypergeometric(self._size, self._nonzeros, math.prod(tile)).items())


class Banded:
    """A band of nonzeros around the diagonal of a square tensor (1.5)."""

    def __init__(self, half_width: int, tensor: Tile):
        self._half, self._side = half_width, tensor[0]

    @property
    def average(self) -> float:
        total = self._side + sum(2 * (self._side - u) for u in range(1, self._half + 1))
        return total / self._side**2

    def _count(self, rows: tuple[int, int], columns: tuple[int, int]) -> int:
        half = self._half
        return sum(max(0, min(columns[1], row + half + 1) - max(columns[0], row - half, 0)) for row in range(*rows))

    def scan(self, tile: Tile) -> list[tuple[int, int, int, int]]:
        """Row and column offset, weight and nonzeros of the tiles that the reference scans; the remaining columns of a
        row of tiles are one entry of zero nonzeros."""
        height, width = tile
        groups, across = self._side // height, self._side // width
        warm = -(-self._half // height)
        steady = max(groups - 2 * warm, 0)
        found = []
        for group in range(min(warm, groups - 1) + 1):
            weight = steady if group == warm else (1 if warm == groups else 2)
            row = group * height
            for column in range(across):
                offset = column * width
                if offset > row + height - 1 + self._half:
                    found.append((row, offset, weight * (across - column), 0))
                    break
                inside = self._count((row, row + height), (offset, offset + width))
                found.append((row, offset, weight, inside))
        return found

    def _histogram(self, tile: Tile) -> dict[int, float]:
        """Probability by occupancy, 0 always among them."""
        return _banded_histogram(self._half, self._side, tile)

    def empty(self, tile: Tile, within: Within | None = None) -> float:
        if within is None:
            return self._histogram(tile)[0]
        outer, nonzeros = within
        row, column = next(((r, c) for r, c, _, k in self.scan(outer) if k == nonzeros), (0, 0))
        down, across = outer[0] // tile[0], outer[1] // tile[1]
        empties = 0
        for i in range(down):
            for j in range(across):
                # the reference adds the outer tile's corner twice to the lower bounds (quirk Q16)
                top, left = row + i * tile[0], column + j * tile[1]
                rows, columns = (row + top, top + tile[0]), (column + left, left + tile[1])
                empties += self._count(rows, columns) == 0
        return empties / (down * across)

    def maximum(self, tile: Tile) -> int:
        return max(self._histogram(tile))

    def minimum(self, tile: Tile) -> int:
        return 0

    def entries(self, tile: Tile) -> list[tuple[int, float]]:
        return [(k, p) for k, p in sorted(self._histogram(tile).items()) if p]


@cache
def _banded_histogram(half: int, side: int, tile: Tile) -> dict[int, float]:
    if max(tile) > side:
        raise Undefined("no tile larger than a banded tensor: the reference divides by zero")
    counts = {0: 0}
    for _, _, weight, nonzeros in Banded(half, (side, side)).scan(tile):
        counts[nonzeros] = counts.get(nonzeros, 0) + weight
    groups = (side // tile[0]) * (side // tile[1])
    return {k: count / groups for k, count in counts.items()}


def density_model(density: Density | None, tensor: Tile) -> DensityModel:
    """The model of a tensor of these extents; without a density it is full."""
    if density is None:
        return FixedStructured(1.0)
    if density.distribution is Distribution.FIXED_STRUCTURED:
        return FixedStructured(density.density)
    if density.distribution is Distribution.HYPERGEOMETRIC:
        return Hypergeometric(density.density, tensor)
    return Banded(density.band_width, tensor)
