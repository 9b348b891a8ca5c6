"""How the nonzeros of a tensor are distributed (spec/inputs.md section 2.2)."""

from dataclasses import dataclass
from enum import StrEnum


class Distribution(StrEnum):
    FIXED_STRUCTURED = "fixed_structured"
    HYPERGEOMETRIC = "hypergeometric"
    BANDED = "banded"
    REAL_DATA = "real_data"


@dataclass(frozen=True, slots=True)
class Density:
    """Distribution of one tensor's nonzeros. `density` is the share of nonzeros in [0, 1] (unused when banded),
    `band_width` the half width of the band in elements (banded only). Of real data: `mask`, one byte per element, 0 for
    zeros, the first axis of the projection varying fastest, and the `path` that it is read from, if it is there."""

    distribution: Distribution
    density: float = 1.0
    band_width: int = 0
    mask: bytes | None = None
    path: str = ""


def mask_of_text(text: bytes) -> bytes:
    """`Density.mask` of the characters 0 and 1, between which there may be blanks.

    **Raises:** `ValueError` that names another character.
    """
    elements = b"".join(text.split())
    strange = elements.translate(None, b"01")
    if strange:
        raise ValueError(f"holds {chr(strange[0])!r}")
    return elements.translate(bytes.maketrans(b"01", b"\0\1"))
