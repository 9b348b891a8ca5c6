"""The hand-written spec sets: inputs, what they exercise, and what is right.

Those of version 0.4 lie here twice: as written, and lowered to version 0.3 as the reference read them.
"""

from dataclasses import dataclass
from pathlib import Path

from tests.cases.table import IMPERFECT, Reference, Refused

OWN = Path(__file__).parent / "data"
REPORT = Path(__file__).parents[1] / "report/data"


@dataclass(frozen=True)
class Example:
    """`folder` holds the inputs and, if it can be evaluated, `expected.stats.txt`. `ties`: lines of the stats file in
    which a printed number lies on a tie of the last digit and may come out one digit off."""

    folder: Path
    exercises: str
    right: Reference | Refused = Reference()
    ties: int = 0

    def files(self) -> dict[str, str]:
        paths = sorted(path for path in self.folder.iterdir() if path.name != "expected.stats.txt")
        return {path.name: path.read_text() for path in paths}

    def expected(self) -> str:
        return (self.folder / "expected.stats.txt").read_text()


DIALECT = "the v0.4 dialect is not read yet"

EXAMPLES = {
    "01": Example(REPORT / "matmul", "matmul, 1-D fan-out, factor 0"),
    "02": Example(REPORT / "conv", "convolution, 2-D fan-out, bypass, no multicast"),
    "03": Example(REPORT / "strided", "strided and dilated convolution, padded directives, sizeKB"),
    "04": Example(OWN / "04", "grouped convolution, RLE, gating"),
    "05": Example(OWN / "05", "imperfect factors", IMPERFECT),
    "06": Example(OWN / "06", "UOP and CP, skipping both ways"),
    "07": Example(OWN / "07", "bitmask, banded matrix, gating"),
    "07b": Example(OWN / "07b", "uncompressed bitmask, commonDensity"),
    "08": Example(OWN / "08", "2:4 weights, spatial skipping"),
    "09": Example(OWN / "09", "mapping of the reference's mapper, dense"),
    "10": Example(OWN / "10", "mapping of the reference's mapper, sparse"),
    "11": Example(OWN / "11", "v0.4: containers, expressions", Refused("marks the v0.4 dialect", DIALECT)),
    "11 lowered": Example(OWN / "11-lowered", "the same in version 0.3: levels that keep nothing", ties=1),
    "12": Example(OWN / "12", "v0.4: jinja2 top file", Refused("jinja2 template of the v0.4 dialect", DIALECT)),
    "12 lowered": Example(OWN / "12-lowered", "the same in version 0.3: sparse"),
    "13": Example(REPORT / "ispass", "older dialect with arithmetic and storage, ERT of version 0.2"),
    "14": Example(OWN / "14", "mapping of the reference's mapper, suffix permutation, gating"),
}
