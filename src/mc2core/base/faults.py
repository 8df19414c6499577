"""What is wrong with a row of data, and where it is."""

from __future__ import annotations

from typing import Any, NamedTuple


class Fault(NamedTuple):
    """What is wrong with a row as a whole, in place of its values: "has 1 field, but the header has 2".

    ``remedy`` : what can be done about it.
    """

    message: str
    remedy: str = ""


class BadRow(NamedTuple):
    """Where a row is, the column that is wrong (None: the row as a whole), why, and what can be done about it."""

    place: Any
    column: str | None
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        if self.column is None:
            return f"{place_text(self.place)} {self.message}"
        return f"{place_text(self.place)}, column {self.column!r}: {self.message}"


def place_text(place: Any) -> str:
    """Where a row is: "line 3", or as its reader says it."""
    return place if isinstance(place, str) else f"line {place}"
