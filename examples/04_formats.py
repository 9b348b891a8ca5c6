# %% [markdown]
# # A sweep over densities: which format, when?
# Two ways to multiply a sparse matrix A with a dense B on the little accelerator of `spmm.yaml`. They differ in how
# they store A, and in what they do about its zeros:
#
# - *bitmask*: a bit per element says whether it is there. Where it is not, accesses to B and Z are gated: they cost
#   hardly any energy, but the port of the buffer is busy all the same.
# - *coordinates*: each nonzero brings its position along (eight bits), and the next one is fetched at once: accesses
#   for zeros are skipped and take no time either.
#
# A bitmask takes the same room whatever a row holds; coordinates take the more, the more nonzeros there are.

# %%
from pathlib import Path

import numpy as np

import jaxloop as jl

SPARSE = """
sparse_optimizations:
  targets:
  - name: DRAM # a tile of A after the other; outermost rank first
    representation-format:
      data-spaces: [{{name: A, ranks: [{{format: UOP}}, {{format: UOP}}, {{format: UOP}}, {{format: {format}}}]}}]
  - name: Buffer # the rows of one tile
    representation-format: {{data-spaces: [{{name: A, ranks: [{{format: UOP}}, {{format: {format}}}]}}]}}
    action-optimization:
    - {{type: {kind}, target: B, condition-on: [A]}}
    - {{type: {kind}, target: Z, condition-on: [A]}}
"""
problem = Path(__file__).with_name("spmm.yaml").read_text()
designs = {
    name: jl.loads({"spmm.yaml": problem, "sparse.yaml": SPARSE.format(format=rank_format, kind=kind)})
    for name, rank_format, kind in (("bitmask", "B", "gating"), ("coordinates", "CP", "skipping"))
}

# %% [markdown]
# Densities are a batch: all of a sweep in one call, and a second design of the same sizes compiles nothing again. Each
# multiplication reads three words of the buffer, whose bandwidth leaves little more than that for metadata. The smooth
# conventions round nothing, so that curves have no steps.

# %%
shares = np.geomspace(0.01, 1.0, 25)
hardware = {"Buffer.read_bandwidth": 3.125, "Buffer.gated_read_energy": 0.1, "Buffer.gated_update_energy": 0.1}
swept = {
    name: jl.evaluate(
        design,
        densities={"A": shares},
        hardware=hardware,
        conventions=jl.SMOOTH,
        fields=("status", "cycles", "energy_pj", "instances", "metadata_accesses"),
    )
    for name, design in designs.items()
}
assert all(many.valid.all() for many in swept.values())

print("density        energy in uJ         thousand cycles")
print("          bitmask  coordinates    bitmask  coordinates")
for i in range(0, len(shares), 4):
    energy, cycles = ([getattr(many, n)[i] for many in swept.values()] for n in ("energy_pj", "cycles"))
    figures = [scale * value for scale, pair in ((1e-6, energy), (1e-3, cycles)) for value in pair]
    print(f"{shares[i]:7.3f} {figures[0]:9.2f} {figures[1]:12.2f} {figures[2]:10.0f} {figures[3]:12.0f}")

# %% [markdown]
# Where do the curves cross? Below that density coordinates are better, above it the bitmask.

# %%
for name in ("energy_pj", "cycles"):
    bitmask, coordinates = (getattr(many, name) for many in swept.values())
    crossing = np.interp(0.0, coordinates / bitmask - 1.0, shares)
    print(f"{name:<10} equal at density {crossing:.3f}")

# %% [markdown]
# The reason is in the metadata that the buffer reads: bits of a mask, or coordinates of eight bits. Counts have axes
# for what becomes of them (actual, gated, skipped), the action, level, tensor, format rank, and metadata or payload;
# they are those of one instance, of which there is less than one on average: no tile without nonzeros ever arrives.

# %%
BUFFER, A, INNERMOST = 0, 0, 0
for i in (0, 12, 24):
    bits = []
    for many, width in zip(swept.values(), (1, 8), strict=True):
        units = many.metadata_accesses[i, :, 0, BUFFER, A, INNERMOST, 0].sum() * many.instances[i, BUFFER, A]
        bits.append(width * units / 1e3)
    print(f"density {shares[i]:.2f}: {bits[0]:6.1f} kbit of masks, {bits[1]:6.1f} kbit of coordinates")

# %% [markdown]
# Two objectives, two answers: between the two crossings, one design takes less energy and the other less time.
