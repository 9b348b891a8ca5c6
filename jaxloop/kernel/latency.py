"""Cycles: compute, bandwidth throttling, network latencies (spec/dense.md sections 7.4, 8 and 10)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._math import ceil, exact_divide
from ..program import Program
from .traffic import Traffic


class Latency(eqx.Module):
    """`slowdown`: share of full speed that a level's bandwidth allows; `level_cycles`: compute cycles over that share;
    `cycles`: the slowest of all plus the networks' fill and drain latency."""

    slowdown: Float[Array, "level *#lane"]
    level_cycles: Float[Array, "level *#lane"]
    cycles: Float[Array, "*#lane"]


def _share(bandwidth: Array, needed: Array) -> Array:
    """`bandwidth / needed` where the bandwidth is too small, else 1."""
    short = bandwidth < needed
    return jnp.where(short, jnp.where(short, bandwidth, 1.0) / jnp.where(short, needed, 1.0), 1.0)


def latency(program: Program, traffic: Traffic, compute_cycles: Array) -> Latency:
    per_cycle_read = exact_divide(traffic.reads, compute_cycles[None, None])
    per_cycle_write = exact_divide(traffic.fills + traffic.updates, compute_cycles[None, None])
    read, write = _in_order(per_cycle_read), _in_order(per_cycle_write)
    slowdown = jnp.minimum(
        jnp.minimum(_share(program.read_bandwidth, read), _share(program.write_bandwidth, write)),
        _share(program.shared_bandwidth, read + write),
    )
    cycles = compute_cycles[None] / slowdown
    if program.structure.conventions.whole_cycles:
        cycles = ceil(cycles)
    slowest = jnp.maximum(jnp.max(cycles, axis=0), compute_cycles)
    return Latency(slowdown=slowdown, level_cycles=cycles, cycles=slowest + jnp.sum(program.latency, axis=0))


def _in_order(by_tensor: Array) -> Array:
    """Sum over tensors in their order: the reference rounds the quotient of this sum up to whole cycles."""
    result = by_tensor[:, 0]
    for tensor in range(1, by_tensor.shape[1]):
        result = result + by_tensor[:, tensor]
    return result
