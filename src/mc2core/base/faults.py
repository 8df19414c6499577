"""Descriptions of faults in rows of data, with their place."""

from __future__ import annotations

from typing import Any, NamedTuple


class Fault(NamedTuple):
    """Fault of a whole row, which replaces its values, such as "has 1 field, but the header has 2".

    ``remedy`` is advice for the user.
    """

    message: str
    remedy: str = ""


class BadRow(NamedTuple):
    """Place of a bad row, its wrong column (None if the whole row is wrong), the reason and the remedy."""

    place: Any
    column: str | None
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        if self.column is None:
            return f"{place_text(self.place)} {self.message}"
        return f"{place_text(self.place)}, column {self.column!r}: {self.message}"


def place_text(place: Any) -> str:
    """Return the place of a row as a text: "line 3" for a number; other places are texts already."""
    return place if isinstance(place, str) else f"line {place}"
