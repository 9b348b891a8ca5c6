"""Cycles: compute, bandwidth throttling, network latencies (spec/dense.md 7.4, 8 and 10, spec/sparse.md 5.6)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._math import ceil, exact_divide, floor_div, stack
from ..program import Action, Fate, Program, SparseProgram
from .occupancy import metadata_bits
from .sparsity import Sparsity
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


def latency(program: Program, traffic: Traffic, sparsity: Sparsity | None, compute_cycles: Array) -> Latency:
    """`compute_cycles` of the sparse model where there is one: bandwidths are compared with what is left of them."""
    reads, writes = traffic.reads, traffic.fills + traffic.updates
    if sparsity is not None:
        assert program.sparse is not None
        reads, writes = _timed_words(program, program.sparse, traffic, sparsity)
    cycles_left = jnp.where(compute_cycles > 0.0, compute_cycles, 1.0)[None, None]
    read, write = (_in_order(exact_divide(words, cycles_left)) for words in (reads, writes))
    conventions = program.structure.conventions
    limits = [program.read_bandwidth, program.write_bandwidth, program.shared_bandwidth]
    needs = [read, write, read + write]
    if conventions.soft_maximum:
        return _soft(program, compute_cycles, [_excess(*pair) for pair in zip(limits, needs, strict=True)])
    shares = [_share(limit, needed) for limit, needed in zip(limits, needs, strict=True)]
    slowdown = jnp.minimum(jnp.minimum(*shares[:2]), shares[2])
    cycles = compute_cycles[None] / slowdown
    if conventions.whole_cycles:
        cycles = ceil(cycles)
    slowest = jnp.maximum(jnp.max(cycles, axis=0), compute_cycles)
    return Latency(slowdown=slowdown, level_cycles=cycles, cycles=slowest + jnp.sum(program.latency, axis=0))


def _soft(program: Program, compute_cycles: Array, excess: list[Array]) -> Latency:
    """The norm of all that takes time, once each: the operations, and what each bandwidth needs (`excess` [level], in
    multiples of the compute cycles)."""
    exponent = program.structure.conventions.soft_maximum
    slowdown = 1.0 / _norm(stack([jnp.ones_like(excess[0]), *excess]), exponent)
    everything = jnp.concatenate([jnp.ones_like(excess[0][:1]), *excess])
    slowest = compute_cycles * _norm(everything, exponent)
    return Latency(
        slowdown=slowdown,
        level_cycles=compute_cycles[None] / slowdown,
        cycles=slowest + jnp.sum(program.latency, axis=0),
    )


def _excess(bandwidth: Array, needed: Array) -> Array:
    """How many times too slow a bandwidth is; 0 where it is unlimited."""
    limited = jnp.isfinite(bandwidth)
    return jnp.where(limited, needed / jnp.where(limited, bandwidth, 1.0), 0.0)


def _norm(values: Array, exponent: float) -> Array:
    """The `exponent`-norm of nonnegative values [item, ...]: a smooth upper bound of their maximum."""
    largest = jax.lax.stop_gradient(jnp.max(values, axis=0))
    scale = jnp.where(largest > 0.0, largest, 1.0)
    shares = values / scale[None]
    positive = shares > 0.0
    powers = jnp.where(positive, jnp.where(positive, shares, 1.0) ** exponent, 0.0)
    total = jnp.sum(powers, axis=0)
    some = total > 0.0
    return jnp.where(some, scale * jnp.where(some, total, 1.0) ** (1.0 / exponent), 0.0)


def _timed_words(program: Program, sparse: SparseProgram, traffic: Traffic, sparsity: Sparsity) -> tuple[Array, Array]:
    """Words read and written per instance in use [level, tensor]: actual and gated accesses, metadata in whole words,
    evened out over all instances, of which those with an empty tile have nothing to do."""
    accesses, whole = sparsity.accesses, program.structure.conventions.integer_counts
    bits = metadata_bits(sparse, sparsity.cells, accesses.metadata) * (sparse.metadata_width > 0.0)[:, None]
    words = accesses.words[Fate.ACTUAL] + accesses.words[Fate.GATED]
    bits = bits[Fate.ACTUAL] + bits[Fate.GATED]
    share = floor_div if whole else jnp.divide
    used = sparsity.used_instances(traffic)
    busy = exact_divide(jnp.where(used > 0.0, used, 1.0), jnp.where(accesses.instances > 0.0, accesses.instances, 1.0))

    def timed(words: Array, bits: Array) -> Array:
        evened = exact_divide(words + share(bits, program.word_bits[:, None]), busy)
        return jnp.where(accesses.instances > 0.0, ceil(evened) if whole else evened, 0.0)

    writes = words[Action.FILL] + words[Action.UPDATE], bits[Action.FILL] + bits[Action.UPDATE]
    return timed(words[Action.READ], bits[Action.READ]), timed(*writes)


def _in_order(by_tensor: Array) -> Array:
    """Sum over tensors in their order: the reference rounds the quotient of this sum up to whole cycles."""
    result = by_tensor[:, 0]
    for tensor in range(1, by_tensor.shape[1]):
        result = result + by_tensor[:, tensor]
    return result
