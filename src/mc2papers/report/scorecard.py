"""The scorecard: the main claims of each paper with the printed number, our number, the verdict and the data.

``assets/scorecard.csv`` has the claims, and ``assets/recorded_claims.csv`` has the verdicts of recorded runs. The
reproduction report shows the scorecard of a run. A recorded verdict replaces the verdict of the run if the recorded run
used better data. The README and the pages in ``docs/papers`` show only recorded verdicts. This command updates them::

    python -m mc2papers.report.scorecard docs README.md

The next command records a run. Its claims replace recorded claims with the same target, dataset, data and ``whose``::

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

from mc2core.base import storage
from mc2papers.report.captions import counted
from mc2papers.report.claims import (
    AGREES,
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    NO_INTERVAL,
    OPEN,
    PAPERS_OWN,
    SAID,
    UNDER_CHOICE,
    VERDICTS,
)
from mc2papers.report.fidelity import with_part
from mc2papers.report.tables import by_whose

#: papers as the scorecard calls them
TITLES = {
    "icml2014": "ICML 2014: MC2",
    "uai2016": "UAI 2016: SVI-MC2",
    "nips2012": "NIPS 2012: FastEx",
}
#: their sections of docs/papers/results.md
SECTIONS = {"icml2014": "icml-2014", "uai2016": "uai-2016", "nips2012": "nips-2012"}
#: runs of docs/papers/real.csv on NIPS whose perplexities the README compares
_PERPLEXITIES = {
    "nips-words": "MC2",
    "nips-hdp": "the HDP",
    "nips-document-level": "our document level",
    "nips-repeats": "repeated words too (200 sweeps)",
}
COLUMNS = (
    "paper", "target", "dataset", "headline", "printed", "ours", "verdict", "choices",
    "data", "size", "limits", "recorded", "reason",
)  # fmt: skip
_ASSETS = Path(__file__).parent / "assets"
#: of data, the most telling first
_KINDS = ("real", "drawn as in the paper", "real, of no paper", "own", "simulated")
#: kinds of data as sentences name them
_DATA = {
    "real": "real data",
    "real excerpt": "an excerpt of real data",
    "drawn as in the paper": "data drawn as in the paper",
    "real, not in the papers": "real data that no paper uses",
    "own": "our own data",
    "simulated": "simulated data",
}


@functools.cache
def headlines() -> pd.DataFrame:
    """Return the main claims: paper, target, dataset and claim (patterns with ``*``), headline and printed number."""
    return pd.read_csv(_ASSETS / "scorecard.csv").fillna("")


@functools.cache
def recorded() -> pd.DataFrame:
    """Return the claims of recorded runs, with the columns of claims.csv and ``run``, ``date``, ``commit``."""
    return pd.read_csv(_ASSETS / "recorded_claims.csv").fillna("")


def scorecard(claims: pd.DataFrame) -> pd.DataFrame:
    """Return one row with COLUMNS per headline, from the claims of this run or of a recorded run, real data first.

    claims : claims of this run in the form of claims.csv
    """
    table = pd.concat([claims.assign(date=""), recorded()], ignore_index=True).fillna("")
    table, under_choice = table[table["whose"] == PAPERS_OWN], table[table["whose"] == OPEN]
    rows = []
    for _, headline in headlines().iterrows():
        matches = table[
            (table["target"] == headline["target"])
            & np.array([fnmatchcase(dataset, headline["dataset"]) for dataset in table["dataset"]], bool)
            & np.array([fnmatchcase(claim, headline["claim"]) for claim in table["claim"]], bool)
        ]
        if not matches.empty:
            best = min((row for _, row in matches.iterrows()), key=_rank)
            ours = "; ".join(dict.fromkeys(filter(None, (_shorten(best), _why(best)))))
            verdict, choices = _by_choice(best, under_choice)
            extra = {"ours": ours, "verdict": verdict, "choices": choices, "recorded": best["date"]}
            rows.append({**best, **headline[["paper", "headline", "printed"]], **extra})
    rows.sort(key=lambda row: (list(TITLES).index(row["paper"]), _kind(row["data"])))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _by_choice(row: Any, under_choice: pd.DataFrame) -> tuple[str, str]:
    """Return the verdict on a claim from its verdicts under open choices of the paper, with an explanation.

    A choice supports the claim if the same rule over its seeds does. The explanation has the number of tried choices.

    under_choice : claims under an open choice, first those of this run
    """
    claim = f": {row['claim']}"
    is_same = (under_choice[["target", "dataset", "data"]] == row[["target", "dataset", "data"]].to_list()).all(axis=1)
    choices = under_choice[is_same & under_choice["claim"].str.endswith(claim)]
    if choices.empty or row["verdict"] in UNDER_CHOICE:
        return row["verdict"], ""
    choices = choices[choices["date"] == choices["date"].iloc[0]]
    names, size = choices["claim"].str.removesuffix(claim), choices["size"].iloc[0]
    suffix, is_supported = f"; {size}" if size != row["size"] else "", choices["verdict"].isin([*UNDER_CHOICE])
    if is_supported.any():
        several = f"{is_supported.sum()} of {len(choices)} choices tried"
        tried = several if len(choices) > 1 else "the only choice tried"
        text = f"under an open choice: {'; '.join(names[is_supported])} ({tried}{suffix})"
        return UNDER_CHOICE[choices.loc[is_supported, "verdict"].iloc[0]], text
    is_one = len(choices) == 1
    text = "the only open choice tried" if is_one else f"none of the {len(choices)} open choices tried"
    text += f" ({names.iloc[0]}{suffix})" if is_one else f" ({suffix[2:]})" if suffix else ""
    if not choices["reason"].str.contains(NO_INTERVAL).all():
        return row["verdict"], f"{text} {'does not support' if is_one else 'supports'} the claim"
    agree = names[choices["reason"].str.endswith(AGREES)]
    under = "" if is_one else f" under {'; '.join(agree) or 'any of them'}"
    number = f"the number {'agrees' if len(agree) else 'does not agree'} with the claim{under}"
    return row["verdict"], f"{text} has {'no' if is_one else 'a'} verdict, because one fit has no interval; {number}"


def _kind(data: str) -> int:
    """Return the index of the data in _KINDS."""
    if data == "real excerpt":
        return 0
    return next(index for index, kind in enumerate(_KINDS) if data == kind or data.startswith(f"{kind} ("))


def _shorten_kind(data: str) -> str:
    """Return the kind of data for readers, without the model of simulated data, such as "simulated"."""
    return data.partition(" (")[0].replace("of no paper", "not in the papers")


def _rank(row: Any) -> tuple[int, bool, bool]:
    """Return a sort key: real data first; on equal data, claims with a verdict first; then claims of this run first."""
    return _kind(row["data"]), row["verdict"] not in SAID, row["date"] != ""


def once(claims: pd.DataFrame) -> pd.DataFrame:
    """Return one row per claim of the papers; if a claim has rows on several datasets, choose one of them.

    Rows with a verdict and with the best data are preferred. If the data are equally good, the dataset of the scorecard
    is chosen, and otherwise the first dataset in alphabetical order.

    claims : columns as in claims.csv; rows with the same target and claim are one claim
    """
    of_papers, heads = claims[claims["whose"] == PAPERS_OWN], headlines()

    def is_in_scorecard(row: Any) -> bool:
        part = heads[heads["target"] == row["target"]]
        return any(
            fnmatchcase(row["claim"], claim) and fnmatchcase(row["dataset"], dataset)
            for claim, dataset in zip(part["claim"], part["dataset"], strict=True)
        )

    rank = pd.Series(
        [
            (row["verdict"] not in SAID, _kind(row["data"]), not is_in_scorecard(row), row["dataset"])
            for _, row in of_papers.iterrows()
        ],
        of_papers.index,
        object,
    )
    best = of_papers.loc[rank.sort_values(kind="stable").index]
    return of_papers.loc[best.drop_duplicates(["target", "claim"]).index.sort_values()]


def _shorten(row: Any) -> str:
    """Return our numbers in short form, without text after a semicolon and parentheses, except how K is set.

    Text before a colon, such as the method that is judged instead of the paper's method, follows the numbers. If there
    are no numbers, the result is the number that decides.
    """
    short = re.sub(r" \((?!several K|K given)[^)]*\)", "", str(row["numbers"]))
    method, _, numbers = short.partition(";")[0].rpartition(": ")
    return "; ".join(filter(None, (numbers, method))) or re.sub(r" \(.*\)$", "", str(row["reason"])).partition(": ")[0]


def _why(row: Any) -> str:
    """Return the reason why a claim has no verdict, or why times are inconclusive: the text before the statistic."""
    reason = str(row["reason"]) if row["numbers"] else ""  # without numbers, the reason is already shown
    is_timed = row["verdict"] == INCONCLUSIVE and reason.startswith("timed ")
    return reason.partition("; ")[0] if row["verdict"] not in SAID or is_timed else ""


def sentences(table: pd.DataFrame, paper: str) -> list[str]:
    """Return sentences on the main claims of a paper that are reproduced or not, and on the data."""
    rows = table[table["paper"] == paper]
    if rows.empty:
        return []
    judged = rows[rows["verdict"].isin(SAID)]
    positive = _list_headlines(rows, HOLDS) or "None of the main claims is reproduced"
    negative = _list_headlines(rows, FAILS) or "No main claim with a verdict fails"
    kinds = judged["dataset"].groupby(judged["data"].map(_shorten_kind), sort=False).unique()
    used = [f"{_DATA.get(str(kind), kind)} ({', '.join(names)})" for kind, names in kinds.items()]
    data = " and ".join(filter(None, (", ".join(used[:-1]), *used[-1:])))
    third = f"These verdicts are based on {data}" if data else "None of our data can test these claims"
    limits = judged["limits"].str.split(", ").explode()
    for limit, n in limits[limits != ""].value_counts(sort=False).items():
        third += f". Verdicts limited by {limit}: {n} of {len(judged)}"
    if len(judged) < len(rows):
        third += f". Claims without a verdict: {len(rows) - len(judged)} of {len(rows)}"
    return [f"{positive}.", f"{negative}.", f"{third}."]


def said_data(row: Any) -> str:
    """Return the data of a verdict as text.

    An example is "NIPS, real; all 1,740 documents, 200 of 600 sweeps, 3 seeds; limits: short chains".
    """
    limits = f"limits: {row['limits']}" if row["limits"] and row["verdict"] in SAID else ""
    return "; ".join(filter(None, (f"{row['dataset']}, {_shorten_kind(row['data'])}", row["size"], limits)))


def _sentence(text: str) -> str:
    """Return a text as a sentence that begins with a capital letter; "" for no text."""
    return f"{text[0].upper()}{text[1:]}. " if text else ""


def _list_headlines(rows: pd.DataFrame, verdicts: tuple[str, ...]) -> str:
    """Return the headlines by verdict, such as "Reproduced: A; B. Supported on other data: C"."""
    names = {one: "; ".join(rows.loc[rows["verdict"] == one, "headline"]) for one in verdicts}
    return ". ".join(f"{SAID[one]}: {text}" for one, text in names.items() if text)


# -- documents -----------------------------------------------------------------------------------------------------
def markdown(table: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of the scorecard for the documentation, as a list, because rows of a table would be too long."""
    yield from (_line(f"Verdicts on the {len(table)} main claims: {said_counts(table)}."), "")
    for paper, title in TITLES.items():
        rows = table[table["paper"] == paper]
        if rows.empty:
            continue
        yield from (f"**{title}**", "", _line(sentences(table, paper)[-1]), "")
        for _, row in rows.iterrows():
            yield _line(
                f"- **{row['verdict']}**: {row['headline']}. Published: {row['printed']}. Ours: {row['ours']}. "
                f"{_sentence(row['choices'])}Data: {said_data(row)}."
            )
        yield ""


def found(table: pd.DataFrame, real: pd.DataFrame) -> Iterator[str]:
    """Yield lines for the README: one on the document level, and one per paper with counts of verdicts and a claim.

    The paper with the largest fraction of reproduced or supported claims comes first.

    real : fits on real data in the form of docs/papers/real.csv, for the line on the document level
    """
    mean = real.groupby("run")["perplexity"].mean()
    listed = ", ".join(f"{mean[run]:,.0f} for {label}" for run, label in _PERPLEXITIES.items() if run in mean)
    yield _line(
        "- **[Our document level](docs/papers/index.md#the-document-level)**: held-out perplexity on NIPS, 600 sweeps: "
        f"{listed}."
    )
    parts = {paper: part for paper, part in table.groupby("paper", sort=False) if part["verdict"].isin(SAID).any()}
    for paper, part in sorted(parts.items(), key=lambda one: -one[1]["verdict"].isin([*UNDER_CHOICE]).mean()):
        first = part[part["verdict"].isin(SAID)].iloc[0]
        printed = f"Published: {first['printed']}. " if re.search(r"\d", first["printed"]) else ""
        yield _line(
            f"- **[{TITLES[str(paper)]}](docs/papers/results.md#{SECTIONS[str(paper)]})**, "
            f"{counted(len(part), 'main claim')}: {said_counts(part)}. {SAID[first['verdict']]}: {first['headline']}. "
            f"{printed}Ours: {first['ours']} ({first['dataset']}, {_shorten_kind(first['data'])})."
        )
    yield ""


def claims_in_short() -> Iterator[str]:
    """Yield the lines of ``docs/papers/claims.md``: the recorded runs, and the counts of their verdicts."""
    table = recorded()
    for (run, date, commit), _ in table.groupby(["run", "date", "commit"], sort=False):
        yield _line(f"- {run}: {date}, commit {commit}")
    counted = once(table)
    yield from ("", _line(f"The papers make {len(counted)} claims: {said_counts(counted)}."))
    yield _line(
        f"Of these, {len(headlines())} are main claims. A claim on several datasets counts once here, "
        "with its verdict on the best data: real before simulated. The table has a row per dataset:"
    )
    yield from ("", *(f"- {len(part)} {title}: {said_counts(part)}" for title, part in by_whose(table).items()), "")


def said_counts(claims: pd.DataFrame) -> str:
    """Return counts of verdicts, such as "2 reproduced, 3 supported"."""
    counts = claims["verdict"].value_counts()
    return ", ".join(f"{counts[one]} {one}" for one in VERDICTS if one in counts)


def _line(text: str) -> str:
    return textwrap.fill(text.strip(), 160, subsequent_indent="  ", break_on_hyphens=False)


def times() -> Iterator[str]:
    """Yield the lines of the table in ``docs/papers/index.md`` with the time and memory of recorded commands."""
    yield from ("| what | time | memory |", "|---|---|---|")
    for _, row in pd.read_csv(_ASSETS / "recorded_times.csv").iterrows():
        jobs = f"{row['jobs']:.0f} jobs; " if pd.notna(row["jobs"]) else ""
        yield f"| {row['command']} | {jobs}{row['time']} | {row['memory']} |"
    yield ""


def documents(docs: Path, readme: Path) -> dict[Path, str]:
    """Return the texts of all documents with the scorecard, the counts and the times of recorded runs, by path."""
    papers = docs / "papers"
    table = scorecard(recorded().iloc[:0].drop(columns="date"))
    texts = {}
    for path, name, lines in (
        (papers / "results.md", "scorecard", markdown(table)),
        (papers / "claims.md", "counts", claims_in_short()),
        (papers / "index.md", "times", times()),
        (readme, "scorecard", found(table, pd.read_csv(papers / "real.csv"))),
    ):
        text = path.read_text(encoding="utf-8")
        texts[path] = with_part(text, name, "mc2papers.report.scorecard", "\n".join(lines))
    return texts


def with_run(claims: pd.DataFrame, run: str, date: str, commit: str) -> pd.DataFrame:
    """Return the recorded claims, updated by the claims of a run.

    The claims of the run replace all recorded claims with the same target, dataset, data and ``whose``. If all claims
    of such a group are recorded already, only these claims are replaced, because a study makes some claims of a target.
    """
    keys = ["target", "dataset", "data", "whose"]
    old, new = recorded(), claims.astype(object).fillna("").assign(run=run, date=date, commit=commit)
    known, replaced = set(old[[*keys, "claim"]].itertuples(index=False, name=None)), set()
    for group, of_group in new.groupby(keys, sort=False):
        rows = {(*group, claim) for claim in of_group["claim"]}
        replaced |= rows if rows <= known else {row for row in known if row[:-1] == group}
    is_replaced = [row in replaced for row in old[[*keys, "claim"]].itertuples(index=False, name=None)]
    return pd.concat([old[~np.array(is_replaced)], new[list(old)]], ignore_index=True)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        table = with_run(pd.read_csv(sys.argv[2]), *sys.argv[3:6])
        with storage.replacing(_ASSETS / "recorded_claims.csv") as stream:
            table.to_csv(stream, index=False)
    else:
        for document, content in documents(Path(sys.argv[1]), Path(sys.argv[2])).items():
            with storage.replacing(document) as stream:
                stream.write(content)
