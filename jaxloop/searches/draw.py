"""Uniform numbers that depend on a seed and on the position of the draw alone."""

from typing import Any

import numpy as np

_SHARPNESS = 64
"""Further random bits per number, so that no number is likelier than another by more than 2^-64."""


def philox_key(seed: Any) -> int:
    """128 bits from an integer from 0 or from a jax PRNG key.

    **Raises:** `TypeError` for anything else, `ValueError` for negative integers.
    """
    if isinstance(seed, (int, np.integer)):
        if seed < 0:
            raise ValueError(f"the seed is {seed}: use an integer from 0 or a jax PRNG key")
        words = np.random.SeedSequence(int(seed)).generate_state(2, np.uint64)
        return int(words[0]) << 64 | int(words[1])
    import jax

    is_typed = isinstance(seed, jax.Array) and jax.numpy.issubdtype(seed.dtype, jax.dtypes.prng_key)
    data = np.asarray(jax.random.key_data(seed) if is_typed else seed)
    if data.dtype != np.uint32 or data.ndim != 1:
        raise TypeError(f"the seed is {seed!r}: use an integer from 0 or one jax PRNG key")
    words = np.random.SeedSequence(data.tolist()).generate_state(2, np.uint64)
    return int(words[0]) << 64 | int(words[1])


def draw(seed: Any, start: int, count: int, size: int) -> np.ndarray:
    """The draws `start` to `start + count - 1` of the sequence of numbers from 0 to `size - 1`, as Python integers."""
    words = -(-(size.bit_length() + _SHARPNESS) // 64)
    first, skipped = divmod(start * words, 4)
    raw = np.random.Philox(key=philox_key(seed), counter=first).random_raw(skipped + count * words)
    limbs = raw[skipped:].reshape(count, words).astype(object)
    wide = np.zeros(count, object)
    for limb in limbs.T:
        wide = (wide << 64) + limb
    return (wide * size) >> (64 * words)
