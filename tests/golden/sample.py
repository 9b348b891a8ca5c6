"""`python -m tests.golden.sample SOURCE_DIR`: makes `data/`, a seeded third of the golden files in SOURCE_DIR."""

import gzip
import random
import sys
from pathlib import Path

from .compare import read_cases

DATA = Path(__file__).parent / "data"
FILES = ("dense-matmul.jsonl.gz", "dense-conv.jsonl.gz", "hardware.jsonl.gz")


def third(path: Path) -> list[str]:
    """The lines of a third of the accepted and a third of the refused cases of a golden file, in its order."""
    with gzip.open(path, "rt") as file:
        lines = file.readlines()
    accepted = [case["ok"] for case in read_cases(path)]
    rng, chosen = random.Random(0), []
    for wanted in (True, False):
        rows = [row for row, ok in enumerate(accepted) if ok is wanted]
        chosen += rng.sample(rows, len(rows) // 3)
    return [lines[row] for row in sorted(chosen)]


def main(source: Path) -> None:
    DATA.mkdir(exist_ok=True)
    for name in FILES:
        text = "".join(third(source / name))
        (DATA / name).write_bytes(gzip.compress(text.encode(), mtime=0))  # the same bytes in every run


if __name__ == "__main__":
    main(Path(sys.argv[1]))
