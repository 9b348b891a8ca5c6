# %% [markdown]
# # Gradients
# The kernel is a pure function of arrays. Under the smooth conventions nothing is rounded, so that `jax.grad` sees how
# energy and cycles move with any figure of the hardware.

# %%
import jax
import numpy as np

import jaxloop as jl
from jaxloop.kernel.evaluate import evaluate
from jaxloop.lower import lower, lower_mapping, to_device

design = jl.load("eyeriss:alexnet_conv2")
lowered = lower(design, jl.SMOOTH, exact=True)
program = to_device(lowered.program, np.float32)
mapping = to_device(lower_mapping(design.nest, design.einsum, lowered.own), np.float32)


def energy_pj(action_energy: jax.Array) -> jax.Array:
    leaves = {name: getattr(program, name) for name in program.__dataclass_fields__}
    return evaluate(jl.Program(**(leaves | {"action_energy": action_energy})), mapping).energy_pj


gradient = jax.jit(jax.grad(energy_pj))(program.action_energy)  # [action, level, tensor]
for level, row in zip(lowered.names.levels, gradient.sum(axis=(0, 2)), strict=True):
    print(f"{level:<14} one more pJ per access costs {float(row) / 1e6:8.2f} uJ")
