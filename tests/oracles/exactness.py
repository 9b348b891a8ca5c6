"""When the documented reuse rule counts the true traffic of a one-tile buffer (see `loopnest.py`)."""

import math

from jaxloop.spec.einsum import Einsum
from jaxloop.spec.mapping import LoopNest

from .loopnest import Point, View, box_of, flatten


def _fresh(extents: Point, motion: Point) -> int:
    """Words of a tile that are not in the same tile displaced by `motion`."""
    common = math.prod(max(0, extent - abs(step)) for extent, step in zip(extents, motion, strict=True))
    return math.prod(extents) - common


def exactness(einsum: Einsum, nest: LoopNest, *, second_index: bool = True) -> bool:
    """Whether the documented reuse rule counts the true traffic of a one-tile buffer.

    The claim, for perfect factors: if this is true, `walk(policy="full")` and `walk(policy="model", second_index=...)`
    give the same counts without links, and with `second_index=False` also with links.

    Let loops 1..K be the loops with more than one iteration outside a tile, innermost first, that move it by v_k. When
    loop k advances and all inside it wrap around, the tile really moves by r_k = v_k - sum_{j<k} (n_j - 1) v_j, and
    truly needs the words outside the overlap of the two tiles. The rule charges the same exactly if

    - the tiles are disjoint (whatever the rule sees, it charges a whole tile), or
    - the rule sees its motion repeat (c_k = v_1, with c_k = r_k, or v_k - sum_{j<k} v_j with `second_index`), and the
      overlap under r_k is as large as under v_1.

    Hence true whenever each axis of each tensor is moved by one rank (matrix products, and weights and outputs of
    convolutions): such a tile moves by multiples of its extent. Sliding windows qualify while no loop outside the
    innermost one brings the window back over itself. The condition ignores bypass, so it is sufficient, not necessary.
    """
    flat = flatten(einsum, nest)
    views = [(tensor.name, View.of(einsum, tensor)) for tensor in einsum.tensors]
    for level in range(1, len(nest.levels)):
        box = box_of([loop for loop in flat if loop.level < level], len(einsum.ranks))
        loops = [loop for loop in flat if loop.level >= level and not loop.spatial and loop.bound > 1]
        for name, view in views:
            if name in nest.levels[level - 1].no_temporal_reuse:
                continue
            extents = tuple(high - low + 1 for low, high in view.bounds((0,) * len(box), box))
            back, seen_back = (0,) * len(extents), (0,) * len(extents)
            for order, loop in enumerate(loops):
                step = view.motion(loop)
                real = tuple(v - b for v, b in zip(step, back, strict=True))
                seen = tuple(v - b for v, b in zip(step, seen_back, strict=True)) if second_index else real
                repeats = order == 0 or seen == view.motion(loops[0])
                charged = _fresh(extents, view.motion(loops[0])) if repeats else math.prod(extents)
                if charged != _fresh(extents, real):
                    return False
                back = tuple(b + (loop.bound - 1) * v for b, v in zip(back, step, strict=True))
                seen_back = tuple(b + v for b, v in zip(seen_back, step, strict=True))
    return True
