# %% [markdown]
# # A sweep over densities and formats: where do two designs cross?
# The two designs of Fig. 1 of the Sparseloop paper share one architecture. The *bitmask* keeps a bit per element and
# gates what a zero makes needless: that saves energy, no time. The *coordinate list* keeps the position of each nonzero
# and skips: that saves both, but a position takes more bits than a bit of a mask.

# %%
import sys
import tempfile
from pathlib import Path

import numpy as np

import jaxloop as jl
from jaxloop.report.sweep_plots import write_plots

design = jl.load("coordinate_list:matmul-0.1")
formats = {"bitmask": jl.load("bitmask:matmul-0.1"), "coordinate list": design}

# %% [markdown]
# Both densities vary together; `sparse` takes the sparse optimizations of whole designs. All points are one call of
# one executable.

# %%
found = jl.sweep(
    design,
    {("density.A", "density.B"): "logspace(0.01, 1, 121)", "sparse": formats},
    fields=("cycles", "energy_pj", "valid"),
    conventions=jl.MICRO22,
)
assert found.valid.all()

# %% [markdown]
# Where the ratio of the two passes 1, between two points of the sweep (linear in the logarithms).

# %%
densities = found["density.A"].values
for name in ("energy_pj", "cycles"):
    ratio = np.log(found[name].sel(sparse="coordinate list") / found[name].sel(sparse="bitmask")).values
    crossing = np.exp(np.interp(0.0, ratio, np.log(densities)))
    print(f"{name:<10} the coordinate list is better below density {crossing:.3f}")

# %% [markdown]
# The curves, and the point of lowest energy-delay product for each density.

# %%
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
for path in write_plots(found, folder):
    print("wrote", path)
better = (found.energy_pj * found.cycles).argmin("sparse").values
for share, at in zip(densities[::20], better[::20], strict=True):
    print(f"density {share:5.3f}: lowest EDP with the {found['sparse'].values[at]}")
