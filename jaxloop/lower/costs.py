"""Energy per action and area, from the tables, the architecture's attributes or the built-in figures.

Every number keeps its provenance: which entry of the energy table gave it, or which fallback (spec/dense.md sections
7.3 and 11).
"""

import math
from dataclasses import dataclass, field

import numpy as np

from .._errors import Diagnostics, Place
from ..conventions import Conventions
from ..program import Action
from ..spec.architecture import Compute, Storage
from ..spec.design import Design

TABLE_ENTRIES: dict[Action, tuple[str, ...]] = {
    Action.READ: ("random_read", "read"),
    Action.FILL: ("random_fill", "write"),
    Action.UPDATE: ("random_update", "random_fill", "write"),
}
"""Entries of an ERT component that price each storage action: the first one present counts."""

COMPUTE_ENTRIES = ("mac_random", "mult_random", "mac", "mult", "compute")


@dataclass
class Costs:
    """**Attributes:** `energy[action][level]` in pJ per vector access; `address_energy[level]`, `area[level]`,
    `compute_energy`, `compute_area`, `wire_energy[level]` (negative: not given); `provenance[(name, action)]`."""

    energy: np.ndarray
    address_energy: np.ndarray
    area: np.ndarray
    wire_energy: np.ndarray
    compute_energy: float = 0.0
    compute_area: float = 0.0
    provenance: dict[tuple[str, str], str] = field(default_factory=dict)


def built_in_access_energy(level: Storage) -> float:
    """pJ per vector access when neither a table nor the architecture gives one (spec/dense.md section 7.3): 200 pJ per
    16 bits for DRAM, else linear in the bits of a row and in the KiB of the array."""
    bits = level.word_bits * level.block_size
    if level.technology == "DRAM":
        return 200.0 * bits / 16.0
    if not level.size:
        return 0.0
    row_bits = bits * level.cluster_size
    kib = row_bits * math.ceil(level.size / level.block_size) / 8192.0
    return (1.0 + (kib - 0.5) * 5.0 / 99.5) * row_bits / 16.0 / level.cluster_size


def _components(design: Design) -> dict[str, dict[str, float]]:
    return {} if design.energy_table is None else design.energy_table.components


def _storage_energy(s: int, design: Design, conventions: Conventions, report: Diagnostics, costs: Costs) -> None:
    level = design.architecture.levels[s]
    table = _components(design).get(level.name, {})
    attribute = level.vector_access_energy
    place = Place(design.energy_table.source if design.energy_table else "", 0, level.name)
    if attribute is not None:
        fallback, source = attribute, "attribute vector-access-energy"
    else:
        fallback, source = built_in_access_energy(level), "built-in figure"
    unpriced = []
    for action, entries in TABLE_ENTRIES.items():
        entry = next((e for e in entries if e in table), None)
        if entry is not None and (conventions.table_over_attributes or attribute is None):
            value, origin = table[entry], f"ERT entry {entry}"
        else:
            value, origin = fallback, source
            unpriced.append(action)
        costs.energy[action, s] = value
        costs.provenance[level.name, action.name.lower()] = origin
    if unpriced and attribute is None:
        what = ", ".join(action.name.lower() for action in unpriced)
        entries = " and ".join(f"one of {', '.join(TABLE_ENTRIES[action])}" for action in unpriced)
        if design.energy_table is None:
            lacks, remedy = f'there is no energy table to price level "{level.name}"', "give an ERT"
        elif not table:
            lacks, remedy = f'the energy table has no component "{level.name}"', "add it"
        else:
            lacks, remedy = f'the energy table prices no {what} of "{level.name}"', f"give it {entries}"
        report.warn(place, f"{lacks}: using the built-in {fallback:.6g} pJ per vector access", remedy)


def _compute_energy(unit: Compute, design: Design, report: Diagnostics, costs: Costs) -> None:
    table = _components(design).get(unit.name, {})
    entry = next((e for e in COMPUTE_ENTRIES if e in table), None)
    if entry is not None:
        costs.compute_energy, origin = table[entry], f"ERT entry {entry}"
    elif unit.energy is not None:
        costs.compute_energy, origin = unit.energy, "attribute energy"
    else:
        costs.compute_energy, origin = (unit.word_bits / 16.0) ** 2, "built-in figure"
        report.warn(
            Place(design.energy_table.source if design.energy_table else "", 0, unit.name),
            f'no energy for compute unit "{unit.name}": using the built-in {costs.compute_energy:.6g} pJ per operation',
            f"give the ERT component one of {', '.join(COMPUTE_ENTRIES)}",
        )
    costs.provenance[unit.name, "compute"] = origin


def lower_costs(design: Design, conventions: Conventions, report: Diagnostics) -> Costs:
    """All prices of a design. Areas of the tables and the wire energy are held in single precision by the reference,
    and so here."""
    levels = design.architecture.levels
    count = len(levels)
    costs = Costs(np.zeros((len(Action), count)), np.zeros(count), np.zeros(count), np.full(count, -1.0))
    for s, level in enumerate(levels):
        _storage_energy(s, design, conventions, report, costs)
        costs.address_energy[s] = max(level.address_energy or 0.0, 0.0)
        costs.area[s] = _area(design, level.name, level.area)
        if level.network.wire_energy is not None:
            costs.wire_energy[s] = level.network.wire_energy
    _compute_energy(design.architecture.compute, design, report, costs)
    costs.compute_area = _area(design, design.architecture.compute.name, design.architecture.compute.area)
    wire = None if design.energy_table is None else design.energy_table.wire_energy
    if wire:
        costs.wire_energy[:] = np.float32(wire)
    return costs


def _area(design: Design, name: str, attribute: float | None) -> float:
    """Areas of an ART count only beside an ERT (spec/inputs.md section 7.2)."""
    table = design.area_table if design.energy_table is not None else None
    if table is not None and name in table.components:
        return float(np.float32(table.components[name]))
    return attribute or 0.0
