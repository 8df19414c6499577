"""Question sheets with which people check clusters (word and document intrusion), and scores of the answers."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base import pages, storage
from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.explore.clusters import cluster_tables
from mc2core.explore.describe import MAX_DOCUMENTS
from mc2core.explore.description import Description
from mc2core.explore.documents import titles_of
from mc2core.explore.texts import texts_of
from mc2core.explore.words import read_texts
from mc2core.posterior import Posterior
from mc2core.posterior.posterior import posterior_file

WORDS, DOCUMENTS = 5, 3
"""Number of words, or of documents, of the cluster in a question; one intruder is added."""
LONGEST = 400
"""Largest number of characters of a text in a question sheet."""
LEVEL = 0.9
"""Confidence level of the interval of a score."""
_ASKED = {
    "words": "Which word does not belong to the others?",
    "documents": "Which text does not belong to the others?",
}
_NEAR = 0.01  # a document whose probability is at least this may belong to the cluster, so it is no intruder


def write_sheet(
    fit: str | os.PathLike[str],
    corpus: Corpus,
    folder: str | os.PathLike[str],
    texts: str | os.PathLike[str] | Sequence[str] | None = None,
    seed: int = 0,
    threads: int = 1,
) -> int:
    """Write a new ``folder`` with ``sheet.csv`` and ``sheet.html``, and return the number of questions.

    There are two questions per recommended cluster. One question shows distinctive words of the cluster and a word of
    another cluster. The other question shows typical documents and a document of another cluster. The right answers are
    stored next to the ``fit``, in ``sheet_ID.json``. ``texts`` is as in :func:`mc2core.explore.describe.report`; by
    default, titles are shown.

    Raises ValueError if the folder exists, if there are fewer than two recommended clusters, or if documents have
    neither texts nor titles.
    """
    if Path(folder).exists():
        raise ValueError(f"{folder} already exists and may contain answers; give a new folder")
    posterior = Posterior.load(fit)
    if posterior.is_of_observations or posterior.representative.documents_are_clusters:
        raise ValueError("a question sheet needs a fit with clusters of documents that consist of words")
    description = Description.from_posterior(posterior, corpus, threads, most=MAX_DOCUMENTS)
    shown = titles_of(description) if texts is None else texts_of(corpus, texts)
    if texts is not None and description.drawn is not None:
        shown = [shown[number] for number in description.drawn]
    if texts is None and shown == [f"document {j + 1}" for j in range(len(shown))]:
        raise ValueError("the documents have no titles: give their texts (--texts)")
    questions = _questions(description, shown, seed)
    if not questions:
        raise ValueError("there are no questions: fewer than two clusters are recommended, or no word tells them apart")
    sheet = storage.digest_value(questions)[:8]
    n_options = max(len(one["options"]) for one in questions)
    rows = [
        [sheet, number, one["kind"], *one["options"], *[""] * (n_options - len(one["options"])), ""]
        for number, one in enumerate(questions, start=1)
    ]
    columns = ["sheet", "question", "kind", *(f"option_{one + 1}" for one in range(n_options)), "answer"]
    with storage.replacing_folder(folder) as new:
        pd.DataFrame(rows, columns=columns).to_csv(new / "sheet.csv", index=False)
        (new / "sheet.html").write_text(_form(sheet, questions), encoding="utf-8")
    storage.write_json(_key(fit, sheet), {"seed": seed, "questions": questions})
    return len(questions)


def _key(fit: str | os.PathLike[str], sheet: str) -> Path:
    """Return the path of the file with the right answers to a question sheet."""
    return posterior_file(fit).parent / f"sheet_{sheet}.json"


def _form(sheet: str, questions: Sequence[dict[str, Any]]) -> str:
    """Return the questions as an HTML page with a button that saves the answers."""
    parts = []
    for number, question in enumerate(questions, start=1):
        labels = [
            f'<label><input type="radio" name="q{number}" value="{position}"> {html.escape(option)}</label>'
            for position, option in enumerate(question["options"], start=1)
        ]
        legend = f"{number} of {len(questions)}: {_ASKED[question['kind']]}"
        parts.append(f"<fieldset><legend>{legend}</legend>{''.join(labels)}</fieldset>")
    introduction = "<p>One option in each question comes from another group. Choose it, also if you have to guess.</p>"
    save = '<p><button type="button" id="save">Save answers.csv</button> <span id="left" role="status"></span></p>'
    body = f'<form data-sheet="{sheet}"><h1>Which one does not belong?</h1>{introduction}{"".join(parts)}{save}</form>'
    style, script = (pages.asset("mc2core.explore", f"sheet.{kind}") for kind in ("css", "js"))
    return pages.page("Which one does not belong?", body, style, [script])


def _questions(description: Description, shown: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Return the questions, each with its kind, cluster (from 1), options, and position of the intruder (from 1)."""
    rng = streams.generator(seed, "explore.sheet")
    tables = cluster_tables(description)
    words, documents = tables["cluster_words"], tables["cluster_documents"]
    clusters = tables["clusters"]["cluster"].tolist()
    words = words[words["cluster"].isin(clusters) & (words["lift"] > 1.0)].sort_values(["cluster", "by_relevance"])
    columns = {word: column for column, word in enumerate(description.corpus.vocabulary)}
    sets: dict[str, list[dict[str, Any]]] = {"words": [], "documents": []}
    for cluster in clusters:
        top_words = words[words["cluster"] == cluster]["word"].tolist()
        rare = description.node_words(np.array([cluster - 1]))[0] < description.word_share
        other_words = words[words["cluster"] != cluster].groupby("cluster")["word"].head(WORDS)
        intruders = [one for one in dict.fromkeys(other_words) if rare[columns[one]] and one not in top_words]
        sets["words"] += _question(rng, "words", cluster, top_words[:WORDS], intruders)
        typical = documents[documents["cluster"] == cluster]["document"].to_numpy() - 1
        part = documents[documents["cluster"].isin(clusters) & (documents["cluster"] != cluster)]["document"] - 1
        distant = part[description.in_recommended[part, cluster - 1] < _NEAR]
        inside = [shown[one][:LONGEST] for one in rng.permutation(typical)[:DOCUMENTS]]
        outside = [shown[one][:LONGEST] for one in distant]
        sets["documents"] += _question(rng, "documents", cluster, inside, [one for one in outside if one not in inside])
    return [part[one] for part in sets.values() for one in rng.permutation(len(part))]


def _question(
    rng: np.random.Generator, kind: str, cluster: int, inside: list[str], outside: list[str]
) -> list[dict[str, Any]]:
    """Return a list with one question, whose intruder is drawn from ``outside``; empty if there are too few options."""
    if len(inside) < 2 or not outside:
        return []
    options = [*inside, outside[rng.integers(len(outside))]]
    order = rng.permutation(len(options))
    answer = int(np.flatnonzero(order == len(inside))[0]) + 1
    return [{"kind": kind, "cluster": cluster, "options": [options[one] for one in order], "answer": answer}]


def score_sheet(fit: str | os.PathLike[str], answers: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the share of right answers of one person, with its 90 % interval (Wilson), for words and for documents.

    The columns are kind, questions, answered, right, share, low, high, chance (expected share of right answers by
    guessing) and missed (clusters whose intruder was not found). Questions without an answer do not count.

    Raises ValueError, with the line, if the answers are damaged or belong to a question sheet of another fit.
    """
    from scipy.stats import binomtest

    table = read_texts(answers, ("sheet", "question", "answer"), "sheet, question and answer")
    sheets = table["sheet"].unique().tolist()
    if len(sheets) != 1 or not sheets[0].isalnum() or not _key(fit, sheets[0]).is_file():
        raise ValueError(
            f"{answers} has answers to the question sheet {', '.join(sheets) or '(none)'}, which is none of {fit}"
        )
    questions = storage.read_json(_key(fit, sheets[0]))["questions"]
    responses: dict[int, int] = {}
    for line, (number, answer) in enumerate(table[["question", "answer"]].itertuples(index=False), start=2):
        where = f"{answers}, line {line}"
        if not number.isdecimal() or not 1 <= int(number) <= len(questions):
            raise ValueError(f"{where}: question is {number!r}; it must be from 1 to {len(questions)}")
        if int(number) in responses:
            raise ValueError(f"{where}: question {number} is answered above")
        last = len(questions[int(number) - 1]["options"])
        if answer.strip() and not (answer.strip().isdecimal() and 1 <= int(answer) <= last):
            raise ValueError(f"{where}: answer is {answer!r}; it must be the number of an option, from 1 to {last}")
        responses[int(number)] = int(answer.strip() or 0)
    rows = []
    for kind in ("words", "documents"):
        part = [(one, responses.get(number, 0)) for number, one in enumerate(questions, start=1) if one["kind"] == kind]
        answered = [(one, answer) for one, answer in part if answer]
        missed = [one["cluster"] for one, answer in answered if answer != one["answer"]]
        right, n = len(answered) - len(missed), len(answered)
        between = binomtest(right, n).proportion_ci(LEVEL, "wilson") if n else (np.nan, np.nan)
        chance = np.mean([1 / len(one["options"]) for one, _ in answered]) if n else np.nan
        scores = (right / n if n else np.nan, *between, chance)
        rows.append((kind, len(part), n, right, *scores, " ".join(map(str, sorted(missed)))))
    columns = ["kind", "questions", "answered", "right", "share", "low", "high", "chance", "missed"]
    return pd.DataFrame(rows, columns=columns)
