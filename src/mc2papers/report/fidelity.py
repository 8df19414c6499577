"""The manifest of what the papers say: each element, where it is in the code, and how it departs from the paper.

``assets/fidelity.csv`` has a row for each element; names in ``module``, ``test``, ``target`` and ``settings`` are
separated by blanks. Captions, notes under tables, ``docs/papers/fidelity.md`` and the departures of
``docs/model.md`` are made from it::

    python -m mc2papers.report.fidelity docs
"""

from __future__ import annotations

import csv
import functools
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mc2core.base import storage

AS_PRINTED, MENDED, DEPARTS, LEFT_OUT = "as printed", "mended", "departs", "left out"
#: and what each one means
STATUSES = {
    AS_PRINTED: "done as the paper prints it",
    MENDED: "the paper slips; done as it must be",
    DEPARTS: "done otherwise, or where the paper is silent",
    LEFT_OUT: "not done",
}
_PATH = Path(__file__).parent / "assets" / "fidelity.csv"


@dataclass(frozen=True)
class Entry:
    """An element of a paper.

    Attributes
    ----------
    paper, place, element : where it is printed, and what it is
    status : of STATUSES
    module, test, target : where it is done, what holds it, and which tables and figures show it
    settings : of rows of the experiments table that depart from what is printed, on its targets
    departure : one sentence; empty where it is as printed
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
    """All rows of the manifest, in order."""
    with open(_PATH, encoding="utf-8", newline="") as stream:
        rows: list[dict[str, Any]] = list(csv.DictReader(stream))
    several = ("module", "test", "target", "settings")
    return tuple(Entry(**row | {name: tuple(row[name].split()) for name in several}) for row in rows)


def departures(target: str) -> str:
    """What departs from the paper in a table or figure, in whole sentences; empty where nothing does."""
    said = dict.fromkeys(one.departure for one in entries() if target in one.target and one.departure)
    return f"Departures from the paper: {' '.join(said)}" if said else ""


def page() -> str:
    """``docs/papers/fidelity.md``."""
    counts = {status: sum(one.status == status for one in entries()) for status in STATUSES}
    lines = [
        "# Fidelity: every element of the three papers",
        "",
        "Made from a table by `python -m mc2papers.report.fidelity docs`; tests hold it: the modules, tests",
        "and targets that it names are there, and rows of `config/experiments.tsv` depart from printed settings only",
        "where it says so. Captions and notes under tables have their departures from it.",
        "",
        *(f"- **{status}** ({counts[status]}): {meaning}." for status, meaning in STATUSES.items()),
    ]
    for paper in dict.fromkeys(one.paper for one in entries()):
        lines += ["", f"## {paper}", "", *(_listed(_said(one)) for one in entries() if one.paper == paper)]
    return "\n".join(lines) + "\n"


def _said(one: Entry) -> str:
    """An entry of the page."""
    said = f"{one.place}, {one.element}: **{one.status}**. {one.departure}".rstrip()
    where, held = _code(one.module + one.target), _code(one.test)
    return said + (f" In {where}." if where else "") + (f" Held by {held}." if held else "")


def _listed(text: str) -> str:
    """An entry of a list in Markdown, in lines that can be read as they are."""
    # no line may begin with what would be an entry of its own, such as "1."
    together = re.sub(r" (?=(\d+[.)]|[-+*#]+) )", "\0", text)
    filled = textwrap.fill(
        together, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return filled.replace("\0", " ")


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def section() -> str:
    """The list of docs/model.md: departures of models and methods, which are of no single table or figure."""
    return "".join(
        f"{_listed(f'{one.paper}, {one.place}, {one.element}: {one.departure}')}\n"
        for one in entries()
        if one.status in (DEPARTS, LEFT_OUT) and not one.target
    )


def with_part(text: str, name: str, maker: str, part: str) -> str:
    """A document with a part of it made again; ValueError if it lacks the marks of its beginning and end."""
    first, last = f"<!-- {name}: made by {maker} -->\n", f"<!-- end of the {name} -->\n"
    found = re.search(f"{re.escape(first)}.*?{re.escape(last)}", text, re.S)
    if found is None:
        raise ValueError(f"the document lacks the lines {first.strip()!r} and {last.strip()!r}")
    return text[: found.start()] + first + part + last + text[found.end() :]


def with_section(text: str) -> str:
    """``docs/model.md`` with the list as it is now."""
    return with_part(text, "departures", "mc2papers.report.fidelity", section())


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    model = folder / "model.md"
    for path, content in (
        (folder / "papers" / "fidelity.md", page()),
        (model, with_section(model.read_text(encoding="utf-8"))),
    ):
        with storage.replacing(path) as stream:
            stream.write(content)
