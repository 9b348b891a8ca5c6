"""Counting the children of a fan-out: groups come out as integers whatever their size."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxloop.kernel.links import _Children

ELEMENTS = 256


def test_groups_of_every_size_are_whole_numbers():
    """XLA multiplies by reciprocals where it may: 214 / 107 must not become 1.9999999999999998."""
    sizes = np.arange(1, ELEMENTS + 1)
    members = ELEMENTS // sizes * sizes
    keys = (np.arange(ELEMENTS) // sizes[:, None]).astype(float)[:, :, None]

    def histogram(key: jax.Array, used: jax.Array) -> jax.Array:
        number = jnp.arange(ELEMENTS, dtype=key.dtype)
        grid = jnp.full((), 16.0, key.dtype)
        return _Children(number, key, used, grid, grid).histogram(number < used, jnp.zeros((), bool))

    with jax.enable_x64(True):
        found = jax.device_get(jax.jit(jax.vmap(histogram))(jnp.asarray(keys), jnp.asarray(members, float)))
    expected = np.zeros((ELEMENTS, ELEMENTS))
    expected[sizes - 1, sizes - 1] = ELEMENTS // sizes
    np.testing.assert_array_equal(found, expected)
