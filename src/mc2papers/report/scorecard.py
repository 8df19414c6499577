"""The scorecard: the main claims of each paper, the printed figure next to ours, the verdict and the data.

``assets/scorecard.csv`` names the claims, ``assets/recorded_claims.csv`` holds the verdicts of recorded runs. The
reproduction report shows the scorecard of a run, with recorded verdicts where those are of better data. The README and
pages in ``docs/papers`` show those of the recorded runs alone::

    python -m mc2papers.report.scorecard docs README.md

To record a run, its claims take the place of those with the same target and dataset::

    python -m mc2papers.report.scorecard record results/claims.csv "default configuration" "1 December 2026" COMMIT
"""

from __future__ import annotations

import functools
import re
import sys
import textwrap
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base import pages, storage
from mc2papers.report.claims import (
    CONTRADICTED,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    NOT_TESTABLE,
    PAPERS_OWN,
    REPRODUCED,
    SUPPORTED,
    UNMET,
    VERDICTS,
)
from mc2papers.report.tables import by_whose

#: papers as the scorecard calls them
TITLES = {
    "icml2014": "ICML 2014: MC2",
    "uai2016": "UAI 2016: SVI-MC2",
    "nips2012": "NIPS 2012: FastEx",
}
COLUMNS = ("paper", "target", "dataset", "headline", "printed", "ours", "verdict", "data", "recorded")
#: how each document begins and ends the part that is made
MARKS = "<!-- scorecard: made by mc2papers.report.scorecard -->\n", "<!-- end of the scorecard -->\n"
_ASSETS = Path(__file__).parent / "assets"
_MAX_NUMBERS = 60  # characters of ours
#: of data, the most telling first
_KINDS = ("real", "drawn as in the paper", "real, of no paper", "own", "simulated")
_SAID = {
    REPRODUCED: "Reproduced",
    SUPPORTED: "Supported on other data",
    NOT_REPRODUCED: "Not reproduced",
    CONTRADICTED: "Contradicted on other data",
    INCONCLUSIVE: "Inconclusive",
}


@functools.cache
def headlines() -> pd.DataFrame:
    """The main claims: paper, target, dataset, claim (a pattern with ``*``), headline, printed."""
    return pd.read_csv(_ASSETS / "scorecard.csv")


@functools.cache
def recorded() -> pd.DataFrame:
    """Claims of recorded runs, with the columns of claims.csv and ``run``, ``date``, ``commit``."""
    return pd.read_csv(_ASSETS / "recorded_claims.csv").fillna("")


def scorecard(claims: pd.DataFrame) -> pd.DataFrame:
    """A row with COLUMNS for each headline that the claims of this run or a recorded one speak of, real data first.

    claims : of a run, as claims.csv has them
    """
    known = pd.concat([claims.assign(date=""), recorded()], ignore_index=True).fillna("")
    known = known[known["whose"] == PAPERS_OWN]
    rows = []
    for _, one in headlines().iterrows():
        found = known[
            (known["target"] == one["target"])
            & (known["dataset"] == one["dataset"])
            & np.array([fnmatchcase(claim, one["claim"]) for claim in known["claim"]], bool)
        ]
        if found.empty:
            continue
        rank = [_rank(row) for _, row in found.iterrows()]
        best = found.iloc[rank.index(min(rank))]
        rows.append(
            {
                **one[["paper", "target", "dataset", "headline", "printed"]],
                "ours": _short(best),
                "verdict": best["verdict"],
                "data": best["data"],
                "recorded": best["date"],
            }
        )
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    order = [(list(TITLES).index(row["paper"]), _kind(row["data"])) for _, row in table.iterrows()]
    return table.iloc[sorted(range(len(table)), key=lambda place: order[place])].reset_index(drop=True)


def _kind(data: str) -> int:
    """Place of the data among _KINDS."""
    if data == "real excerpt":
        return 0
    return next(place for place, kind in enumerate(_KINDS) if data == kind or data.startswith(f"{kind} ("))


def _in_short(data: str) -> str:
    """ "simulated", without the model that it is drawn from."""
    return data.partition(" (")[0]


def _rank(row: Any) -> tuple[int, bool, bool]:
    """Real data first, then what has a verdict, then this run."""
    return _kind(row["data"]), row["verdict"] in (NOT_TESTABLE, UNMET, NOT_RUN), row["date"] != ""


def _short(row: Any) -> str:
    """Our numbers, without what follows a semicolon; else the deciding number without its interval. As many as fit."""
    numbers = str(row["numbers"]).rpartition(": ")[2].partition(";")[0]
    first, *others = (numbers or re.sub(r" \(.*\)$", "", str(row["reason"])).partition(": ")[0]).split(", ")
    for other in others:
        if len(first) + len(other) > _MAX_NUMBERS:
            return f"{first}, …"
        first += f", {other}"
    return first


def sentences(table: pd.DataFrame, paper: str) -> list[str]:
    """Three sentences on a paper: which of its main claims are reproduced, which not, and on which data."""
    here = table[table["paper"] == paper]
    if here.empty:
        return []
    without = here["verdict"].isin((NOT_TESTABLE, UNMET, NOT_RUN))
    positive = _listed(here, (REPRODUCED, SUPPORTED)) or "Reproduced: none of the main claims"
    negative = _listed(here, (NOT_REPRODUCED, CONTRADICTED, INCONCLUSIVE)) or "Not reproduced: none that has a verdict"
    kinds: dict[str, list[str]] = {}
    for _, row in here[~without].iterrows():
        names = kinds.setdefault(_in_short(row["data"]), [])
        if row["dataset"] not in names:
            names.append(row["dataset"])
    data = "; ".join(f"{', '.join(names)} ({kind})" for kind, names in kinds.items())
    third = f"Data: {data or 'none that can test these claims'}"
    if without.any():
        third += f"; without a verdict: {without.sum()} of {len(here)} main claims"
    return [f"{positive}.", f"{negative}.", f"{third}."]


def _listed(here: pd.DataFrame, verdicts: tuple[str, ...]) -> str:
    """ "Reproduced: A; B. Supported on other data: C", of the headlines with each of the verdicts."""
    parts = []
    for verdict in verdicts:
        if names := [str(one) for one in here.loc[here["verdict"] == verdict, "headline"]]:
            parts.append(f"{_SAID[verdict]}: {'; '.join(names)}")
    return ". ".join(parts)


# -- documents -----------------------------------------------------------------------------------------------------
def markdown(table: pd.DataFrame) -> Iterator[str]:
    """Lines of the scorecard as a table for docs."""
    for paper, title in TITLES.items():
        here = table[table["paper"] == paper]
        if here.empty:
            continue
        yield from (f"**{title}**", "", "| claim | paper | ours | verdict | data |", "|---|---|---|---|---|")
        for _, row in here.iterrows():
            cells = row["headline"], row["printed"], row["ours"], f"**{row['verdict']}**"
            yield f"| {' | '.join(cells)} | {row['dataset']}, {_in_short(row['data'])} |"
        yield ""


def in_short(table: pd.DataFrame) -> Iterator[str]:
    """Lines of the scorecard for the README: how many main claims have each verdict, and the sentences."""
    if table.empty:
        return
    counts = table["verdict"].value_counts()
    said = ", ".join(f"{counts[one]} {one}" for one in VERDICTS if one in counts)
    yield from (f"Of {len(table)} main claims: {said}.", "")
    for paper, title in TITLES.items():
        if said := " ".join(sentences(table, paper)):
            yield textwrap.fill(f"- **{title}.** {said}", 160, subsequent_indent="  ", break_on_hyphens=False)
    yield ""


def every_claim() -> str:
    """``docs/papers/claims.md``: all claims of the recorded runs, by table and figure."""
    known = recorded()
    lines = [
        "# Every claim",
        "",
        "Made from the recorded runs by `python -m mc2papers.report.scorecard docs README.md`.",
        "[Results](results.md) says what the verdicts mean.",
        "",
    ]
    for (run, date, commit), _ in known.groupby(["run", "date", "commit"], sort=False):
        lines.append(f"- {run}: {date}, commit {commit}")
    for title, part in by_whose(known).items():
        counts = part["verdict"].value_counts()
        said = ", ".join(f"{counts[one]} {one}" for one in VERDICTS if one in counts)
        lines += ["", f"Of {len(part)} {title}: {said}."]
    for target in sorted(known["target"].unique(), key=_place):
        here = known[known["target"] == target]
        lines += ["", f"## {target}", ""]
        for _, row in here.iterrows():
            name = row["claim"] if row["whose"] == PAPERS_OWN else f"{row['claim']} (our variant)"
            ours = "; ".join(filter(None, (row["numbers"], row["reason"])))
            said = f"- {name} ({row['dataset']}, {_in_short(row['data'])}): **{row['verdict']}**. {pages.plain(ours)}"
            lines.append(textwrap.fill(said.strip(), 160, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(lines) + "\n"


def _place(target: str) -> tuple[int, str]:
    """Sorts targets by paper, those of none last."""
    paper = target.partition("_")[0]
    return [*TITLES, paper].index(paper), target


def with_part(text: str, lines: Iterator[str]) -> str:
    """A document with the part between MARKS made again; ValueError if it lacks them."""
    first, last = MARKS
    found = re.search(f"{re.escape(first)}.*?{re.escape(last)}", text, re.S)
    if found is None:
        raise ValueError(f"the document lacks the lines {first.strip()!r} and {last.strip()!r}")
    return text[: found.start()] + first + "\n".join(lines) + last + text[found.end() :]


def documents(docs: Path, readme: Path) -> dict[Path, str]:
    """The documents with the scorecard of the recorded runs."""
    table = scorecard(recorded().iloc[:0].drop(columns="date"))
    parts = {docs / "papers" / "results.md": markdown(table), readme: in_short(table)}
    made = {path: with_part(path.read_text(encoding="utf-8"), lines) for path, lines in parts.items()}
    return made | {docs / "papers" / "claims.md": every_claim()}


def with_run(claims: pd.DataFrame, run: str, date: str, commit: str) -> pd.DataFrame:
    """The recorded claims, with those of a run in place of those of the same target, dataset and data."""
    keys = ["target", "dataset", "data"]
    old, new = recorded(), claims.fillna("").assign(run=run, date=date, commit=commit)
    is_kept = ~old[keys].apply(tuple, axis=1).isin(new[keys].apply(tuple, axis=1))
    return pd.concat([old[is_kept], new[list(old)]], ignore_index=True)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        table = with_run(pd.read_csv(sys.argv[2]), *sys.argv[3:6])
        with storage.replacing(_ASSETS / "recorded_claims.csv") as stream:
            table.to_csv(stream, index=False)
    else:
        for document, content in documents(Path(sys.argv[1]), Path(sys.argv[2])).items():
            with storage.replacing(document) as stream:
                stream.write(content)
