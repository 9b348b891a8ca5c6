"""Energy per action and area, from the tables, the architecture's attributes or the built-in figures.

Every number keeps its provenance: which entry of the energy table gave it, or which fallback (spec/dense.md sections
7.3 and 11).
"""

import math
from dataclasses import dataclass, field

import numpy as np

from .._errors import Diagnostics, Place
from ..conventions import Conventions
from ..program import Action, Conversion, Fate
from ..spec.architecture import Compute, Storage
from ..spec.design import Design
from ..spec.sparse import ActionKind

CHAINS: dict[str, tuple[str, ...]] = {
    "read": ("random_read", "read"),
    "fill": ("random_fill", "write"),
    "update": ("random_update", "random_fill", "write"),
    "gated_read": ("gated_read", "idle", "read"),
    "gated_fill": ("gated_fill", "gated_write", "idle", "write"),
    "gated_update": ("gated_update", "gated_write", "idle", "write"),
    "skipped_read": ("skipped_read", "gated_read", "idle", "read"),
    "skipped_fill": ("skipped_fill", "skipped_write", "gated_write", "idle", "write"),
    "skipped_update": ("skipped_update", "skipped_write", "gated_write", "idle", "write"),
    "metadata_read": ("random_metadata_read", "metadata_read", "metadata_idle", "idle"),
    "metadata_fill": ("random_metadata_fill", "metadata_write", "metadata_idle", "idle"),
    "metadata_update": ("random_metadata_update", "metadata_write", "metadata_idle", "idle"),
    "gated_metadata_read": ("gated_metadata_read", "metadata_idle", "metadata_read"),
    "gated_metadata_fill": ("gated_metadata_fill", "gated_metadata_write", "metadata_idle", "metadata_write"),
    "gated_metadata_update": ("gated_metadata_update", "gated_metadata_write", "metadata_idle", "metadata_write"),
    "skipped_metadata_read": ("skipped_metadata_read", "metadata_idle", "metadata_read"),
    "skipped_metadata_fill": ("skipped_metadata_fill", "skipped_metadata_write", "metadata_idle", "metadata_write"),
    "skipped_metadata_update": (
        "skipped_metadata_update",
        "skipped_metadata_write",
        "metadata_idle",
        "metadata_write",
    ),
    "decompression": ("decompression_count",),
    "compression": ("compression_count",),
    "compute": ("mac_random", "mult_random", "mac", "mult", "compute"),
    "gated_compute": ("mac_gated", "mult_gated", "compute_gated", "mac", "mult", "compute"),
    "skipped_compute": (
        *("mac_skipped", "mult_skipped", "compute_skipped"),
        *("mac_gated", "mult_gated", "compute_gated", "mac", "mult", "compute"),
    ),
}
"""Operation -> the entries of an ERT component that price it: the first one present counts (spec/sparse.md 5.5)."""

SPARSE_ENERGIES = (
    "gated_energy",
    "skipped_energy",
    "metadata_energy",
    "conversion_energy",
    "gated_compute_energy",
    "skipped_compute_energy",
)
"""Fields of `Costs` that only sparse designs have; leaves of `SparseProgram`."""

FULL_PRICE = {"read", "write", "mac", "mult", "compute"}
"""Entries that stand for an operation that takes place."""

_FATES = {ActionKind.GATING: Fate.GATED, ActionKind.SKIPPING: Fate.SKIPPED}
_PREFIXES = {Fate.ACTUAL: "", Fate.GATED: "gated_", Fate.SKIPPED: "skipped_"}


def operation(fate: Fate, action: Action, metadata: bool = False) -> str:
    """The name of a storage operation in `CHAINS`."""
    return f"{_PREFIXES[fate]}{'metadata_' if metadata else ''}{action.name.lower()}"


@dataclass
class Costs:
    """pJ and um^2, without padding.

    **Attributes:**

    - `energy[action, level]`, `gated_energy`, `skipped_energy`: per vector access; `metadata_energy[fate, action,
      level]`; `conversion_energy[conversion, level]`: per word.
    - `address_energy[level]`, `area[level]`, `wire_energy[level]` (negative: not given).
    - `compute_energy`, `gated_compute_energy`, `skipped_compute_energy`: per operation; `compute_area`.
    - `provenance[(component, operation)]`: where each energy comes from.
    """

    energy: np.ndarray
    gated_energy: np.ndarray
    skipped_energy: np.ndarray
    metadata_energy: np.ndarray
    conversion_energy: np.ndarray
    address_energy: np.ndarray
    area: np.ndarray
    wire_energy: np.ndarray
    compute_energy: float = 0.0
    gated_compute_energy: float = 0.0
    skipped_compute_energy: float = 0.0
    compute_area: float = 0.0
    provenance: dict[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def zeros(cls, levels: int) -> "Costs":
        actions, fates, conversions = len(Action), len(Fate), len(Conversion)
        return cls(
            energy=np.zeros((actions, levels)),
            gated_energy=np.zeros((actions, levels)),
            skipped_energy=np.zeros((actions, levels)),
            metadata_energy=np.zeros((fates, actions, levels)),
            conversion_energy=np.zeros((conversions, levels)),
            address_energy=np.zeros(levels),
            area=np.zeros(levels),
            wire_energy=np.full(levels, -1.0),
        )

    def sparse_energies(self) -> dict[str, np.ndarray]:
        """The values of `SPARSE_ENERGIES`."""
        return {name: np.asarray(getattr(self, name)) for name in SPARSE_ENERGIES}


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


def _entry(table: dict[str, float], name: str) -> str | None:
    """The entry that prices an operation, if there is one."""
    return next((entry for entry in CHAINS[name] if entry in table), None)


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
    for action in Action:
        entry = _entry(table, operation(Fate.ACTUAL, action))
        if entry is not None and (conventions.table_over_attributes or attribute is None):
            value, origin = table[entry], f"ERT entry {entry}"
        else:
            value, origin = fallback, source
            unpriced.append(action)
        costs.energy[action, s] = value
        costs.provenance[level.name, action.name.lower()] = origin
    if unpriced and attribute is None:
        what = ", ".join(action.name.lower() for action in unpriced)
        entries = " and ".join(f"one of {', '.join(CHAINS[operation(Fate.ACTUAL, action)])}" for action in unpriced)
        if design.energy_table is None:
            lacks, remedy = f'there is no energy table to price level "{level.name}"', "give an ERT"
        elif not table:
            lacks, remedy = f'the energy table has no component "{level.name}"', "add it"
        else:
            lacks, remedy = f'the energy table prices no {what} of "{level.name}"', f"give it {entries}"
        report.warn(place, f"{lacks}: using the built-in {fallback:.6g} pJ per vector access", remedy)


def _compute_energy(unit: Compute, design: Design, report: Diagnostics, costs: Costs) -> None:
    table = _components(design).get(unit.name, {})
    entry = _entry(table, "compute")
    if entry is not None:
        costs.compute_energy, origin = table[entry], f"ERT entry {entry}"
    elif unit.energy is not None:
        costs.compute_energy, origin = unit.energy, "attribute energy"
    else:
        costs.compute_energy, origin = (unit.word_bits / 16.0) ** 2, "built-in figure"
        report.warn(
            Place(design.energy_table.source if design.energy_table else "", 0, unit.name),
            f'no energy for compute unit "{unit.name}": using the built-in {costs.compute_energy:.6g} pJ per operation',
            f"give the ERT component one of {', '.join(CHAINS['compute'])}",
        )
    costs.provenance[unit.name, "compute"] = origin


def _sparse_energies(design: Design, costs: Costs) -> None:
    """What is gated, skipped, metadata or a conversion costs what the table says, else nothing."""

    def price(component: str, name: str) -> float:
        table = _components(design).get(component, {})
        entry = _entry(table, name)
        costs.provenance[component, name] = "no entry: 0 pJ" if entry is None else f"ERT entry {entry}"
        return 0.0 if entry is None else table[entry]

    for s, level in enumerate(design.architecture.levels):
        for action in Action:
            costs.gated_energy[action, s] = price(level.name, operation(Fate.GATED, action))
            costs.skipped_energy[action, s] = price(level.name, operation(Fate.SKIPPED, action))
            for fate in Fate:
                costs.metadata_energy[fate, action, s] = price(level.name, operation(fate, action, metadata=True))
        for conversion in Conversion:
            costs.conversion_energy[conversion, s] = price(level.name, conversion.name.lower())
    unit = design.architecture.compute.name
    costs.gated_compute_energy = price(unit, "gated_compute")
    costs.skipped_compute_energy = price(unit, "skipped_compute")


def _report_full_prices(design: Design, report: Diagnostics) -> None:
    """One warning per component whose gated or skipped operations cost as much as if they took place (quirk Q11)."""
    outputs = {tensor.name for tensor in design.einsum.tensors if tensor.is_output}
    source = design.energy_table.source if design.energy_table else ""
    for target in design.sparse.targets:
        used = [f"{_PREFIXES[_FATES[kind]]}compute" for kind in target.compute]
        for group in (group for group in target.actions if group.kind in _FATES):
            used.append(operation(_FATES[group.kind], Action.READ))
            if outputs & {option.target for option in group.options}:
                used.append(operation(_FATES[group.kind], Action.UPDATE))
        table = _components(design).get(target.level, {})
        full = {name: entry for name in used if (entry := _entry(table, name)) in FULL_PRICE}
        if full:
            prices = " and ".join(f'{name} costs {table[entry]:.6g} pJ as "{entry}"' for name, entry in full.items())
            lacks = " and ".join(dict.fromkeys(CHAINS[name][0] for name in full))
            report.warn(
                Place(source, 0, target.level),
                f'the energy table prices no {lacks} of "{target.level}": {prices}',
                "add the entries, with energy 0 if nothing is spent",
            )


def lower_costs(design: Design, conventions: Conventions, report: Diagnostics) -> Costs:
    """All prices of a design. Areas of the tables and the wire energy are held in single precision by the reference,
    and so here."""
    levels = design.architecture.levels
    costs = Costs.zeros(len(levels))
    for s, level in enumerate(levels):
        _storage_energy(s, design, conventions, report, costs)
        costs.address_energy[s] = max(level.address_energy or 0.0, 0.0)
        costs.area[s] = _area(design, level.name, level.area)
        if level.network.wire_energy is not None:
            costs.wire_energy[s] = level.network.wire_energy
    _compute_energy(design.architecture.compute, design, report, costs)
    if design.sparse.is_present:
        _sparse_energies(design, costs)
    if design.sparse.has_effect:
        _report_full_prices(design, report)
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
