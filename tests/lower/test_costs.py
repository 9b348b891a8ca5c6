"""Prices of a sparse design: every chain of fallbacks, entry by entry, and where each price came from."""

from dataclasses import replace

import numpy as np
import pytest

import jaxloop as jl
from jaxloop.lower import lower
from jaxloop.lower.costs import CHAINS
from jaxloop.program import Action, Conversion, Fate
from jaxloop.spec.sparse import SparseOptimizations
from jaxloop.spec.tables import EnergyTable
from tests.frontend.base import TEXTS

CANDIDATES = """
read: random_read read
fill: random_fill write
update: random_update random_fill write
gated_read: gated_read idle read
gated_fill: gated_fill gated_write idle write
gated_update: gated_update gated_write idle write
skipped_read: skipped_read gated_read idle read
skipped_fill: skipped_fill skipped_write gated_write idle write
skipped_update: skipped_update skipped_write gated_write idle write
metadata_read: random_metadata_read metadata_read metadata_idle idle
metadata_fill: random_metadata_fill metadata_write metadata_idle idle
metadata_update: random_metadata_update metadata_write metadata_idle idle
gated_metadata_read: gated_metadata_read metadata_idle metadata_read
gated_metadata_fill: gated_metadata_fill gated_metadata_write metadata_idle metadata_write
gated_metadata_update: gated_metadata_update gated_metadata_write metadata_idle metadata_write
skipped_metadata_read: skipped_metadata_read metadata_idle metadata_read
skipped_metadata_fill: skipped_metadata_fill skipped_metadata_write metadata_idle metadata_write
skipped_metadata_update: skipped_metadata_update skipped_metadata_write metadata_idle metadata_write
decompression: decompression_count
compression: compression_count
compute: mac_random mult_random mac mult compute
gated_compute: mac_gated mult_gated compute_gated mac mult compute
skipped_compute: mac_skipped mult_skipped compute_skipped mac_gated mult_gated compute_gated mac mult compute
"""
"""The candidates of spec/inputs.md 7.1, one operation a line."""

CHAIN = {
    name: tuple(entries.split()) for name, entries in (line.split(": ") for line in CANDIDATES.split("\n") if line)
}
COMPUTE = ("compute", "gated_compute", "skipped_compute")
FATES = {"gated": Fate.GATED, "skipped": Fate.SKIPPED}
GLB = 1


def design(level: dict[str, float] | None, unit: dict[str, float] | None = None) -> jl.Design:
    """The small design with these entries for Glb and Mac; None for no table."""
    components = {"Glb": level or {}, "Mac": unit or {}, "Spad": {}, "Main": {}}
    table = None if level is None else EnergyTable(components, source="ert.yaml")
    return replace(jl.loads(TEXTS), energy_table=table)


def price(of: jl.Design, name: str) -> tuple[float, str]:
    """What one operation costs at Glb or in the compute units, and why."""
    lowered = lower(of, jl.TIMELOOP_2022, exact=True)
    program, sparse = lowered.program, lowered.program.sparse
    assert sparse is not None
    first, *rest = name.split("_")
    if name in COMPUTE:
        leaf = {"compute": program.compute_energy, "gated_compute": sparse.gated_compute_energy}
        return float(leaf.get(name, sparse.skipped_compute_energy)), lowered.provenance["Mac", name]
    if name.endswith("compression"):
        values = sparse.conversion_energy[Conversion[name.upper()], GLB]
    elif "metadata" in name:
        values = sparse.metadata_energy[FATES.get(first, Fate.ACTUAL), Action[rest[-1].upper()], GLB]
    elif first in FATES:
        leaf = sparse.gated_energy if first == "gated" else sparse.skipped_energy
        values = leaf[Action[rest[-1].upper()], GLB]
    else:
        values = program.action_energy[Action[name.upper()], GLB]
    assert len(set(values.tolist())) == 1, "the same for all tensors"
    return float(values[0]), lowered.provenance["Glb", name]


def test_the_table_of_chains_is_that_of_the_specification():
    assert CHAINS == CHAIN


@pytest.mark.parametrize("name", CHAIN)
def test_the_first_entry_that_is_present_counts(name: str):
    """All entries have a price of their own; those in front are taken away one after the other."""
    every = sorted({entry for entries in CHAIN.values() for entry in entries})
    prices = {entry: 2.0 + place for place, entry in enumerate(every)}
    for entry in CHAIN[name]:
        assert price(design(prices, prices), name) == (prices[entry], f"ERT entry {entry}")
        del prices[entry]
    expected = {"compute": "built-in figure"} | dict.fromkeys(("read", "fill", "update"), "built-in figure")
    value, origin = price(design(prices, prices), name)
    assert origin == expected.get(name, "no entry: 0 pJ")
    assert (value == 0.0) == (name not in expected)


@pytest.mark.parametrize("name", [name for name in CHAIN if name not in ("read", "fill", "update", "compute")])
def test_without_a_table_only_what_happens_costs(name: str):
    assert price(design(None), name) == (0.0, "no entry: 0 pJ")


def test_padding_costs_nothing():
    every = {entry: 1.0 for entries in CHAIN.values() for entry in entries}
    sparse = lower(design(every, every), jl.TIMELOOP_2022).program.sparse
    assert sparse is not None
    for leaf in (sparse.gated_energy, sparse.skipped_energy, sparse.metadata_energy, sparse.conversion_energy):
        assert np.all(leaf[..., GLB, :] == 1.0) and not leaf[..., 3:, :].any()


# --- warnings: at Spad, B is skipped and the output Z gated; Mac is gated


def full_price_warnings(level: dict[str, float], unit: dict[str, float]) -> list[str]:
    components = {"Glb": {"read": 1.0, "write": 1.0}, "Main": {"read": 1.0, "write": 1.0}, "Spad": level, "Mac": unit}
    sparse = replace(jl.loads(TEXTS), energy_table=EnergyTable(components, source="ert.yaml"))
    return [str(w) for w in lower(sparse, jl.TIMELOOP_2022).warnings]


def test_full_prices_for_what_is_gated_or_skipped_are_reported_once_per_component():
    found = full_price_warnings({"read": 2.0, "write": 3.0}, {"compute": 0.5})
    assert len(found) == 2
    assert found[0].startswith(
        'ert.yaml: Spad: the energy table prices no skipped_read and gated_read and gated_update of "Spad":'
    )
    assert 'skipped_read costs 2 pJ as "read"' in found[0] and 'gated_update costs 3 pJ as "write"' in found[0]
    assert found[1].startswith('ert.yaml: Mac: the energy table prices no mac_gated of "Mac":')


def test_prices_of_their_own_need_no_warning():
    assert full_price_warnings({"read": 2.0, "write": 3.0, "idle": 0.0}, {"compute": 0.5, "mac_gated": 0.1}) == []
    skipped = full_price_warnings({"read": 2.0, "write": 3.0, "skipped_read": 0.0}, {"mac": 0.5, "compute_gated": 0.1})
    assert len(skipped) == 1 and "skipped_read" not in skipped[0] and "gated_read" in skipped[0]


def test_dense_designs_are_priced_and_warned_as_before():
    table = EnergyTable({name: {"read": 1.0, "write": 1.0, "mac": 1.0} for name in ("Glb", "Main", "Spad", "Mac")})
    dense = replace(jl.loads(TEXTS), energy_table=table, sparse=SparseOptimizations())
    lowered = lower(dense, jl.TIMELOOP_2022)
    assert lowered.warnings == ()
    assert {name for _, name in lowered.provenance} == {"read", "fill", "update", "compute"}
