"""The front door: what it accepts, what it refuses and in which words, what an evaluation says of itself."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.program import Action
from jaxloop.result import Evaluation
from jaxloop.spec.mapping import Loop
from tests.frontend.base import TEXTS, edited
from tests.helpers import assert_same_dict, edit_levels, fixed_design

DENSE = {file: text for file, text in TEXTS.items() if file != "sparse.yaml"}
WITHOUT_MAPPING = {file: text for file, text in DENSE.items() if file != "mapping.yaml"}


def design(*edits: tuple[str, str, str]) -> jl.Design:
    return jl.loads(edited(*edits, base=DENSE))


def evaluate(*edits: tuple[str, str, str], **options: Any) -> Evaluation:
    return jl.evaluate(design(*edits), **options)


# --- loading


def test_files_and_texts_are_the_same(tmp_path: Path):
    for name, text in DENSE.items():
        (tmp_path / name).write_text(text)
    from_files = jl.load(*sorted(tmp_path.iterdir()))
    assert jl.evaluate(from_files).to_dict() == evaluate().to_dict()
    assert jl.load(str(tmp_path / "arch.yaml"), *(str(tmp_path / n) for n in DENSE if n != "arch.yaml")) == from_files


def test_shipped_designs_load_by_name():
    assert jl.load("eyeriss:alexnet_conv2").name == "eyeriss:alexnet_conv2"


def test_worked_example():
    """The figures of the base design by hand: 1024 products on 4 units; Z passes by the scratchpads."""
    result = evaluate()
    assert result.valid and result.computes == 1024 and result.compute_cycles == 256
    assert result.context is not None
    assert result.context.names.levels == ("Spad", "Glb", "Main") and result.context.names.compute == "Mac"
    # B (8 words per tile) is fetched anew in all but the innermost loop above, which is M: 2 x 2 x 2 x 2 tiles
    tensor = {name: i for i, name in enumerate(result.context.names.tensors)}
    np.testing.assert_array_equal(result.tile_words[:, tensor["B"]], [8, 32, 128])
    assert result.reads[0, tensor["A"]] == result.reads[0, tensor["B"]] == 256
    np.testing.assert_array_equal(result.tile_words[0], [4, 8, 0])
    assert result.area_um2 == 10 + 20


# --- arguments


def altered(name: str, index: Any, value: float, *batch: int) -> jl.Mapping:
    """The base design's mapping with one number changed, repeated along batch axes."""
    own = jl.mapping_of(design())
    leaf = np.array(getattr(own, name))
    leaf[index] = value
    leaves = {n: np.asarray(getattr(own, n)) for n in own.__dataclass_fields__} | {name: leaf}
    return jl.Mapping(**{n: np.broadcast_to(leaf, (*batch, *leaf.shape)) for n, leaf in leaves.items()})


@pytest.mark.parametrize("factor", [0.0, -2.0, np.nan])
@pytest.mark.parametrize("name", ["temporal", "spatial_x", "spatial_y"])
def test_factors_that_are_not_positive_stay_finite(name: str, factor: float):
    result = jl.evaluate(design(), mappings=altered(name, (0, 0), factor))
    assert jl.Status.NOT_COVERING in jl.Status(int(result.status))
    assert np.isfinite(result.energy_pj) and np.isfinite(result.cycles) and np.isfinite(result.reads).all()


@pytest.mark.parametrize(
    "hardware, message",
    [
        ({"Glb.read_bandwidth": 0.0}, r"read_bandwidth'\]: 0 is no read_bandwidth \(give numbers above 0\)"),
        ({"Glb.read_bandwidth": [1.0, -1.0]}, "-1 is no read_bandwidth"),
        ({"Glb.size": -4}, r"-4 is no size \(give numbers of at least 0\)"),
        ({"Glb.read_energy": np.nan}, "nan is no read_energy"),
    ],
)
def test_hardware_that_makes_no_sense(hardware: dict[str, Any], message: str):
    with pytest.raises(jl.SpecError, match=message):
        evaluate(hardware=hardware)


def test_sizes_below_one():
    with pytest.raises(jl.SpecError, match="0 is no rank size"):
        evaluate(sizes={"M": [8, 0]})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"fields": ("cycles",)}, "fields= is for batches"),
        ({"dtype": np.float16}, "dtype float16 is not supported"),
        ({"throw": True, "hardware": {"Glb.size": [1, 2]}}, "throw= is for one mapping"),
        ({"mappings": altered("temporal_order", (0, 0), 1)}, "temporal_order holds a row that is no permutation"),
        ({"mappings": altered("spatial_order", (0, 0), -1, 3)}, "spatial_order holds a row that is no permutation"),
        ({"mappings": altered("keep", 0, 1, 0)}, r"shape \(0, 3, 3\): a batch needs at least one mapping"),
        (
            {"mappings": replace(jl.mapping_of(design()), keep=np.ones((2, 3)))},
            r"mappings.keep has shape \(2, 3\): its last axes must be \[level, tensor\] = \(3, 3\)",
        ),
    ],
)
def test_arguments_that_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        evaluate(**options)


def test_a_nest_or_arrays_are_the_mapping():
    own = evaluate().to_dict()
    assert evaluate(mappings=design().nest).to_dict() == own
    assert evaluate(mappings=jl.mapping_of(design())).to_dict() == own


def test_mappings_stand_in_for_files_without_one():
    bare = jl.loads(WITHOUT_MAPPING)
    assert bare.nest is None
    assert jl.evaluate(bare, mappings=design().nest).to_dict() == evaluate().to_dict()
    arrays = jl.mapping_of(bare, design().nest)
    assert jl.evaluate(bare, mappings=arrays).to_dict() == evaluate().to_dict()


def test_no_mapping_is_an_error():
    for call in (jl.evaluate, jl.mapping_of):
        with pytest.raises(jl.SpecError, match="the files hold no mapping") as info:
            call(jl.loads(WITHOUT_MAPPING))
        assert info.value.errors[0].remedy


def test_wrong_names_are_all_reported_with_a_remedy():
    hardware = {"Gbl.size": 1, "Glb.sise": 1, "Mac.energi": 1, "size": 1}
    with pytest.raises(jl.SpecError) as info:
        evaluate(hardware=hardware, sizes={"X": 1})
    found = {str(error.place.path): (error.message, error.remedy) for error in info.value.errors}
    assert found == {
        "sizes['X']": ('no rank "X"', "valid: M, N, K"),
        "hardware['Gbl.size']": ('no level "Gbl"', 'did you mean "Glb"?'),
        "hardware['Glb.sise']": ('"Glb" has no attribute "sise"', 'did you mean "size"?'),
        "hardware['Mac.energi']": ('"Mac" has no attribute "energi"', 'did you mean "energy"?'),
        "hardware['size']": ('no level ""', "valid: Spad, Glb, Main, Mac"),
    }


def test_unknown_field_is_an_error():
    with pytest.raises(ValueError, match="energy_pj"):
        evaluate(hardware={"Mac.energy": np.ones(2)}, fields=("energy",))


def test_single_precision_is_for_smooth_conventions():
    with pytest.raises(ValueError, match="float64"):
        evaluate(dtype=np.float32)
    result = evaluate(dtype=np.float32, conventions=jl.SMOOTH)
    assert result.energy_pj.dtype == np.float32
    np.testing.assert_allclose(result.energy_pj, evaluate(conventions=jl.SMOOTH).energy_pj, rtol=1e-5)


def test_hardware_and_sizes_are_those_of_files():
    for hardware, edit in {
        "Main.read_bandwidth": (
            "arch.yaml",
            "word-bits: 8, metadata_storage_width: 64",
            "word-bits: 8, read_bandwidth: 0.25",
        ),
        "Main.read_energy": (
            "ert.yaml",
            "name: read, arguments: {}, energy: 64.0",
            "name: read, arguments: {}, energy: 7.0",
        ),
        "Mac.energy": ("ert.yaml", "energy: 0.5", "energy: 7.0"),
        "Glb.area": ("art.yaml", "area: 20.0", "area: 7.0"),
    }.items():
        value = float(edit[2].rpartition(" ")[2])
        assert_same_dict(evaluate(hardware={hardware: value}).to_dict(), evaluate(edit).to_dict())
        assert evaluate(hardware={hardware: value}).to_dict() != evaluate().to_dict()


def test_sizes_are_those_of_files():
    """Read together with a mapping that covers them."""
    longer = design(
        ("problem.yaml", "    K: 16", "    K: 32"), ("mapping.yaml", "M=1 N=2 K=2, permut", "M=1 N=2 K=4, permut")
    )
    ours = evaluate(mappings=longer.nest, sizes={"K": 32})
    assert ours.valid and ours.to_dict() == jl.evaluate(longer).to_dict()
    assert evaluate(sizes={"K": 32}).reasons == ["product of all factors of rank K is 16, its size is 32"]


# --- refusals


def test_imperfect_factors_are_refused():
    imperfect = edit_levels(design(), lambda s, level: replace(level, temporal=(Loop("M", 3, 2), *level.temporal[1:])))
    for call in (jl.evaluate, jl.mapping_of):
        with pytest.raises(jl.SpecError, match="imperfect factor M=3,2 is not modeled yet.*Spad"):
            call(imperfect)


SKIPPING = """\
sparse_optimizations:
  targets:
  - name: Spad
    action-optimization:
    - {type: skipping, target: B, condition-on: [A]}
"""


def test_sparse_features_are_evaluated():
    """By hand: A is a quarter full, so that B is read, and a product made, in a quarter of all cases."""
    result = jl.evaluate(jl.loads(DENSE | {"sparse.yaml": SKIPPING}))
    assert result.valid and result.computes == 1024 and result.compute_cycles == 64
    assert result.computes_by_fate.tolist() == [256, 0, 0]
    assert result.accesses[:, Action.READ, 0, 1].tolist() == [64, 0, 192] and result.reads[0, 1] == 256


def test_a_format_that_no_level_further_out_has():
    result = jl.evaluate(jl.loads(TEXTS))
    assert jl.Status.FORMATS_DO_NOT_FIT in jl.Status(int(result.status))
    first = "couldn't map level Spad: compressed, but not at the next outer level. dataspace name: A"
    assert result.reasons[0] == first


def test_throw():
    assert evaluate(throw=True).valid
    small = {"Glb.size": 1}
    assert not evaluate(hardware=small).valid
    with pytest.raises(ValueError, match="couldn't map level Glb: mapped tile size .* exceeds buffer capacity 1"):
        evaluate(hardware=small, throw=True)


# --- why a mapping is not valid


def _statuses() -> dict[str, tuple[jl.Status, dict[str, Any], str]]:
    """For each kind of violation: its bit, what makes the base design violate it, and the reference's words."""
    status, nest = jl.Status, design().nest
    assert nest is not None
    keep_all = edit_levels(design(), lambda s, level: replace(level, keep=("B", "Z") if s else ("B",))).nest
    doubled = edit_levels(
        design(), lambda s, level: replace(level, temporal=tuple(_times(loop, 2 * (s == 2)) for loop in level.temporal))
    ).nest
    return {
        "capacity": (
            status.OVER_CAPACITY,
            {"hardware": {"Spad.size": 11}},
            "couldn't map level Spad: mapped tile size 12 exceeds buffer capacity 11",
        ),
        "utilization": (
            status.UNDER_UTILIZED,
            {"hardware": {"Spad.min_utilization": 0.5}},
            "couldn't map level Spad: mapped tile size 12 is less than constrained minimum utilization 32",
        ),
        "instances": (
            status.OVER_INSTANCES,
            {"hardware": {"Mac.mesh_x": 2}},
            "couldn't map level Mac: mapped max Arithmetic instances 4 exceeds hardware instances 2",
        ),
        "mesh x": (
            status.OVER_MESH_X,
            {"hardware": {"Mac.mesh_x": 2, "Mac.mesh_y": 2}},
            "couldn't map level Mac: mapped max Arithmetic X expansion",
        ),
        "not stored": (status.NOT_STORED, {"mappings": keep_all}, "tensor A is bypassed at every storage level"),
        "not covering": (
            status.NOT_COVERING,
            {"mappings": doubled},
            "product of all factors of rank M is 16, its size is 8",
        ),
    }


def _times(loop: Loop, factor: int) -> Loop:
    return replace(loop, bound=loop.bound * factor, residual=loop.residual * factor) if factor else loop


@pytest.mark.parametrize("name", ["capacity", "utilization", "instances", "mesh x", "not stored", "not covering"])
def test_each_violation_has_its_bit_and_words(name: str):
    status, options, words = _statuses()[name]
    result = evaluate(**options)
    assert not result.valid
    assert status in jl.Status(int(result.status))
    assert result.reasons[0].startswith(words), result.reasons
    assert result.to_dict()["reasons"] == result.reasons
    assert name == "not covering" or int(result.status) == status


def test_mesh_y():
    """Four units along Y where two stand along X and two along Y."""
    upright = edit_levels(
        design(), lambda s, level: replace(level, spatial_x=level.spatial_y, spatial_y=level.spatial_x)
    )
    hardware = {"Mac.mesh_x": 2, "Mac.mesh_y": 2, "Spad.mesh_x": 1, "Spad.mesh_y": 4}
    result = evaluate(mappings=upright.nest, hardware=hardware)
    assert int(result.status) == jl.Status.OVER_MESH_Y
    assert result.reasons == [
        "couldn't map level Mac: mapped max Arithmetic Y expansion 4 exceeds hardware instances 2 "
        "(X 1 of 2, Y 4 of 2; the first `split` loops of a spatial directive go to X)"
    ]


def test_reasons_come_in_the_order_of_the_reference():
    """First the mapping as such, then the compute units, then the levels from the inside out."""
    mappings = _statuses()["not covering"][1]["mappings"]
    lost = edit_levels(
        replace(design(), nest=mappings), lambda s, level: replace(level, keep=tuple(k for k in level.keep if k != "A"))
    ).nest
    hardware = {"Spad.size": 1, "Glb.size": 1, "Mac.mesh_x": 2}
    reasons = evaluate(mappings=lost, hardware=hardware).reasons
    assert [reason.split(" exceeds")[0].split(" is ")[0] for reason in reasons] == [
        "product of all factors of rank M",
        "product of all factors of rank N",
        "product of all factors of rank K",
        "tensor A",
        "couldn't map level Mac: mapped max Arithmetic instances 4",
        "couldn't map level Spad: mapped tile size 8",
        "couldn't map level Glb: mapped tile size 64",
    ]


def test_bypassed_everywhere_is_finite():
    """Case 57: refused by name, with numbers all the same."""
    result = evaluate(mappings=_statuses()["not stored"][1]["mappings"])
    tensor = 0
    assert int(result.status) == jl.Status.NOT_STORED
    assert np.isfinite(result.energy_pj) and np.isfinite(result.cycles)
    assert not result.reads[:, tensor].any() and not result.instances[:, tensor].any()
    kept = evaluate()
    np.testing.assert_array_equal(result.reads[:, 1:], kept.reads[:, 1:])


# --- what an evaluation says of itself

TOP = {"valid", "reasons", "cycles", "energy_pj", "utilization", "edp", "area_um2", "levels", "networks"}
COMPUTE = {"energy_pj", "area", "cycles", "utilized_instances", "algorithmic_computes", "actual_computes"}
COMPUTE |= {"gated_computes", "skipped_computes"}
PER_TENSOR = {"partition_size", "temporal_reductions", "utilized_instances", "utilized_clusters", "keep", "energy_pj"}
PER_TENSOR |= {"occupancy_words"}
PER_TENSOR |= {
    f"{kind}{metadata}_{action}"
    for metadata in ("", "_metadata")
    for kind in ("actual", "gated", "skipped")
    for action in ("reads", "fills", "updates")
}
PER_TENSOR |= {f"algorithmic_{action}" for action in ("reads", "fills", "updates")}
NETWORK = {"Fanout", "Multicast factor", "Ingresses", "Link transfers", "Spatial reductions", "Average number of hops"}


def test_dict_has_the_schema_of_the_golden_data():
    result = evaluate().to_dict()
    assert set(result) == TOP
    compute, *storage = result["levels"]
    assert (compute["name"], compute["kind"]) == ("Mac", "compute")
    assert set(compute) >= COMPUTE
    assert [(level["name"], level["kind"]) for level in storage] == [(n, "storage") for n in ("Spad", "Glb", "Main")]
    for level in storage:
        assert set(level) >= PER_TENSOR | {"cycles", "slowdown"}
        assert all(list(level[name]) == ["A", "B", "Z"] for name in PER_TENSOR)
    assert list(result["networks"]) == ["Spad <==> Mac", "Glb <==> Spad", "Main <==> Glb"]
    for network in result["networks"].values():
        assert list(network) == ["A", "B", "Z"]
        assert all(set(counts) >= NETWORK for counts in network.values())


def test_dict_is_plain():
    """Numbers of Python that JSON gives back, counts without a fraction as integers."""
    result = evaluate().to_dict()
    assert json.loads(json.dumps(result)) == result
    assert isinstance(result["cycles"], int) and isinstance(result["valid"], bool)


def test_energies_add_up():
    result = evaluate()
    whole = result.to_dict()
    parts = sum(sum(level["energy_pj_total"].values()) for level in whole["levels"][1:])
    parts += sum(sum(level["address_energy_pj_total"].values()) for level in whole["levels"][1:])
    for network in whole["networks"].values():
        parts += sum(counts["Energy (total)"] + counts["Link transfer energy (total)"] for counts in network.values())
    assert whole["energy_pj"] == pytest.approx(parts + whole["levels"][0]["energy_pj"], rel=1e-12)
    assert whole["energy_pj"] == float(result.energy_pj)
    assert whole["edp"] == pytest.approx(whole["energy_pj"] * whole["cycles"] / 1e12, rel=1e-6)
    assert whole["utilization"] == whole["levels"][0]["algorithmic_computes"] / (4 * whole["cycles"])


def test_context_tells_what_was_evaluated():
    result = evaluate(hardware={"Glb.size": 100}, sizes={"K": 32})
    assert result.context is not None
    names, program = result.context.names, result.context.program
    assert program.size[names.levels.index("Glb")] == 100
    assert dict(zip(names.ranks, program.rank_sizes, strict=True)) == {"M": 8, "N": 8, "K": 32}
    assert program.structure.levels == 3 and result.context.mapping.temporal.shape == (3, 3)
    assert result.context.provenance["Spad", "read"] == "ERT entry read"
    assert result.reads.shape == (3, 3) and result.violation.shape == (4,)


def test_a_batch_has_no_context():
    batch = evaluate(hardware={"Mac.energy": np.ones(2)})
    assert batch.context is None and batch.valid.all() and batch.edp.shape == (2,)
    for ask in (lambda: batch.reasons, batch.to_dict, lambda: batch.utilization):
        with pytest.raises(ValueError, match="a batch of evaluations has no single context"):
            ask()


def test_presets_are_readings_of_one_design():
    reference, smooth = (jl.evaluate(fixed_design("matmul", 3), conventions=c) for c in (jl.TIMELOOP_2022, jl.SMOOTH))
    assert reference.computes == smooth.computes
    np.testing.assert_array_equal(reference.tile_words, smooth.tile_words)
    assert reference.cycles == np.ceil(reference.cycles)
    paper = jl.evaluate(fixed_design("matmul", 3), conventions=jl.MICRO22)
    assert paper.to_dict() == reference.to_dict()
