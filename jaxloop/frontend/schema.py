"""How keys and values are read, whatever the section (spec/inputs.md sections 0.3 and 0.4).

Keys and enum values may use hyphens or underscores. A number that does not convert is looked up in the top-level map
`variables:` (one step, no arithmetic). Every read that fails records an error and returns the default, so that one
pass finds all errors.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .._errors import Diagnostics, Place, nearest
from .nodes import Map, Node, Scalar, Sequence, canonical, kind_of

_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,30})")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TRUE = frozenset({"yes", "y", "on", "true"})
_FALSE = frozenset({"no", "n", "off", "false"})


class Kind(Enum):
    """What a value must be. COUNT: a whole number from 0. POSITIVE: from 1. INTEGER: any whole number. RATE: a number
    above 0. COST: a number from 0. REAL: any number. FLAG: yes or no. TEXT: any text."""

    COUNT = "a whole number from 0"
    POSITIVE = "a whole number from 1"
    INTEGER = "a whole number"
    RATE = "a number above 0"
    COST = "a number from 0"
    REAL = "a number"
    FLAG = "yes or no"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One quantity: its spellings, the first present of which wins, what its value must be and a hint when it is
    not."""

    names: tuple[str, ...]
    kind: Kind
    hint: str = ""


class Reader:
    """Reads values out of nodes and records what is wrong with them."""

    def __init__(self, diagnostics: Diagnostics, variables: Map | None = None):
        self.diagnostics = diagnostics
        self._variables = variables

    def error(self, place: Place, message: str, remedy: str = "") -> None:
        self.diagnostics.error(place, message, remedy)

    def warn(self, place: Place, message: str, remedy: str = "") -> None:
        self.diagnostics.warn(place, message, remedy)

    def map(self, node: Node | None, what: str) -> Map | None:
        """The node as a mapping; None with an error when it is something else, None alone when it is absent."""
        if node is None or isinstance(node, Map):
            return node
        self.error(node.place, f"{what} is {kind_of(node)}", "write a mapping, `key: value`")
        return None

    def sequence(self, node: Node | None, what: str) -> tuple[Node, ...]:
        """The items of a list; none when the node is absent, none and an error when it is something else."""
        if isinstance(node, Sequence):
            return node.items
        if node is not None:
            self.error(node.place, f"{what} is {kind_of(node)}", "write a list, `[...]`")
        return ()

    def text(self, node: Node | None, what: str) -> str | None:
        """The node's text, or the variable of that name; None with an error when it is a list or a mapping."""
        if node is None:
            return None
        if not isinstance(node, Scalar):
            self.error(node.place, f"{what} is {kind_of(node)}", "write plain text")
            return None
        value = self._variable(node.text)
        return node.text if value is None else value

    def enum(self, node: Node | None, what: str, values: Mapping[str, Any], aliases: Mapping[str, str]) -> Any:
        """The member that `node` names, in any spelling of hyphens and underscores; None and an error otherwise."""
        text = self.text(node, what)
        if node is None or text is None:
            return None
        name = canonical(text)
        name = aliases.get(name, name)
        if name not in values:
            self.error(node.place, f'unknown {what} "{text}"', nearest(name, values))
        return values.get(name)

    def value(self, node: Node | None, kind: Kind, hint: str = "") -> Any:
        """The node's value; None when it is absent or wrong (then an error is recorded)."""
        if node is None:
            return None
        remedy = f"write {kind.value}" + (f", {hint}" if hint else "")
        if not isinstance(node, Scalar):
            self.error(node.place, f"the value is {kind_of(node)}", remedy)
            return None
        value = _convert(node.text, kind)
        if value is None:
            variable = self._variable(node.text)
            value = None if variable is None else _convert(variable, kind)
        if value is None:
            if kind is not Kind.TEXT and _is_expression(node.text):
                remedy += (
                    "; neither arithmetic nor names of other attributes are understood, only names in `variables:`"
                )
            self.error(node.place, f"{kind_of(node)} is not {kind.value}", remedy)
        return value

    def attribute(self, map: Map, attribute: Attribute) -> Any:
        """The first given spelling's value, None when there is none. Other spellings that differ are reported."""
        given = [name for name in attribute.names if map.get(name) is not None]
        for other in given[1:]:
            first, second = map.get(given[0]), map.get(other)
            if isinstance(first, Scalar) and isinstance(second, Scalar) and first.text != second.text:
                self.warn(
                    map.place_of(other),
                    f'"{other}: {second.text}" is not used because "{given[0]}: {first.text}" is given too',
                    "keep one of the two",
                )
        return self.value(map.get(given[0]), attribute.kind, attribute.hint) if given else None

    def attributes(self, map: Map, table: Mapping[str, Attribute]) -> dict[str, Any]:
        return {field: self.attribute(map, attribute) for field, attribute in table.items()}

    def names(self, node: Node | None, valid: Iterable[str] | None, what: str) -> list[str]:
        """A list of known names, for example of tensors, each once. Unknown names are errors and left out."""
        valid = None if valid is None else list(valid)
        if isinstance(node, Scalar):
            self.error(node.place, f'"{node.text}" is not a list of {what} names', f"write [{node.text}]")
            return []
        found: list[str] = []
        for item in self.sequence(node, f"the list of {what} names"):
            name = self.known(item, valid, what)
            if name is not None:
                found.append(name)
        return list(dict.fromkeys(found))

    def known(self, node: Node | None, valid: Iterable[str] | None, what: str) -> str | None:
        """The name that `node` holds if it is one of `valid` (None: whatever it is, because the section that would
        tell is broken); otherwise None and an error with the nearest names."""
        valid = None if valid is None else list(valid)
        name = self.text(node, f"the {what} name")
        if node is None or name is None or valid is None or name in valid:
            return name
        self.error(node.place, f'unknown {what} "{name}"', nearest(name, valid))
        return None

    def check_keys(self, map: Map, known: Iterable[str], silent: Iterable[str] = ()) -> None:
        """Warns about keys that are neither known nor silent, and refuses one key in two spellings."""
        known, silent = list(known), set(silent)
        seen: dict[str, str] = {}
        for key in map.items:
            name = canonical(key)
            if name in seen:
                self.error(map.places[key], f'"{key}" and "{seen[name]}" are the same key', "keep one of the two")
            seen[name] = key
            if name not in known and name not in silent:
                self.warn(map.places[key], f'the key "{key}" is not used', nearest(name, known))

    def _variable(self, name: str) -> str | None:
        value = self._variables.items.get(name) if self._variables is not None else None
        return value.text if isinstance(value, Scalar) and not value.is_null else None


def closest(name: str, valid: Iterable[str], cutoff: float) -> str | None:
    """The valid name that `name` is probably a misspelling of."""
    found = difflib.get_close_matches(name, list(valid), n=1, cutoff=cutoff)
    return found[0] if found else None


def _is_expression(text: str) -> bool:
    return re.search(r"[A-Za-z_]|[0-9)]\s*[-+*/]", text) is not None


def _convert(text: str, kind: Kind) -> Any:
    if kind is Kind.TEXT:
        return text
    if kind is Kind.FLAG:
        is_cased = text in (text.lower(), text.upper(), text.capitalize())
        return text.lower() in _TRUE if is_cased and text.lower() in _TRUE | _FALSE else None
    if kind in (Kind.COUNT, Kind.POSITIVE, Kind.INTEGER):
        if not _INTEGER.fullmatch(text):
            return None
        least = {Kind.COUNT: 0, Kind.POSITIVE: 1}.get(kind)
        return int(text) if least is None or int(text) >= least else None
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if math.isinf(number) or (kind is Kind.RATE and number <= 0) or (kind is Kind.COST and number < 0):
        return None
    return number
