"""Points of a sweep are evaluations: the same bits as one at a time, for axes of every kind and in any order."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import xarray as xr

import jaxloop as jl
from benchmarks.cases import random_mappings
from tests.helpers import fixed_design, random_mappings as with_bypass, stacked
from tests.sparse_examples import Example
from tests.sweeps.base import (
    BOTH,
    SPARSE,
    assert_same_point,
    compiling,
    dense_design,
    in_format,
    mappings,
    one_mapping,
    small_blocks,
    sparse_design,
    without_sparse,
)

FIELDS = ("cycles", "energy_pj", "status")
FORMATS = {"file": None, "none": "", "UOP-RLE": "UOP RLE", "B-B": "B B"}
"""Value of the axis -> what the YAML says. `none` at both levels, the others at the buffer."""
SAFS = {"file": None, "none": (), "gating(A)": ("gating B<-A",), "skipping(A)": ("skipping B<-A",)}
COMPUTE = {"file": None, "none": "", "gating": "gating", "skipping": "skipping"}
WHOLE = {"own": SPARSE, "both": BOTH}
OVER: dict[Any, Any] = {
    "density.A": [0.0, 0.25, 1.0],
    ("format.Backing.A", "format.Buffer.A"): [("none" if form == "none" else "file", form) for form in FORMATS],
    ("density.B", "Buffer.read_bandwidth"): [(0.5, 1.0), (0.1, 0.25), (0.9, 4.0)],
    "saf.Buffer.B": list(SAFS),
    "sparse": {name: jl.loads(example.texts()) for name, example in WHOLE.items()},
    "Buffer.read_energy": [10.0, 3.0, 0.7],
    "saf.MAC": list(COMPUTE),
}


@pytest.fixture(scope="module", autouse=True)
def blocks() -> Iterator[None]:
    """Blocks of two points along each dimension, which do not fit the extents."""
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch, 2**7)
        yield


@pytest.fixture(scope="module")
def everything() -> xr.Dataset:
    with compiling(1):  # also for blocks at the edges
        return jl.sweep(sparse_design(), OVER, fields=FIELDS)


def others(example: Example) -> dict[tuple[str, str], str]:
    return {key: ranks for key, ranks in example.formats.items() if key[1] != "A"}


def written(whole: str, form: str, saf: str, compute: str) -> Example:
    """The example whose YAML says what the values of the axes say."""
    example = WHOLE[whole]
    ranks, actions, kind = FORMATS[form], SAFS[saf], COMPUTE[compute]
    if ranks is not None:
        example = in_format(example, ranks) if ranks else replace(in_format(example, ""), formats=others(example))
    if actions is not None:
        example = replace(example, actions=example.actions | {"Buffer": actions})
    return example if kind is None else replace(example, compute=kind)


FORM = "format.Backing.A+format.Buffer.A"
CHOICES = list(product(WHOLE, FORMATS, SAFS, COMPUTE))


def form_index(form: str) -> int:
    return list(FORMATS).index(form)


@pytest.mark.parametrize("whole, share", [("own", 1.0), ("both", 0.3)])
def test_choices_are_those_of_the_files(everything: xr.Dataset, whole: str, share: float):
    """Also densities and hardware: a point of each combination of choices."""
    rng = random.Random(whole)
    for choice in (choice for choice in CHOICES if choice[0] == whole and rng.random() < share):
        names = dict(zip(("sparse", "saf.Buffer.B", "saf.MAC"), (choice[0], *choice[2:]), strict=True))
        row, density, energy = rng.randrange(3), rng.choice(OVER["density.A"]), rng.choice(OVER["Buffer.read_energy"])
        other, bandwidth = OVER[("density.B", "Buffer.read_bandwidth")][row]
        point = everything.sel({**names, "density.A": density, "Buffer.read_energy": energy})
        design = jl.loads(written(*choice).texts())
        truth = jl.evaluate(
            design,
            densities={"A": density, "B": other} if design.sparse.has_effect else None,
            hardware={"Buffer.read_energy": energy, "Buffer.read_bandwidth": bandwidth},
        )
        assert_same_point(point.isel({"density.B+Buffer.read_bandwidth": row, FORM: form_index(choice[1])}), truth)


def test_the_choices_make_a_difference(everything: xr.Dataset):
    """Else the test above could not see which design a point belongs to."""
    point = everything.sel({"density.A": 0.25, "Buffer.read_energy": 10.0})
    energies = point.isel({"density.B+Buffer.read_bandwidth": 0}).energy_pj
    assert len(np.unique(energies)) > 12


def test_none_everywhere_is_the_dense_design(everything: xr.Dataset):
    point = everything.sel({"sparse": "own", "saf.Buffer.B": "none", "saf.MAC": "none", "Buffer.read_energy": 10.0})
    at = {"density.B+Buffer.read_bandwidth": 0, FORM: form_index("none")}
    dense = jl.evaluate(jl.loads(without_sparse(SPARSE)), hardware={"Buffer.read_bandwidth": 1.0})
    for density in range(3):
        assert_same_point(point.isel({**at, "density.A": density}), dense)


def test_order_of_axes(everything: xr.Dataset):
    """The order asked for is the order given, and changes neither numbers nor executables."""
    names = list(OVER)
    random.Random(1).shuffle(names)
    with compiling(0):
        found = jl.sweep(sparse_design(), {name: OVER[name] for name in names}, fields=FIELDS)
    assert names != list(OVER)
    assert found.cycles.dims == tuple("+".join(name) if isinstance(name, tuple) else name for name in names)
    xr.testing.assert_equal(found.transpose(*everything.cycles.dims), everything)


def test_mappings_sizes_and_meshes_of_a_design_with_links():
    """Points in which links matter go through the second executable, in whatever block they lie."""
    design = fixed_design("conv1d", 3)
    batch = stacked(with_bypass(design, 6, 1))
    inner, rank = design.architecture.levels[0].name, design.einsum.ranks[0]
    size = design.einsum.sizes[0]
    hardware = {f"{inner}.mesh_x": [1, 2, 8], f"{inner}.size": [8.0, 1e6], f"{inner}.write_bandwidth": [0.5, 2.0, 8.0]}
    fields = (*FIELDS, "link_transfers", "needs_enumeration")
    found = jl.sweep(design, hardware | {f"rank.{rank}": [size, 2 * size]}, mappings=batch, fields=fields)
    assert found.cycles.dims == ("mapping", *hardware, f"rank.{rank}")
    links = [jl.evaluate(design, mappings=one_mapping(batch, index)).link_transfers.any() for index in range(6)]
    assert any(links) and not all(links)
    rng = random.Random(2)
    for index in range(6):
        for length in (size, 2 * size):
            values = {name: rng.choice(given) for name, given in hardware.items()}
            mapping = one_mapping(batch, index)
            truth = jl.evaluate(design, mappings=mapping, hardware=values, sizes={rank: length})
            assert_same_point(found.sel({"mapping": index, f"rank.{rank}": length, **values}), truth)


@pytest.mark.slow
def test_zipped():
    """Everything along one dimension, mappings, choices and sizes included."""
    design, count = sparse_design(), 7
    batch = random_mappings(design, count, 5)
    rng = np.random.default_rng(0)
    forms = ["UOP-CP", "none", "file", "UOP(3)-CP(5)", "file", "UOP-CP", "UOP-B"]
    over = {
        "density.A": rng.random(count),
        "rank.M": [8, 16, 8, 8, 8, 4, 8],
        "Buffer.size": [4096, 2, 4096, 100, 100, 4096, 4096],
        "format.Buffer.A": forms,
    }
    with pytest.warns(UserWarning, match="bits are raised to") as told:
        found = jl.sweep(design, over, mappings=batch, fields=FIELDS, zipped=True)
    assert [str(warning.message).split(",")[0].split(": ")[1] for warning in told] == [
        "3 bits are raised to 4",
        "5 bits are raised to 8",
    ]
    assert found.cycles.dims == ("mapping+density.A+rank.M+Buffer.size+format.Buffer.A",)
    assert len(set(found.status.values)) > 1
    texts = {form: in_format(SPARSE, form.replace("-", " ")).texts() for form in ("UOP-CP", "UOP-B")}
    texts |= {"file": SPARSE.texts(), "none": in_format(SPARSE, "").texts()}
    own = "ranks: [{format: UOP}, {format: CP}]"
    bits = "ranks: [{format: UOP, payload-word-bits: 3}, {format: CP, metadata-word-bits: 5}]"
    assert SPARSE.texts()["sparse"].count(own) == 1
    texts["UOP(3)-CP(5)"] = SPARSE.texts() | {"sparse": SPARSE.texts()["sparse"].replace(own, bits)}
    for index, form in enumerate(forms):
        truth = jl.evaluate(
            jl.loads(texts[form]),
            mappings=one_mapping(batch, index),
            densities={"A": over["density.A"][index]},
            sizes={"M": over["rank.M"][index]},
            hardware={"Buffer.size": over["Buffer.size"][index]},
        )
        assert_same_point(found.isel({found.cycles.dims[0]: index}), truth)


@pytest.mark.slow
def test_dense_single_precision():
    over = {"Buffer.size": [24.0, 4096.0], "Buffer.read_bandwidth": [0.5, 3.0]}
    options: dict[str, Any] = {"mappings": mappings(), "conventions": jl.SMOOTH}
    found = jl.sweep(dense_design(), over, fields=FIELDS, dtype=np.float32, **options)
    assert found.energy_pj.dtype == np.float32
    sizes, widths = (np.asarray(values) for values in over.values())
    truth = jl.evaluate(
        dense_design(),
        mappings=jl.Mapping(**{n: getattr(mappings(), n)[:, None, None] for n in jl.Mapping.__dataclass_fields__}),
        hardware={"Buffer.size": sizes[:, None], "Buffer.read_bandwidth": widths},
        conventions=jl.SMOOTH,
    )
    for name in FIELDS:
        np.testing.assert_allclose(found[name], getattr(truth, name), rtol=1e-5)
