"""The list of all elements of the papers, with their modules and their departures from the paper.

``assets/fidelity.csv`` has one row per element. Names in ``module``, ``test``, ``target`` and ``settings`` are
separated by blanks. Captions, notes under tables and the counts in ``docs/papers/fidelity.md`` come from this file::

    python -m mc2papers.report.fidelity docs
"""

from __future__ import annotations

import csv
import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mc2core.base import storage

AS_PRINTED, CORRECTED, DEPARTS, OMITTED = "as printed", "corrected", "departs", "omitted"
#: and their meanings
STATUSES = {
    AS_PRINTED: "implemented as the paper prints it",
    CORRECTED: "the paper prints a mistake, and the package uses the corrected form",
    DEPARTS: "the package differs on purpose, or the paper does not state the detail",
    OMITTED: "not implemented",
}
_PATH = Path(__file__).parent / "assets" / "fidelity.csv"


@dataclass(frozen=True)
class Entry:
    """An element of a paper.

    Attributes
    ----------
    paper, place, element : paper, section or equation, and description of the element
    status : a key of STATUSES
    module, test, target : modules that implement the element, tests that check it, and tables and figures that show it
    settings : settings that differ from the printed settings in experiments of these targets
    departure : one sentence; empty if the element is as printed
    """

    paper: str
    place: str
    element: str
    status: str
    module: tuple[str, ...]
    test: tuple[str, ...]
    target: tuple[str, ...]
    settings: tuple[str, ...]
    departure: str


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return all rows of the list, in order."""
    with open(_PATH, encoding="utf-8", newline="") as stream:
        rows: list[dict[str, Any]] = list(csv.DictReader(stream))
    several = ("module", "test", "target", "settings")
    return tuple(Entry(**row | {name: tuple(row[name].split()) for name in several}) for row in rows)


def departures(target: str) -> str:
    """Return a sentence with the number of departures of a table or figure, and where they are listed; "" for none."""
    texts = {one.departure for one in entries() if target in one.target and one.departure}
    return f"Departures from the paper: {len(texts)}, listed in docs/papers/fidelity.md." if texts else ""


def counts() -> str:
    """Return lines for ``docs/papers/fidelity.md``: the number of elements per status."""
    statuses = [one.status for one in entries()]
    return "".join(f"- **{status}** ({statuses.count(status)}): {meaning}.\n" for status, meaning in STATUSES.items())


def with_part(text: str, name: str, maker: str, part: str) -> str:
    """Return a document with a generated part replaced. Raises ValueError if the marks around the part are missing."""
    first, last = f"<!-- {name}: made by {maker} -->\n", f"<!-- end of the {name} -->\n"
    match = re.search(f"{re.escape(first)}.*?{re.escape(last)}", text, re.S)
    if match is None:
        raise ValueError(f"the document lacks the lines {first.strip()!r} and {last.strip()!r}")
    return text[: match.start()] + first + part + last + text[match.end() :]


def with_counts(text: str) -> str:
    """Return ``docs/papers/fidelity.md`` with the current counts."""
    return with_part(text, "counts", "mc2papers.report.fidelity", counts())


if __name__ == "__main__":
    path = Path(sys.argv[1]) / "papers" / "fidelity.md"
    content = with_counts(path.read_text(encoding="utf-8"))
    with storage.replacing(path) as stream:
        stream.write(content)
