"""Contradictions between constraints, told with both of their sides."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from .._errors import Diagnostics, Place

_Constraint = TypeVar("_Constraint", bound=Any)


class Clashes:
    """Records contradictions as errors of `report`."""

    def __init__(self, report: Diagnostics):
        self._report = report

    def unique(
        self,
        constraints: Iterable[_Constraint],
        key: Callable[[_Constraint], Hashable],
        value: Callable[[_Constraint], Any],
    ) -> dict[Any, _Constraint]:
        """The constraints by what they constrain. Two of them for the same thing must say the same."""
        found: dict[Any, _Constraint] = {}
        for constraint in constraints:
            other = found.setdefault(key(constraint), constraint)
            if value(other) != value(constraint):
                self.add(f"{named(constraint)} contradicts {named(other)}", (constraint,), "keep one of the two")
        return found

    def add(self, message: str, constraints: Iterable[Any], remedy: str) -> None:
        """An error at the first of the constraints."""
        place = next((constraint.place for constraint in constraints), Place("", 0, "mapspace_constraints"))
        self._report.error(place, message, remedy)


def named(constraint: Any) -> str:
    """The constraint with its place."""
    place = constraint.place
    return f"{constraint} ({place.file}:{place.line})" if place.line else str(constraint)
