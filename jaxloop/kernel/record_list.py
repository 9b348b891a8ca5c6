"""A bounded list of traffic records per level and tensor, for the enumeration of links. Arrays without lanes."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._math import floor_div

CODE = 2.0**24
"""A record's multicast and scatter as one number, multicast * CODE + scatter: ascending as the reference sums them,
exact in float64."""


def distinct_multiplicities(elements: int) -> int:
    """Most different group sizes that `elements` children can form: 1 + 2 + ... + n <= elements."""
    return (math.isqrt(8 * elements + 1) - 1) // 2


def shorten(histogram: Float[Array, " multiple"]) -> tuple[Float[Array, " entry"], Float[Array, " entry"]]:
    """The nonempty places of "groups per multiplicity 1, 2, ..." as (multiplicity, groups); empty entries are 0."""
    size = histogram.shape[0]
    entries = distinct_multiplicities(size)
    filled = histogram > 0.0
    place = jnp.where(filled, jnp.cumsum(filled) - 1, entries)
    empty = jnp.zeros(entries, histogram.dtype)
    multiples = jnp.arange(1, size + 1, dtype=histogram.dtype)
    return empty.at[place].set(multiples, mode="drop"), empty.at[place].set(histogram, mode="drop")


class RecordList(eqx.Module):
    """**Attributes:** `code`: of each record, +inf where empty; `accesses`; `used`: places taken, empty ones among them
    included; `overflow`: a record found no place."""

    code: Float[Array, "record level tensor"]
    accesses: Float[Array, "record level tensor"]
    used: Int[Array, "level tensor"]
    overflow: Bool[Array, ""]

    def add(self, s: Array, t: Array, multicast: Array, scatter: Array, accesses: Array) -> "RecordList":
        """Adds records [entry] (scatter 0: none) to the list of one level and tensor; equal records merge."""
        real = scatter > 0.0
        code = jnp.where(real, multicast * CODE + scatter, jnp.inf)
        present, held = self.code[:, s, t], self.accesses[:, s, t]
        same = (code[:, None] == present[None]) & real[:, None]
        is_new = real & ~jnp.any(same, axis=1)
        place = jnp.where(is_new, self.used[s, t] + jnp.cumsum(is_new) - 1, present.shape[0])
        held = held + jnp.sum(jnp.where(same, accesses[:, None], 0.0), axis=0)
        return RecordList(
            code=self.code.at[:, s, t].set(present.at[place].set(code, mode="drop")),
            accesses=self.accesses.at[:, s, t].set(held.at[place].set(accesses, mode="drop")),
            used=self.used.at[s, t].add(jnp.sum(is_new)),
            overflow=self.overflow | jnp.any(is_new & (place >= present.shape[0])),
        )

    def ascending(self) -> tuple[Array, Array, Array]:
        """(multicast, scatter, accesses) in ascending order; empty records have zero accesses and stand anywhere."""
        smaller = self.code[None] < self.code[:, None]
        rank = jnp.sum(smaller, axis=1)  # codes are distinct but for the empty ones, which all come behind
        filled = jnp.isfinite(self.code)
        level, tensor = (jnp.arange(size) for size in self.code.shape[1:])
        place = (jnp.where(filled, rank, self.code.shape[0]), level[None, :, None], tensor[None, None, :])
        code = jnp.full_like(self.code, CODE).at[place].set(self.code, mode="drop")
        multicast = floor_div(code, jnp.asarray(CODE, code.dtype))
        accesses = jnp.zeros_like(self.accesses).at[place].set(self.accesses, mode="drop")
        return multicast, code - multicast * CODE, accesses
