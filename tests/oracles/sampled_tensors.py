"""Samples of tensors with zeros: masks of shape [samples, ...], True where an element is nonzero.

What the density models promise, as really drawn tensors: uniformly random positions (hypergeometric), patterns of which
every aligned tile holds its share (fixed-structured), bands. `blocks` and `products` are what the models do not know:
N:M sparsity with random positions in each block, and outputs whose nonzeros follow from the operands.
"""

import math

import numpy as np

from jaxloop.spec.density import Density, Distribution
from jaxloop.spec.design import Design

from .sampled_walk import Walk

Masks = dict[str, np.ndarray]


def uniform(rng: np.random.Generator, samples: int, shape: tuple[int, ...], density: float) -> np.ndarray:
    """Exactly `density` times the elements, anywhere. Raises `ValueError` if that is no integer."""
    size = math.prod(shape)
    nonzeros = round(density * size)
    if abs(nonzeros - density * size) > 1e-9:
        raise ValueError(f"{density} of {size} elements is no integer")
    ranks = rng.random((samples, size)).argpartition(nonzeros - 1 if nonzeros else 0, axis=1)
    mask = np.zeros((samples, size), bool)
    np.put_along_axis(mask, ranks[:, :nonzeros], True, axis=1)
    return mask.reshape(samples, *shape)


VECTORS = {1: (1, 1, 1), 2: (1, 2, 3)}
"""By the number of bits of a lattice's residue: what the lowest bit of a coordinate along each axis does to it; the
next bit does what the lowest does along the next axis, and so on in turn. Any two lowest bits, and any two neighboring
bits of one axis, do different things, so every aligned tile whose extents are powers of two holds each residue equally
often, or at most once."""


def lattice(rng: np.random.Generator, samples: int, shape: tuple[int, ...], density: float) -> np.ndarray:
    """Patterns of density 1/4, 1/2, 3/4 or 1 of which every aligned tile holds its share, rounded up or down at random
    (by the pattern's phase), on up to three axes whose extents are powers of two."""
    if density == 1.0:
        return np.ones((samples, *shape), bool)
    bits = 1 if density == 0.5 else 2
    if density not in (0.25, 0.5, 0.75) or len(shape) > 3 or any(extent & (extent - 1) for extent in shape):
        raise ValueError(f"no lattice of density {density} on {shape}")
    residue = np.zeros(shape, int)
    vectors = VECTORS[bits]
    for axis, coordinate in enumerate(np.indices(shape)):
        for bit in range(int(shape[axis]).bit_length()):
            residue ^= ((coordinate >> bit) & 1) * vectors[(axis + bit) % 3]
    phase = rng.integers(1 << bits, size=(samples, *[1] * len(shape)))
    marked = 1 if density == 0.5 else round(density * 4)
    return (residue ^ phase) < marked


def blocks(rng: np.random.Generator, samples: int, shape: tuple[int, ...], nonzeros: int, length: int) -> np.ndarray:
    """`nonzeros` of every `length` neighbors along the last axis, at random."""
    order = rng.random((samples, *shape[:-1], shape[-1] // length, length)).argsort(-1)
    return (order < nonzeros).reshape(samples, *shape)


def band(shape: tuple[int, int], half_width: int) -> np.ndarray:
    rows, columns = np.indices(shape)
    return abs(rows - columns) <= half_width


def sample(rng: np.random.Generator, samples: int, shape: tuple[int, ...], density: Density | None) -> np.ndarray:
    """Masks of one tensor as its density model promises; dense without one."""
    if density is None:
        return np.ones((samples, *shape), bool)
    if density.distribution is Distribution.HYPERGEOMETRIC:
        return uniform(rng, samples, shape, density.density)
    if density.distribution is Distribution.FIXED_STRUCTURED:
        return lattice(rng, samples, shape, density.density)
    return np.broadcast_to(band((shape[0], shape[1]), density.band_width), (samples, *shape))


def sample_all(design: Design, walk: Walk, rng: np.random.Generator, samples: int) -> Masks:
    """Independent masks of all tensors, outputs included."""
    return {name: sample(rng, samples, walk.shape(name), design.densities.get(name)) for name in walk.tensors}


def products(walk: Walk, masks: Masks) -> Masks:
    """`masks` with the outputs' replaced by what follows: nonzero where any product that goes there is."""
    samples = len(next(iter(masks.values())))
    both = np.ones((samples, walk.iterations), bool)
    for name, tensor in walk.tensors.items():
        if not tensor.is_output:
            both &= masks[name].reshape(samples, -1)[:, walk.used[name]]
    found = dict(masks)
    for name, tensor in walk.tensors.items():
        if tensor.is_output:
            order = np.argsort(walk.used[name], kind="stable")
            starts = np.searchsorted(walk.used[name][order], np.arange(math.prod(walk.shape(name))))
            found[name] = np.logical_or.reduceat(both[:, order], starts, axis=1).reshape(masks[name].shape)
    return found
