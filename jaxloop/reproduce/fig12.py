"""Fig. 12: one PE of Eyeriss v2 on layers of MobileNet, against a cycle-level simulation."""

from functools import partial
from statistics import mean

from .._api import load
from . import figures
from .masks import masks_of
from .reference import reference
from .results import Difference, Outcome, Row, Sheet, error_text
from .runs import Options, compare, rows_of, run

LAYERS = ("L07", "L09", "L13", "L19", "L21", "L23", "L25", "L27")
EVALUATIONS = 2 * len(LAYERS)

DRAWN = (
    "The real tensors' nonzeros are not part of jaxloop. Without `--masks` those of the last bars are drawn at random "
    "with the same densities: they are one draw, not the real layers."
)


def reproduce(options: Options) -> Outcome:
    """Sixteen evaluations: each layer with uniformly random nonzeros, and with those of `options.masks`."""
    published = reference("fig12")
    truth, answers = published["ground_truth_cycles"], published["designs"]
    rows: list[Row] = []
    differences: list[Difference] = []
    uniform, real, compared = {}, {}, 0
    for layer in LAYERS:
        name = f"eyeriss_v2_pe:{layer}"
        evaluation = run(name, options)
        uniform[layer] = float(evaluation.cycles)
        rows += rows_of(name, layer, answers[name], evaluation)
        number, found = compare(name, answers[name], evaluation)
        compared += number
        differences += found
        masks = masks_of(layer, load(name), options.masks)
        evaluation = run(name, options, masks)
        real[layer] = float(evaluation.cycles)
        if options.masks is None:
            continue
        rows.append(Row(f"{layer} real data", "cycles of real data", "cycles", truth[layer] + 1, real[layer]))
        if f"{name}-masks" in answers:
            rows += rows_of(name, f"{layer} masks", answers[f"{name}-masks"], evaluation)
            number, found = compare(f"{name}-masks", answers[f"{name}-masks"], evaluation)
            compared += number
            differences += found
    return Outcome(
        name="fig12",
        title="Fig. 12: one PE of Eyeriss v2, pointwise layers of MobileNet 0.5",
        claim="With uniformly random nonzeros the model is within a few percent of a cycle-level simulation, with "
        "those of the real tensors within one cycle.",
        artifact="Uniform: mean absolute error 3.46 %, largest 6.46 % (L07). Real data: the simulated cycles and one "
        "more, in the three layers that it holds.",
        rows=tuple(rows),
        sheets=(_sheet(truth, uniform, real, options.masks is not None),),
        findings=_findings(truth, uniform, real, options.masks is not None),
        deviations=(
            "The paper's axis is logarithmic and hides errors of 1 to 6 %: the lower panel shows them.",
            *(() if options.masks else (DRAWN,)),
        ),
        compared=compared,
        differences=tuple(differences),
        draw=partial(figures.fig12, truth=truth, uniform=uniform, real=real, is_real=options.masks is not None),
    )


def _findings(
    truth: dict[str, int], uniform: dict[str, float], real: dict[str, float], is_real: bool
) -> tuple[str, ...]:
    errors = {layer: uniform[layer] / truth[layer] - 1.0 for layer in LAYERS}
    worst = max(errors, key=lambda layer: abs(errors[layer]))
    total = sum(uniform.values()) / sum(truth[layer] for layer in LAYERS) - 1.0
    found = (
        f"Uniformly random nonzeros: mean absolute error {100.0 * mean(map(abs, errors.values())):.2f} %, largest "
        f"{100.0 * errors[worst]:+.2f} % ({worst}), of the sum {100.0 * total:+.2f} %.",
    )
    if not is_real:
        return found
    off = {layer: int(real[layer] - truth[layer]) for layer in LAYERS}
    listed = ", ".join(f"{layer} {difference:+d}" for layer, difference in off.items())
    return (*found, f"Real tensors, cycles more than simulated: {listed}.")


def _sheet(truth: dict[str, int], uniform: dict[str, float], real: dict[str, float], is_real: bool) -> Sheet:
    cells = tuple(
        (
            layer,
            f"{truth[layer]:,}",
            f"{uniform[layer]:,.0f}",
            f"{reference('fig12')['designs'][f'eyeriss_v2_pe:{layer}']['cycles']:,}",
            error_text(round(uniform[layer] / truth[layer] - 1.0, 5)),
            f"{real[layer]:,.0f}",
            f"{real[layer] - truth[layer]:+,.0f}",
        )
        for layer in LAYERS
    )
    kind = "real tensors" if is_real else "one random draw"
    heads = ("layer", "simulated", "uniform", "artifact's uniform", "error of uniform", kind, "more than simulated")
    return Sheet("cycles", heads, cells)
