"""YAML texts as one tree whose nodes know their file, line and key path (spec/inputs.md section 0.2).

All files are fragments of one mapping: their top-level keys are merged, and an anchor of one file is visible in the
files after it. Every file is parsed on its own, so that a syntax error in one leaves the others readable.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import yaml

from .._errors import Diagnostics, Place

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE_KEY = "<<"
_DEEPEST = 100
_JINJA = "this looks like a jinja2 template of the v0.4 dialect, which is not read yet; render it first"


def canonical(key: str) -> str:
    """The underscore spelling of a key or an enum value. Names of levels, tensors or ranks never pass here."""
    return key.replace("-", "_")


@dataclass(frozen=True)
class Scalar:
    """A text. `is_null` is true for an empty or `null` value that is not quoted."""

    place: Place
    text: str
    is_null: bool
    tag: str = ""


@dataclass(frozen=True)
class Sequence:
    place: Place
    items: tuple["Node", ...]
    tag: str = ""


@dataclass(frozen=True)
class Map:
    """A mapping in the order of the file. `items` and `places` (of the keys) go by the keys as written, `get` and
    `place_of` by their underscore spelling."""

    place: Place
    items: dict[str, "Node"]
    places: dict[str, Place] = field(default_factory=dict)
    tag: str = ""

    @cached_property
    def _written(self) -> dict[str, str]:
        return {canonical(key): key for key in reversed(self.items)}

    def __contains__(self, key: str) -> bool:
        return key in self._written

    def get(self, key: str) -> "Node | None":
        """The value of `key` in any spelling; None when the key is absent or its value is null."""
        value = self.items.get(self._written.get(key, ""))
        return None if isinstance(value, Scalar) and value.is_null else value

    def place_of(self, key: str) -> Place:
        """Where `key` stands, or the whole mapping when it is absent."""
        return self.places.get(self._written.get(key, ""), self.place)


Node = Scalar | Sequence | Map


def kind_of(node: "Node") -> str:
    """What a user would call the node."""
    if isinstance(node, Map):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    return "null" if node.is_null else f'"{node.text}"'


def tags_in(node: "Node") -> Iterator[tuple[str, Place]]:
    """All explicit tags (`!Component`) in and below a node, each with its place."""
    seen: set[int] = set()
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if current.tag.startswith("!") and len(current.tag) > 1:
            yield current.tag, current.place
        if isinstance(current, Map):
            stack.extend(reversed(current.items.values()))
        elif isinstance(current, Sequence):
            stack.extend(reversed(current.items))


@dataclass(frozen=True)
class Tree:
    """The merged top level. `is_complete` is false when a file could not be parsed: then a missing key proves
    nothing."""

    root: Map
    is_complete: bool


def parse(texts: Mapping[str, str], diagnostics: Diagnostics, repeatable: Collection[str] = ()) -> Tree:
    """Merges the texts (by file name) into one tree. Syntax errors, duplicate keys and second documents are reported
    with their place. Of a top-level key in `repeatable` (not read by anyone) the first is kept."""
    anchors: dict[str, Node] = {}
    items: dict[str, Node] = {}
    places: dict[str, Place] = {}
    is_complete = True
    for file, text in texts.items():
        composer = _Composer(file, text, anchors, diagnostics)
        try:
            top = composer.document()
        except yaml.YAMLError as error:
            composer.report(error)
            is_complete = False
            continue
        if top is None:
            continue
        for key, value in top.items.items():
            other = next((written for written in items if canonical(written) == canonical(key)), None)
            if other is None:
                items[key], places[key] = value, top.places[key]
            elif canonical(key) not in repeatable:
                diagnostics.error(
                    top.places[key],
                    f'the top-level key "{key}" was already given at {places[other].file}:{places[other].line}',
                    "keep one of the two; the reference would silently use the first",
                )
    return Tree(Map(Place(), items, places), is_complete)


class _Composer:
    """Builds nodes from the parse events of one text. Anchors are shared with the files before."""

    def __init__(self, file: str, text: str, anchors: dict[str, Node], diagnostics: Diagnostics):
        self._file = file
        self._text = text.removeprefix("\ufeff")
        self._anchors = anchors
        self._diagnostics = diagnostics
        self._depth = 0

    def document(self) -> Map | None:
        self._events = yaml.parse(self._text, Loader=_LOADER)
        self._event = next(self._events)
        top: Node | None = None
        while not isinstance(self._event, yaml.StreamEndEvent):
            if isinstance(self._event, (yaml.StreamStartEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent)):
                self._event = next(self._events)
                continue
            place = self._place("")
            node = self._node("")
            if isinstance(node, Scalar) and node.is_null:
                continue
            if top is not None:
                self._diagnostics.error(
                    place,
                    "a second YAML document starts here, and the reference would ignore it",
                    'remove the "---" before it',
                )
                break
            top = node
        if top is None or isinstance(top, Map):
            return top
        self._diagnostics.error(
            top.place, f"the top level is {kind_of(top)}", 'start the file with a key such as "problem:"' + self._hint()
        )
        return None

    def report(self, error: yaml.YAMLError) -> None:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 0
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        remedy = _JINJA if self._is_template else "correct the YAML syntax at this line"
        self._diagnostics.error(Place(self._file, line), f"not valid YAML: {problem}", remedy)

    @property
    def _is_template(self) -> bool:
        return "{{" in self._text or "{%" in self._text

    def _hint(self) -> str:
        return f"; {_JINJA}" if self._is_template else ""

    def _place(self, path: str) -> Place:
        return Place(self._file, self._event.start_mark.line + 1, path)

    def _node(self, path: str) -> Node:
        event, place = self._event, self._place(path)
        self._event = next(self._events)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                self._diagnostics.error(
                    place, f'the alias "*{event.anchor}" has no anchor before it', "define it first"
                )
            return self._anchors.get(event.anchor, Scalar(place, "", True))
        self._depth += 1
        if self._depth > _DEEPEST:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {_DEEPEST}", problem_mark=event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            node: Node = Scalar(place, event.value, event.implicit[0] and event.value in NULLS, event.tag or "")
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(place, event.tag or "")
        else:
            node = self._map(place, event.tag or "")
        self._depth -= 1
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _sequence(self, place: Place, tag: str) -> Sequence:
        items: list[Node] = []
        while not isinstance(self._event, yaml.SequenceEndEvent):
            items.append(self._node(f"{place.path}[{len(items)}]"))
        self._event = next(self._events)
        return Sequence(place, tuple(items), tag)

    def _map(self, place: Place, tag: str) -> Map:
        items: dict[str, Node] = {}
        places: dict[str, Place] = {}
        merged: list[Node] = []
        while not isinstance(self._event, yaml.MappingEndEvent):
            key = self._node(place.path)
            text = key.text if isinstance(key, Scalar) else ""
            key_place = replace(key.place, path=f"{place.path}.{text}" if place.path else text)
            value = self._node(key_place.path)
            if not isinstance(key, Scalar):
                self._diagnostics.error(
                    key.place, f"a key is {kind_of(key)}, not text", _JINJA if self._is_template else "quote the key"
                )
            elif text == _MERGE_KEY:
                merged.extend(value.items if isinstance(value, Sequence) else (value,))
            elif text in items:
                self._diagnostics.error(
                    key_place,
                    f'the key "{text}" was already given at {places[text].file}:{places[text].line}',
                    "keep one of the two",
                )
            else:
                items[text], places[text] = value, key_place
        self._event = next(self._events)
        self._merge(merged, items, places)
        return Map(place, items, places, tag)

    def _merge(self, merged: list[Node], items: dict[str, Node], places: dict[str, Place]) -> None:
        for base in merged:
            if not isinstance(base, Map):
                self._diagnostics.error(base.place, f'"<<" merges {kind_of(base)}', "it takes mappings only")
                continue
            for key, value in base.items.items():
                if key not in items:
                    items[key], places[key] = value, base.places[key]
