"""The sections that only a mapper reads: constraints in all their shapes, and the mapper's options."""

import pytest

from jaxloop import SpecError
from jaxloop.frontend import read_texts
from jaxloop.spec.constraints import (
    Algorithm,
    Constraints,
    FactorConstraint,
    KeepConstraint,
    LoopKind,
    MapperOptions,
    OrderConstraint,
    OverbookingConstraint,
    ParallelismConstraint,
    Relation,
    Reuse,
    ReuseConstraint,
    SplitConstraint,
)
from tests.frontend.base import TEXTS, Malformed, check, malformed

BASE = {name: text for name, text in TEXTS.items() if name != "mapping.yaml"}
ITEMS = """\
- {target: Glb, type: temporal, factors: M=2 N4 K<=8 K>=2, permutation: K N_M, no_temporal_reuse: [A]}
- {name: Glb, type: spatial, factors: M=0 N=1, split: 1, no_link_transfer: [A], no_multicast_no_reduction: [B, Z]}
- {target: Spad, type: bypass, keep: [A], bypass: [Z]}
- {target: Spad, type: utilization, min: 0.5}
- {target: Main, type: max_overbooked_proportion, proportion: 0.25}
"""
WANTED = Constraints(
    factors=(
        FactorConstraint("Glb", LoopKind.TEMPORAL, "M", Relation.EQUAL, 2),
        FactorConstraint("Glb", LoopKind.TEMPORAL, "N", Relation.EQUAL, 4),
        FactorConstraint("Glb", LoopKind.TEMPORAL, "K", Relation.AT_MOST, 8),
        FactorConstraint("Glb", LoopKind.TEMPORAL, "K", Relation.AT_LEAST, 2),
        FactorConstraint("Glb", LoopKind.SPATIAL, "M", Relation.EQUAL, 8),
        FactorConstraint("Glb", LoopKind.SPATIAL, "N", Relation.EQUAL, 1),
    ),
    orders=(OrderConstraint("Glb", LoopKind.TEMPORAL, ("K", "N"), ("M",)),),
    splits=(SplitConstraint("Glb", 1),),
    keeps=(KeepConstraint("Spad", "A", True), KeepConstraint("Spad", "Z", False)),
    reuses=(
        ReuseConstraint("Glb", Reuse.TEMPORAL, ("A",)),
        ReuseConstraint("Glb", Reuse.LINK_TRANSFER, ("A",)),
        ReuseConstraint("Glb", Reuse.MULTICAST, ("B", "Z")),
    ),
    parallelism=(ParallelismConstraint("Spad", 0.5),),
    overbooking=(OverbookingConstraint("Main", 0.25),),
)


def indented(text: str, by: int) -> str:
    return "".join(" " * by + line for line in text.splitlines(keepends=True))


SHAPES = {
    "list": f"mapspace:\n{ITEMS}",
    "targets": f"mapspace_constraints:\n  version: 0.3\n  targets:\n{indented(ITEMS, 2)}",
    "constraints": f"mapspace-constraints:\n  constraints:\n{indented(ITEMS, 2)}",
    "named": f"mapspace:\n  template: uber\n  constraints: mine\n  constraints_mine:\n{indented(ITEMS, 2)}",
    "architecture": f"architecture_constraints:\n  targets:\n{indented(ITEMS, 2)}",
    "arch": f"arch_constraints:\n{ITEMS}",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_a_source(shape: str):
    design = read_texts(BASE | {"constraints.yaml": SHAPES[shape]})
    assert (design.constraints, design.warnings) == (WANTED, ())
    place = design.constraints.keeps[1].place
    assert place.file == "constraints.yaml" and SHAPES[shape].splitlines()[place.line - 1].endswith("bypass: [Z]}")


def test_constraints_in_the_architecture():
    arch = TEXTS["arch.yaml"] + f"  constraints:\n{indented(ITEMS, 2)}"
    assert read_texts(BASE | {"arch.yaml": arch}).constraints == WANTED


def test_both_sources_together():
    first, *rest = ITEMS.splitlines(keepends=True)
    texts = {"a.yaml": "architecture_constraints:\n" + "".join(rest), "m.yaml": f"mapspace:\n{first}"}
    assert read_texts(BASE | texts).constraints == WANTED


@pytest.mark.parametrize(
    "text", ["", "mapspace:\n", "mapspace: []\n", "mapspace: {targets: []}\n", "mapspace: {template: uber}\n"]
)
def test_no_constraints(text: str):
    design = read_texts(BASE | {"extra.yaml": text})
    assert design.constraints == Constraints() and design.mapper is None and design.nest is None


def test_nested_items_and_attributes():
    text = """\
mapspace:
- target: Glb
  constraints:
  - {type: temporal, attributes: {factors: [M=2, N=4], permutation: [K, N]}}
  - {type: datatype, target: Spad, keep: [A]}
- {target: Main, type: temporal, default_max_factor: 2, default_min_factor: 1}
"""
    found = read_texts(BASE | {"extra.yaml": text}).constraints
    assert found.factors == (
        *WANTED.factors[:2],
        FactorConstraint("Main", LoopKind.TEMPORAL, None, Relation.AT_MOST, 2),
        FactorConstraint("Main", LoopKind.TEMPORAL, None, Relation.AT_LEAST, 1),
    )
    assert found.orders == (OrderConstraint("Glb", LoopKind.TEMPORAL, ("K", "N")),)
    assert found.keeps == WANTED.keeps[:1]


def test_template():
    assert read_texts(BASE | {"extra.yaml": "mapspace: {template: ruby}\n"}).constraints.template == "ruby"


def test_a_mapping_is_not_checked_against_contradictory_constraints():
    text = "mapspace:\n- {target: Glb, type: temporal, factors: M=1}\n- {target: Glb, type: temporal, factors: M=8}\n"
    design = read_texts(TEXTS | {"extra.yaml": text})
    assert design.nest == read_texts(TEXTS).nest
    (warning,) = design.warnings
    assert "constraints are not checked when one mapping is evaluated" in warning.message
    assert str(warning.place) == "extra.yaml:1: mapspace"
    assert read_texts(TEXTS | {"mapping.yaml": "mapping: []\n", "extra.yaml": text}).warnings == ()


CONSTRAINTS = "mapspace:\n  targets:\n" + indented(ITEMS, 2)
FACTORS, ORDER = "mapspace.targets[0].factors", "mapspace.targets[0].permutation"
KEEP, MIN = "mapspace.targets[2].keep", "mapspace.targets[3]"


@malformed(
    [
        Malformed(
            "level",
            "target: Main",
            "target: Mian",
            "Mian",
            "mapspace.targets[4].target",
            'unknown level "Mian"',
            "Main",
        ),
        Malformed(
            "no level", "target: Main, ", "", "proportion", "mapspace.targets[4]", "no `target`", "storage level"
        ),
        Malformed(
            "type",
            "type: bypass",
            "type: bypas",
            "bypas,",
            "mapspace.targets[2].type",
            'constraint type "bypas"',
            "bypass",
        ),
        Malformed("no type", "type: bypass, ", "", "keep", "mapspace.targets[2]", "no `type`", "temporal"),
        Malformed("rank", "M=2", "X=2", "X=2", FACTORS, 'unknown dimension "X" in the factors', "M, N, K"),
        Malformed("text", "M=2", "M=2 K", "M=2", FACTORS, 'cannot read "K"', "leave out the ranks"),
        Malformed("bound", "K<=8", "K<=0", "K<=0", FACTORS, '"K<=0" bounds no factor', "from 1"),
        Malformed("order", "K N_M", "K X_M", "K X_M", ORDER, 'unknown dimension "X" in the permutation', "M, N, K"),
        Malformed("order twice", "K N_M", "K N_K", "K N_K", ORDER, 'names "K" twice', "once"),
        Malformed(
            "split", "split: 1", "split: one", "split", "mapspace.targets[1].split", '"one" is not', "whole number"
        ),
        Malformed("tensor", "keep: [A]", "keep: [C]", "[C]", KEEP + "[0]", 'unknown tensor "C"', "A"),
        Malformed("tensor text", "keep: [A]", "keep: A", "keep", KEEP, '"A" is not a list', "[A]"),
        Malformed("min", "min: 0.5", "min: 1.5", "min", MIN + ".min", '"1.5" is above 1', "0 to 1"),
        Malformed("no min", ", min: 0.5", "", "utilization", MIN, "no `min`", "0 to 1"),
        Malformed(
            "macro",
            "keep: [A]",
            "keep_only: [A]",
            "keep_only",
            "mapspace.targets[2].keep_only",
            "v0.4 dialect",
            "write out",
        ),
        Malformed(
            "template",
            "  targets:",
            "  template: rubi\n  targets:",
            "rubi",
            "mapspace.template",
            'unknown template "rubi"',
            "ruby",
        ),
        Malformed(
            "name",
            "  targets:",
            "  constraints: mine\n  targets:",
            "mine",
            "mapspace.constraints",
            'no "constraints_mine"',
            "",
        ),
        Malformed(
            "item",
            "- {target: Main, type: max_overbooked_proportion, proportion: 0.25}",
            "- Main",
            "- Main",
            "mapspace.targets[4]",
            'a constraint is "Main"',
            "mapping",
        ),
    ]
)
def test_malformed_constraints(case: Malformed):
    check("constraints.yaml", case, BASE | {"constraints.yaml": CONSTRAINTS})


def test_unknown_keys_are_reported():
    (warning,) = read_texts(BASE | {"extra.yaml": "mapspace:\n- {target: Glb, type: bypass, keeps: [A]}\n"}).warnings
    assert 'the key "keeps" is not used' in warning.message and "keep" in warning.remedy


@pytest.mark.parametrize(
    "keys", [("mapspace", "mapspace_constraints"), ("arch_constraints", "architecture_constraints")]
)
def test_two_keys_for_one_source_are_refused(keys: tuple[str, str]):
    texts = {f"{key}.yaml": f"{key}: []\n" for key in keys}
    with pytest.raises(SpecError, match=f"both `{keys[0]}` and `{keys[1]}` are given"):
        read_texts(BASE | texts)


def test_constraints_are_read_beside_broken_sections():
    texts = BASE | {"arch.yaml": "architecture: []\n", "problem.yaml": "problem: {shape: nowhere}\n"}
    with pytest.raises(SpecError) as info:
        read_texts(texts | {"extra.yaml": CONSTRAINTS.replace("M=2", "M=?").replace("Main", "Mian")})
    assert [error.place.file for error in info.value.errors] == ["arch.yaml", "problem.yaml", "extra.yaml"]


def options(text: str) -> MapperOptions | None:
    return read_texts(BASE | {"mapper.yaml": f"mapper:\n{indented(text, 2)}"}).mapper


def test_mapper_options():
    text = """\
algorithm: random-pruned
optimization-metrics: [delay, last-level-accesses, accesses-1]
num-threads: 8
search_size: 100
heartbeat: 7
victory-condition: 0
sync-interval: 3
filter-revisits: yes
penalize-consecutive-bypass-fails: true
max-permutations-per-if-visit: 4
max_temporal_loops_in_a_mapping: 5
diagnostics: true
log-stats: true
log-all: true
live-status: true
out_prefix: here
"""
    assert options(text) == MapperOptions(
        algorithm=Algorithm.RANDOM_PRUNED,
        metrics=("delay", "last_level_accesses", "accesses_1"),
        threads=8,
        search_size=100,
        timeout=7,
        victory_condition=0,
        sync_interval=3,
        filter_revisits=True,
        penalize_consecutive_bypass_fails=True,
        max_permutations=4,
        max_temporal_loops=5,
        diagnostics=True,
        log_stats=True,
        log_suboptimal=True,
        live_status=True,
        out_prefix="here",
    )


@pytest.mark.parametrize(
    "text, metrics",
    [
        ("optimization-metric: energy\n", ("energy",)),
        ("optimization-metrics: [ordered-accesses, edp]\n", ("accesses_2", "accesses_1", "accesses_0", "edp")),
        ("timeout: 1\n", ("edp",)),
    ],
)
def test_metrics(text: str, metrics: tuple[str, ...]):
    found = options(text)
    assert found is not None and found.metrics == metrics


def test_no_limit_on_temporal_loops():
    found = options("max_temporal_loops_in_a_mapping: -1\n")
    assert found is not None and found.max_temporal_loops is None


@pytest.mark.parametrize(
    "text, message",
    [
        ("optimization_metric: [delay, energy]\n", "a list under the singular `optimization_metric`"),
        ("optimization_metric: delay\noptimization_metrics: [energy]\n", "`optimization_metrics` is not used"),
        ("timeot: 1\n", 'the key "timeot" is not used'),
    ],
)
def test_mapper_warnings(text: str, message: str):
    design = read_texts(BASE | {"mapper.yaml": f"mapper:\n{indented(text, 2)}"})
    (warning,) = design.warnings
    assert message in warning.message
    assert design.mapper is not None and design.mapper.metrics[0] in ("delay", "edp")


@malformed(
    [
        Malformed(
            "algorithm", "hybrid", "hybird", "hybird", "mapper.algorithm", 'unknown algorithm "hybird"', "hybrid"
        ),
        Malformed(
            "metric", "delay", "dealy", "dealy", "mapper.optimization-metrics[0]", 'unknown metric "dealy"', "delay"
        ),
        Malformed(
            "level", "delay", "accesses-3", "accesses-3", "mapper.optimization-metrics[0]", "not there", "0 to 2"
        ),
        Malformed("number", "timeout: 9", "timeout: -9", "timeout", "mapper.timeout", '"-9" is not', "0 for never"),
    ]
)
def test_malformed_mapper(case: Malformed):
    text = "mapper:\n  algorithm: hybrid\n  optimization-metrics: [delay]\n  timeout: 9\n"
    check("mapper.yaml", case, BASE | {"mapper.yaml": text})


def test_a_mapper_that_is_a_list():
    with pytest.raises(SpecError, match="the mapper is a list"):
        read_texts(BASE | {"mapper.yaml": "mapper: []\n"})
