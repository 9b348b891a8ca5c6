# %% [markdown]
# # Many mappings and many designs in one call
# A batch is the same call with leading axes on mappings, hardware figures or rank sizes.

# %%
import dataclasses

import numpy as np

import jaxloop as jl

design = jl.load("eyeriss:alexnet_conv2")

# %% [markdown]
# A grid of designs: global buffer bandwidth down, DRAM read energy across. Axes broadcast.

# %%
bandwidth, energy = np.array([[1.0], [2.0], [4.0], [8.0]]), np.array([256.0, 512.0])
grid = jl.evaluate(design, hardware={"shared_glb.read_bandwidth": bandwidth, "DRAM.read_energy": energy})
print("cycles\n", grid.cycles.astype(int))
print("energy in uJ\n", (grid.energy_pj / 1e6).round(1))

# %% [markdown]
# Two thousand random loop orders of the global buffer and DRAM; the spatial loops and factors stay.

# %%
own = jl.mapping_of(design)
rng = np.random.default_rng(0)
orders = np.broadcast_to(own.temporal_order, (2000, *own.temporal_order.shape)).copy()
orders[:, -2:] = rng.random((2000, 2, own.temporal.shape[1])).argsort(axis=2)
many = jl.evaluate(
    design, mappings=dataclasses.replace(own, temporal_order=orders), fields=("status", "cycles", "energy_pj")
)
energies = np.where(many.valid, many.energy_pj, np.inf)
best = jl.evaluate(design, mappings=dataclasses.replace(own, temporal_order=orders[energies.argmin()]))
print(f"worst {many.energy_pj[many.valid].max() / 1e6:.1f} uJ, best {best.energy_pj / 1e6:.1f} uJ")
