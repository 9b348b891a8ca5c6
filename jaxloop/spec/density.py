"""How the nonzeros of a tensor are distributed (spec/inputs.md section 2.2)."""

from dataclasses import dataclass
from enum import StrEnum


class Distribution(StrEnum):
    FIXED_STRUCTURED = "fixed_structured"
    HYPERGEOMETRIC = "hypergeometric"
    BANDED = "banded"


@dataclass(frozen=True, slots=True)
class Density:
    """Distribution of one tensor's nonzeros. `density` is the share of nonzeros in [0, 1] (unused when banded),
    `band_width` the half width of the band in elements (banded only)."""

    distribution: Distribution
    density: float = 1.0
    band_width: int = 0
