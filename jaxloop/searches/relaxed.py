"""The model at factors that are no integers: each rank's logarithm is shared out among its slots.

The share of a slot is a softmax, so that the factors of a rank multiply to its size whatever the parameters, and no
factor falls below what the constraints ask for. Orders, splits and what is kept stay as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..kernel.evaluate import evaluate
from ..lower.program import to_device
from ..program import Mapping, Program
from ..result import Evaluation
from ..run.batch import precision
from ..run.executables import count_trace, make_room, on_crowding, quick_options
from ..sweeps.fields import DERIVED, derive
from ..sweeps.plan import Plan
from .objectives import Metric
from .space import MapSpace

ABSENT = -30.0
"""Parameter of a slot that must not take anything."""

PENALTY = 3.0
"""Weight of the logarithm by which a mapping exceeds a capacity or a mesh, against that of the objective."""


class Limits(eqx.Module):
    """**Attributes:** `least`: logarithms of the least factors [rank, slot, 1]; `rest`: of what is left of the ranks
    [rank, 1, 1]; `may`: slots that may take some of it."""

    least: Any
    rest: Any
    may: Any

    def log_factors(self, parameters: Any) -> Any:
        """[rank, slot, lane]"""
        share = jax.nn.softmax(jnp.where(self.may, parameters, ABSENT), axis=1)
        return self.least + self.rest * jnp.where(self.may, share, 0.0)


def excess(program: Program, result: Evaluation) -> Any:
    """Logarithms of what levels and meshes are exceeded by, summed. [*lane axes]"""
    words = result.tile_words if program.sparse is None else result.stored_words
    demands = [(words.sum(axis=1), result.capacity_words)]
    if program.sparse is not None:
        demands.append((result.metadata_bits.sum(axis=1), result.capacity_bits))
    demands += [(result.instances_x, program.mesh_x), (result.instances_y, program.mesh_y)]
    demands += [
        (result.compute_x[None], program.compute_mesh_x[None]),
        (result.compute_y[None], program.compute_mesh_y[None]),
    ]
    excess = 0.0
    for demand, limit in demands:
        known = jnp.isfinite(limit) & (limit > 0.0)
        ratio = jnp.maximum(demand, 1e-6) / jnp.where(known, limit, 1.0)
        excess = excess + jnp.where(known, jax.nn.relu(jnp.log(ratio)), 0.0).sum(axis=0)
    return excess


@dataclass(frozen=True, eq=False)
class Relaxed:
    """**Attributes:** `plan`: mappings first, then scenarios, under conventions without rounding; `metric`: what is
    minimized; `aggregate`: over everything but mappings."""

    space: MapSpace
    plan: Plan
    metric: Metric
    aggregate: Callable[..., Any]

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of the least factors [rank, slot], and whether a slot may take more."""
        tables = self.space.factorizations
        least = np.stack([table.min(axis=0) for table in tables])
        most = np.stack([table.max(axis=0) for table in tables])
        return np.log(least), most > least

    def parameters(self, factors: np.ndarray, blur: float = 0.15) -> np.ndarray:
        """Parameters near factors [lane, rank, slot]: shares of the logarithm, mixed with equal ones. [rank, slot,
        lane]"""
        least, may = self.bounds
        extra = np.where(may, np.log(factors) - least, 0.0)
        whole = extra.sum(axis=2, keepdims=True)
        equal = may / np.maximum(may.sum(axis=1, keepdims=True), 1)
        share = np.where(whole > 0.0, (1.0 - blur) * extra / np.where(whole > 0.0, whole, 1.0), 0.0) + blur * equal
        return np.moveaxis(np.where(may, np.log(np.maximum(share, 1e-12)), ABSENT), 0, -1)

    @cached_property
    def limits(self) -> "Limits":
        least, may = self.bounds
        total = np.log([float(table[0].astype(float).prod()) for table in self.space.factorizations])
        return Limits(least[..., None], (total - least.sum(axis=1))[:, None, None], may[..., None])

    def skeleton(self, orders: np.ndarray, along_x: np.ndarray, base: Mapping) -> Mapping:
        """Mappings whose orders are those of the slots [lane, slot, rank], pins respected, and whose factors are marks:
        in `spatial_x` and `spatial_y` 1 where a spatial slot's factor goes (`along_x` [lane, slot, rank])."""
        temporal, spatial = np.array(base.temporal_order), np.array(base.spatial_order)
        x, y = np.zeros(base.spatial_x.shape), np.zeros(base.spatial_y.shape)
        for t, slot in enumerate(self.space.freedom.slots):
            into = spatial if slot.is_spatial else temporal
            free = np.asarray(slot.free, int)
            rows = orders[:, t][np.isin(orders[:, t], free)].reshape((len(orders), len(free)))
            inner, outer = (np.tile(np.asarray(part, int), (len(orders), 1)) for part in (slot.inner, slot.outer))
            into[:, slot.level] = np.concatenate([inner, rows, outer], axis=1)
            if slot.is_spatial:
                x[:, slot.level], y[:, slot.level] = along_x[:, t], ~along_x[:, t]
        return replace(base, temporal_order=temporal, spatial_order=spatial, spatial_x=x, spatial_y=y)

    def mapping(self, log_factors: Any, skeleton: Mapping, axes: int) -> Mapping:
        """Arrays with lanes first among `axes` trailing lane axes. `skeleton`: the same, without factors."""
        factors = jnp.exp(log_factors)[(..., *(None,) * (axes - 1))]  # [rank, slot, *lane axes]
        ones = jnp.ones_like(factors[:, 0])
        levels = skeleton.temporal.shape[0]
        temporal = [ones] * levels
        x, y = [ones] * levels, [ones] * levels
        for t, slot in enumerate(self.space.freedom.slots):
            if slot.is_spatial:
                x[slot.level] = jnp.where(skeleton.spatial_x[slot.level] > 0.0, factors[:, t], 1.0)
                y[slot.level] = jnp.where(skeleton.spatial_y[slot.level] > 0.0, factors[:, t], 1.0)
            else:
                temporal[slot.level] = factors[:, t]
        return replace(skeleton, temporal=jnp.stack(temporal), spatial_x=jnp.stack(x), spatial_y=jnp.stack(y))

    def loss(self, parameters: Any, limits: "Limits", program: Program, skeleton: Mapping) -> Any:
        """Logarithm of the metric and of what exceeds the hardware, per lane. [lane]"""
        axes = len(self.plan.lane_axes)
        mapping = self.mapping(limits.log_factors(parameters), skeleton, axes)
        result = evaluate(program, mapping)
        wanted = tuple(name for name in self.metric.fields if name in DERIVED)
        values = {name: getattr(result, name) for name in Evaluation.__dataclass_fields__ if name != "context"}
        values = {name: self._points_first(value, axes) for name, value in values.items() if value is not None}
        values |= derive(values, wanted)
        metric = jnp.log(jnp.maximum(self.metric.of(values), 1e-30)) + PENALTY * excess(program, result)
        lanes = metric.shape[0]
        return self.aggregate(metric.reshape((lanes, -1)), axis=1)

    def _points_first(self, value: Any, axes: int) -> Any:
        return jnp.moveaxis(value, range(-axes, 0), range(axes))


_STEPS: dict[Any, Callable[..., Any]] = {}
on_crowding(_STEPS.clear)


@dataclass(frozen=True, eq=False)
class Descent:
    """Adam on the parameters of many lanes at once."""

    relaxed: Relaxed
    rate: float = 0.1

    def run(self, parameters: np.ndarray, skeleton: Mapping, steps: int) -> np.ndarray:
        """Log factors [lane, rank, slot] after some steps from `parameters` [rank, slot, lane]."""
        plan = self.relaxed.plan
        box = tuple(slice(0, parameters.shape[-1] if d == 0 else dim.size) for d, dim in enumerate(plan.dimensions))
        program, lanes, _ = plan.arrays(box, skeleton)
        with precision(plan.dtype):
            given = to_device((self.relaxed.limits, program, lanes), plan.dtype)
            found = jnp.asarray(parameters, plan.dtype)
            state = optax.adam(self.rate).init(found)
            step = self._step(jax.tree.structure(given), found.shape)
            for _ in range(steps):
                found, state = step(found, state, *given)
            return np.moveaxis(np.asarray(given[0].log_factors(found)), -1, 0)

    def _step(self, layout: Any, shape: tuple[int, ...]) -> Callable[..., Any]:
        """One executable for all searches of the same sizes, slots and metric."""
        relaxed = self.relaxed
        slots = relaxed.space.freedom.slots
        key = (layout, shape, slots, relaxed.metric.name, relaxed.aggregate, self.rate)
        if key not in _STEPS:
            make_room()
            optimizer = optax.adam(self.rate)

            def step(parameters: Any, state: Any, *given: Any) -> Any:
                count_trace("relaxed")
                slope = jax.grad(lambda p: relaxed.loss(p, *given).sum())(parameters)
                change, state = optimizer.update(jnp.where(jnp.isfinite(slope), slope, 0.0), state, parameters)
                return optax.apply_updates(parameters, change), state

            # few calls: the time goes to the compiler, which is told to be quick
            _STEPS[key] = jax.jit(step, compiler_options=quick_options())
        return _STEPS[key]
