"""Position skipping (docs/model.md 24) against a few lines of plain Python, worked examples, laws."""

from dataclasses import replace
from math import ceil, comb, floor

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.lower import lower, lower_mapping
from jaxloop.program import Action, Fate
from jaxloop.spec.density import Density, Distribution
from tests.helpers import stacked
from tests.kernel.test_gradients import gradients, lowered
from tests.sparse_examples import BACKING, BUFFER, A, B, Example

WORDS = {A: 64, B: 32}
TILES = {A: 8, B: 4}
MAPPING = """
mapping:
- {{target: Backing, type: temporal, factors: M=1 N=1 K=8, permutation: KNM}}
- {{target: Buffer, type: temporal, factors: {temporal} K=1, permutation: NMK}}
- {{target: Buffer, type: spatial, factors: {spatial} K=1, permutation: NMK, no_link_transfer: [A, B, Z]}}
- {{target: Buffer, type: bypass, keep: [{keep}], bypass: [{bypass}]}}
"""
SPATIAL, TEMPORAL = "M=4 N=2", "M=2 N=2"
UNITS = 8
COMPUTES = 256
"""M8 N4 K8: the buffer holds a column of A and a row of B. Of the 8 words of A 4 are dealt out at a time, of the 4
words of B 2."""

FORMATS = {
    ("Backing", "A"): "UOP UOP B",
    ("Buffer", "A"): "UOP B",
    ("Backing", "B"): "UOP UOP B",
    ("Buffer", "B"): "UOP B",
}
BOTH = ("position-skipping A<-", "position-skipping B<-")
CONVENTIONS = pytest.mark.parametrize(
    "conventions", [jl.TIMELOOP_2022, jl.MICRO22, jl.SMOOTH], ids=["2022", "micro22", "smooth"]
)
SOME = pytest.mark.parametrize("conventions", [jl.MICRO22, jl.SMOOTH], ids=["micro22", "smooth"])


def texts(
    densities: dict[str, str],
    actions: tuple[str, ...] = BOTH,
    spatial: str = SPATIAL,
    temporal: str = TEMPORAL,
    bypass: str = "Z",
    formats: dict[tuple[str, str], str] = FORMATS,
) -> dict[str, str]:
    example = Example("K8", "M8 N4", densities, formats=formats, actions={"Buffer": actions})
    keep = ", ".join(name for name in "ABZ" if name not in bypass)
    mapping = MAPPING.format(spatial=spatial, temporal=temporal, keep=keep, bypass=", ".join(bypass))
    found = example.texts() | {"mapping": mapping}
    found["architecture"] = found["architecture"].replace("name: MAC", f"name: MAC[0..{UNITS - 1}]")
    return found


def evaluated(densities: dict[str, str], conventions: jl.Conventions = jl.MICRO22, **changes) -> jl.Evaluation:
    found = jl.evaluate(jl.loads(texts(densities, **changes)), conventions=conventions)
    assert found.reasons == []
    return found


def law(density: str, words: int, tile: int) -> dict[int, float]:
    """Chances of the numbers of nonzeros in a tile."""
    kind, share = density.split()
    if kind == "fixed-structured":
        low = floor(tile * float(share))
        rest = tile * float(share) - low
        return {low: 1.0 - rest, low + 1: rest}
    full = ceil(words * float(share))
    return {k: comb(full, k) * comb(words - full, tile - k) / comb(words, tile) for k in range(tile + 1)}


def shares(chances: dict[int, float], tile: int, children: int) -> tuple[float, float]:
    """Share of the children in use, and of the steps left."""
    steps = {k: max(1, ceil(k / children)) for k in chances}
    filled = sum(p for k, p in chances.items() if k > 0)
    use = sum(p * k / (children * steps[k]) for k, p in chances.items()) / filled if filled > 0 else 0.0
    return use, sum(p * steps[k] for k, p in chances.items()) / ceil(tile / children)


def left(conventions: jl.Conventions, value: float, share: float, noise: float = 0.0) -> float:
    """What a share leaves of a count; `noise` of the kernel's sums over chances matters where it meets an integer."""
    removed = value * (1.0 - share) + noise
    return value - (floor(removed) if conventions.integer_counts else removed)


@CONVENTIONS
def test_worked_example(conventions):
    """2 of 8 words of A fill half of its 4 children in one step of two; 3 of 4 words of B take both steps, of 2
    children each. 32 dense steps become 16, in which 3 of 8 units work."""
    found = evaluated({"A": "fixed-structured 0.25", "B": "fixed-structured 0.75"}, conventions)
    assert found.computes == COMPUTES and found.computes_by_fate.tolist() == [48.0, 0.0, 0.0]
    assert found.compute_instances == 3.0 and found.compute_x * found.compute_y == UNITS
    assert found.compute_cycles == 16.0
    reads = found.accesses[:, Action.READ, BUFFER]
    np.testing.assert_array_equal(found.reads[BUFFER], [128.0, 64.0, 0.0])
    np.testing.assert_array_equal(reads[Fate.ACTUAL], [32.0, 24.0, 0.0])
    np.testing.assert_array_equal(reads[1:], np.zeros((2, 3)))
    np.testing.assert_array_equal(found.accesses[0, Action.FILL, BUFFER], [16.0, 24.0, 0.0])
    np.testing.assert_array_equal(found.saf_kind, [[4, 4, 0], [0, 0, 0]])
    assert found.utilization == pytest.approx(48 / UNITS / float(found.cycles))


@CONVENTIONS
@pytest.mark.parametrize("compacted", ["AB", "A", "B"])
@pytest.mark.parametrize(
    ("spatial", "temporal", "children"),
    [(SPATIAL, TEMPORAL, (4, 2)), ("M=2 N=4", "M=4 N=1", (2, 4)), ("M=8 N=1", "M=1 N=4", (8, 1))],
    ids=["4x2", "2x4", "8x1"],
)
@pytest.mark.parametrize(
    "densities",
    [
        ("hypergeometric 0.25", "hypergeometric 0.5"),
        ("hypergeometric 0.0625", "fixed-structured 0.3"),
        ("fixed-structured 0.6", "hypergeometric 0.125"),
    ],
    ids=["random", "few", "mixed"],
)
def test_against_plain_python(conventions, compacted, spatial, temporal, children, densities):
    """Use of the units, cycles, operations, reads."""
    actions = tuple(f"position-skipping {name}<-" for name in compacted)
    given = dict(zip("AB", densities, strict=True))
    found = evaluated(given, conventions, actions=actions, spatial=spatial, temporal=temporal)
    units, computes, steps, density = float(UNITS), float(COMPUTES), [1.0, 1.0], [0.0, 0.0]
    for t, name in enumerate("AB"):
        chances = law(densities[t], WORDS[t], TILES[t])
        share = sum(k * p for k, p in chances.items()) / TILES[t]
        # empty tiles of the other tensors do not arrive
        density[t] = share if name in compacted else share / (1.0 - chances.get(0, 0.0))
        if name in compacted:
            use, steps[t] = shares(chances, TILES[t], children[t])
            units, computes = units * use, left(conventions, computes, share)
    assert found.compute_instances == pytest.approx(units, rel=1e-12)
    assert found.compute_x * found.compute_y == UNITS
    assert found.computes_by_fate[Fate.ACTUAL] == pytest.approx(computes, rel=1e-12)
    cycles = float(found.computes_by_fate.sum()) / units
    assert found.compute_cycles == (ceil(cycles - 1e-9) if conventions.whole_cycles else pytest.approx(cycles))
    for t, other in ((A, B), (B, A)):
        reads, share = float(found.reads[BUFFER, t]), density[t] * steps[other]
        low, high = (left(conventions, reads, share, noise) for noise in (1e-9, -1e-9))
        assert low <= found.accesses[Fate.ACTUAL, Action.READ, BUFFER, t] <= high
    assert (found.accesses[1:, Action.READ] == 0.0).all()


def test_nonzeros_are_whole():
    """3.2 of 64 words are 4."""
    few, four = (evaluated({"A": f"hypergeometric {d}", "B": "hypergeometric 0.5"}) for d in (0.05, 0.0625))
    for field in ("compute_instances", "compute_cycles", "accesses"):
        np.testing.assert_array_equal(getattr(few, field), getattr(four, field))


@SOME
def test_data_count_all_tiles_and_metadata_only_those_that_arrive(conventions):
    densities = {"A": "hypergeometric 0.0625", "B": "hypergeometric 0.125"}
    found, without = (evaluated(densities, conventions, actions=actions) for actions in (BOTH, ()))
    for t, density in ((A, 0.0625), (B, 0.125)):
        empty = law(f"hypergeometric {density}", WORDS[t], TILES[t])[0]
        assert without.tile_empty[BUFFER, t] == pytest.approx(empty) and found.tile_empty[BUFFER, t] == 0.0
        assert (without.instances[BUFFER, t], found.instances[BUFFER, t]) == (pytest.approx(1.0 - empty), 1.0)
        assert without.expected_words[BUFFER, t] == pytest.approx(TILES[t] * density / (1.0 - empty))
        assert found.expected_words[BUFFER, t] == pytest.approx(TILES[t] * density)
        fills = float(found.fills[BUFFER, t])
        assert found.accesses[0, Action.FILL, BUFFER, t] == left(conventions, fills, density)
    for field in ("metadata_units", "metadata_accesses", "stored_units", "metadata_bits", "stored_words"):
        np.testing.assert_array_equal(getattr(found, field), getattr(without, field), err_msg=field)
    np.testing.assert_array_equal(found.accesses[:, :, BACKING], without.accesses[:, :, BACKING])


def test_without_metadata_all_words_are_stored_and_read():
    """Steps are left out all the same."""
    densities = {"A": "fixed-structured 0.25", "B": "fixed-structured 0.75"}
    found = evaluated(densities, formats={})
    np.testing.assert_array_equal(found.accesses[0, :, BUFFER, :2].T, [[128.0, 64.0, 0.0], [32.0, 32.0, 0.0]])
    assert (found.compute_instances, found.compute_cycles) == (3.0, 16.0)


def test_a_tensor_that_the_level_does_not_keep():
    """The tile is that of the level's loops all the same; its reads further out are those of its nonzeros."""
    densities = {"A": "hypergeometric 0.25", "B": "hypergeometric 0.5"}
    inside, outside = (evaluated(densities, bypass=bypass) for bypass in ("Z", "BZ"))
    assert outside.compute_instances == inside.compute_instances
    assert outside.compute_cycles == inside.compute_cycles
    np.testing.assert_array_equal(outside.accesses[:, :, BUFFER, A], inside.accesses[:, :, BUFFER, A])
    assert outside.accesses[0, Action.READ, BACKING, B] == 0.5 * outside.reads[BACKING, B]


@pytest.mark.parametrize("kind", ["fixed-structured", "hypergeometric"])
def test_full_tensors_change_nothing(kind):
    found, without = (evaluated(dict.fromkeys("AB", f"{kind} 1.0"), actions=actions) for actions in (BOTH, ()))
    for field in ("cycles", "energy_pj", "compute_instances", "computes_by_fate", "instances", "metadata_accesses"):
        np.testing.assert_allclose(getattr(found, field), getattr(without, field), rtol=1e-12, err_msg=field)
    np.testing.assert_array_equal(found.accesses, without.accesses)


@CONVENTIONS
@pytest.mark.parametrize("kind", ["fixed-structured", "hypergeometric"])
def test_no_nonzeros(conventions, kind):
    found = evaluated({"A": f"{kind} 0.0", "B": "hypergeometric 0.5"}, conventions)
    assert found.computes_by_fate.tolist() == [0.0, 0.0, 0.0]
    assert (found.compute_instances, found.compute_cycles, found.cycles) == (0.0, 0.0, 0.0)
    assert found.accesses[0, Action.READ, BUFFER, A] == 0.0
    # an empty tile takes one step of two
    expected = left(conventions, float(found.reads[BUFFER, B]), 0.5 * 0.5)
    assert found.accesses[0, Action.READ, BUFFER, B] == expected
    assert all(np.isfinite(getattr(found, field)).all() for field in ("energy_pj", "accesses", "instances", "edp"))


@CONVENTIONS
def test_a_single_nonzero(conventions):
    """It occupies one of 4 children, wherever it is."""
    found = evaluated({"A": f"hypergeometric {1 / 64}", "B": "fixed-structured 1.0"}, conventions)
    assert found.compute_instances == pytest.approx(UNITS / 4)
    assert found.computes_by_fate[Fate.ACTUAL] == COMPUTES / 64
    assert found.accesses[0, Action.READ, BUFFER, A] == left(conventions, 128.0, 1 / 64)
    assert found.accesses[0, Action.READ, BUFFER, B] == pytest.approx(
        32.0, abs=1.0 if conventions.integer_counts else 0
    )


def test_the_average_number_of_units_is_real():
    """Also where averages are floored: only the artifact knows position skipping."""
    found = evaluated({"A": "fixed-structured 0.375", "B": "fixed-structured 0.75"}, jl.TIMELOOP_2022)
    assert jl.TIMELOOP_2022.whole_average_units
    assert found.compute_instances == UNITS * 0.75 * 0.75
    assert found.compute_cycles == ceil((COMPUTES - floor(COMPUTES * 0.625) - 24) / 4.5)


def test_other_skipping_of_the_same_tensor():
    """Both thin the operations, one after the other; units are those that positions leave."""
    densities = {"A": "fixed-structured 0.5", "B": "hypergeometric 0.125"}
    found, both = (evaluated(densities, actions=actions) for actions in (BOTH[:1], (*BOTH[:1], "skipping A<-B")))
    assert (found.saf_kind[BUFFER, A], both.saf_kind[BUFFER, A]) == (4, 2)
    assert both.compute_instances == found.compute_instances == UNITS
    removed = floor(COMPUTES * float(both.saf_chance[BUFFER, A]))
    assert removed > 0 and found.computes_by_fate.sum() == COMPUTES / 2
    assert both.computes_by_fate.sum() == COMPUTES - removed - floor((COMPUTES - removed) / 2)


@SOME
def test_a_batch_equals_its_members(conventions):
    design = jl.loads(texts({"A": "hypergeometric 0.25", "B": "fixed-structured 0.5"}))
    sweep = {"A": np.array([0.0, 1 / 64, 0.25, 0.5, 1.0]), "B": np.array([1.0, 0.3, 0.5, 0.75, 0.125])}
    lanes = jl.evaluate(design, densities=sweep, conventions=conventions)
    for index, (a, b) in enumerate(zip(*sweep.values(), strict=True)):
        single = jl.evaluate(
            replace(
                design,
                densities={
                    "A": Density(Distribution.HYPERGEOMETRIC, float(a)),
                    "B": Density(Distribution.FIXED_STRUCTURED, float(b)),
                },
            ),
            conventions=conventions,
        )
        for field in ("compute_instances", "compute_cycles", "cycles", "energy_pj", "accesses", "computes_by_fate"):
            np.testing.assert_array_equal(getattr(lanes, field)[index], getattr(single, field), err_msg=field)


DENSITIES = {"A": "hypergeometric 0.25", "B": "fixed-structured 0.5"}


def test_refused_at_other_levels():
    found = texts(DENSITIES, actions=())
    action = "action-optimization: [{type: position-skipping, target: A, condition-on: []}]"
    found["sparse"] = found["sparse"].replace("- name: Backing\n", f"- name: Backing\n    {action}\n")
    with pytest.raises(jl.SpecError, match='"A" at level "Backing" is not modeled: only .*"Buffer"'):
        jl.evaluate(jl.loads(found))


@pytest.mark.parametrize(
    ("densities", "target", "message"),
    [
        (DENSITIES, "Z", 'position skipping of tensor "Z", an output, is not modeled'),
        ({"A": "banded 1", "B": "hypergeometric 0.5"}, "A", 'tensor "A", which is banded, is not modeled'),
    ],
    ids=["output", "banded"],
)
def test_refused_tensors(densities, target, message):
    with pytest.raises(jl.SpecError, match=message):
        jl.evaluate(jl.loads(texts(densities, actions=(f"position-skipping {target}<-",))))


def test_refused_beside_a_kept_output():
    """Of one mapping, and of any in a batch."""
    message = 'position skipping at level "Buffer" beside output "Z" is not modeled'
    with pytest.raises(jl.SpecError, match=message):
        jl.evaluate(jl.loads(texts(DENSITIES, bypass="")))
    design = jl.loads(texts(DENSITIES))
    assert design.nest is not None
    keeping = jl.loads(texts(DENSITIES, bypass="")).nest
    assert keeping is not None
    structure = lower(design, jl.MICRO22).own
    batch = stacked([lower_mapping(nest, design.einsum, structure) for nest in (design.nest, keeping)])
    with pytest.raises(jl.SpecError, match=message):
        jl.evaluate(design, mappings=batch)


@pytest.mark.slow
def test_gradients():
    """Finite, and by the density of A as differences show but for the tangent of ceilings."""
    low, design, high = (
        jl.loads(texts({"A": f"hypergeometric {k / 64}", "B": "fixed-structured 0.5"})) for k in (12, 16, 20)
    )
    found = gradients(lowered(design))
    for output, leaves in found.items():
        for name, leaf in leaves.items():
            for array in [leaf] if isinstance(leaf, np.ndarray) else vars(leaf).values():
                assert array is None or not isinstance(array, np.ndarray) or np.isfinite(array).all(), (output, name)
        less, more = (getattr(jl.evaluate(d, conventions=jl.SMOOTH), output) for d in (low, high))
        slope = float(np.ravel(leaves["sparse"].density)[A])
        assert 0.6 < slope / (float(more - less) / (8 / 64)) < 1.6
