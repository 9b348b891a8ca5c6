"""The examples run as they stand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=os.environ, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3
