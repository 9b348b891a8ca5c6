"""A batch gives what its entries give one by one, in any shape and in any company."""

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import jaxloop as jl
from jaxloop.lower import lower
from jaxloop.lower.override import override, to_lanes
from jaxloop.run.batch import BATCH_FIELDS, evaluate_lanes
from tests.helpers import assert_all_finite, assert_same_fields, fixed_design, random_mappings, row, stacked

COUNT = 6
SHAPES = [(6,), (2, 3), (3, 1, 2)]
KINDS = [("matmul", 3), ("conv1d", 3)]
each_kind = pytest.mark.parametrize("kind, levels", KINDS)


def alone(design: jl.Design, **options: Any) -> dict[str, np.ndarray]:
    return row(jl.evaluate(design, **options), ())


@cache
def _mappings(kind: str, levels: int) -> tuple[jl.Design, tuple[jl.Mapping, ...]]:
    design = fixed_design(kind, levels)
    return design, tuple(random_mappings(design, COUNT, 1))


def mappings_of(kind: str, levels: int) -> tuple[jl.Design, list[jl.Mapping]]:
    design, mappings = _mappings(kind, levels)
    return design, list(mappings)


def test_some_mappings_use_links():
    """Else the tests below would not see the second executable."""
    design, mappings = mappings_of("conv1d", 3)
    links = [jl.evaluate(design, mappings=mapping).link_transfers.any() for mapping in mappings]
    assert any(links) and not all(links)


@each_kind
@pytest.mark.parametrize("shape", SHAPES)
def test_mappings(kind: str, levels: int, shape: tuple[int, ...]):
    design, mappings = mappings_of(kind, levels)
    batch = jl.evaluate(design, mappings=stacked(mappings, *shape))
    assert batch.cycles.shape == shape
    assert batch.reads.shape == (*shape, levels, len(design.einsum.tensors))
    for index, mapping in enumerate(mappings):
        assert_same_fields(row(batch, np.unravel_index(index, shape)), alone(design, mappings=mapping), 1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_hardware(shape: tuple[int, ...]):
    """Also against a design that has these figures in its files."""
    design, _ = mappings_of("matmul", 3)
    inner, outer = design.architecture.levels[0], design.architecture.levels[-1]
    sizes = np.array([1, 20, 300, 4000, 50000, 600000]).reshape(shape)
    widths = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0]).reshape(shape)
    hardware = {f"{inner.name}.size": sizes, f"{outer.name}.read_bandwidth": widths, "MAC.energy": 0.5}
    batch = jl.evaluate(design, hardware=hardware)
    assert batch.status.shape == shape
    assert len(np.unique(batch.status)) > 1 and len(np.unique(batch.cycles)) > 1
    for index in np.ndindex(shape):
        chosen = {key: value[index] if np.ndim(value) else value for key, value in hardware.items()}
        assert_same_fields(row(batch, index), alone(design, hardware=chosen), 1e-12)
        levels = list(design.architecture.levels)
        levels[0] = replace(inner, size=int(sizes[index]))
        levels[-1] = replace(outer, read_bandwidth=float(widths[index]))
        edited = replace(design, architecture=replace(design.architecture, levels=tuple(levels)))
        # energies that derive from the size are those of the files
        energies = {f"{lv.name}.{a}": 1.0 for lv in levels for a in ("read_energy", "fill_energy", "update_energy")}
        one = alone(edited, hardware={"MAC.energy": 0.5} | energies)
        assert_same_fields(alone(design, hardware=chosen | energies), one, 1e-12)


def _stretched(design: jl.Design, factor: int) -> jl.Design:
    """The design with `factor` times as many iterations of its first rank in the outermost loops."""
    assert design.nest is not None
    rank = design.einsum.ranks[0]
    top = design.nest.levels[-1]
    temporal = tuple(
        replace(loop, bound=loop.bound * factor, residual=loop.bound * factor) if loop.rank == rank else loop
        for loop in top.temporal
    )
    einsum = replace(design.einsum, sizes=(design.einsum.sizes[0] * factor, *design.einsum.sizes[1:]))
    nest = jl.LoopNest((*design.nest.levels[:-1], replace(top, temporal=temporal)))
    return replace(design, einsum=einsum, nest=nest)


def test_sizes():
    """A batch over workload sizes, its mappings covering them, is a loop over designs of these sizes."""
    design, _ = mappings_of("matmul", 3)
    grown = [_stretched(design, factor) for factor in (1, 2, 3, 4, 5, 6)]
    sizes = {design.einsum.ranks[0]: np.array([d.einsum.sizes[0] for d in grown])}
    batch = jl.evaluate(design, mappings=stacked([jl.mapping_of(d) for d in grown]), sizes=sizes)
    assert np.all(batch.computes == [d.einsum.computes for d in grown])
    for index, one in enumerate(grown):
        assert_same_fields(row(batch, index), alone(one), 1e-12)


def test_axes_broadcast_against_each_other():
    design, mappings = mappings_of("matmul", 3)
    name = design.architecture.levels[0].name
    column = jax.tree.map(lambda leaf: leaf[:, None], stacked(mappings[:3]))
    batch = jl.evaluate(design, mappings=column, hardware={f"{name}.read_energy": np.array([1.0, 2.0])})
    assert batch.energy_pj.shape == (3, 2)
    for index in np.ndindex(3, 2):
        hardware = {f"{name}.read_energy": float(index[1] + 1)}
        one = alone(design, mappings=mappings[index[0]], hardware=hardware)
        assert_same_fields(row(batch, index), one, 1e-12)


@pytest.mark.parametrize("fields", [("area_um2",), ("energy_pj", "capacity_words"), ("status", "cycles", "reads")])
def test_chosen_fields(fields: tuple[str, ...]):
    """The fields asked for, in the shape of the batch even where they do not depend on it, and no others."""
    design, mappings = mappings_of("matmul", 3)
    whole = jl.evaluate(design, mappings=stacked(mappings))
    some = jl.evaluate(design, mappings=stacked(mappings), fields=fields)
    given = [name for name in BATCH_FIELDS if getattr(some, name) is not None]
    assert sorted(given) == sorted(fields)
    for name in fields:
        np.testing.assert_allclose(getattr(some, name), getattr(whole, name), rtol=1e-12)


def test_a_batch_of_one_keeps_its_axis():
    design, mappings = mappings_of("matmul", 3)
    batch = jl.evaluate(design, mappings=stacked(mappings[:1]))
    assert batch.energy_pj.shape == (1,)
    assert_same_fields(row(batch, 0), alone(design, mappings=mappings[0]), 1e-12)


def test_a_loop_nest_with_a_hardware_sweep():
    """The nest of the files, given as such, is the mapping of every entry."""
    design, _ = mappings_of("matmul", 3)
    hardware = {"MAC.energy": np.arange(3.0)}
    one, other = (jl.evaluate(design, mappings=nest, hardware=hardware) for nest in (None, design.nest))
    assert_same_fields(row(other, slice(None)), row(one, slice(None)))
    np.testing.assert_allclose(np.diff(one.energy_pj), one.computes[0], rtol=1e-12)


def test_chunks_do_not_show():
    """Lanes in chunks on several threads, the last one filled up, in the order of the lanes."""
    design, mappings = mappings_of("conv1d", 3)
    lowered = lower(design, jl.TIMELOOP_2022, exact=True)
    program = override(lowered, None, None, (18,))
    lanes = jax.tree.map(lambda leaf: to_lanes(leaf, (18,), 2), stacked(mappings * 3))
    whole, cut = (evaluate_lanes(program, lanes, np.dtype(np.float64), chunk=chunk) for chunk in (18, 4))
    assert_same_fields(cut, whole, 1e-12)


def _bad(mapping: jl.Mapping) -> dict[str, tuple[jl.Mapping, jl.Status]]:
    """Variants of a mapping that are not valid, and the status that says why."""
    doubled = mapping.temporal.copy()
    doubled[-1, 0] *= 2.0
    nowhere = mapping.keep.copy()
    nowhere[:, 0] = 0.0
    wide = mapping.spatial_x.copy()
    wide[-1, 0] *= 64.0
    return {
        "not covering": (replace(mapping, temporal=doubled), jl.Status.NOT_COVERING),
        "bypassed everywhere": (replace(mapping, keep=nowhere), jl.Status.NOT_STORED),
        "too wide": (replace(mapping, spatial_x=wide), jl.Status.OVER_INSTANCES),
        "too large": (replace(mapping, keep=np.ones_like(mapping.keep)), jl.Status.OVER_CAPACITY),
    }


def test_bad_rows_harm_no_others():
    design, mappings = mappings_of("matmul", 3)
    limited = np.full(COUNT, 1e9)
    limited[3] = 2.0
    hardware = {f"{design.architecture.levels[0].name}.size": limited}
    good = jl.evaluate(design, mappings=stacked(mappings), hardware={k: np.full(COUNT, 1e9) for k in hardware})
    bad = list(_bad(mappings[0]).values())
    mixed = jl.evaluate(design, mappings=stacked([mapping for mapping, _ in bad] + mappings[4:]), hardware=hardware)
    assert_all_finite(mixed)
    for index, (_, status) in enumerate(bad):
        assert status in jl.Status(int(mixed.status[index]))
    for index in (4, 5):
        assert_same_fields(row(mixed, index), row(good, index))


def test_single_precision():
    """The smooth reading in float32, in a process whose doubles are as before."""
    design, mappings = mappings_of("matmul", 3)
    options: dict[str, Any] = {"mappings": stacked(mappings), "conventions": jl.SMOOTH}
    single, double = jl.evaluate(design, dtype=np.float32, **options), jl.evaluate(design, **options)
    assert single.energy_pj.dtype == np.float32 and double.energy_pj.dtype == np.float64
    assert_same_fields(row(single, slice(None)), row(double, slice(None)), 1e-5)


def test_wrong_shapes_are_refused():
    design, mappings = mappings_of("conv1d", 3)
    with pytest.raises(ValueError, match="broadcast"):
        jl.evaluate(design, mappings=stacked(mappings), hardware={"MAC.energy": np.zeros(COUNT + 1)})
