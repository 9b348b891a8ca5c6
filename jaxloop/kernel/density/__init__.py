"""Density models: how the nonzeros of a tensor are distributed (spec/sparse.md section 1).

A new model is one class of `base.AbstractDensity` in a file of its own and one entry in `_models`.
"""

from .tensors import Densities as Densities, tensor_densities as tensor_densities
