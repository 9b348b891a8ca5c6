"""A loop nest as the mapping file that Timeloop v0.3 and jaxloop read (spec/inputs.md section 3)."""

from collections.abc import Iterable
from typing import Any

import yaml

from ..spec.design import Design
from ..spec.mapping import LevelNest, Loop, LoopNest


def mapping_text(design: Design, nest: LoopNest) -> str:
    """The YAML text, with the key `mapping` on top; reading it back beside the files of `design` gives the same nest.

    What each level stores comes first, then its loops, innermost level first; permutations are written innermost
    first. Levels without fan-out have no spatial directive.

    **Raises:** `ValueError` where the levels of the nest are not those of the design, or a nest has spatial loops at a
    level without fan-out: no file can say that.
    """
    names = [level.name for level in design.architecture.levels]
    found = [level.level for level in nest.levels]
    if found != names:
        raise ValueError(f"the nest has the levels {', '.join(found)}, the design {', '.join(names)}")
    tensors = [tensor.name for tensor in design.einsum.tensors]
    directives = [_storage(level, tensors) for level in nest.levels]
    for index, level in enumerate(nest.levels):
        if design.architecture.fanout(index) != (1, 1):
            directives.append(_spatial(level, design.einsum.ranks))
        elif any(loop.bound > 1 for loop in (*level.spatial_x, *level.spatial_y)):
            raise ValueError(f'the nest has spatial loops at "{level.level}", which has no fan-out')
        directives.append(_temporal(level, design.einsum.ranks))
    return yaml.safe_dump({"mapping": directives}, sort_keys=False, default_flow_style=False, width=1000)


def _storage(level: LevelNest, tensors: list[str]) -> dict[str, Any]:
    bypass = [tensor for tensor in tensors if tensor not in level.keep]
    directive = {"target": level.level, "type": "datatype", "keep": list(level.keep), "bypass": bypass}
    return directive | _lists(stream=level.stream)


def _temporal(level: LevelNest, ranks: tuple[str, ...]) -> dict[str, Any]:
    directive = {"target": level.level, "type": "temporal", **_loops(level.temporal, ranks)}
    return directive | _lists(no_temporal_reuse=level.no_temporal_reuse)


def _spatial(level: LevelNest, ranks: tuple[str, ...]) -> dict[str, Any]:
    loops = (*level.spatial_x, *level.spatial_y)
    directive = {"target": level.level, "type": "spatial", **_loops(loops, ranks), "split": len(level.spatial_x)}
    return directive | _lists(no_link_transfer=level.no_link_transfer, no_multicast_no_reduction=level.no_multicast)


def _loops(loops: Iterable[Loop], ranks: tuple[str, ...]) -> dict[str, str]:
    """Factors in the order of the ranks, and the complete permutation; ranks without a loop come last."""
    bounds = {loop.rank: loop for loop in loops}
    missing = [rank for rank in ranks if rank not in bounds]
    factors = [_factor(bounds.get(rank, Loop(rank, 1, 1))) for rank in ranks]
    return {"factors": " ".join(factors), "permutation": "".join((*bounds, *missing))}


def _factor(loop: Loop) -> str:
    return f"{loop.rank}={loop.bound}" + ("" if loop.is_perfect else f",{loop.residual}")


def _lists(**lists: tuple[str, ...]) -> dict[str, list[str]]:
    return {key: list(tensors) for key, tensors in lists.items() if tensors}
