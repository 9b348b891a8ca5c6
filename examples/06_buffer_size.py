# %% [markdown]
# # How large should the buffer be?
# Every size of the buffer deserves a mapping of its own. So both vary: ten thousand random mappings of `matmul.yaml` at
# each size, of which the best that fits is kept, and none of the others needs to be stored.

# %%
import sys
import tempfile
from pathlib import Path

import numpy as np

import jaxloop as jl
from jaxloop.report.sweep_plots import write_plots

design = jl.load(str(Path(__file__).with_name("matmul.yaml")))
space = jl.MapSpace(design)
mappings = space.decode(space.sample(0, 10_000))
sizes = 2 ** np.arange(11, 23)  # words
options = {"mappings": mappings, "conventions": jl.SMOOTH, "dtype": np.float32}

# %% [markdown]
# Energy falls with the size, as larger tiles are fetched less often, until the best mapping of all fits.

# %%
best = jl.sweep(design, {"Buffer.size": sizes}, reduce=jl.Best("energy", per="Buffer.size"), **options)
assert best.valid.all() and (np.diff(best.energy_pj) <= 0).all()
print("words    energy in mJ   thousand cycles   mapping")
for size, energy, cycles, mapping in zip(sizes, best.energy_pj, best.cycles, best.mapping, strict=True):
    print(f"{size:7} {energy / 1e9:12.2f} {cycles / 1e3:17.0f} {int(mapping):9}")
enough = sizes[np.flatnonzero(best.energy_pj.values <= 1.05 * best.energy_pj.values[-1])[0]]
print(f"{enough} words are enough for an energy within 5 % of the lowest")

# %% [markdown]
# But a larger memory takes more energy per access, say as the square root of its size. Axes in a tuple vary together,
# in rows with a value for each; now there is a size that is best.

# %%
growth = np.sqrt(sizes / 131072)  # the prices of the files are those of 131,072 words
rows = np.stack([sizes, 24 * growth, 28 * growth], axis=1)
names = ("Buffer.size", "Buffer.read_energy", "Buffer.fill_energy")
priced = jl.sweep(design, {names: rows}, reduce=jl.Best("energy", per="+".join(names)), **options)
at = int(priced.energy_pj.values.argmin())
print(f"with prices that grow: {sizes[at]} words, {float(priced.energy_pj[at]) / 1e9:.2f} mJ")

# %%
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
for path in write_plots(best, folder):
    print("wrote", path)
