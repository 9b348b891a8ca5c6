"""Units of metadata of the rank formats (spec/sparse.md 2.1).

A new format is one function and its entry in `UNITS`.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._math import ceil
from ..conventions import Conventions
from ..program import RANK_FORMATS
from ..spec.sparse import RankFormat


class Fibers(eqx.Module):
    """The fibers of one rank of a tile.

    **Attributes:**

    - `number`: fibers, empty ones included; `length`: elements of each.
    - `filled`: nonempty fibers; `elements`: nonempty elements per fiber, averaged over all fibers.
    """

    number: Float[Array, "*any"]
    length: Float[Array, "*any"]
    filled: Float[Array, "*any"]
    elements: Float[Array, "*any"]
    conventions: Conventions = eqx.field(static=True)


Units = tuple[Array, Array]
"""Units of metadata and of payload."""


def _uncompressed_offset_pairs(fibers: Fibers) -> Units:
    return jnp.zeros_like(fibers.filled), fibers.filled * (fibers.length + 1.0)


def _uncompressed_bitmask(fibers: Fibers) -> Units:
    every = fibers.number * fibers.length
    return every, every


def _bitmask(fibers: Fibers) -> Units:
    return fibers.filled * fibers.length, _elements(fibers, fibers.conventions.whole_payloads)


def _coordinate_payload(fibers: Fibers) -> Units:
    coordinates = _elements(fibers, fibers.conventions.whole_coordinates)
    return coordinates, coordinates


def _run_lengths(fibers: Fibers) -> Units:
    weight = fibers.filled if fibers.conventions.run_length_fibers else fibers.number
    return weight * fibers.elements, weight * fibers.elements


def _elements(fibers: Fibers, whole: bool) -> Array:
    """Nonempty elements; `whole`: as many in each nonempty fiber, a whole number."""
    if whole:
        return fibers.filled * ceil(fibers.elements)
    return fibers.number * fibers.elements


UNITS: dict[RankFormat, Callable[[Fibers], Units]] = {
    RankFormat.UOP: _uncompressed_offset_pairs,
    RankFormat.CP: _coordinate_payload,
    RankFormat.B: _bitmask,
    RankFormat.RLE: _run_lengths,
    RankFormat.UB: _uncompressed_bitmask,
}


def rank_units(formats: Int[Array, "*any"], fibers: Fibers) -> Units:
    """Units of ranks by their format codes; 0 where there is no format."""
    metadata = payload = jnp.zeros_like(fibers.filled + fibers.length)
    for rank_format, units in UNITS.items():
        chosen = formats == RANK_FORMATS[rank_format]
        own = units(fibers)
        metadata, payload = jnp.where(chosen, own[0], metadata), jnp.where(chosen, own[1], payload)
    return metadata, payload
