# %% [markdown]
# # One design, one mapping
# A shipped accelerator, its numbers, and what happens when a mapping does not fit.

# %%
import dataclasses

import numpy as np

import jaxloop as jl
from jaxloop.report import print_table

design = jl.load("eyeriss:alexnet_conv3")  # your own files: jl.load("arch.yaml", "problem.yaml", "mapping.yaml", ...)
one = jl.evaluate(design)
print_table(one)

# %% [markdown]
# Every count is an array over levels (innermost first) and tensors.

# %%
names = one.context.names
for level, reads in zip(names.levels, one.reads, strict=True):
    print(f"{level:<14}", {tensor: int(count) for tensor, count in zip(names.tensors, reads, strict=True)})

# %% [markdown]
# A mapping that does not fit says why; it is never an exception unless asked for.

# %%
own = jl.mapping_of(design)
greedy = dataclasses.replace(own, keep=np.ones_like(own.keep))  # every level keeps every tensor
print("\n".join(jl.evaluate(design, mappings=greedy).reasons))
