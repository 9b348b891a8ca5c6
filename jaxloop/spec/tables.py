"""Energy and area reference tables (ERT, ART; spec/dense.md section 11)."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EnergyTable:
    """`components[level name][action] = energy` in pJ per (vector) action; of several entries for one action the
    maximum is kept. `wire_energy` is pJ per bit and mm for all inferred networks (a component named `wire`), else None.
    `source` names the file."""

    components: dict[str, dict[str, float]] = field(default_factory=dict)
    wire_energy: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class AreaTable:
    """`components[level name] = area` in um^2 per instance."""

    components: dict[str, float] = field(default_factory=dict)
    source: str = ""
