"""Sweeps: grids of mappings, densities, formats and hardware numbers through one executable."""

from .reduce import Best as Best, Histogram as Histogram, Pareto as Pareto
from .store import open_sweep as open_sweep
from .sweep import sweep as sweep
