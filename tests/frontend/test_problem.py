"""Problems: malformed ones, the ways to write projections, bounds and densities, and named shapes."""

from pathlib import Path

import pytest

from jaxloop import SpecError
from jaxloop.frontend import read_texts
from jaxloop.spec.density import Density, Distribution
from jaxloop.spec.einsum import Axis, Einsum, Tensor, Term
from tests.frontend.base import Malformed, check, edited, malformed

A_DENSITY = "A: {distribution: hypergeometric, density: 0.25}"
SPACES = "problem.shape.data-spaces"


def density(name: str, new: str, path: str, message: str, remedy: str) -> Malformed:
    """Another density of A."""
    return Malformed(name, A_DENSITY, new, new, f"problem.instance.densities{path}", message, remedy)


def projection(name: str, new: str, path: str, message: str, remedy: str) -> Malformed:
    """Another projection of B."""
    old = "[[[N]], [[K]]]"
    return Malformed(name, old, new, new, f"{SPACES}[1].projection{path}", message, remedy)


MALFORMED = [
    density("density-above-1", "A: 1.5", ".A", 'the density 1.5 of tensor "A" is not from 0 to 1', "share of nonzeros"),
    density("density-negative", "A: -0.1", ".A", 'the density -0.1 of tensor "A"', "share of nonzeros"),
    density("density-percent", "A: {distribution: fixed, density: 25%}", ".A.density", '"25%" is not a number', '"A"'),
    density("density-missing", "A: {distribution: fixed}", ".A", 'tensor "A" has no `density`', "from 0 to 1"),
    density("no-distribution", "A: {density: 0.5}", ".A", 'tensor "A" has no `distribution`', "hypergeometric"),
    density("distribution", "A: {distribution: random, density: 0.5}", ".A.distribution", '"random"', "hypergeometric"),
    density("real-data", "A: {distribution: real-data}", ".A", 'tensor "A" has no `data_file_path`', "write"),
    density("density-tensor", "W: 0.5", ".W", 'unknown tensor "W" in `densities`', "A, B, Z"),
    density("density-list", "A: [0.5]", ".A", 'the density of tensor "A" is a list', "mapping"),
    density("banded", "A: {distribution: banded, band_width: 2}", ".A.distribution", '"A" is 8 x 16', "hypergeometric"),
    density("band-width", "Z: {distribution: diagonal, band_width: x}", ".Z.band_width", '"x" is not', "whole number"),
    projection("rank", "[[[N]], [[L]]]", "[1][0][0]", 'unknown dimension "L" in the projection', "M, N, K"),
    projection("flat-rank", "[N, L]", "[1]", 'unknown dimension "L" in the projection', "M, N, K"),
    projection("swapped", "[[[N]], [[stride, K]]]", "[1][0][0]", 'unknown dimension "stride"', "the rank first"),
    projection("coefficient", "[[[N]], [[K, strid]]]", "[1][0][1]", 'unknown coefficient "strid"', '"stride"'),
    projection("nesting", "[[[N]], [K]]", "[1][0]", 'a term of the projection is "K"', "[rank, coefficient]"),
    projection("product", "[[[N, stride, stride]], [[K]]]", "[0][0]", "holds 3 names", "list of terms"),
    projection("scalar", "NK", "", 'the projection of "B" is "NK"', "write a list"),
    Malformed(
        "size-missing", "    N: 8\n", "", "M: 8", "problem.instance", 'the size of dimension "N" is missing', "N:"
    ),
    Malformed(
        "size-0", "    N: 8", "    N: 0", "N: 0", "problem.instance.N", '"0" is not a whole number from 1', '"N"'
    ),
    Malformed("size-real", "    N: 8", "    N: 8.0", "N: 8.0", "problem.instance.N", '"8.0" is not a whole', '"N"'),
    Malformed(
        "long-name", "[M, N, K]", "[M, N, K, Out]", "Out", "problem.shape.dimensions[3]", '"Out" is not', "letter"
    ),
    Malformed(
        "twice", "[M, N, K]", "[M, N, K, N]", "K, N", "problem.shape.dimensions[3]", '"N" is listed twice', "one"
    ),
    Malformed(
        "no-output", "      read-write: true\n", "", "data-spaces:", SPACES, "no tensor is written", "read-write"
    ),
    Malformed("flag", "read-write: true", "read-write: 2", "read-w", f"{SPACES}[2].read-write", '"2" is not', "yes or"),
    Malformed(
        "same-tensor",
        "    - name: Z\n",
        "    - {name: B, projection: [K]}\n    - name: Z\n",
        "name: B, ",
        f"{SPACES}[2].name",
        '"B" is listed twice',
        "rename",
    ),
    Malformed(
        "flatten",
        "    dimensions:",
        "    flatten: []\n    dimensions:",
        "flatten",
        "problem.shape.flatten",
        "`flatten` is not modeled",
        "original ranks",
    ),
    Malformed(
        "default",
        "default: 1",
        "default: one",
        "one",
        "problem.shape.coefficients[0].default",
        '"one" is not a whole number',
        "write a whole number",
    ),
    Malformed(
        "coefficient-name",
        "name: stride",
        "name: M",
        "default",
        "problem.shape.coefficients[0]",
        'the name "M" is already taken',
        "rename",
    ),
]


@malformed(MALFORMED)
def test_malformed(case: Malformed):
    texts = edited()
    del texts["sparse.yaml"]
    check("problem.yaml", case, texts)


def einsum_of(problem: str) -> Einsum:
    """The workload of a problem text, beside the base architecture and without a mapping."""
    return read_texts({"arch.yaml": edited()["arch.yaml"], "problem.yaml": problem}).einsum


CONVOLUTION = """\
problem:
  shape:
    name: conv
    dimensions: [P, R, C]
    coefficients:
    - {name: stride, default: 2}
    - {name: shift, default: 1}
    data_spaces:
    - {name: W, projection: [C, R]}
    - name: I
      projection:
      - - - C
      - - [P, stride]
        - [R, shift]
    - {name: O, projection: [[[P]]], read_write: yes}
"""


@pytest.mark.parametrize(
    "bounds", ["  instance: {P: 4, R: 3, C: 2, shift: -3, H: 9, Wpad: 1}\n", "  P: 4\n  R: '3'\n  C: 2\n  shift: -3\n"]
)
def test_projections_bounds_and_coefficients(bounds: str):
    assert einsum_of(CONVOLUTION + bounds) == Einsum(
        "conv",
        ("P", "R", "C"),
        (4, 3, 2),
        (
            Tensor("W", (Axis((Term("C"),)), Axis((Term("R"),)))),
            Tensor("I", (Axis((Term("C"),)), Axis((Term("P", 2, "stride"), Term("R", -3, "shift"))))),
            Tensor("O", (Axis((Term("P"),)),), is_output=True),
        ),
    )


def test_several_outputs_are_allowed():
    einsum = einsum_of(CONVOLUTION.replace("[C, R]}", "[C, R], read_write: true}") + "  P: 4\n  R: 3\n  C: 2\n")
    assert [tensor.is_output for tensor in einsum.tensors] == [True, False, True]


FIXED = Density(Distribution.FIXED_STRUCTURED, 0.5)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("densities: {A: 0.5}", {"A": FIXED}),
        ("densities: {A: {distribution: fixed, density: 0.5}}", {"A": FIXED}),
        ("densities: {B: {distribution: fixed-structured, density: 0.5}}", {"B": FIXED}),
        ("densities: {B: {distribution: fixed_structured, density: '0.5'}}", {"B": FIXED}),
        ("commonDensity: 0.5", {"A": FIXED, "B": FIXED, "Z": FIXED}),
        ("commonDensity: 0.5\n    densities: {A: 1}", {"A": FIXED, "B": FIXED, "Z": FIXED}),
        (
            "densities: {A: {distribution: hypergeometric, density: 1e-5, workload_tensor_size: 9}}",
            {"A": Density(Distribution.HYPERGEOMETRIC, 1e-5)},
        ),
        ("densities: {Z: {distribution: banded, band_width: 3}}", {"Z": Density(Distribution.BANDED, band_width=3)}),
        ("densities: {Z: {distribution: diagonal}}", {"Z": Density(Distribution.BANDED)}),
        ("densities: {}", {}),
    ],
)
def test_densities(text: str, expected: dict[str, Density]):
    texts = edited(("problem.yaml", f"densities:\n      {A_DENSITY}", text))
    assert read_texts(texts).densities == expected


def test_a_wrong_common_density_is_one_error():
    with pytest.raises(SpecError, match=r"problem.yaml:19: problem.instance.commonDensity: .* 2 .*share") as info:
        read_texts(edited(("problem.yaml", f"densities:\n      {A_DENSITY}", "commonDensity: 2")))
    assert len(info.value.errors) == 1


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("    densities:", "    Hpad: 1\n    densities:", None),
        ("    densities:", "    strid: 2\n    densities:", 'the key "strid" is not used'),
        (f"densities:\n      {A_DENSITY}", "density: {A: 0.5}", 'the key "density" is not used'),
        ("      read-write: true", "      read-write: true\n      color: red", 'the key "color" is not used'),
    ],
)
def test_unknown_keys(old: str, new: str, message: str | None):
    texts = edited(("problem.yaml", old, new))
    assert [warning.message for warning in read_texts(texts).warnings] == ([] if message is None else [message])


@pytest.mark.parametrize("name", ["cnn-layer", "cnn_layer", "cnn-layer.yaml"])
def test_built_in_convolution(name: str):
    sizes = dict(zip("RSPQCKN", range(2, 9), strict=True))
    bounds = ", ".join(f"{rank}: {size}" for rank, size in sizes.items())
    einsum = einsum_of(f"problem: {{shape: {name}, instance: {{{bounds}, Wstride: 2, Hdilation: 3}}}}")
    assert einsum.size_of == sizes
    assert [tensor.name for tensor in einsum.tensors if tensor.is_output] == ["Outputs"]
    assert einsum.tensors[1].axes == (
        Axis((Term("N"),)),
        Axis((Term("C"),)),
        Axis((Term("R", 1, "Wdilation"), Term("P", 2, "Wstride"))),
        Axis((Term("S", 3, "Hdilation"), Term("Q", 1, "Hstride"))),
    )


def test_built_in_matmul_and_default_shape():
    assert [tensor.name for tensor in einsum_of("problem: {shape: gemm-ABZ, M: 2, N: 3, K: 4}").tensors] == [
        "A",
        "B",
        "Z",
    ]
    texts = {"arch.yaml": edited()["arch.yaml"], "problem.yaml": "problem: {R: 1, S: 1, P: 1, Q: 1, C: 1, K: 1, N: 2}"}
    design = read_texts(texts)
    assert design.einsum.ranks == tuple("RSPQCKN")
    assert "the shape cnn-layer is taken" in design.warnings[0].message


def test_shapes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shape = "shape: {name: dot, dimensions: [K], data-spaces: [{name: A, projection: [K], read-write: true}]}"
    (tmp_path / "dot.yaml").write_text(shape)
    (tmp_path / "broken.yaml").write_text("shapes: {}")
    monkeypatch.setenv("TIMELOOP_PROBLEM_SHAPE_DIRS", f"/nowhere:{tmp_path}")
    assert einsum_of("problem: {shape: dot, K: 4}").ranks == ("K",)
    with pytest.raises(SpecError, match=r"broken.yaml: the file has no key `shape`"):
        einsum_of("problem: {shape: broken, K: 4}")
    with pytest.raises(
        SpecError, match=r'problem.yaml:1: problem.shape: .*"missing" \(sought as /nowhere/missing.yaml, '
    ):
        einsum_of("problem: {shape: missing, K: 4}")
