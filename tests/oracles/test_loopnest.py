"""The walk against the worked examples of spec/dense.md section 14, and against what must hold for any nest."""

import dataclasses
import itertools
import math
import random
import re

import pytest
from hypothesis import given, settings

from jaxloop.spec.architecture import Architecture, Compute, Storage
from jaxloop.spec.design import Design
from jaxloop.spec.einsum import Axis, Einsum, Tensor, Term
from jaxloop.spec.mapping import LevelNest, Loop, LoopNest
from tests.oracles.exactness import exactness
from tests.oracles.loopnest import Counts, flatten, points, walk
from tests.strategies import designs, random_design

MATMUL = {"A": ("M", "K"), "B": ("K", "N"), "Z": ("M", "N")}
CONV1D = {"Wt": ("C", "K", "R"), "In": ("C", "uP+wR"), "Out": ("K", "P")}
OUTPUTS = {"Z", "Out"}


def make(
    projection: dict[str, tuple[str, ...]],
    ranks: str,
    levels: dict[str, str],
    keep: dict[str, str] | None = None,
    **coefficients: int,
) -> Design:
    """A design from compact text. `levels`: per level, innermost first, loops as `"M2 K2 / N4 / R3"` (temporal,
    spatial X, spatial Y; innermost first). Instances are those that the loops use; everything is kept unless `keep`
    names the tensors of a level. Coefficients stand before a rank in lower case and are 1 by default."""
    sizes = dict.fromkeys(ranks, 1)
    nests, fanouts = [], []
    for name, text in levels.items():
        parts = [[Loop(f[0], int(f[1:]), int(f[1:])) for f in part.split()] for part in f"{text}//".split("/")[:3]]
        for loop in itertools.chain(*parts):
            sizes[loop.rank] *= loop.bound
        temporal, spatial_x, spatial_y = (tuple(part) for part in parts)
        temporal += tuple(Loop(rank, 1, 1) for rank in ranks if rank not in {loop.rank for loop in temporal})
        kept = tuple((keep or {}).get(name, " ".join(projection)).split())
        nests.append(LevelNest(name, temporal, spatial_x, spatial_y, kept))
        fanouts.append([math.prod(loop.bound for loop in loops) for loops in (spatial_x, spatial_y)])
    meshes = [[math.prod(f[xy] for f in fanouts[level:]) for xy in (0, 1)] for level in range(len(nests) + 1)]
    storage = [Storage(nest.level, mesh_x=x, mesh_y=y) for nest, (x, y) in zip(nests, meshes[1:], strict=True)]
    tensors = []
    for name, axes in projection.items():
        terms = [[(coefficients.get(t[:-1], 1), t[-1]) for t in axis.split("+")] for axis in axes]
        axis_terms = tuple(Axis(tuple(Term(rank, c) for c, rank in axis)) for axis in terms)
        tensors.append(Tensor(name, axis_terms, name in OUTPUTS))
    einsum = Einsum("test", tuple(ranks), tuple(sizes.values()), tuple(tensors))
    architecture = Architecture(Compute("MAC", 16, *meshes[0]), tuple(storage))
    return Design(einsum, architecture, LoopNest(tuple(nests)))


def run(design: Design, **options) -> Counts:
    assert design.nest is not None
    return walk(design.einsum, design.architecture, design.nest, **options)


def energy(counts: Counts, block: dict[str, int] | None = None) -> float:
    """Total pJ with 200 per DRAM access, 1 per other access and per compute, without networks."""
    total = counts.computes
    for key, instances in counts.instances.items():
        actions = (counts.reads[key], counts.fills[key], counts.updates[key])
        accesses = sum(math.ceil(action / (block or {}).get(key[0], 1)) for action in actions)
        total += instances * accesses * (200 if key[0] == "DRAM" else 1)
    return total


EX1 = make(MATMUL, "MNK", {"RF": "M2 K2", "GB": "N2 M2 K2 / N4", "DRAM": "K2 M2"})
EX2 = make(CONV1D, "PRCK", {"RF": "R3 P2", "DRAM": "P4 C2 K2"})
EX2_K_INNERMOST = make(CONV1D, "PRCK", {"RF": "R3 P2", "DRAM": "K2 P4 C2"})
EX2_STRIDE_2 = make(CONV1D, "PRCK", {"RF": "R3 P2", "DRAM": "P4"}, u=2)
EX3 = make(CONV1D, "PRCK", {"RF": "R3", "GB": "P2", "DRAM": "P3"})
EX3_BROKEN = make(CONV1D, "PRCK", {"RF": "R3", "GB": "P3", "DRAM": "P2"})
EX4 = make(CONV1D, "PRCK", {"RF": "C2", "GB": "R3 K2 / P4", "DRAM": "P2"})
EX5 = make(CONV1D, "PRCK", {"RF": "C2", "GB": "K2 / P4 / R3", "DRAM": "P2"})
EX6 = make(
    MATMUL,
    "MNK",
    {"RF": "K2", "GB": "M2 / N2", "L2": "N2", "DRAM": "K4 M2"},
    keep={"RF": "B Z", "GB": "A Z", "L2": "", "DRAM": "A B"},
)
EX7 = make(MATMUL, "MNK", {"RF": "M2 K2", "DRAM": "N2"})
EX8 = make(MATMUL, "MNK", {"RF": "M2 K2 / M4", "DRAM": "M2 N2"})
EX9 = make(CONV1D, "PRCK", {"RF": "C2", "GB": "R3 P2 / K2", "DRAM": "P2"})
EX12 = make(CONV1D, "PRCK", {"RF": "", "GB": "C21 / P3 / R5", "DRAM": ""}, u=2)

EXAMPLES = {
    "1": (
        EX1,
        {
            "RF": "A R128 F64 part64 size4 x4 | B R128 F64 part16 size2 x4 | Z R112 F64 U128 part16 tr112 size2 x4",
            "GB": "A R64 F64 size16 x1 | B R256 F128 size32 x1 | Z R192 F64 U256 tr192 size32 x1",
            "DRAM": "A R64 size64 x1 | B R128 size64 x1 | Z R0 U64 size64 x1",
        },
        128,
        None,
    ),
    "2": (
        EX2,
        {
            "RF": "Wt R96 F12 part12 | In R96 F40 part20 size4 | Out R80 F32 U96 part16",
            "DRAM": "Wt R12 | In R40 size20 | Out R16 U32",
        },
        96,
        20548,
    ),
    "2, K innermost": (EX2_K_INNERMOST, {"RF": "Wt F48 | In F32 | Out F32"}, 96, 26176),
    "2, stride 2": (EX2_STRIDE_2, {"RF": "In F17 size5", "DRAM": "In size17"}, 24, None),
    "3": (EX3, {"RF": "In F8", "GB": "In R8 F8"}, 18, None),
    "3, window broken": (EX3_BROKEN, {"RF": "In F10", "GB": "In R10 F8"}, 18, None),
    "4": (
        EX4,
        {
            "RF": "Wt R24 F24 part12 x4 | In R39 F24 part5 x4 | Out R20 F4 U24 part4 x4",
            "GB": "Wt R24 F12 | In R36 F20 link60 | Out R0 F16 U16",
            "DRAM": "Wt R12 | In R20 | Out R0 U16",
        },
        24,
        None,
    ),
    "5": (
        EX5,
        {
            "RF": "Wt R8 F8 part4 x12 | In R8 F4 part3 x12 | Out R4 F4 U8 part4 x12",
            "GB": "Wt R24 F12 | In R24 F20 | Out R0 F16 U16",
        },
        8,
        None,
    ),
    "6": (
        EX6,
        {
            "RF": "A R0 F0 U0 | B R64 F32 part16 | Z R56 F32 U64 part8",
            "GB": "A R64 F32 part32 | B R0 F0 U0 | Z R48 F0 U64 part16",
            "L2": "A R0 F0 U0 | B R0 F0 U0 | Z R0 F0 U0",
            "DRAM": "A R32 | B R64 | Z R0 F0 U0 x0",
        },
        64,
        None,
    ),
    "7": (EX7, {"RF": "A R8 F4 | B R8 F4 | Z R4 F4 U8"}, 8, None),
    "8": (EX8, {"RF": "B R8 F4 link32 | A R64 F64 | Z R32 F32 U64"}, 16, 20332),
    "9": (EX9, {"RF": "In R30 F24", "GB": "In R18 F12 link12"}, 24, 6854),
    "12": (EX12, {"RF": "In F20", "GB": "In R189 F189"}, 21, 62184),
}
FIELDS = {
    "R": "reads",
    "F": "fills",
    "U": "updates",
    "tr": "temporal_reductions",
    "part": "partition",
    "size": "tile_words",
    "x": "instances",
    "link": "links",
}
"""Short names of section 14, to fields of `Counts`."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_example(name):
    design, expected, cycles, total_energy = EXAMPLES[name]
    counts = run(design)
    for level, text in expected.items():
        for tensor, *entries in (part.split() for part in text.split("|")):
            want = {FIELDS[field]: int(n) for field, n in (re.findall(r"([A-Za-z]+)(\d+)", e)[0] for e in entries)}
            got = {field: getattr(counts, field)[level, tensor] for field in want}
            assert want and got == want, (level, tensor)
    assert counts.compute_cycles == cycles
    assert counts.computes == design.einsum.computes
    if total_energy is not None:
        assert energy(counts) == total_energy


def test_energy_of_example_7_in_whole_blocks():
    assert energy(run(EX7), {"RF": 4}) == 2418


@pytest.mark.parametrize(
    "design, level, tensor, records",
    [
        (EX1, "GB", "A", {(4, 1): 64}),
        (EX1, "GB", "Z", {(1, 4): 256}),
        (EX4, "GB", "In", {(1, 1): 20, (1, 4): 16}),
        (EX5, "GB", "In", {(1, 2): 8, (2, 2): 8, (3, 2): 8}),
        (EX5, "GB", "Out", {(3, 4): 16}),
        (EX12, "GB", "In", {(1, 4): 84, (2, 4): 84, (3, 1): 21}),
    ],
)
def test_multicast_records(design, level, tensor, records):
    assert run(design).records[level, tensor] == records


def test_unrounded_counts_keep_the_word_that_floating_point_loses():
    assert run(EX12, integer_counts=False).fills["RF", "In"] == 21


def test_reads_without_first_read_elision():
    assert run(EX1, first_read_elision=False).reads["RF", "Z"] == 128


# Fills of "In" at RF in the model with and without second-index motion, and in truth: the table of README.md.
DIFFERENCES = {
    "window goes on at the next level": (EX3_BROKEN, 10, 8, 8),
    "window moves back over itself": (make(CONV1D, "PRCK", {"RF": "R3 P2", "DRAM": "P2 K2"}), 12, 12, 10),
    "window does not move": (make(CONV1D, "PRCK", {"RF": "C2", "DRAM": "R3 P2"}, u=2), 12, 12, 10),
    "repeat seen, same window": (make(CONV1D, "PRCK", {"RF": "R2", "DRAM": "P3 R2"}), 7, 8, 6),
    "repeat seen, other window": (make(CONV1D, "PRCK", {"RF": "R2", "DRAM": "P5 R2"}), 11, 12, 12),
    "rest seen, window moves": (make(CONV1D, "PRCK", {"RF": "", "DRAM": "K2 P3 R2"}), 5, 6, 6),
}


@pytest.mark.parametrize("cause", DIFFERENCES)
def test_where_the_rule_differs_from_the_truth(cause):
    design, second_index, every_index, truth = DIFFERENCES[cause]
    assert design.nest is not None
    fills = [
        run(design, second_index=True, links=False).fills["RF", "In"],
        run(design, second_index=False, links=False).fills["RF", "In"],
        run(design, policy="full", links=False).fills["RF", "In"],
    ]
    assert fills == [second_index, every_index, truth]
    assert exactness(design.einsum, design.nest) == (second_index == truth)
    assert exactness(design.einsum, design.nest, second_index=False) == (every_index == truth)


def test_second_index_motion_sees_links_that_are_not_there():
    assert run(EX4).links["GB", "In"] == 60
    assert run(EX4, second_index=False).links["GB", "In"] == run(EX4, policy="full").links["GB", "In"] == 48


def random_designs(count: int, first_seed: int, **options) -> list[Design]:
    return [random_design(random.Random(first_seed + seed), **options) for seed in range(count)]


@pytest.mark.parametrize("second_index", [True, False])
def test_exactness_claim(second_index):
    """Where `exactness` holds, rule and truth agree; the sample holds designs of both sorts."""
    differing = 0
    for kind, seed in (("conv1d", 0), ("depthwise", 10_000), ("matmul", 20_000)):
        for design in random_designs(120, seed, kind=kind, max_levels=3, directives=0.05):
            assert design.nest is not None
            options = {"integer_counts": False, "links": not second_index}
            equal = run(design, policy="full", **options) == run(design, second_index=second_index, **options)
            exact = exactness(design.einsum, design.nest, second_index=second_index)
            assert equal or not exact, design
            differing += not equal
    assert differing > 0


def test_one_rank_per_axis_is_always_exact():
    for kind in ("matmul", "batched_matmul", "matvec"):
        for design in random_designs(200, 0, kind=kind):
            assert design.nest is not None
            assert exactness(design.einsum, design.nest) and exactness(design.einsum, design.nest, second_index=False)


def test_no_traffic_below_the_truth_when_loops_really_run():
    for design in random_designs(150, 50_000, kind="conv1d", bypass=0.0):
        options = {"integer_counts": False, "links": False}
        truth, rule = run(design, policy="full", **options), run(design, second_index=False, **options)
        assert all(truth.fills[key] <= rule.fills[key] for key in truth.fills), design


def test_flattened_nest_visits_each_point_once():
    for design in random_designs(100, 0):
        assert design.nest is not None
        visited = list(points(flatten(design.einsum, design.nest), len(design.einsum.ranks)))
        box = set(itertools.product(*(range(size) for size in design.einsum.sizes)))
        assert len(visited) == len(box) and set(visited) == box


def test_a_bypassed_level_counts_as_if_it_were_not_there():
    """Without spatial loops above it, removing a level that keeps nothing and moving its loops outward is the same."""
    merged = make(CONV1D, "PRCK", {"RF": "C2 / K2", "DRAM": "R3 P2 C2 P4"})
    split = make(CONV1D, "PRCK", {"RF": "C2 / K2", "L2": "R3 P2", "DRAM": "C2 P4"}, keep={"L2": ""})
    for policy in ("full", "model"):
        want, got = run(merged, policy=policy), run(split, policy=policy)
        for table in ("reads", "fills", "updates"):
            found = {key: value for key, value in getattr(got, table).items() if key[0] != "L2"}
            assert found == getattr(want, table)


def test_switches_of_one_level():
    """No reuse: each of 16 steps sends a tile of 4. No multicast: each of 4 children gets its own copy. No links."""
    nest = EX2_K_INNERMOST.nest
    assert nest is not None and EX1.nest is not None and EX4.nest is not None
    inner = dataclasses.replace(nest.levels[0], no_temporal_reuse=("In",))
    counts = walk(EX2.einsum, EX2.architecture, LoopNest((inner, nest.levels[1])))
    assert counts.fills["RF", "In"] == 16 * 4
    middle = dataclasses.replace(EX1.nest.levels[1], no_multicast=("A",))
    counts = walk(EX1.einsum, EX1.architecture, LoopNest((EX1.nest.levels[0], middle, EX1.nest.levels[2])))
    assert counts.records["GB", "A"] == {(1, 4): 256} and counts.fills["RF", "A"] == 64
    middle = dataclasses.replace(EX4.nest.levels[1], no_link_transfer=("In",))
    counts = walk(EX4.einsum, EX4.architecture, LoopNest((EX4.nest.levels[0], middle, EX4.nest.levels[2])))
    assert counts == run(EX4, links=False)


@pytest.mark.parametrize(
    "mesh_x, links, records",
    [
        (2, 24, {(2, 1): 4, (2, 4): 8}),
        (3, 20, {(1, 1): 4, (2, 1): 4, (2, 4): 8}),
        (4, 0, {(2, 4): 24}),
    ],
)
def test_links_on_a_grid_wider_than_used(mesh_x, links, records):
    """2 x 4 children, window along Y. Elements are numbered in rows of 2 but decoded in rows of `mesh_x` (spec/dense.md
    4.6): exact neighbors at 2, five accidental ones at 3; at 4 only two, which save the parent nothing."""
    design = make(CONV1D, "PRCK", {"RF": "C2", "GB": "R3 / K2 / P4", "DRAM": ""})
    inner, *outer = design.architecture.levels
    compute = dataclasses.replace(design.architecture.compute, mesh_x=mesh_x)
    wider = Architecture(compute, (dataclasses.replace(inner, mesh_x=mesh_x), *outer))
    counts = run(dataclasses.replace(design, architecture=wider))
    assert counts.links["GB", "In"] == links
    assert counts.records["GB", "In"] == records


def test_peer_words_are_shared_by_all_instances():
    """24 link words below each of 2 buffers, divided by all 8 register files (spec/dense.md 5.5, quirk 5)."""
    counts = run(make(CONV1D, "PRCK", {"RF": "C2", "GB": "R3 / P4", "DRAM": "P2 / K2"}))
    assert counts.links["GB", "In"] == 24 and counts.peers["RF", "In"] == 3
    assert (counts.reads["RF", "In"], counts.fills["RF", "In"], counts.reads["GB", "In"]) == (12 + 3, 24 // 4 + 3, 24)


def test_bypass_below_a_connection_removes_its_links():
    counts = run(make(CONV1D, "PRCK", {"RF": "C2", "GB": "R3 K2 / P4", "DRAM": "P2"}, keep={"RF": "Wt Out"}))
    assert counts.links["GB", "In"] == 0 and counts.peers["RF", "In"] == 0
    assert counts.reads["GB", "In"] == 4 * 24


def test_refusals():
    nest = EX1.nest
    assert nest is not None
    ragged = dataclasses.replace(nest.levels[0], temporal=(Loop("M", 2, 1), *nest.levels[0].temporal[1:]))
    with pytest.raises(ValueError, match="RF: the loop over M is imperfect"):
        flatten(EX1.einsum, LoopNest((ragged, *nest.levels[1:])))
    with pytest.raises(ValueError, match="factors multiply to"):
        flatten(EX1.einsum, LoopNest(nest.levels[:-1]))
    with pytest.raises(ValueError, match="bypassed at every level"):
        run(make(MATMUL, "MNK", {"RF": "M2", "DRAM": "K2"}, keep={"RF": "A B", "DRAM": "A B"}))


@settings(deadline=None, max_examples=100)
@given(designs(directives=0.1))
def test_generated_designs_are_legal(design):
    counts = run(design)
    assert counts.computes == design.einsum.computes
    for index, level in enumerate(design.architecture.levels):
        x, y = design.architecture.fanout(index)
        inner = design.architecture.levels[index - 1] if index else design.architecture.compute
        assert (inner.mesh_x, inner.mesh_y) == (level.mesh_x * x, level.mesh_y * y)
        used = {key: value for key, value in counts.instances.items() if key[0] == level.name}
        assert max(used.values()) <= level.instances
        words = sum(counts.tile_words[key] for key in used)
        assert level.size is None or words <= level.size // level.multiple_buffering
