"""How full a process is of executables.

Linux limits the memory maps of a process (`vm.max_map_count`, 65,530 by default), and XLA takes one for each of the
1,500 or so pieces of an executable. After some forty of them the compiler crashes the process.
"""

from pathlib import Path

MAPS = Path("/proc/self/maps")
LIMIT = Path("/proc/sys/vm/max_map_count")
SHARE = 0.6
"""Of the maps; the rest is for the next executables, and for others."""


def is_crowded() -> bool:
    """Whether executables should be let go before more are made. False where the system does not tell."""
    try:
        limit = int(LIMIT.read_text())
        with MAPS.open("rb") as lines:
            return sum(1 for _ in lines) > SHARE * limit
    except OSError:
        return False
