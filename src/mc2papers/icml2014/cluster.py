"""ICML14 figure 3: authors, papers and topics of one cluster of documents."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mc2core.corpus import Corpus
from mc2core.posterior import Posterior, mixture
from mc2papers.report import palette, style

AUTHOR, YEAR = "author", "year"
_LETTERS = 66  # maximum length of a title or of the words of a topic in the figure


def describe(
    corpus: Corpus, model: Posterior, n_authors: int = 10, n_documents: int = 12, n_topics: int = 5, n_words: int = 8
) -> pd.DataFrame:
    """Return the largest cluster as a table: part (author, document, topic), rank, text, value.

    The value of an author is the probability. The value of a topic is its share of the cluster's tokens, and its text
    has the likeliest words. The value of a document is its year (0 if unknown). Documents are ranked by the log
    likelihood of their words in this cluster minus the log likelihood in the best other cluster, per token.

    Raises ValueError if the model was not fitted on ``corpus``.
    """
    model.check_fitted(corpus)
    sample = model.representative
    cluster = int(np.argmax(np.bincount(sample.cluster, minlength=sample.n_clusters)))
    rows: list[tuple[str, int, str, float]] = []
    probability = model.context_mean(AUTHOR)[cluster]
    names = model.context_names.get(AUTHOR) or [f"author {a + 1}" for a in range(len(probability))]
    for rank, a in enumerate(np.argsort(-probability, kind="stable")[:n_authors]):
        rows.append(("author", rank + 1, names[a].replace("_", " "), float(probability[a])))

    members = np.flatnonzero(sample.cluster == cluster)
    part = corpus.subset(members)
    log_p = mixture.log_likelihood_of_clusters(part, sample)
    others = np.delete(log_p, cluster, axis=1).max(axis=1, initial=-np.inf)
    # if there is only one cluster, documents are ranked by their likelihood
    lead = log_p[:, cluster] - (others if sample.n_clusters > 1 else 0.0)
    typical = np.argsort(-lead / np.maximum(part.document_lengths, 1), kind="stable")[:n_documents]
    titles = part.documents["title"].to_numpy() if "title" in part.documents else members
    years = _years(part)
    for rank, j in enumerate(typical):
        rows.append(("document", rank + 1, str(titles[j]), float(years[j])))

    share, words = model.topic_given_cluster[cluster], model.top_words(n_words)
    for rank, m in enumerate(np.argsort(-share, kind="stable")[:n_topics]):
        rows.append(("topic", rank + 1, " ".join(words[m]), float(share[m])))
    size = f"cluster of {len(members)} of the {corpus.n_documents:,} documents of the fit"
    rows.append(("size", 1, size, float(len(members))))
    return pd.DataFrame(rows, columns=["part", "rank", "text", "value"])


def _years(corpus: Corpus) -> np.ndarray:
    if YEAR not in corpus.contexts:
        return np.zeros(corpus.n_documents)
    mean, sd = corpus.units.get(YEAR, (0.0, 1.0))
    return np.nan_to_num(np.rint(np.asarray(corpus.contexts[YEAR]) * sd + mean))


def draw(table: pd.DataFrame, source: str) -> Figure:
    """Draw the table of :func:`describe`."""
    parts = {name: rows.reset_index(drop=True) for name, rows in table.groupby("part")}
    n_lines = len(parts["document"]) + 1.2 * len(parts["topic"]) + 3.0
    figure = style.new_figure(7.4, 0.9 + 0.2 * n_lines)
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.9])
    authors = parts["author"].iloc[::-1]
    left.barh(authors["text"], authors["value"], color=palette.look("MC2")[0], height=0.7)
    left.set_ylim(-0.5, len(authors) - 0.5)
    left.set(xlabel="probability of the author", title="Authors of the cluster")
    left.xaxis.set_major_locator(MaxNLocator(4))
    left.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    left.tick_params(axis="y", length=0)

    right.set_axis_off()
    right.set(xlim=(0, 1), ylim=(-n_lines, 0))
    right.set_title(parts["size"]["text"][0], loc="left")
    line, about_topics = 1.0, "Topics: their share of the cluster's words, and their likeliest words"
    for heading, part, step, form in (
        ("Most typical papers", "document", 1.0, lambda year: f"{year:.0f}" if year else ""),
        (about_topics, "topic", 1.2, "{:.0%}".format),
    ):
        line -= 1.5
        right.text(0.0, line, heading, weight="bold", va="center")
        for text, value in zip(parts[part]["text"], parts[part]["value"], strict=True):
            line -= step
            right.text(0.0, line, form(value), va="center", fontsize=8, color=palette.SOFT)
            shortened = text if len(text) <= _LETTERS else text[: _LETTERS - 1].rstrip() + "…"
            right.text(0.08, line, shortened, va="center", fontsize=8)
    style.mark_source(figure, source)
    return figure
