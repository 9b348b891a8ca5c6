"""Writing result files so that a reader never meets half of one."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | Path, text: str) -> None:
    """Writes `text` to `path`: into a temporary file of the same folder first, which then takes the place of `path`.

    If anything goes wrong the old file, if there was one, is untouched and no temporary file stays behind.

    **Raises:** `OSError` where the folder does not exist or cannot be written, or `path` is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder")
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _permissions(target: Path) -> int:
    """Those of the file that is replaced, else what a new file gets (`mkstemp` gives access to the owner only)."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
