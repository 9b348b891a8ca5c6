"""Fig. 13: the dual-side sparse tensor core (DSTC) against what its own paper measured."""

from functools import partial
from statistics import mean

from . import figures
from .reference import reference
from .results import Outcome, Row, Sheet, error_text
from .runs import Options, run

DENSE = "A1.0-B1.0"
EVALUATIONS = 9


def reproduce(options: Options) -> Outcome:
    """Nine evaluations: eight pairs of densities, and the dense one that they are divided by."""
    bars = reference("fig13")["bars"]
    dense = float(run(f"dstc:{DENSE}", options).cycles)
    ours = {pair: float(run(f"dstc:{pair}", options).cycles) / dense for pair in bars}
    labels = {pair: label for pair, (label, _) in bars.items()}
    measured = {pair: paper for pair, (_, paper) in bars.items()}
    equal = sum(_two_digits(ours[pair]) == labels[pair] for pair in bars)
    exact = mean(abs(ours[pair] / measured[pair] - 1.0) for pair in bars)
    rounded = mean(abs(_two_digits(ours[pair]) / _two_digits(measured[pair]) - 1.0) for pair in bars)
    cells = tuple(
        (
            pair,
            f"{ours[pair]:.4f}",
            f"{labels[pair]:.2f}",
            f"{measured[pair]:.4f}",
            _against(ours[pair], measured[pair]),
        )
        for pair in bars
    )
    return Outcome(
        name="fig13",
        title="Fig. 13: dual-side sparse tensor core, 4096 x 4096 x 4096 matmul",
        claim="The model follows the time that the paper of DSTC reports over the densities of both operands.",
        artifact="Eight bars with labels of two digits; the artifact holds no cycles of this figure.",
        rows=tuple(Row(pair, "bar of two digits", "", labels[pair], _two_digits(ours[pair])) for pair in bars),
        sheets=(
            Sheet(
                "time as a share of the dense product's",
                ("densities", "ours", "artifact's label", "DSTC paper", "ours against it"),
                cells,
            ),
        ),
        findings=(
            f"{equal} of {len(bars)} bars equal the artifact's labels in both digits.",
            f"Mean absolute error against the DSTC paper: {100.0 * exact:.2f} %; with all bars rounded to two digits, "
            f"as the artifact's script does it, {100.0 * rounded:.2f} %.",
            f"Dense product: {dense:,.0f} cycles.",
        ),
        deviations=(
            "The artifact's script averages over bars that are rounded to two digits and leaves out those of dense A. "
            "Its own runs are not part of it, so cycles and energies cannot be compared here; "
            "sixteen of this design are in Fig. 15.",
        ),
        compared=0,
        differences=(),
        draw=partial(figures.fig13, ours=ours, labels=labels, measured=measured),
    )


def _two_digits(value: float) -> float:
    return round(value, 2)


def _against(value: float, measured: float) -> str:
    return error_text(round(value / measured - 1.0, 5))
