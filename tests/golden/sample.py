"""`python -m tests.golden.sample SOURCE_DIR`: makes `data/`, a seeded share of the golden files in SOURCE_DIR."""

import gzip
import random
import sys
from pathlib import Path

from .compare import read_cases

DATA = Path(__file__).parent / "data"
DENSE = ("dense-matmul", "dense-conv", "hardware")
SPARSE = ("saf", "format", "sparse", "sparse-conv", "big", "banded", "advanced")
SHARES = dict.fromkeys(DENSE, 3) | dict.fromkeys(SPARSE, 4)
"""File -> every how many cases one is taken."""


def file_of(name: str) -> str:
    return f"{name}.jsonl.gz"


def sample(path: Path, share: int) -> list[str]:
    """The lines of one in `share` of the accepted and of the refused cases of a golden file, in its order."""
    with gzip.open(path, "rt") as file:
        lines = file.readlines()
    accepted = [case["ok"] for case in read_cases(path)]
    rng, chosen = random.Random(0), []
    for wanted in (True, False):
        rows = [row for row, ok in enumerate(accepted) if ok is wanted]
        chosen += rng.sample(rows, len(rows) // share)
    return [lines[row] for row in sorted(chosen)]


def main(source: Path) -> None:
    DATA.mkdir(exist_ok=True)
    for name, share in SHARES.items():
        text = "".join(sample(source / file_of(name), share))
        (DATA / file_of(name)).write_bytes(gzip.compress(text.encode(), mtime=0))  # the same bytes in every run


if __name__ == "__main__":
    main(Path(sys.argv[1]))
