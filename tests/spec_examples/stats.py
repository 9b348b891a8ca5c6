"""Compares stats files: line by line, or figure by figure where one of them has further lines."""

import re
from itertools import pairwise, zip_longest

Key = tuple[str, str, str]

_FIGURE = re.compile(r"(.+?)\s*[:=] (.+)")
_TENSOR = re.compile(r"    (\S+):")


def different_lines(ours: str, theirs: str) -> list[tuple[str, str]]:
    """All pairs of lines that differ, except for the area in the summary, which the reference does not sum."""
    pairs = zip_longest(ours.splitlines(), theirs.splitlines(), fillvalue="")
    return [(own, other) for own, other in pairs if own != other and not other.startswith("Area: 0.00 mm^2")]


def one_digit_off(own: str, other: str) -> bool:
    """Two lines that differ in the last printed digit of one number."""
    pairs = [(a, b) for a, b in zip_longest(own.split(), other.split(), fillvalue="") if a != b]
    if len(pairs) != 1 or not all(re.fullmatch(r"\d+(\.\d+)?", number) for number in pairs[0]):
        return False
    decimals = [len(number.partition(".")[2]) for number in pairs[0]]
    scaled = [round(float(number) * 10 ** decimals[0]) for number in pairs[0]]
    return decimals[0] == decimals[1] and abs(scaled[0] - scaled[1]) == 1


def figures(text: str) -> dict[Key, str]:
    """`{(level, network or section; tensor; label): value}`. The labels of a sparse design's file lose their
    "Algorithmic", as a dense design's file has them."""
    found: dict[Key, str] = {}
    block = tensor = ""
    for line, following in pairwise([*text.splitlines(), ""]):
        if following and not following.strip("-"):
            block, tensor = line, ""
        elif line.startswith(("===", "pJ/")):
            block, tensor = line.strip("= "), ""
        elif re.fullmatch(r"\S+ <==> \S+", line):
            block = line
        elif match := _TENSOR.fullmatch(line):
            tensor = match[1]
        elif match := _FIGURE.fullmatch(line):
            label = match[1].strip().replace("Algorithmic scalar", "Scalar").removeprefix("Algorithmic ")
            found[block, tensor, label] = match[2]
    return found
