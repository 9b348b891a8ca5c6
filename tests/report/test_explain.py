import dataclasses
from math import comb, floor

import numpy as np
import pytest
from click.testing import CliRunner, Result

import jaxloop
from jaxloop.__main__ import main
from jaxloop._errors import SpecError
from jaxloop.program import SAF_KINDS, Action, Fate
from jaxloop.report import Subject, explanation, find_subjects
from jaxloop.report.explain.compute import arriving, operands, pairs
from jaxloop.report.explain.counts import stages_of
from jaxloop.report.explain.energy import block_ratio, compute_items, instances_charged, storage_items
from jaxloop.report.explain.safs import chosen_of, gates_or_skips, options_of, outer_saf
from jaxloop.spec.sparse import ActionKind
from tests.helpers import assert_activities_sum
from tests.kernel.test_position_skipping import texts as compacted_texts
from tests.report.conftest import sparse_texts
from tests.sparse_examples import Example

GOLDEN = ("advanced-1-21", "advanced-1-60", "sparse-1-42", "sparse-1-151")
"""Between them: options, SAFs on two levels, empty tiles, partly filled blocks, addresses, conversions."""
SPARSE = ("1 compute gating", "6 hierarchical", "7 decompression", "9 spatial", "10 banded", "11 blocks", *GOLDEN, "08")
SPATIAL = SAF_KINDS[ActionKind.SPATIAL_SKIPPING]


def _kept(evaluation):
    """All (level, tensor) that are stored."""
    return [tuple(map(int, place)) for place in np.argwhere(evaluation.context.mapping.keep)]


def _words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", SPARSE)
def test_explained_energies_sum_to_those_of_the_evaluation(name, sparse):
    evaluation = sparse(name)
    context = evaluation.context
    for s, t in _kept(evaluation):
        per_instance = sum(item.energy_pj for item in storage_items(evaluation, context, s, t))
        total = per_instance * instances_charged(evaluation, context, s, t)
        assert total == pytest.approx(float(evaluation.energy_pj_by_tensor[s, t]), rel=1e-12)
    computes = sum(item.energy_pj for item in compute_items(evaluation, context))
    assert computes == pytest.approx(float(evaluation.compute_energy_pj), rel=1e-12)


@pytest.mark.parametrize("name", ["matmul", "conv", "strided", "wired"])
def test_dense_energies_sum_as_well(name, evaluated):
    evaluation = evaluated(name)
    for s, t in _kept(evaluation):
        items = storage_items(evaluation, evaluation.context, s, t)
        assert all(item.name.startswith("actual") for item in items)
        total = sum(item.energy_pj for item in items) * instances_charged(evaluation, evaluation.context, s, t)
        assert total == pytest.approx(float(evaluation.energy_pj_by_tensor[s, t]), rel=1e-12)


@pytest.mark.parametrize("name", SPARSE)
def test_texts_hold_the_energies_and_counts(name, sparse):
    evaluation = sparse(name)
    for s, t in _kept(evaluation):
        text = explanation(evaluation, Subject(s, t))
        assert f"= {evaluation.energy_pj_by_tensor[s, t]:,.3f} pJ" in text
        for action, label in ((Action.READ, "reads"), (Action.FILL, "fills"), (Action.UPDATE, "updates")):
            counts = [f"{int(count):,}" for count in evaluation.accesses[:, action, s, t]]
            assert any(line.split()[:1] == [label] and line.split()[-3:] == counts for line in text.splitlines())
    actual = f"{int(evaluation.computes_by_fate[Fate.ACTUAL]):,}"
    assert f"in whole operations: actual {actual}, " in explanation(evaluation, Subject())


@pytest.mark.parametrize("name", SPARSE)
def test_each_stage_follows_from_the_one_before(name, sparse):
    """`stored` is what SAFs further out thin to `arriving`, which is the sum of what is counted."""
    evaluation = sparse(name)
    for s, t in _kept(evaluation):
        outer = outer_saf(evaluation, evaluation.context, s, t)
        removed = 0.0 if outer is None else float(evaluation.saf_chance[outer, t])
        for action in Action:
            _, stored, arriving_words = stages_of(evaluation, evaluation.context, action, s, t)
            assert arriving_words == stored - floor(stored * removed)


@pytest.mark.parametrize("name", SPARSE)
def test_chosen_options_give_the_chances(name, sparse):
    evaluation = sparse(name)
    kinds = np.asarray(evaluation.context.program.sparse.saf_kind)
    groups = np.flatnonzero((kinds > 0) & (kinds != SPATIAL))
    chosen = [chosen_of(options_of(evaluation, evaluation.context, int(group))) for group in groups]
    for s, t in _kept(evaluation):
        chances = [option.chance for option in chosen if (option.level, option.target) == (s, t)]
        assert bool(chances) == gates_or_skips(evaluation, s, t)
        if chances:
            assert max(chances) == pytest.approx(float(evaluation.saf_chance[s, t]), abs=1e-15)


@pytest.mark.parametrize("name", SPARSE)
def test_pairs_of_operands_give_the_operations(name, sparse):
    evaluation = sparse(name)
    stages = arriving(evaluation, evaluation.context)
    left = stages[-1].left if stages else float(evaluation.computes)
    found = pairs(evaluation, evaluation.context)
    assert sum(pair.chance for pair in found) == pytest.approx(1.0)
    for fate in (Fate.GATED, Fate.SKIPPED):
        expected = left * sum(pair.chance for pair in found if pair.fate == fate)
        assert float(evaluation.computes_by_fate[fate]) == pytest.approx(floor(expected), abs=1.0)


def test_double_sided_skipping(sparse):
    """Worked example 5: each operand lets through only what the other one needs."""
    evaluation = sparse("5 double-sided")
    assert [(stage.tensor, stage.left) for stage in arriving(evaluation, evaluation.context)] == [(0, 256.0), (1, 64.0)]
    assert [operand.states["nonzero"] for operand in operands(evaluation, evaluation.context)] == [1.0, 1.0]
    text = explanation(evaluation, Subject())
    assert "gating or skipping of B at Buffer leaves 256 - floor(256 x 0.75) = 64" in text
    assert "nonzero with P = 0.25 / (1 - 0.75) = 1, given what gating or skipping of B lets through" in text
    assert "A nonzero, B nonzero chance 1 -> actual 64" in _words(text)


def test_skipping_on_two_levels(sparse):
    """Worked example 6."""
    outer = comb(48, 16) / comb(64, 16)
    evaluation = sparse("6 hierarchical")
    text = explanation(evaluation, *find_subjects(evaluation.context.design, ["Buffer.B"]))
    assert f"skipping at Backing further out removes p = {outer:.6g}" in text
    assert f"1 - (1 - 0.75) / (1 - {outer:.6g}) = {1 - 0.25 / (1 - outer):.6g}" in text
    assert "leader tile of A: 1 word, P(empty) = 0.75" in _words(text)
    assert "Backing has metadata of B, so empty tiles do not arrive" in text
    assert "reads 512 257 256 65 0 191" in _words(text)
    assert "reads rank 0 metadata 387 0 0 0 0 1" in _words(text)
    assert "reads arrive in the number of updates" in text
    backing = explanation(evaluation, *find_subjects(evaluation.context.design, ["Backing.B"]))
    assert f"leader tile of A: 16 words, P(empty) = {outer:.6g}" in _words(backing)


def test_partly_filled_blocks(sparse):
    """Worked example 11."""
    evaluation = sparse("11 blocks")
    empty = comb(48, 4) / comb(64, 4)
    ratio = (1 - empty) / (0.25 / (1 - empty))
    assert block_ratio(evaluation, evaluation.context, 0, 0) == pytest.approx(ratio, rel=1e-12)
    assert block_ratio(evaluation, evaluation.context, 0, 1) == 1
    text = explanation(evaluation, Subject(0, 0))
    assert f"accesses of data x {ratio:.6g}: the nonzeros of a tile do not fill its blocks" in text


def test_options_are_compared(sparse):
    evaluation = sparse("advanced-1-60")
    kinds = np.asarray(evaluation.context.program.sparse.saf_kind)
    groups = [options_of(evaluation, evaluation.context, int(group)) for group in np.flatnonzero(kinds)]
    options = next(options for options in groups if len(options) > 1)
    best = max(option.saving for option in options)
    target = chosen_of(options)
    text = explanation(evaluation, Subject(target.level, target.target))
    assert f", chosen: {'gating' if 'gating' in text else 'skipping'} of " in text
    assert f"estimated to save {best:,.3f} pJ per tile" in text
    assert "not chosen" in text


def test_representation(sparse):
    text = explanation(sparse("06"), Subject(1, 1))
    assert "1 UOP 24 (8, 8) (0, 25) (0, 25)" in _words(text)
    assert "0 CP 32 (8, 8) (312, 0) (312, 0)" in _words(text)
    assert "reads rank 0 metadata 4,992 4,992 1,248 0 3,744 8" in _words(text)
    assert "skipped metadata reads 32,352 bits 4,044 0.3 (ERT entry metadata_read) 1,213.200" in _words(text)


def test_density_models(sparse):
    assert "hypergeometric: nonzeros placed uniformly at random; density 0.25" in explanation(
        sparse("06"), Subject(1, 0)
    )
    banded = explanation(sparse("07"), Subject(0, 0))
    assert "banded: nonzeros near the diagonal; half width 2" in banded
    assert "nonzeros in the whole tensor: 74 of 256 words" in banded
    assert "instances with a tile: 2 x (1 - 0.125) = 1.75 on average" in banded


def test_spatial_skipping(sparse):
    evaluation = sparse("08")
    bypassed = explanation(evaluation, *find_subjects(evaluation.context.design, ["Rf.B"]))
    assert "bypassed: the level does not keep it; kept at Smem, Dram" in bypassed
    assert "spatial skipping of B on A, asked for at Rf: a child has nothing to do with chance 0.5" in bypassed


COMPACTED = {"A": "fixed-structured 0.25", "B": "fixed-structured 0.75"}


def test_position_skipping():
    """The worked example of tests/kernel/test_position_skipping.py: 2 of 8 words of A and 3 of 4 of B."""
    design = jaxloop.loads(compacted_texts(COMPACTED))
    evaluation = jaxloop.evaluate(design, conventions=jaxloop.MICRO22)
    text = explanation(evaluation, *find_subjects(design, ["Buffer.A"]))
    assert "the nonzeros among 8 words are dealt to 4 children at a time" in text
    assert "2 steps where all are nonzero" in text
    assert "share of the children in use of A and B together: 0.375" in text
    assert "average units = dense units x share = 8 x 0.375 = 3" in text
    assert "averages are over all tiles" in text and "P(empty)" not in text
    assert "nothing is gated or skipped here" not in text
    assert "arriving reads: as below, and once in each step that position skipping of B leaves, 1 of the stored" in text
    other = explanation(evaluation, *find_subjects(design, ["Buffer.B"]))
    assert "that position skipping of A leaves, 0.5 of the stored" in other
    assert "reads 64 48 24 24 0 0" in _words(other)
    units = explanation(evaluation, Subject())
    assert "position skipping of A at Buffer leaves 256 - floor(256 x 0.75) = 64" in units
    assert "position skipping of B at Buffer leaves 64 - floor(64 x 0.25) = 48" in units
    assert "operand A: density 0.25; only its nonzeros are dealt out" in units
    assert "A nonzero, B nonzero chance 1 -> actual 48" in _words(units)
    assert "48 actual and gated operations / 3 units = 16 cycles" in units
    backing = explanation(evaluation, *find_subjects(design, ["Backing.A"]))
    assert "nothing is gated or skipped here" in backing and "position skipping" not in backing


def test_position_skipping_of_a_tensor_that_passes_by():
    texts = compacted_texts(COMPACTED, actions=("position-skipping B<-",), bypass="BZ")
    design = jaxloop.loads(texts)
    evaluation = jaxloop.evaluate(design, conventions=jaxloop.MICRO22)
    text = explanation(evaluation, *find_subjects(design, ["Buffer.B"]))
    assert "bypassed" in text and "the nonzeros among 4 words are dealt to 2 children at a time" in text
    assert "share of the children in use: 0.75" in text
    units = explanation(evaluation, Subject())
    assert "gating or skipping of B at" not in units
    assert "position skipping of B at Buffer leaves 256 - floor(256 x 0.25) = 192" in units
    assert "  nonzero with P = 0.25" in units


def test_overbooking():
    """Worked example 12: the planned tile holds 23 words, which 127 of 128 tiles do not exceed."""
    example = Example(
        "M2 N8 K2;MKN",
        "M8 N1 K8;KNM",
        {"A": "hypergeometric 0.25", "B": "hypergeometric 0.5"},
        formats={("Backing", "A"): "UOP UOP UOP CP", ("Buffer", "A"): "UOP CP"},
        attributes=", allow_overbooking: true",
    )
    texts = example.texts()
    texts["architecture"] = texts["architecture"].replace("data_storage_depth: 4096", "data_storage_depth: 64", 1)
    evaluation = jaxloop.evaluate(jaxloop.loads(texts))
    assert_activities_sum(evaluation)
    text = explanation(evaluation, Subject(0, 0))
    assert "planned for: 23 words" in text
    assert "x 1 instances on average = 13,212.000 pJ" in text
    assert f"with overbooking {13212 * 127 / 128:,.3f} pJ" in text
    assert "planned for A 23 + B 8 + Z 8 = 39 words, of 64" in explanation(evaluation, Subject(0))


def test_a_dense_design(evaluated):
    evaluation = evaluated("wired")
    (subject,) = find_subjects(evaluation.context.design, ["RF.Z"])
    text = explanation(evaluation, subject)
    assert "M 2 x N 1: 2 words, of 64 in the whole tensor" in text
    assert "actual reads 112 words 56 0.7 (attribute vector-access-energy) 39.200" in _words(text)
    assert "x 4 instances on average = 425.600 pJ" in text
    assert "P(empty)" not in text and "Gating" not in text


def test_a_whole_level(evaluated):
    evaluation = evaluated("wired")
    text = explanation(evaluation, *find_subjects(evaluation.context.design, ["RF"]))
    assert "at most A 4 + B 2 + Z 2 = 8 words, of 64" in text
    assert "read 368 words / 128 cycles = 2.875 words per cycle, bandwidth 2" in _words(text)
    assert "128 compute cycles / 0.695652 = 184 cycles" in text
    assert [line for line in text.splitlines() if line.endswith("at level RF")] == [
        f"RF.{tensor}: tensor {tensor} at level RF" for tensor in "ABZ"
    ]


def test_sliding_windows(evaluated):
    evaluation = evaluated("strided")
    (subject,) = find_subjects(evaluation.context.design, ["Dram.X"])
    assert "C 6 x 3*R+2*P 39: 234 words, of 234 in the whole tensor" in explanation(evaluation, subject)
    assert evaluation.tile_words[subject.level, subject.tensor] == 234


def test_smooth_conventions_round_nothing(sparse):
    evaluation = jaxloop.evaluate(jaxloop.loads(sparse_texts("06")), conventions=jaxloop.SMOOTH)
    text = explanation(evaluation, Subject(1, 0))
    assert "floor" not in text and "ceil" not in text
    assert f"= {evaluation.energy_pj_by_tensor[1, 0]:,.3f} pJ" in text


def test_unknown_subjects(sparse):
    design = sparse("06").context.design
    with pytest.raises(SpecError) as caught:
        find_subjects(design, ["Local.A", "Locl.A", "Local.Q", "MAC.A", "Bak", "MAC"])
    assert [str(error) for error in caught.value.errors] == [
        '--explain Locl.A: there is no level "Locl" (did you mean "Local"?)',
        '--explain Local.Q: there is no tensor "Q" (valid: A, B, Z)',
        "--explain MAC.A: the compute units MAC store no tensor (write MAC)",
        '--explain Bak: there is no level "Bak" (did you mean "Back"?)',
    ]


def test_refuses_a_batch(sparse):
    with pytest.raises(ValueError, match="one evaluation"):
        explanation(dataclasses.replace(sparse("06"), context=None), Subject())


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["evaluate", *arguments])


def test_command_line(files_of):
    result = _run(*files_of("wired"), "--explain", "RF.Z", "--explain", "MAC")
    assert result.exit_code == 0
    table, _, rest = result.stdout.partition("\nRF.Z: tensor Z at level RF\n")
    assert "valid mapping" in table
    assert "425.600 pJ" in rest and "\nMAC: the compute units\n" in rest


def test_command_line_refuses_before_it_evaluates(files_of, tmp_path):
    target = tmp_path / "out.json"
    result = _run(*files_of("wired"), "--explain", "DRAN.Z", "--json", str(target))
    assert result.exit_code == 2
    assert result.stderr == 'error: --explain DRAN.Z: there is no level "DRAN" (did you mean "DRAM"?)\n'
    assert result.stdout == "" and not target.exists()
    result = _run(*files_of("wired"), "--explain", "RF.Z", "--json", "-")
    assert result.exit_code == 2
    assert "--explain prints to the standard output" in result.stderr


def test_command_line_explains_invalid_mappings(files_of, tmp_path):
    files = []
    for path in files_of("wired"):
        copy = tmp_path / path.rpartition("/")[2]
        with open(path) as file:
            copy.write_text(file.read().replace("entries: 64", "entries: 6"))
        files.append(str(copy))
    result = _run(*files, "--explain", "RF")
    assert result.exit_code == 1
    assert "at most A 4 + B 2 + Z 2 = 8 words, of 6" in result.stdout


def test_real_data_are_counted_together():
    """No product of chances is shown where the masks of both operands tell what meets."""
    design = jaxloop.loads(sparse_texts("6 hierarchical"))
    sizes = design.einsum.size_of
    masks = {
        tensor.name: np.arange(np.prod([sizes[axis.terms[0].rank] for axis in tensor.axes])).reshape(
            [sizes[axis.terms[0].rank] for axis in tensor.axes]
        )
        % 3
        == 0
        for tensor in design.einsum.tensors
        if not tensor.is_output
    }
    evaluation = jaxloop.evaluate(design, masks=masks)
    text = explanation(evaluation, *find_subjects(design, ["MAC"]))
    assert "both operands are real data" in text and "by pairs of operand states" not in text
    actual = f"actual {int(evaluation.computes_by_fate[0]):,}"
    assert actual in text
    text = explanation(evaluation, *find_subjects(design, ["Buffer.B"]))
    assert "real data: counted over the tiles of a mask; density 0.34375" in text
    assert "counted where the tiles of both operands meet" in text and "chance = 1 -" not in text
