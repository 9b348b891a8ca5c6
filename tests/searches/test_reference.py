"""Searches against what the reference's mapper found, by the metrics of the `mapper` section."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.searches.objectives import read_metrics
from tests.searches.mapper_cases import (
    CASES,
    REFUSED,
    STOPPED_EARLY,
    design,
    metrics,
    printed,
    reference,
    space,
    texts,
)
from tests.spec_examples.examples import EXAMPLES
from tests.spec_examples.stats import figures

DOCUMENT = Path(__file__).parents[2] / "docs/searches.md"
SMALL = 10**5
"""Spaces that are searched completely; in the others a population reaches the optimum, which `test_optimum_of_large`
proves."""

LARGE = tuple(name for name in CASES if name not in ("09", "10", "14") and space(name).size > SMALL)


@cache
def ours(name: str) -> jl.SearchResult:
    found = jl.search(design(name), space(name), budget=None if name not in LARGE else 3000)
    assert found.is_complete is (name not in LARGE)
    return found


def ours_printed(name: str) -> dict[str, str]:
    return printed(name, ours(name).scores)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name[:3] in ("m03", "m09") else name
        for name in CASES
        if name not in STOPPED_EARLY
    ],
)
def test_the_same_optimum(name: str):
    theirs = reference(name)
    assert {label: ours_printed(name)[label] for label in theirs} == theirs


@pytest.mark.slow
@pytest.mark.parametrize("name", STOPPED_EARLY)
def test_no_worse_than_where_the_reference_gave_up(name: str):
    found, theirs = ours_printed(name), reference(name)
    assert found["cycles"] == theirs["cycles"]
    assert float(found["EDP"]) < float(theirs["EDP"])


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_optimum_of_large(name: str):
    """All mappings: none beats what the population found, by 0.1 % in the first metric or then in the second."""
    complete = jl.search(design(name), space(name), method="exhaustive")
    assert complete.is_complete and complete.evaluated == space(name).size
    np.testing.assert_array_equal(complete.scores, ours(name).scores)


@pytest.mark.parametrize("name", REFUSED)
def test_contradictions_by_name(name: str):
    with pytest.raises(jl.SpecError) as error:
        jl.MapSpace(jl.loads(texts()[name]))
    assert re.search(REFUSED[name], str(error.value))


@pytest.mark.parametrize("name", ["09", pytest.param("10", marks=pytest.mark.slow)])
def test_accesses_are_the_references_total_scalar_accesses(name: str):
    """Reads, fills and updates of all instances, as if there were no zeros."""
    example = EXAMPLES[name]
    evaluation = jl.evaluate(jl.loads(example.files()))
    names = [level.name for level in design(name).architecture.levels]
    counts = {field: getattr(evaluation, field) for field in ("reads", "fills", "updates", "instances")}
    totals = figures(example.expected())
    for metric, level in zip(read_metrics(design(name), "ordered-accesses"), reversed(names), strict=True):
        assert metric.of(counts) == float(totals[level, "", "Total scalar accesses"]), metric.name
    (last,) = read_metrics(design(name), "last_level_accesses")
    assert last.of(counts) == float(totals[names[-1], "", "Total scalar accesses"])


def test_names_of_accesses():
    found = [metric.name for metric in read_metrics(design("09"), ["ordered_accesses", "accesses_1", "delay"])]
    assert found == ["accesses-2", "accesses-1", "accesses-0", "accesses-1", "delay"]
    with pytest.raises(jl.SpecError, match="there are the levels 0 to 2"):
        read_metrics(design("09"), "accesses-3")


def rows() -> list[str]:
    """The table of docs/searches.md."""
    lines = ["| case | minimized | mappings | reference's best | ours | evaluated |", "|---|---|---|---|---|---|"]
    for name in CASES:
        found, theirs, own = ours(name), reference(name), ours_printed(name)
        both = [", ".join(f"{label} {values[label]}" for label in theirs) for values in (theirs, own)]
        both[0] += " (stopped early)" if name in STOPPED_EARLY else ""
        count = "all" if found.is_complete else f"{found.evaluated:,}"
        lines.append(f"| {name} | {', '.join(metrics(name))} | {space(name).size:,} | {' | '.join(both)} | {count} |")
    return lines


@pytest.mark.slow
def test_the_document_is_current():
    text = DOCUMENT.read_text()
    assert "\n".join(rows()) in text
