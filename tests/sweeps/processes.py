"""Processes of the tests of sweeps."""

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def environment(cache: Path | None, devices: int = 1) -> dict[str, str]:
    """With a compilation cache of their own, so that only the first of a test compiles."""
    found = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    found |= {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "error"}
    if cache is not None:
        found |= {
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
        }
    if devices > 1:
        found["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    return found


def start(*arguments: object, cache: Path | None = None, devices: int = 1) -> "subprocess.Popen[str]":
    command = [sys.executable, *map(str, arguments)]
    pipe, env = subprocess.PIPE, environment(cache, devices)
    return subprocess.Popen(command, text=True, cwd=ROOT, env=env, stdout=pipe, stderr=pipe)


def finish(process: "subprocess.Popen[str]") -> str:
    """What it has written."""
    written, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return written


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]
