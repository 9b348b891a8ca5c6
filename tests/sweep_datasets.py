"""Datasets laid out as those of sweeps, with numbers made up."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

LEVELS, TENSORS, ACTIVITIES = ("Registers", "Buffer", "DRAM"), ("A", "Z"), ("read", "fill", "network")
OF_COMPUTE, OF_ACCESSES = 0.125, 0.75
"""Shares of the energy: of the compute units, and of the accesses to tensors."""


def a_sweep(axes: Mapping[str, Any], share_invalid: float = 0.0, parts: bool = True) -> xr.Dataset:
    """`axes`: name -> values; `a+b` -> pairs of values. `parts`: with energies by tensor, by activity
    and of the compute units."""
    draw = np.random.default_rng(7)
    dims, shape = tuple(axes), tuple(map(len, axes.values()))
    cycles = np.round(draw.lognormal(10, 0.5, shape))
    energy = draw.lognormal(14, 0.5, shape)
    valid = np.arange(cycles.size).reshape(shape) >= share_invalid * cycles.size
    cycles, energy = np.where(valid, cycles, np.nan), np.where(valid, energy, np.nan)
    variables = {
        "cycles": (dims, cycles, _attrs("cycle", "cycles")),
        "energy_pj": (dims, energy, _attrs("pJ", "energy")),
        "area_um2": (dims, np.full(shape, 5e5), _attrs("um^2", "area")),
        "edp": (dims, cycles * energy, _attrs("pJ cycle", "energy-delay product")),
        "valid": (dims, valid, _attrs("", "whether the point is valid")),
        "status": (dims, np.where(valid, 0, 2**62 + 1), _attrs("", "status bits")),
    }
    coords: dict[str, Any] = {}
    for name, values in axes.items():
        coords |= _coords(name, values)
    if parts:
        variables["compute_energy_pj"] = (dims, energy * OF_COMPUTE, _attrs("pJ", "compute energy"))
        for dim, labels, whole in (
            ("tensor", TENSORS, OF_ACCESSES),
            ("activity", ACTIVITIES, 1.0 - OF_COMPUTE),
        ):
            share = whole * draw.dirichlet(np.ones(len(LEVELS) * len(labels))).reshape(len(LEVELS), len(labels))
            split = energy[..., None, None] * share
            variables[f"energy_pj_by_{dim}"] = ((*dims, "level", dim), split, _attrs("pJ", f"energy by {dim}"))
            coords[dim] = (dim, list(labels), _attrs("", dim))
        coords["level"] = ("level", list(LEVELS), _attrs("", "level"))
    attrs = {"design": "demo", "conventions": "TIMELOOP_2022", "definition": '{"axes": []}'}
    return xr.Dataset(variables, coords, attrs)


def _coords(name: str, values: Any) -> dict[str, Any]:
    unit = "word" if name.endswith("size") else ""
    if "+" not in name:
        return {name: (name, list(values), _attrs(unit, name))}
    columns = zip(name.split("+"), zip(*values, strict=True), strict=True)
    return {name: (name, np.arange(len(values)), _attrs("", name))} | {
        part: (name, list(column), _attrs(unit, part)) for part, column in columns
    }


def _attrs(units: str, long_name: str) -> dict[str, str]:
    return {"units": units, "long_name": long_name}
