"""Factor and permutation texts of a mapping directive (spec/inputs.md 3.3 and 3.4)."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from .._errors import nearest
from .nodes import Node, Scalar
from .schema import Reader

_TOKEN = re.compile(r"([A-Za-z]+) *=* *([0-9]+)(?:,([0-9]+))?")
_SEPARATORS = re.compile(r"[\s,;]*")


@dataclass
class Factors:
    """Bound and residual per rank; `full` holds the ranks written as factor 0, the whole dimension."""

    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    full: list[str] = field(default_factory=list)


def read_factors(reader: Reader, node: Node | None, sizes: Mapping[str, int] | None) -> Factors:
    """Reads `K=4 M2 N=4,3` or a list of such texts. Text after `#` is dropped, everything else must be understood.
    `sizes` are those of all ranks (None: unknown, not checked)."""
    factors = Factors()
    for item in _parts(reader, node, "the factors"):
        text = (reader.text(item, "the factors") or "").partition("#")[0]
        rest = _TOKEN.sub(" ", text)
        if not _SEPARATORS.fullmatch(rest):
            reader.error(
                item.place,
                f'cannot read "{rest.strip()}" in the factors "{text}"',
                'write "M=4 K=2", or "K=4,3" for 4 iterations of which the last time only 3 run',
            )
        for match in _TOKEN.finditer(text):
            _add(reader, item, match, factors, sizes)
    return factors


def _add(reader: Reader, item: Node, match: re.Match[str], factors: Factors, sizes: Mapping[str, int] | None) -> None:
    rank, bound = match.group(1), int(match.group(2))
    if sizes is not None and rank not in sizes:
        reader.error(item.place, f'unknown dimension "{rank}" in the factors', nearest(rank, sizes))
        return
    if rank in factors.bounds:
        reader.error(item.place, f'the dimension "{rank}" has two factors', "one loop per dimension and level")
        return
    if bound == 0:
        bound = sizes[rank] if sizes is not None else 1
        factors.full.append(rank)
        reader.warn(
            item.place,
            f"factor 0 of {rank} means its full size {bound}, not what the other levels leave",
            f"write {rank}={bound} or the factor that you mean",
        )
    residual = bound if match.group(3) is None else int(match.group(3))
    if not 1 <= residual <= bound:
        reader.error(
            item.place, f'the residual of "{match.group(0)}" is not from 1 to {bound}', "it is the last loop's length"
        )
        residual = bound
    factors.bounds[rank] = (bound, residual)


def read_permutation(reader: Reader, node: Node | None, ranks: Collection[str] | None) -> list[str]:
    """The ranks that a permutation names, innermost first, each once. `ranks` are all there are (None: unknown)."""
    found: list[str] = []
    for item in _parts(reader, node, "the permutation"):
        text = (reader.text(item, "the permutation") or "").partition("#")[0]
        for rank in re.sub(r"[\s,]", "", text):
            if ranks is not None and rank not in ranks:
                reader.error(item.place, f'unknown dimension "{rank}" in the permutation', nearest(rank, ranks))
            elif rank in found:
                reader.error(
                    item.place,
                    f'the permutation names "{rank}" twice',
                    "one loop per dimension and level; a second one needs a further (zero-size, bypassed) level",
                )
            else:
                found.append(rank)
    return found


def _parts(reader: Reader, node: Node | None, what: str) -> tuple[Node, ...]:
    if isinstance(node, Scalar):
        return (node,)
    return reader.sequence(node, what)
