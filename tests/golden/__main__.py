"""`python -m tests.golden FILE.jsonl.gz ...`: passed and total by profile and feature, and the fields that differ."""

import sys
import time
from collections import Counter
from pathlib import Path

from jaxloop.run.executables import compilations

from .compare import compare_case, read_cases


def main(paths: list[str]) -> int:
    start, failures = time.perf_counter(), 0
    for path in map(Path, paths):
        total: Counter[str] = Counter()
        passed: Counter[str] = Counter()
        fields: Counter[str] = Counter()
        examples: dict[str, str] = {}
        for case in read_cases(path):
            found = compare_case(case)
            failures += bool(found)
            kinds = [f"profile {case['profile']}", *(f"  feature {f}" for f in case["features"])]
            kinds.append("  refused" if not case["ok"] else "  accepted")
            total.update(kinds)
            passed.update(kinds if not found else [])
            for difference in found:
                kind = difference.field.rsplit(".", 1)[0] if "." in difference.field else difference.field
                fields[kind] += 1
                examples.setdefault(
                    kind, f"{case['id']}: {difference.field}: expected {difference.expected}, ours {difference.ours}"
                )
        print(path.name)
        for kind, count in total.items():
            print(f"  {kind:<42} {passed[kind]:>5} / {count}")
        for field, count in fields.most_common(12):
            print(f"  differs: {count:>5} x {field:<28} {examples[field]}")
    print(f"{time.perf_counter() - start:.1f} s, compilations: {compilations()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
