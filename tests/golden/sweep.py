"""`python -m tests.golden.sweep FILE.jsonl.gz ...`: as JSON, the differences of each case and the compilations."""

import json
import sys
from pathlib import Path

from jaxloop.run.executables import compilations

from .compare import compare_case, read_cases


def main(paths: list[str]) -> None:
    """Evaluates the cases one after another in this process."""
    found = {case["id"]: [str(d) for d in compare_case(case)] for path in paths for case in read_cases(Path(path))}
    json.dump({"differences": found, "compilations": compilations()}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
