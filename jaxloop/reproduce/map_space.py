"""The map space of Fig. 1: every way to deal the ranks to the levels of the shipped mapping.

Loop orders and what each level keeps are those of the shipped mapping. A row of the sum's register holds one word, so M
and N are 1 there; each of them is split between the two outer levels and K among all three, into whole factors. That
makes 8 x 8 x 36 = 2304 mappings of a 128 x 128 x 128 product. Most of them cannot run, by the model's own verdict:
their tiles do not fit the Buffer, or they have more loops than the formats have ranks.
"""

from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from .._api import evaluate, load, mapping_of
from ..conventions import MICRO22
from ..lower.masks import divisors
from ..program import Mapping
from ..spec.design import Design
from .runs import Options

LEVELS = ("Reg", "Buffer", "BackingStorage")
"""Of the shipped mapping, innermost first."""

LEVELS_OF = {"M": (1, 2), "N": (1, 2), "K": (0, 1, 2)}
"""Places in `LEVELS` that have a loop of each rank."""

TIE = 1e-9
"""Share by which a mapping must be better to count."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """What the map space holds at one density. EDP is the energy-delay product.

    **Attributes:** `size`: mappings; `valid`: how many of them can run; `better`: how many beat the shipped mapping by
    EDP, `better_row`: of these whose Buffer holds one row of each operand; `energy`, `cycles`, `edp`: the least of all
    as a share of the shipped mapping's; `loops`: of the mapping of the least EDP, outermost level first.
    """

    size: int
    valid: int
    better: int
    better_row: int
    energy: float
    cycles: float
    edp: float
    loops: str


def optima(name: str, densities: list[float], options: Options) -> tuple[Optimum, ...]:
    """The best mappings of a design at each density of both operands, in one batch."""
    design = load(name)
    space = map_space(design)
    shares = np.asarray(densities)[:, None]
    fields = ("status", "cycles", "energy_pj")
    batch = evaluate(design, mappings=space, densities={"A": shares, "B": shares}, conventions=MICRO22, fields=fields)
    values = zip(np.asarray(batch.valid), np.asarray(batch.cycles), np.asarray(batch.energy_pj), strict=True)
    found = tuple(_optimum(design, space, *at_density) for at_density in values)
    options.advance()
    return found


def map_space(design: Design) -> Mapping:
    """All mappings of the space, with one batch axis."""
    shipped, einsum = mapping_of(design), design.einsum
    choices = [
        _splits(size, LEVELS_OF[rank], len(LEVELS)) for rank, size in zip(einsum.ranks, einsum.sizes, strict=True)
    ]
    temporal = np.array([np.transpose(splits) for splits in product(*choices)], shipped.temporal.dtype)
    return replace(shipped, temporal=temporal)


def _splits(size: int, places: tuple[int, ...], levels: int) -> list[tuple[int, ...]]:
    """All factors of each level whose product is `size`, 1 at levels that are not among `places`."""
    every = product(*(divisors(size) if level in places else [1] for level in range(levels)))
    return [factors for factors in every if prod(factors) == size]


def _optimum(design: Design, space: Mapping, valid: np.ndarray, cycles: np.ndarray, energy: np.ndarray) -> Optimum:
    """`valid`, `cycles`, `energy`: of each mapping of the space."""
    shipped = int(np.flatnonzero((space.temporal == mapping_of(design).temporal).all((1, 2)))[0])
    shares = [np.where(valid, values / values[shipped], np.inf) for values in (energy, cycles, energy * cycles)]
    better = shares[2] < 1.0 - TIE
    ranks = design.einsum.ranks
    one_row = (space.temporal[:, LEVELS.index("Buffer"), [ranks.index("M"), ranks.index("N")]] == 1).all(1)
    loops = [
        " ".join(f"{rank}{bound:.0f}" for rank, bound in zip(ranks, bounds, strict=True) if bound > 1) or "-"
        for bounds in space.temporal[int(shares[2].argmin())]
    ]
    return Optimum(
        size=len(valid),
        valid=int(valid.sum()),
        better=int(better.sum()),
        better_row=int((better & one_row).sum()),
        energy=float(shares[0].min()),
        cycles=float(shares[1].min()),
        edp=float(shares[2].min()),
        loops=" / ".join(loops[::-1]),
    )
