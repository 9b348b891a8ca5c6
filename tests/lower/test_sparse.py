"""Densities, formats and SAFs as arrays: expected values follow from the texts of the small design by hand."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jaxloop as jl
from jaxloop._errors import SpecError
from jaxloop.lower import lower
from jaxloop.lower.override import override
from jaxloop.lower.program import crop
from jaxloop.lower.sparse import AXES, word_bits
from jaxloop.program import DENSITY_KINDS, RANK_FORMATS, SparseProgram, SparseStructure
from jaxloop.spec.architecture import Metadata, Storage
from jaxloop.spec.density import Density, Distribution
from jaxloop.spec.sparse import (
    ActionKind,
    ActionOptimization,
    FormatRank,
    Intersection,
    RankFormat,
)
from tests.frontend.base import TEXTS

from .base import ACTIONS, FORMATS, GLB, MAIN, SPAD, SQUARE, A, B, Z, design

UOP, CP, RLE = (RANK_FORMATS[f] for f in (RankFormat.UOP, RankFormat.CP, RankFormat.RLE))


def sparse_part(of: jl.Design, exact: bool = True) -> SparseProgram:
    program = lower(of, jl.TIMELOOP_2022, exact=exact).program
    assert program.sparse is not None
    return program.sparse


def structure(of: jl.Design, exact: bool = True, **arguments: Any) -> SparseStructure:
    found = lower(of, jl.TIMELOOP_2022, exact=exact, **arguments).program.structure.sparse
    assert found is not None
    return found


def test_dense_designs_have_no_sparse_part():
    program = lower(design(sparse="sparse_optimizations: {targets: []}"), jl.TIMELOOP_2022).program
    assert program.sparse is None and program.structure.sparse is None


def test_densities():
    banded = {"B": Density(Distribution.BANDED, band_width=3)}
    dense = design(*SQUARE)
    found = sparse_part(replace(dense, densities=dense.densities | banded))
    kinds = [
        DENSITY_KINDS[d] for d in (Distribution.HYPERGEOMETRIC, Distribution.BANDED, Distribution.FIXED_STRUCTURED)
    ]
    assert found.density_kind.tolist() == kinds
    assert found.density[[A, Z]].tolist() == [0.25, 1.0] and found.band_width.tolist() == [0.0, 3.0, 0.0]
    assert found.rank_count == 3.0


# --- formats


def test_format_ranks_stand_innermost_first():
    found = sparse_part(design(sparse=FORMATS))
    assert found.rank_format[GLB, B].tolist() == [RLE, UOP, RANK_FORMATS[RankFormat.UB]]
    others = found.rank_format.copy()
    others[GLB, B] = 0
    assert not others.any() and not found.inner_to_outer.any()
    spad = sparse_part(design())
    assert spad.rank_format[SPAD, A].tolist() == [CP, UOP]
    assert spad.inner_to_outer[SPAD].tolist() == [1.0, 0.0, 0.0]


def test_word_bits_are_the_users_or_the_levels():
    """Glb's metadata rows have 16 bits: 5 and 3 are raised to 8 and 4 by the reader; the default is 2."""
    glb = ("arch.yaml", "metadata_storage_width: 16", "metadata_storage_width: 16\n          metadata_datawidth: 2")
    found = sparse_part(design(glb, sparse=FORMATS))
    assert found.metadata_word_bits.tolist() == [0.0, 2.0, 0.0]
    assert found.metadata_bits[GLB, B].tolist() == [4.0, 2.0, 2.0]
    assert found.payload_bits[GLB, B].tolist() == [2.0, 8.0, 2.0]


@pytest.mark.parametrize(
    "rank, expected",
    [
        (FormatRank(RankFormat.UOP), (8, 8)),
        (FormatRank(RankFormat.B), (1, 8)),
        (FormatRank(RankFormat.B, 3, 0), (0, 3)),
        (FormatRank(RankFormat.UB, 3, 3), (8, 8)),
    ],
)
def test_defaults_are_raised_to_divisors_of_the_row(rank: FormatRank, expected: tuple[int, int]):
    assert word_bits(rank, Storage("Buffer", metadata=Metadata(word_bits=5, width=16))) == expected


def test_defaults_without_a_divisor_are_doubled():
    level = Storage("Buffer", metadata=Metadata(word_bits=4, width=7))
    assert word_bits(FormatRank(RankFormat.CP), level) == (7, 7)
    assert word_bits(FormatRank(RankFormat.CP), replace(level, metadata=Metadata(word_bits=3, width=10))) == (5, 5)
    assert word_bits(FormatRank(RankFormat.CP), replace(level, metadata=Metadata(word_bits=3, width=11))) == (6, 6)


def test_merges_follow_the_first_group_that_holds_a_rank():
    found, ranks = sparse_part(design(sparse=FORMATS)), "MNK"
    assert found.has_groups is not None and found.merges is not None
    assert found.has_groups[GLB, B].tolist() == [1.0, 1.0, 0.0] and found.has_groups.sum() == 2.0
    expected = {0: {"K": "KN", "N": "KN", "M": "NM"}, 1: {"N": "N", "K": "KM", "M": "KM"}, 2: {}}
    for position, rows in expected.items():
        for d, rank in enumerate(ranks):
            wanted = [float(follower in rows.get(rank, "")) for follower in ranks]
            assert found.merges[GLB, B, position, d].tolist() == wanted, (position, rank)
    assert found.merges.sum() == 6.0 + 5.0


def test_ranks_outside_all_groups_merge_with_none():
    found = sparse_part(design())
    assert found.has_groups is not None and found.merges is not None
    assert found.has_groups[SPAD, A].tolist() == [1.0, 0.0]
    assert found.merges[SPAD, A, 0].tolist() == [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]


def test_flattening_leaves_are_absent_without_groups():
    found = sparse_part(design(("sparse.yaml", ", flattened-rankIDs: [[M, K]]", "")))
    assert found.has_groups is None and found.merges is None


def test_metadata_storage_and_flags():
    found = sparse_part(
        design(
            (
                "arch.yaml",
                "metadata_storage_width: 16",
                "metadata_storage_width: 16\n          allow_overbooking: true",
            ),
            (
                "arch.yaml",
                "metadata_storage_width: 8}",
                "metadata_storage_width: 8, metadata_storage_depth: 10, decompression_supported: true}",
            ),
        )
    )
    assert found.metadata_width.tolist() == [8.0, 16.0, 64.0]
    assert found.metadata_size.tolist() == [80.0, 0.0, math.inf], "a level without size rejects nothing"
    assert found.decompression_supported.tolist() == [1.0, 0.0, 0.0]
    assert found.compression_supported.tolist() == [0.0, 0.0, 0.0]
    assert found.allow_overbooking.tolist() == [0.0, 1.0, 0.0]


def test_overbooking_is_part_of_the_structure():
    glb = ("arch.yaml", "metadata_storage_width: 16", "metadata_storage_width: 16\n          allow_overbooking: true")
    overbooked, plain = design(glb), design()
    assert [level.allow_overbooking for level in overbooked.architecture.levels] == [False, True, False]
    assert structure(overbooked).overbooking and not structure(plain).overbooking


# --- SAFs


def test_groups_go_from_the_innermost_level_outward():
    found = sparse_part(design(sparse=ACTIONS))
    assert found.saf_kind.tolist() == [2, 1, 1]
    assert found.saf_level.tolist() == [SPAD, SPAD, MAIN]
    assert found.saf_target.tolist() == [[A, B], [Z, -1], [B, -1]]
    assert found.saf_leaders.tolist() == [
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
        [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
        [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ]
    assert (found.compute_gating, found.compute_skipping) == (0.0, 1.0)


CLASS = SparseStructure(
    format_ranks=16, flattening=True, groups=16, options=4, hypergeometric=True, cells=None, fans_out=True
)
"""Of all small designs without banded tensors."""


def test_sizes_of_a_design_and_of_its_class():
    actions, formats = design(sparse=ACTIONS), design(sparse=FORMATS)
    assert structure(actions) == SparseStructure(
        format_ranks=1, groups=3, options=2, hypergeometric=True, cells=((SPAD, A),), fans_out=True
    )
    assert structure(formats) == SparseStructure(
        format_ranks=3, flattening=True, groups=1, hypergeometric=True, cells=((SPAD, B), (GLB, B)), fans_out=True
    )
    assert structure(actions, exact=False) == structure(formats, exact=False) == CLASS


def test_designs_with_and_without_random_tensors_share_a_class():
    fixed = replace(design(sparse=ACTIONS), densities={"A": Density(Distribution.FIXED_STRUCTURED, 0.5)})
    assert not structure(fixed).hypergeometric
    assert structure(fixed, exact=False) == CLASS


def test_cells_are_those_with_a_representation_there_or_further_out():
    """B is compressed in Main, A in Spad: nothing of Z, nothing of A beyond Spad."""
    both = design(sparse=FORMATS.replace("name: Glb", "name: Main") + TEXTS["sparse.yaml"].split("targets:\n")[1])
    assert structure(both).cells == ((SPAD, A), (SPAD, B), (GLB, B), (MAIN, B))
    assert structure(design()).cells == ((SPAD, A),)
    assert structure(both, exact=False).cells is None


def test_designs_with_one_child_everywhere_do_not_fan_out():
    texts = {name: text.replace("PE[0..3]", "PE") for name, text in TEXTS.items()}
    texts["mapping.yaml"] = (
        texts["mapping.yaml"].replace("M=4 N=1 K=1", "M=1 N=1 K=1").replace("M=2 N=2 K=2", "M=8 N=2 K=2")
    )
    alone = jl.loads(texts)
    assert structure(design()).fans_out and not structure(alone).fans_out
    assert structure(alone, exact=False) == structure(design(), exact=False)


@pytest.mark.parametrize("width, expected", [(0, 15), (3, 15), (16, 63), (63, 63), (256, 1023), (2000, 2000)])
def test_bands_have_classes(width: int, expected: int):
    square = design(*SQUARE, sparse=ACTIONS)
    banded = replace(square, densities={"A": Density(Distribution.BANDED, band_width=width)})
    assert (structure(banded).band, structure(banded, exact=False).band) == (width, expected)


def test_padding_is_neutral_and_cropped():
    sparse = design(sparse=ACTIONS)
    lowered = lower(sparse, jl.TIMELOOP_2022)
    padded, cropped = lowered.program.sparse, crop(lowered.program, lowered.own).sparse
    assert padded is not None and cropped is not None
    assert padded.saf_kind[3:].tolist() == [0] * 13 and (padded.saf_target[3:] == -1).all()
    assert not padded.saf_leaders[3:].any() and not padded.rank_format.any()
    assert padded.metadata_size[3:].tolist() == [math.inf]
    for name in AXES:
        exact, ours = getattr(sparse_part(sparse), name), getattr(cropped, name)
        if exact is None:  # of flattened ranks: there are none
            assert name in ("has_groups", "merges") and not ours.any()
        else:
            np.testing.assert_array_equal(ours, exact, err_msg=name)


def test_groups_of_several_options_and_conditions_keep_their_order():
    """More groups and options than the classes' first sizes."""
    base = design(sparse=ACTIONS)
    option = Intersection("B", ("A",))
    numbers = [1, 5, 2, *[1] * 14]
    many = tuple(ActionOptimization(ActionKind.GATING, (option,) * n) for n in numbers)
    targets = tuple(replace(t, actions=many) if t.level == "Spad" else t for t in base.sparse.targets)
    wide = replace(base, sparse=replace(base.sparse, targets=targets))
    found, sizes = sparse_part(wide, exact=False), structure(wide, exact=False)
    assert (sizes.groups, sizes.options) == (64, 16)
    assert [int((row == B).sum()) for row in found.saf_target] == [*numbers, 1, *[0] * 46]
    assert found.saf_level[:18].tolist() == [SPAD] * 17 + [MAIN]


# --- occupancies


@pytest.mark.parametrize(
    "density, size, strided",
    [
        (0.25, {}, False),  # 128 words, 32 nonzeros
        (0.5, {"M": 512, "K": 1024}, False),  # 20 * sqrt(2**18 / 8) + 82 = 3703 occupancies
        (0.5, {"M": 1024, "K": 1024}, True),  # 20 * sqrt(2**19 / 8) + 82 = 5202
        (1.0, {"M": 1024, "K": 1024}, False),
        (4095 / 2**24, {"M": 4096, "K": 4096}, False),  # the support
        (0.0096, {"M": 4096, "K": 4096}, False),  # 20 * sqrt(159517 / 4) + 82 = 4077
        (0.0098, {"M": 4096, "K": 4096}, True),  # 20 * sqrt(162807 / 4) + 82 = 4118
    ],
)
def test_walks_are_strided_where_occupancies_are_too_many(density: float, size: dict[str, int], strided: bool):
    random = replace(design(), densities={"A": Density(Distribution.HYPERGEOMETRIC, density)})
    assert structure(random, largest=size).strided == strided
    assert structure(random, exact=False, largest=size).strided == strided


def test_no_sums_no_strides():
    random = replace(design(), densities={"A": Density(Distribution.HYPERGEOMETRIC, 0.5)})
    smooth = lower(random, jl.SMOOTH, exact=True, largest={"M": 4096, "K": 4096}).program.structure.sparse
    assert smooth is not None and not smooth.strided


def test_all_densities_of_a_sweep_decide_on_strides():
    big = {"M": 1024, "K": 1024}
    edge = replace(design(), densities={"A": Density(Distribution.HYPERGEOMETRIC, 1.0)})
    assert structure(edge, largest=big, densities={"A": np.array([0.0, 0.5, 1.0])}).strided
    assert not structure(edge, largest=big, densities={"A": np.array([0.0, 1.0])}).strided
    assert not structure(edge, largest=big, densities={"B": np.array([0.0, 0.5, 1.0])}).strided


# --- what is refused


def _refusal(of: jl.Design, **arguments: Any) -> str:
    with pytest.raises(SpecError) as info:
        lower(of, jl.TIMELOOP_2022, **arguments)
    return str(info.value)


def test_spatial_skipping_with_two_conditions_is_refused():
    spatial = design(("sparse.yaml", "type: gating, target: Z,", "type: skipping_spatial, target: Z,"))
    found = _refusal(spatial)
    assert 'takes one condition, tensor "Z" at level "Spad" has 2 (A, B)' in found and "keep one" in found


def test_spatial_skipping_is_part_of_the_compile_key():
    spatial = design(("sparse.yaml", "type: gating, target: B,", "type: skipping_spatial, target: B,"), sparse=ACTIONS)
    without = structure(design(sparse=ACTIONS), exact=False)
    assert structure(spatial, exact=False) == replace(without, spatial_skipping=True)
    assert 3 in sparse_part(spatial).saf_kind.tolist()


def test_other_numbers_of_operands_are_refused():
    texts = TEXTS | {"problem.yaml": TEXTS["problem.yaml"].replace("    - name: Z", f"{FOURTH}    - name: Z")}
    texts["mapping.yaml"] = TEXTS["mapping.yaml"].replace("keep: [A, B]", "keep: [A, B, C]")
    found = _refusal(jl.loads(texts))
    assert "need 2 tensors that are only read; this problem has 3 (A, B, C)" in found


FOURTH = """\
    - name: C
      projection: [[[K]]]
"""


def test_default_word_bits_must_fit_the_metadata_row():
    sparse = design()
    levels = [replace(level, metadata=Metadata(word_bits=32, width=8)) for level in sparse.architecture.levels]
    wide = replace(sparse, architecture=replace(sparse.architecture, levels=tuple(levels)))
    found = _refusal(wide)
    assert found.count("\n") == 0
    assert 'metadata word bits 32 of level "Spad"' in found and "its metadata row has 8 bits" in found


DENSITIES: Mapping[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"C": 0.5}, """densities['C']: no tensor "C\""""),
    "negative": ({"B": np.array([0.1, -0.5])}, "densities['B']: -0.5 is no density"),
    "percent": ({"A": 25}, "densities['A']: 25 is no density"),
    "not a number": ({"A": math.nan}, "densities['A']: nan is no density"),
}


@pytest.mark.parametrize("case", DENSITIES)
@pytest.mark.parametrize("sparse", [TEXTS["sparse.yaml"], "sparse_optimizations: {targets: []}"])
def test_densities_that_make_no_sense(case: str, sparse: str):
    densities, message = DENSITIES[case]
    assert message in _refusal(design(sparse=sparse), densities=densities)


def test_banded_tensors_have_no_density_and_stay_square():
    square = design(*SQUARE)
    banded = replace(square, densities={"A": Density(Distribution.BANDED, band_width=1)})
    assert 'tensor "A" is banded' in _refusal(banded, densities={"A": 0.5})
    lowered = lower(banded, jl.TIMELOOP_2022, exact=True)
    assert override(lowered, None, {"M": [4, 8], "K": [4, 8]}, (2,)).rank_sizes.shape == (3, 2)
    with pytest.raises(SpecError, match='sizes: tensor "A" is 8 x 4; a banded tensor must be square'):
        override(lowered, None, {"K": [8, 4]}, (2,))
