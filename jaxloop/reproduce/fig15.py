"""Fig. 15: sparse tensor cores on layers of ResNet50 with more and more weights removed."""

from functools import partial

from . import figures
from .reference import reference
from .results import Difference, Outcome, Row, Sheet, error_text
from .runs import Options, compare, rows_of, run

DESIGNS = {
    "tensor_core": "TC",
    "dstc_rf2x": "DSTC",
    "stc": "STC",
    "stc_flexible": "STC-flexible",
    "stc_flexible_rle": "STC-flexible-RLE",
    "stc_dual_compress": "STC-flexible-RLE-dualCompress",
}
"""Shipped designs, and what the paper calls them."""

LAYERS = ("M512-K256-N1024", "M512-K128-N1024", "M128-K1152-N1024", "M512-K1024-N256")
WEIGHTS = ("1.0", "0.5", "0.3333", "0.25")
"""Shares of nonzero weights."""

EVALUATIONS = len(DESIGNS) * len(LAYERS) * len(WEIGHTS)

Totals = dict[tuple[str, str], tuple[float, float]]
"""Of a design and a share of weights: cycles and energy (pJ), over all layers."""


def reproduce(options: Options) -> Outcome:
    """96 evaluations: six designs, four layers, four shares of nonzero weights."""
    published = reference("fig15")["designs"]
    rows: list[Row] = []
    differences: list[Difference] = []
    ours: Totals = {}
    theirs: Totals = {}
    compared = 0
    for design in DESIGNS:
        for weights in WEIGHTS:
            names = [f"{design}:{layer}-WD{weights}" for layer in LAYERS]
            pairs = []
            for name in names:
                evaluation = run(name, options)
                pairs.append(rows_of(name, name, published[name], evaluation))
                number, found = compare(name, published[name], evaluation)
                compared += number
                differences += found
            ours[design, weights] = sum(c.ours for c, _ in pairs), sum(e.ours for _, e in pairs)
            theirs[design, weights] = sum(c.reference for c, _ in pairs), sum(e.reference for _, e in pairs)
            rows += [row for pair in pairs for row in pair]
    halved = ours["stc", "0.5"][0] / ours["tensor_core", "1.0"][0]
    exact = sum(abs(row.ours - row.reference) <= 1.0 for row in rows if row.quantity == "cycles")
    largest = max((row for row in rows if row.quantity == "energy"), key=lambda row: abs(row.error))
    return Outcome(
        name="fig15",
        title="Fig. 15: sparse tensor cores, ResNet50",
        claim="STC takes half the cycles at two nonzero weights in four and gains nothing from fewer; flexible blocks "
        "alone gain little more, with compressed inputs they gain much. DSTC takes the fewest cycles throughout, and "
        "throughout more energy than STC-flexible-RLE-dualCompress.",
        artifact="96 runs. Sums over the layers, divided by those of the dense tensor core, stand in the table.",
        rows=tuple(rows),
        sheets=(_total_sheet(ours, theirs), _point_sheet(rows)),
        findings=(
            f"STC at two in four takes {halved:g} of the dense cycles.",
            f"{exact} of {EVALUATIONS} counts of cycles are the artifact's within one; largest error of an energy "
            f"{error_text(largest.error)} ({largest.what}).",
        ),
        deviations=(
            "Weights sparser than two in four are run by STC as two in four, as in the artifact.",
            "Energies are those of 45 nm of the artifact; the bars printed in the paper are of a private 65 nm kit.",
        ),
        compared=compared,
        differences=tuple(differences),
        draw=partial(figures.fig15, ours=normalized(ours), theirs=normalized(theirs), labels=DESIGNS, weights=WEIGHTS),
    )


def normalized(totals: Totals) -> Totals:
    """Divided by the dense tensor core's."""
    cycles, energy = totals["tensor_core", "1.0"]
    return {key: (c / cycles, e / energy) for key, (c, e) in totals.items()}


def _total_sheet(ours: Totals, theirs: Totals) -> Sheet:
    mine, reference_totals = normalized(ours), normalized(theirs)
    cells = tuple(
        (
            DESIGNS[design],
            weights,
            f"{mine[design, weights][0]:.4f}",
            f"{reference_totals[design, weights][0]:.4f}",
            f"{mine[design, weights][1]:.4f}",
            f"{reference_totals[design, weights][1]:.4f}",
            error_text(ours[design, weights][1] / theirs[design, weights][1] - 1.0),
        )
        for design in DESIGNS
        for weights in WEIGHTS
    )
    heads = ("design", "weights", "cycles", "reference", "energy", "reference", "error of energy")
    return Sheet("sums of four layers over those of the dense tensor core", heads, cells, names=2)


def _point_sheet(rows: list[Row]) -> Sheet:
    pairs = zip(rows[::2], rows[1::2], strict=True)
    cells = tuple(
        (
            DESIGNS[cycles.what.split(":")[0]],
            cycles.what.split(":")[1],
            f"{cycles.ours:,.0f}",
            f"{cycles.reference:,.0f}",
            f"{energy.ours / 1e6:.3f}",
            f"{energy.reference / 1e6:.3f}",
            error_text(energy.error),
        )
        for cycles, energy in pairs
    )
    heads = ("design", "workload", "cycles", "reference", "energy, uJ", "reference, uJ", "error")
    return Sheet(f"all {EVALUATIONS} points", heads, cells, names=2, long=True)
