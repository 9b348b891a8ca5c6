"""The worked examples of spec/dense.md section 14, read from YAML. The eleventh is `tests/designs/test_eyeriss.py`."""

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

import jaxloop as jl

PROBLEMS = {
    "matmul": """
problem:
  shape:
    name: matmul
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [M, K]}
    - {name: B, projection: [K, N]}
    - {name: Z, projection: [M, N], read-write: true}
""",
    "conv1d": """
problem:
  shape:
    name: conv1d
    dimensions: [P, R, C, K]
    coefficients: [{name: u, default: 1}, {name: w, default: 1}]
    data-spaces:
    - {name: Wt, projection: [[[C]], [[K]], [[R]]]}
    - {name: In, projection: [[[C]], [[P, u], [R, w]]]}
    - {name: Out, projection: [[[K]], [[P]]], read-write: true}
""",
}
UNIT_TABLE = "ERT: {version: 0.3, tables: [{name: chip.MAC, actions: [{name: compute, energy: 1}]}]}"
AREA_TABLE = "ART: {version: 0.3, tables: [{name: chip.MAC, area: 3}]}"
DRAM = "- {name: DRAM, class: DRAM, attributes: {vector-access-energy: 200}}\n"
WIRES = "wire-energy: 0.1, tile-width: 1000"


@dataclass(frozen=True)
class Example:
    """`levels`: the nodes of the architecture, outermost first; those of DRAM, and of one unit, may be left out.
    `mapping`: per line a level, its kind and its loops, innermost first. `counts`: per level and tensor, `R`, `F`, `U`
    for reads, fills, updates of an instance, and `FIELDS`. `networks`: energies per tensor below a level."""

    problem: str
    sizes: str
    levels: str
    mapping: str
    counts: dict[str, str]
    cycles: float | None = None
    energy_pj: float | None = None
    networks: dict[str, dict[str, float]] = field(default_factory=dict)

    def evaluate(self) -> jl.Evaluation:
        levels = self.levels if "name: DRAM" in self.levels else DRAM + self.levels
        levels += "" if "name: MAC" in levels else "- {name: MAC, class: intmac}\n"
        nodes = "".join(f"    {line}\n" for line in levels.splitlines())
        return jl.evaluate(
            jl.loads(
                {
                    "problem": f"{PROBLEMS[self.problem]}  instance: {{{self.sizes}}}\n",
                    "architecture": f"architecture:\n  version: 0.3\n  subtree:\n  - name: chip\n    local:\n{nodes}",
                    "mapping": "mapping:\n" + "".join(map(directive, self.mapping.splitlines())),
                    "energies": UNIT_TABLE,
                    "areas": AREA_TABLE,
                }
            )
        )


def directive(line: str) -> str:
    """`GB spatial P4 / R3` is a directive with P4 along X and R3 along Y; `GB keep A Z` bypasses all other tensors."""
    target, kind, *rest = line.split()
    if kind == "keep":
        bypass = sorted({"A", "B", "Z"} - set(rest))
        return f"- {{target: {target}, type: bypass, keep: [{', '.join(rest)}], bypass: [{', '.join(bypass)}]}}\n"
    loops = [loop for loop in rest if loop != "/"]
    split = f", split: {rest.index('/')}" if "/" in rest else ""
    order = "".join(loop[0] for loop in loops)
    return f"- {{target: {target}, type: {kind}, factors: {' '.join(loops)}, permutation: {order}{split}}}\n"


FIELDS = {
    "R": "algorithmic_reads",
    "F": "algorithmic_fills",
    "U": "algorithmic_updates",
    "part": "partition_size",
    "tile": "occupancy_words",
    "tr": "temporal_reductions",
    "x": "utilized_instances",
}

RF = "- {name: RF, class: regfile, attributes: {entries: 64, vector-access-energy: 1}}\n"
GB = "- {name: GB, class: SRAM, attributes: {entries: 4096, vector-access-energy: 1%s}}\n"


def mesh(x: int, y: int = 1) -> str:
    return f"instances: {x * y}, meshX: {x}, meshY: {y}"


def units(x: int, y: int = 1) -> str:
    return f"- {{name: MAC, class: intmac, attributes: {{{mesh(x, y)}}}}}\n"


def elements(x: int, y: int = 1) -> str:
    """A register file before each unit."""
    return RF.replace("}}", f", {mesh(x, y)}}}}}") + units(x, y)


WINDOW = ("conv1d", "P: 8, R: 3, C: 2, K: 2", RF)
LINKS = "P: 8, R: 3, C: 2, K: 2"
LATENT_RF = """\
- {name: RF, class: regfile, attributes: {entries: ENTRIES, vector-access-energy: 1, block-size: 4, read_bandwidth: 1,
   write_bandwidth: 0.5, network_fill_latency: 3, network_drain_latency: 2}}
"""

EXAMPLES = {
    "1 matmul": Example(
        "matmul",
        "M: 8, N: 8, K: 8",
        """\
- {name: DRAM, class: DRAM, attributes: {block-size: 8, vector-access-energy: 200}}
- {name: GB, class: SRAM, attributes: {entries: 4096, block-size: 4, vector-access-energy: 3.3, wire-energy: 0.1,
   router-energy: 0.01, tile-width: 1000}}
- {name: RF, class: regfile, attributes: {entries: 64, block-size: 2, vector-access-energy: 0.7, read_bandwidth: 2,
   write_bandwidth: 2, instances: 4, meshX: 4}}
- {name: MAC, class: intmac, attributes: {instances: 4, meshX: 4}}
""",
        "RF temporal M2 K2\nGB spatial N4\nGB temporal N2 M2 K2\nDRAM temporal K2 M2",
        {
            "RF": "A R128 F64 U0 part64 tile4 x4 | B R128 F64 part16 tile2 | Z R112 F64 U128 part16 tile2 tr112",
            "GB": "A R64 F64 tile16 x1 | B R256 F128 tile32 | Z R192 F64 U256 tile32 tr192",
            "DRAM": "A R64 tile64 | B R128 tile64 | Z R0 U64 tile64",
        },
        184,
        9910.72,
        {"GB <==> RF": {"A": 361.28, "B": 414.72, "Z": 414.72}},
    ),
    "2 window": Example(
        *WINDOW,
        "RF temporal R3 P2\nDRAM temporal P4 C2 K2",
        {
            "RF": "Wt R96 F12 part12 | In R96 F40 part20 tile4 | Out R80 F32 U96 part16",
            "DRAM": "Wt R12 | In R40 tile20 | Out R16 U32",
        },
        96,
        20548,
    ),
    "2 window, K innermost": Example(
        *WINDOW, "RF temporal R3 P2\nDRAM temporal K2 P4 C2", {"RF": "Wt F48 | In F32 | Out F32"}, 96, 26176
    ),
    "2 window, stride 2": Example(
        "conv1d",
        "P: 8, R: 3, C: 1, K: 1, u: 2",
        RF,
        "RF temporal R3 P2\nDRAM temporal P4",
        {"RF": "In F17 tile5", "DRAM": "In tile17"},
    ),
    "3 window across levels": Example(
        "conv1d",
        "P: 6, R: 3, C: 1, K: 1",
        GB % "" + RF,
        "RF temporal R3\nGB temporal P2\nDRAM temporal P3",
        {"RF": "In F8", "GB": "In R8 F8"},
    ),
    "3 window broken": Example(
        "conv1d",
        "P: 6, R: 3, C: 1, K: 1",
        GB % "" + RF,
        "RF temporal R3\nGB temporal P3\nDRAM temporal P2",
        {"RF": "In F10", "GB": "In R10 F8"},
    ),
    "4 links": Example(
        "conv1d",
        LINKS,
        GB % f", {WIRES}, router-energy: 0.01" + elements(4),
        "RF temporal C2\nGB spatial P4\nGB temporal R3 K2\nDRAM temporal P2",
        {
            "RF": "Wt R24 F24 part12 x4 | In R39 F24 part5 | Out R20 F4 U24 part4",
            "GB": "Wt R24 F12 | In R36 F20 | Out R0 F16 U16",
            "DRAM": "Wt R12 | In R20 | Out R0 U16",
        },
        24,
        10772.9,
        {"GB <==> RF": {"Wt": 135.48, "In": 58.32, "Out": 25.92}},
    ),
    "5 diagonal multicast": Example(
        "conv1d",
        LINKS,
        GB % f", {WIRES}" + elements(4, 3),
        "RF temporal C2\nGB spatial P4 / R3\nGB temporal K2\nDRAM temporal P2",
        {
            "RF": "Wt R8 F8 part4 x12 | In R8 F4 part3 | Out R4 F4 U8 part4",
            "GB": "Wt R24 F12 | In R24 F20 | Out R0 F16 U16",
        },
        None,
        10861.9,
        {"GB <==> RF": {"Wt": 246.843, "In": 141.7281, "Out": 137.3703}},
    ),
    "6 bypass": Example(
        "matmul",
        "M: 4, N: 4, K: 8",
        GB.replace("GB", "L2") % "" + GB % f", {WIRES}" + elements(2),
        "RF temporal K2\nGB spatial N2\nGB temporal M2\nL2 temporal N2\nDRAM temporal K4 M2\n"
        "RF keep B Z\nGB keep A Z\nL2 keep\nDRAM keep A B",
        {
            "RF": "A R0 F0 U0 | B R64 F32 part16 | Z R56 F32 U64 part8",
            "GB": "A R64 F32 part32 | B R0 F0 U0 | Z R48 F0 U64 part16",
            "L2": "A R0 F0 U0 | B R0 F0 U0 | Z R0 F0 U0",
            "DRAM": "A R32 | B R64 | Z R0 F0 U0 x0",
        },
        64,
        20330.4,
        {"GB <==> RF": {"A": 153.6, "B": 72.4077, "Z": 72.4077}},
    ),
    "7 bandwidth and latency": Example(
        "matmul",
        "M: 2, N: 2, K: 2",
        LATENT_RF.replace("ENTRIES", "64"),
        "RF temporal M2 K2\nDRAM temporal N2",
        {"RF": "A R8 F4 | B R8 F4 | Z R4 F4 U8"},
        45,
        2418,
    ),
    "8 links at the units": Example(
        "matmul",
        "M: 16, N: 2, K: 2",
        RF + units(4),
        "RF spatial M4\nRF temporal M2 K2\nDRAM temporal M2 N2",
        {"RF": "A R64 F64 | B R8 F4 | Z R32 F32 U64"},
        None,
        20332,
    ),
    "9 motions that cancel": Example(
        "conv1d",
        "P: 4, R: 3, C: 2, K: 2",
        GB % "" + elements(2),
        "RF temporal C2\nGB spatial K2\nGB temporal R3 P2\nDRAM temporal P2",
        {"RF": "In R30 F24", "GB": "In R18 F12"},
        None,
        6854,
    ),
    "12 truncation": Example(
        "conv1d",
        "P: 3, R: 5, C: 21, K: 1, u: 2",
        GB % "" + elements(3, 5),
        "GB spatial P3 / R5\nGB temporal C21",
        {"RF": "In F20", "GB": "In R189 F189"},
        21,
        62184,
    ),
}


@pytest.fixture(scope="module")
def evaluated() -> dict[str, jl.Evaluation]:
    return {name: example.evaluate() for name, example in EXAMPLES.items()}


def levels_of(evaluation: jl.Evaluation) -> dict[str, dict[str, Any]]:
    return {level["name"]: level for level in evaluation.to_dict()["levels"]}


@pytest.mark.parametrize("name", EXAMPLES)
def test_counts(name: str, evaluated: dict[str, jl.Evaluation]):
    levels = levels_of(evaluated[name])
    for level, text in EXAMPLES[name].counts.items():
        for tensor, *entries in (part.split() for part in text.split("|")):
            assert entries
            for short, count in re.findall(r"([A-Za-z]+)(\d+)", " ".join(entries)):
                assert levels[level][FIELDS[short]][tensor] == int(count), (level, tensor, short)


@pytest.mark.parametrize("name", EXAMPLES)
def test_totals(name: str, evaluated: dict[str, jl.Evaluation]):
    example, evaluation = EXAMPLES[name], evaluated[name]
    assert evaluation.valid
    if example.cycles is not None:
        assert evaluation.cycles == example.cycles
    if example.energy_pj is not None:
        assert evaluation.energy_pj == pytest.approx(example.energy_pj, rel=5e-6)
    networks = evaluation.to_dict()["networks"]
    for network, tensors in example.networks.items():
        ours = {tensor: networks[network][tensor]["Energy (total)"] for tensor in tensors}
        assert ours == pytest.approx(tensors, rel=5e-6)


def test_all_figures_of_example_1(evaluated: dict[str, jl.Evaluation]):
    one, levels = evaluated["1 matmul"], levels_of(evaluated["1 matmul"])
    assert levels["RF"]["energy_pj"] == pytest.approx({"A": 67.2, "B": 67.2, "Z": 106.4})
    assert levels["GB"]["energy_pj"] == pytest.approx({"A": 105.6, "B": 316.8, "Z": 422.4})
    assert levels["DRAM"]["energy_pj"] == {"A": 1600, "B": 3200, "Z": 1600}
    assert levels["RF"]["slowdown"] == pytest.approx(2 / 2.875) and levels["RF"]["cycles"] == 184
    assert (one.computes, one.area_um2, one.compute_cycles) == (512, 12, 128)
    assert one.utilization == pytest.approx(128 / 184) and one.edp == pytest.approx(1.82e-06, rel=3e-3)
    network = one.to_dict()["networks"]["GB <==> RF"]
    assert {tensor: row["Average number of hops"] for tensor, row in network.items()} == {"A": 3.5, "B": 1.0, "Z": 1.0}


@pytest.mark.parametrize(
    ("name", "network", "tensor", "links"),
    [
        ("4 links", "GB <==> RF", "In", 60),
        ("8 links at the units", "RF <==> MAC", "B", 32),
        ("9 motions that cancel", "GB <==> RF", "In", 12),
    ],
)
def test_link_transfers(name: str, network: str, tensor: str, links: int, evaluated: dict[str, jl.Evaluation]):
    assert evaluated[name].to_dict()["networks"][network][tensor]["Link transfers"] == links


def test_link_energy_of_example_4(evaluated: dict[str, jl.Evaluation]):
    network = evaluated["4 links"].to_dict()["networks"]["GB <==> RF"]
    assert network["In"]["Link transfer energy (total)"] == pytest.approx(60 * (1.6 + 0.02))


def test_spatial_reductions_of_example_5(evaluated: dict[str, jl.Evaluation]):
    network = evaluated["5 diagonal multicast"].to_dict()["networks"]["GB <==> RF"]
    assert network["Out"]["Spatial reductions"] == 32


def test_latency_of_example_7(evaluated: dict[str, jl.Evaluation]):
    level = levels_of(evaluated["7 bandwidth and latency"])["RF"]
    assert (level["slowdown"], level["cycles"]) == (pytest.approx(0.2), 40)
    assert evaluated["7 bandwidth and latency"].utilization == pytest.approx(8 / 45)


@pytest.mark.parametrize(
    ("entries", "reasons"),
    [(10, ["couldn't map level RF: mapped tile size 8 exceeds buffer capacity 5 (words: A 4, B 2, Z 2)"]), (16, [])],
)
def test_double_buffering_of_example_7(entries: int, reasons: list[str]):
    example = EXAMPLES["7 bandwidth and latency"]
    doubled = LATENT_RF.replace("ENTRIES", f"{entries}, multiple-buffering: 2")
    assert Example(example.problem, example.sizes, doubled, example.mapping, {}).evaluate().reasons == reasons
