"""Shared by the tests of sweeps on disk: counting what is computed, damages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

import jaxloop as jl
from tests.sweeps.base import grid


class Counting:
    """A `progress` that knows how many points were there and how many were computed."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []

    def __call__(self, done: int, points: int) -> None:
        self.told.append((done, points))

    @property
    def old(self) -> int:
        return self.told[0][0]

    @property
    def computed(self) -> int:
        return self.told[-1][0] - self.old


def again(path: Path, **changes: Any) -> tuple[xr.Dataset, Counting]:
    counting = Counting()
    return jl.sweep(**(grid() | changes), out=path, progress=counting), counting


def chunks(path: Path, field: str = "cycles") -> list[Path]:
    return sorted(found for found in (path / field / "c").rglob("*") if found.is_file())


def contents(path: Path) -> dict[str, bytes]:
    return {str(found.relative_to(path)): found.read_bytes() for found in path.rglob("*") if found.is_file()}


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped": flipped,
    "first byte": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "last byte": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "truncated": lambda data: data[: len(data) // 2],
    "three bytes": lambda data: data[:3],
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "longer": lambda data: data + b"x",
}
