"""Fig. 1: two designs, bitmask with gating and coordinate lists with skipping; which is better depends on density."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from . import figures
from .map_space import Optimum, optima
from .reference import reference
from .results import Difference, Outcome, Row, Sheet, error_text
from .runs import Options, compare, rows_of, run

FORMATS = ("bitmask", "coordinate_list")
DENSITIES = ("0.01", "0.02", "0.04", "0.08", "0.1", "0.2", "0.4", "0.8")
"""As the artifact names its runs; most of them stand for a number of nonzeros in a row of 128."""

EVALUATIONS = len(FORMATS) * len(DENSITIES) + len(FORMATS)


def reproduce(options: Options) -> Outcome:
    """Sixteen evaluations, and the map space of each format in one batch."""
    published = reference("fig1")["designs"]
    rows: dict[tuple[str, str], tuple[Row, Row]] = {}
    differences: list[Difference] = []
    actual, compared = {}, 0
    for kind in FORMATS:
        for density in DENSITIES:
            name = f"{kind}:matmul-{density}"
            evaluation = run(name, options)
            assert evaluation.context is not None
            actual[density] = evaluation.context.design.densities["A"].density
            rows[kind, density] = rows_of(name, f"{kind} {density}", published[name], evaluation)
            number, found = compare(name, published[name], evaluation)
            compared += number
            differences += found
    xs = [actual[density] for density in DENSITIES]
    crossings = {
        quantity: crossing(xs, *([rows[kind, density][i].ours for density in DENSITIES] for kind in FORMATS))
        for i, quantity in enumerate(("cycles", "energy"))
    }
    spaces = {kind: optima(f"{kind}:matmul-0.1", xs, options) for kind in FORMATS}
    return Outcome(
        name="fig1",
        title="Fig. 1: bitmask against coordinate lists, 128 x 128 x 128 matmul",
        claim="Neither format is best: coordinate lists with skipping win at low density, bitmasks with gating at high "
        "density, and energy changes sides at a lower density than speed.",
        artifact="Energy changes sides between densities 0.04 and 0.08, speed between 0.4 and 0.8.",
        rows=tuple(row for pair in rows.values() for row in pair),
        sheets=(_sheet(rows), _space_sheet(spaces)),
        findings=(
            f"Both take the same energy at a density of {crossings['energy']:.3f} and the same time at "
            f"{crossings['cycles']:.2f} (interpolated between the points, logarithms of both axes).",
            *(_space_finding(kind, space) for kind, space in spaces.items()),
        ),
        deviations=(
            "The artifact takes most densities of the figure to a whole number of nonzeros in a row of 128: 0.1 is "
            "13 / 128 = 0.1015625.",
        ),
        compared=compared,
        differences=tuple(differences),
        draw=partial(figures.fig1, densities=xs, rows=rows, formats=FORMATS, names=DENSITIES, crossings=crossings),
    )


def crossing(densities: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float:
    """The density at which two curves meet, straight between points on logarithmic axes.

    **Raises:** `ValueError` if they do not meet exactly once.
    """
    x, gap = np.log(densities), np.log(first) - np.log(second)
    (places,) = np.nonzero(np.sign(gap[:-1]) != np.sign(gap[1:]))
    if len(places) != 1:
        raise ValueError(f"the curves cross {len(places)} times")
    i = int(places[0])
    return float(np.exp(x[i] - gap[i] * (x[i + 1] - x[i]) / (gap[i + 1] - gap[i])))


def _sheet(rows: dict[tuple[str, str], tuple[Row, Row]]) -> Sheet:
    cells = []
    for kind in FORMATS:
        for density in DENSITIES:
            cycles, energy = rows[kind, density]
            cells.append(
                (
                    kind,
                    density,
                    f"{cycles.ours:,.0f}",
                    f"{cycles.reference:,.0f}",
                    f"{energy.ours / 1e6:.4f}",
                    f"{energy.reference / 1e6:.4f}",
                    error_text(energy.error),
                )
            )
    heads = ("format", "density", "cycles", "reference", "energy, uJ", "reference, uJ", "error")
    return Sheet("cycles and energy", heads, tuple(cells), names=2)


def _space_sheet(spaces: dict[str, tuple[Optimum, ...]]) -> Sheet:
    cells = tuple(
        (
            kind,
            density,
            str(optimum.valid),
            str(optimum.better),
            f"{optimum.cycles:.3f}",
            f"{optimum.energy:.3f}",
            f"{optimum.edp:.3f}",
            optimum.loops,
        )
        for kind, space in spaces.items()
        for density, optimum in zip(DENSITIES, space, strict=True)
    )
    heads = ("format", "density", "can run", "better", "cycles", "energy", "EDP", "loops")
    note = (
        "How many mappings can run, how many of them have a smaller energy-delay product (EDP) than the shipped one; "
        "the least cycles, energy and EDP of all as shares of the shipped mapping's; loops of the least EDP, in "
        "memory / Buffer / Reg."
    )
    return Sheet("map space", heads, cells, names=2, note=note)


def _space_finding(kind: str, space: tuple[Optimum, ...]) -> str:
    fit = [optimum.valid for optimum in space]
    size = f"Map space of {kind}: {space[0].size:,} mappings, {min(fit):,} to {max(fit):,} of which can run."
    one_row = sum(optimum.better_row for optimum in space)
    among = "is the best" if one_row == 0 else f"is beaten {one_row} times"
    beaten = [density for density, optimum in zip(DENSITIES, space, strict=True) if optimum.better]
    if not beaten:
        return f"{size} The shipped mapping has the least energy-delay product at every density."
    least = min(optimum.edp for optimum in space)
    return (
        f"{size} Where Buffer holds one row of each operand the shipped mapping {among} by energy-delay product. "
        f"Over the whole space it is not at {len(beaten)} of {len(space)} densities: several rows in Buffer take up to "
        f"{1.0 / least:.1f} times less."
    )
