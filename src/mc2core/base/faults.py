"""Descriptions of faults in rows of data, with their place."""

from __future__ import annotations

from typing import Any, NamedTuple


class Fault(NamedTuple):
    """Fault of a row as a whole, instead of its values: "has 1 field, but the header has 2".

    ``remedy`` : what can be done about it.
    """

    message: str
    remedy: str = ""


class BadRow(NamedTuple):
    """Place of a bad row, its wrong column (None: the row as a whole), the reason and the remedy."""

    place: Any
    column: str | None
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        if self.column is None:
            return f"{place_text(self.place)} {self.message}"
        return f"{place_text(self.place)}, column {self.column!r}: {self.message}"


def place_text(place: Any) -> str:
    """Return the place of a row: "line 3", or the text of its reader."""
    return place if isinstance(place, str) else f"line {place}"
