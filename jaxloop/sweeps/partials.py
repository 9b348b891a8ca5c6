"""What is being written, beside its final place and under the number of the process that writes it."""

import os
import shutil
from pathlib import Path


def partial_of(path: Path) -> Path:
    """Where this process writes what will be renamed to `path`; leftovers of processes that died are removed."""
    for other in path.parent.glob(f".{path.name}.*.partial"):
        number = other.name.removesuffix(".partial").rpartition(".")[2]
        if number.isdigit() and not _lives(int(number)):
            remove(other)
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
