"""Writing result files so that a reader never meets half of one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Writes `content` to `path`, as `replacing` does; text in UTF-8.

    **Raises:** `OSError` where the folder does not exist or cannot be written, or `path` is a folder.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """An empty temporary file of the same folder to write to, which takes the place of `path` at the end.

    If anything goes wrong, an interrupt included, the old file, if there was one, is untouched and no temporary file
    stays behind.

    **Raises:** `OSError` where the folder does not exist or cannot be written, or `path` is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _permissions(target: Path) -> int:
    """Those of the file that is replaced, else what a new file gets (`mkstemp` gives access to the owner only)."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
