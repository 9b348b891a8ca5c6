"""Densities from data: every answer is a count (docs/model.md 25)."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.lower.masks import divisors
from jaxloop.spec.density import Distribution
from tests.helpers import random_mappings, stacked
from tests.oracles.sampled import Key, Simulation
from tests.oracles.sampled_designs import Spec, random_spec
from tests.oracles.sampled_limits import limits
from tests.oracles.sampled_tensors import sample_all
from tests.oracles.test_sampled import model_counts
from tests.sparse_examples import EXAMPLES

EXACT = ("instances", "tile_words", "tile_units", "reads", "fills", "updates")
"""Kinds of counts of operands that do not depend on where outputs are nonzero."""


def operands_of(design: jl.Design) -> list[str]:
    return [tensor.name for tensor in design.einsum.tensors if not tensor.is_output]


def concerns(key: Key, spec: Spec, tensors: list[str], operands: list[str]) -> bool:
    """Whether a count is one of operations or of operands. Metadata of a tensor with a SAF is left out: the model takes
    the chance of its words for it."""
    if key[0] in ("computes", "cycles"):
        return True
    tensor = next(part for part in key[1:] if part in tensors)
    thinned = any(saf.target == tensor for saf in spec.safs)
    return tensor in operands and (key[0] in EXACT or (str(key[0]).startswith("metadata") and not thinned))


def within_limits(family: str, count: int) -> list[int]:
    """The first designs of a family that no known limit of the model concerns (docs/deviations.md 10)."""
    seeds = (seed for seed in itertools.count() if not limits(Simulation(random_spec(seed, family).load())))
    return list(itertools.islice(seeds, count))


@pytest.mark.parametrize("family", ["uniform", "flattened", "windows"])
def test_random_designs_against_a_walk(family: str):
    """A drawn pair of operands: counts over the loops and over really encoded tiles."""
    for seed in within_limits(family, 8):
        spec = random_spec(seed, family)
        simulation = Simulation(spec.load())
        masks = sample_all(simulation.design, simulation.walk, np.random.default_rng(seed), 1)
        operands = operands_of(simulation.design)
        truth = {key: float(value[0]) for key, value in simulation.run(masks).items()}
        given = {name: masks[name][0] for name in operands}
        model = model_counts(simulation, jl.evaluate(simulation.design, masks=given, conventions=jl.SMOOTH))
        tensors = [*simulation.walk.tensors]
        found = {key: value for key, value in model.items() if concerns(key, spec, tensors, operands)}
        assert len(found) > 10
        assert found == pytest.approx({key: truth.get(key, 0.0) for key in found}, rel=1e-9, abs=1e-9), seed


def full_masks(design: jl.Design, seed: int = 0, density: float = 0.3) -> dict[str, np.ndarray]:
    sizes = design.einsum.size_of
    rng = np.random.default_rng(seed)
    shapes = {
        tensor.name: [1 + sum(t.coefficient * (sizes[t.rank] - 1) for t in axis.terms) for axis in tensor.axes]
        for tensor in design.einsum.tensors
    }
    return {name: rng.random(shapes[name]) < density for name in operands_of(design)}


def test_mappings_are_a_batch():
    design = jl.loads(EXAMPLES["6 hierarchical"].texts())
    masks, mappings = full_masks(design), random_mappings(design, 12, 3, bypass=0.0)
    many = jl.evaluate(design, mappings=stacked(mappings), masks=masks, conventions=jl.SMOOTH)
    for index, mapping in enumerate(mappings):
        one = jl.evaluate(design, mappings=mapping, masks=masks, conventions=jl.SMOOTH)
        for name in ("status", "cycles", "computes_by_fate", "accesses", "expected_words"):
            np.testing.assert_allclose(getattr(many, name)[index], getattr(one, name), rtol=1e-12, err_msg=name)


def test_another_mask_adds_no_compilation():
    from jaxloop.run.executables import compilations

    design = jl.loads(EXAMPLES["6 hierarchical"].texts())
    jl.evaluate(design, masks=full_masks(design))
    before = compilations()
    second = [float(jl.evaluate(design, masks=full_masks(design, seed)).energy_pj) for seed in (1, 2)]
    assert compilations() == before and second[0] != second[1]


def test_effectual_operations():
    """Skipping on both operands leaves the pairs of nonzeros that meet, whatever the mapping."""
    design = jl.loads(EXAMPLES["5 double-sided"].texts())
    masks = full_masks(design, density=0.2)
    axes = {t.name: [axis.terms[0].rank for axis in t.axes] for t in design.einsum.tensors}
    a, b = (masks[name].astype(int) for name in ("A", "B"))
    a, b = (m.T if axes[n].index("K") == 0 else m for m, n in ((a, "A"), (b, "B")))
    evaluation = jl.evaluate(design, masks=masks, conventions=jl.SMOOTH)
    assert evaluation.computes_by_fate[0] == pytest.approx((a.sum(axis=0) * b.sum(axis=0)).sum(), rel=1e-12)


@pytest.mark.slow
def test_full_and_empty_tensors():
    design = jl.loads(EXAMPLES["6 hierarchical"].texts())
    dense = jl.evaluate(design, densities={"A": 1.0, "B": 1.0}, conventions=jl.SMOOTH)
    ones = {name: np.ones_like(mask) for name, mask in full_masks(design).items()}
    full = jl.evaluate(design, masks=ones, conventions=jl.SMOOTH)
    np.testing.assert_allclose(full.accesses, dense.accesses)
    assert full.cycles == dense.cycles
    for empty in (("A",), ("B",), ("A", "B")):
        masks = ones | {name: np.zeros_like(ones[name]) for name in empty}
        nothing = jl.evaluate(design, masks=masks)
        assert nothing.computes_by_fate[0] == 0 and np.isfinite(nothing.energy_pj)


REAL = "{distribution: real-data, data_file_path: a.txt}"


def texts_with_file() -> dict[str, str]:
    texts = EXAMPLES["6 hierarchical"].texts()
    changed, count = re.subn(r"A: \{distribution[^}]*\}", f"A: {REAL}", texts["problem"])
    assert count == 1
    return {f"{name}.yaml": text for name, text in (texts | {"problem": changed}).items()}


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A text of 0 and 1, the first axis fastest, beside the file that names it; a .npy file; something sparse."""
    monkeypatch.chdir(tmp_path)
    texts = texts_with_file()
    missing = jl.loads(texts)
    with pytest.raises(jl.SpecError, match='nonzeros of tensor "A" are not there: no file "a.txt"'):
        jl.evaluate(missing)
    mask = full_masks(missing)["A"]
    flat = "".join("01"[element] for element in mask.reshape(-1, order="F").astype(int))
    Path("a.txt").write_text(flat[:10] + "\n" + flat[10:] + "\n")
    wanted = jl.evaluate(missing, masks={"A": mask}).to_dict()
    for name, text in texts.items():
        Path(name).write_text(text)
    read = jl.load(*[tmp_path / name for name in texts])
    assert read.densities["A"].distribution is Distribution.REAL_DATA
    assert jl.evaluate(read).to_dict() == wanted
    np.save("a.npy", mask * 2.5)

    class Sparse:
        def toarray(self) -> np.ndarray:
            return mask

    for given in ("a.npy", Path("a.txt"), Sparse()):
        assert jl.evaluate(missing, masks={"A": given}).to_dict() == wanted


def test_what_is_wrong_with_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    design = jl.loads(EXAMPLES["6 hierarchical"].texts())
    mask = full_masks(design)["A"]
    Path("two.txt").write_text("012")
    cases = {
        'no tensor "X"': {"X": mask},
        r"masks\['A'\]: the shape is \(3, 2\)": {"A": np.ones((3, 2))},
        "cannot read none.npy": {"A": "none.npy"},
        "cannot read two.txt: holds '2'": {"A": "two.txt"},
        'output "Z" as real data is not modeled': {"Z": np.ones([design.einsum.size_of[r] for r in "MN"])},
    }
    for message, masks in cases.items():
        with pytest.raises(jl.SpecError, match=message):
            jl.evaluate(design, masks=masks)
    with pytest.raises(jl.SpecError, match='tensor "A" is real data: its mask gives its density'):
        jl.evaluate(design, masks={"A": mask}, densities={"A": [0.1, 0.2]})
    with pytest.raises(jl.SpecError, match="real data have the size that they have"):
        jl.evaluate(design, masks={"A": mask}, sizes={"M": [8, 16]})
    Path("a.txt").write_text("0120")
    with pytest.raises(jl.SpecError, match="""mask "a.txt" of tensor "A" holds '2'"""):
        jl.loads(texts_with_file())
    Path("a.txt").write_text("01")
    with pytest.raises(jl.SpecError, match='mask of tensor "A" has 2 elements, the tensor'):
        jl.evaluate(jl.loads(texts_with_file()))


def test_tables_beyond_all_measure_are_refused(monkeypatch: pytest.MonkeyPatch):
    design = jl.loads(EXAMPLES["6 hierarchical"].texts())
    monkeypatch.setattr("jaxloop.lower.refusals.LARGEST_TABLE", 100)
    with pytest.raises(jl.SpecError, match="would take a table of .* entries, 100 are allowed"):
        jl.evaluate(design, masks=full_masks(design))


def test_divisors():
    assert divisors(12) == [1, 2, 3, 4, 6, 12] and divisors(1) == [1]
