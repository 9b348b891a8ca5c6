"""Computes that happen, are gated or skipped (spec/sparse.md section 4)."""

import math
from dataclasses import dataclass

from jaxloop.spec.sparse import ActionKind

from .sparse_density import DensityModel
from .sparse_errors import Undefined
from .sparse_format import Held
from .sparse_geometry import Geometry
from .sparse_traffic import Traffic, six_digits

States = dict[str, float]
"""Chances of an operand to exist and be nonzero ("full"), to exist and be zero ("zero"), not to exist ("none")."""


@dataclass(frozen=True)
class Computes:
    random: int
    gated: int
    skipped: int


def _states(full: float, has_metadata: bool) -> States:
    if not -1e-5 <= full <= 1.0 + 1e-5:
        raise Undefined(f"an operand is nonzero with probability {full}: the reference aborts")
    rest = 1.0 - full
    states = {"full": full, "zero": 0.0 if has_metadata else rest, "none": rest if has_metadata else 0.0}
    return {state: min(max(chance, 0.0), 1.0) for state, chance in states.items()}


def operand_states(
    geometry: Geometry, models: dict[str, DensityModel], held: dict[tuple[int, str], Held], traffic: Traffic
) -> list[States]:
    """Of the two operands, conditioned on the SAFs that removed computes.

    **Raises:** `Undefined` where the reference aborts.
    """
    names = [n for n, tensor in geometry.tensors.items() if not tensor.is_output]
    if len(names) != 2:
        raise Undefined(f"the reference models two operands, this has {len(names)}")
    if traffic.computes < 1.0:
        raise Undefined("no computes are left: the reference aborts")
    density = {name: six_digits(models[name].average) for name in names}
    removed = traffic.removed
    first, second = names
    for name, other in ((first, second), (second, first)):
        # an operand is conditioned on the other's SAF; if only one has a SAF, the other is conditioned on it
        if other in removed and (name in removed or len(removed) == 1):
            if removed[other] == 1.0:
                raise Undefined(f"hardly any computes are left by {other}: the reference divides by zero")
            density[name] = density[name] / (1.0 - removed[other])
    states = []
    for name in names:
        inner = next(level for level in range(geometry.depth) if geometry.keeps(name, level))
        states.append(_states(density[name], held[inner, name].has_metadata))
    return states


def count_computes(states: list[States], total: int, kinds: tuple[ActionKind, ...]) -> Computes:
    """Sums in the reference's order; each is rounded down, what remains happens."""
    gates, skips = ActionKind.GATING in kinds, ActionKind.SKIPPING in kinds
    gated = skipped = absent = 0.0
    first, second = states
    pairs = (
        ("full", "zero"), ("zero", "full"), ("full", "none"), ("none", "full"),
        ("zero", "zero"), ("zero", "none"), ("none", "zero"), ("none", "none"),
    )  # fmt: skip
    for one, other in pairs:
        share = total * (first[one] * second[other])
        missing = (one == "none") + (other == "none")
        if missing == 2:
            absent += share
        elif missing and skips:
            skipped += share
        elif gates:
            gated += share
    down = [math.floor(value) for value in (gated, skipped, absent)]
    return Computes(total - sum(down), down[0], down[1])
