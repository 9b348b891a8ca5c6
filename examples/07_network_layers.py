# %% [markdown]
# # Whole networks: every layer with its own mapping, in one call
# The matrix multiplications of ResNet-50 (convolutions as im2col, batch 1) and of BERT-base (128 tokens) on the
# accelerator of `matmul.yaml`. Layers differ in their sizes and each needs its own mappings: all of that are arrays.

# %%
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

import jaxloop as jl

design = jl.load(str(Path(__file__).with_name("matmul.yaml")))
LAYERS = {  # how often, M (output channels or features), N (pixels or tokens), K (inputs per output)
    "ResNet-50": [
        (1, 64, 12544, 147),
        *((1, 64, 3136, 64), (2, 64, 3136, 256), (3, 64, 3136, 576), (4, 256, 3136, 64)),
        *((1, 128, 3136, 256), (3, 128, 784, 512), (4, 128, 784, 1152), (4, 512, 784, 128), (1, 512, 784, 256)),
        *((1, 256, 784, 512), (5, 256, 196, 1024), (6, 256, 196, 2304), (6, 1024, 196, 256), (1, 1024, 196, 512)),
        *((1, 512, 196, 1024), (2, 512, 49, 2048), (3, 512, 49, 4608), (3, 2048, 49, 512), (1, 2048, 49, 1024)),
        (1, 1000, 1, 2048),
    ],
    "BERT-base": [
        *((48, 768, 128, 768), (144, 128, 128, 64), (144, 64, 128, 128)),
        *((12, 3072, 128, 768), (12, 768, 128, 3072)),
    ],
}
SAMPLES = 1000

# %% [markdown]
# A thousand random mappings per layer. A map space follows from the sizes; the executable does not depend on them.

# %%
sizes = np.array([layer[1:] for layers in LAYERS.values() for layer in layers])


def random_mappings(layer: np.ndarray) -> jl.Mapping:
    space = jl.MapSpace(replace(design, einsum=replace(design.einsum, sizes=tuple(map(int, layer)))))
    return space.decode(space.sample(0, SAMPLES))


every = jax.tree.map(lambda *leaves: np.concatenate(leaves), *map(random_mappings, sizes))
found = jl.sweep(
    design,
    {("rank.M", "rank.N", "rank.K"): np.repeat(sizes, SAMPLES, axis=0)},
    mappings=every,
    zipped=True,  # row i of the sizes goes with mapping i
    fields=("cycles", "energy_pj", "edp", "valid"),
    conventions=jl.SMOOTH,
    dtype=np.float32,
)

# %% [markdown]
# The best valid mapping of each layer. Utilization: the share of the 256 units' cycles in which they multiply.

# %%
edp = found.edp.where(found.valid, np.inf).values.reshape(len(sizes), SAMPLES)
assert np.isfinite(edp).any(axis=1).all()
chosen = edp.argmin(axis=1) + SAMPLES * np.arange(len(sizes))
cycles, energy = (found[name].values[chosen].astype(float) for name in ("cycles", "energy_pj"))
products = sizes.prod(axis=1)
used = products / (cycles * 256)
print(f"{found.sizes[found.cycles.dims[0]]} points, {float(found.valid.mean()):.0%} valid")
start = 0
for network, layers in LAYERS.items():
    print(f"\n{network:<10}     M      N      K  times  cycles/1e3  energy/uJ  utilization")
    here = slice(start, start := start + len(layers))
    times = np.array([layer[0] for layer in layers])
    for (count, m, n, k), c, e, u in zip(layers, cycles[here], energy[here], used[here], strict=True):
        print(f"{'':10} {m:5} {n:6} {k:6} {count:6} {c / 1e3:11.1f} {e / 1e6:10.1f} {u:11.1%}")
    c, e, p = ((times * part[here]).sum() for part in (cycles, energy, products))
    print(f"{f'in all {p / 1e9:.2f} G multiplications':<36} {c / 1e3:11.1f} {e / 1e6:10.1f} {p / (c * 256):11.1%}")
