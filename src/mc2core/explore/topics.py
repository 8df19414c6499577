"""Tables of topics, and of what comes and goes with a number such as the year."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import stats

from mc2core.explore.clusters import own_unit
from mc2core.explore.coherence import coherence
from mc2core.explore.description import Description
from mc2core.explore.words import N_SHOWN, Top, often_enough, said, top_of, words_table
from mc2core.posterior import Posterior

N_BINS = 20
"""Steps of a trend, of equal width; whole numbers of fewer different values have a step each."""
LEAST_SHARE = 0.01
"""Of a cluster's tokens: topics with less are not among those that it uses."""
_BLOCK = 64


def fitted_shares(posterior: Posterior) -> np.ndarray:
    """(M,) float64, sums to 1: the share of each topic in the tokens that the representative was fitted to."""
    tokens = np.asarray(posterior.representative.topic_words.sum(axis=1), dtype=np.float64).ravel()
    return tokens / tokens.sum()


def describe_topics(posterior: Posterior, n_words: int = 10) -> pd.DataFrame:
    """Topics of the representative sample, the commonest first: topic, share (:func:`fitted_shares`), words."""
    share = fitted_shares(posterior)
    order = np.argsort(-share, kind="stable")
    words = posterior.top_words(n_words)
    return pd.DataFrame(
        {
            "topic": order + 1,
            "share": share[order],
            "words": [" ".join(words[topic]) for topic in order],
        }
    )


def topic_tables(description: Description, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Tables by name: topics (the commonest first), topic_words, topic_clusters, trends (of topics and clusters).

    The ``share`` of a topic is that of :func:`fitted_shares`, whatever documents are described; ``tokens`` are expected
    in these. ``seed`` is that of :func:`coherence`.
    """
    tokens = np.asarray(description.document_topics.sum(axis=0)).ravel()
    tops = _tops(description, tokens)
    shown = [top.column[np.argsort(top.by_probability)[:N_SHOWN]] for top in tops]
    uses = _uses(description)
    used_by = uses[uses["cluster"] <= description.n_clusters].groupby("topic").size()
    number = np.arange(1, len(tokens) + 1)
    topics = pd.DataFrame(
        {
            "topic": number,
            "tokens": tokens,
            "share": fitted_shares(description.posterior),
            "clusters": used_by.reindex(number, fill_value=0).to_numpy(),
            **coherence(description.corpus.content, shown, seed),
            "words": [said(description.corpus.vocabulary, top, top.by_probability) for top in tops],
            "distinctive_words": [said(description.corpus.vocabulary, top, top.by_lift) for top in tops],
        }
    )
    trends = _trends(description)
    for name, part in trends[trends["of"] == "topic"].groupby("context", sort=True):
        rank = part.groupby("number")[["start", "share"]].apply(_rank_correlation)
        topics[f"{name}_trend"] = topics["topic"].map(rank)
    topics = topics.sort_values("share", ascending=False, kind="stable").reset_index(drop=True)
    return {
        "topics": topics,
        "topic_words": words_table("topic", list(zip(number, tops, strict=True)), description.corpus.vocabulary),
        "topic_clusters": uses,
        "trends": trends,
    }


def _tops(description: Description, tokens: np.ndarray) -> list[Top]:
    tops = []
    for start in range(0, len(tokens), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(tokens)))
        for topic, p in zip(block, description.topic_words(block), strict=True):
            tops.append(top_of(p, description.word_share, often_enough(p * tokens[topic])))
    return tops


def _uses(description: Description) -> pd.DataFrame:
    """Topics with LEAST_SHARE of a node's tokens or more."""
    shares = sp.coo_matrix(description.topic_shares[0])
    kept = shares.data >= LEAST_SHARE
    table = pd.DataFrame(
        {
            "topic": shares.col[kept] + 1,
            "cluster": np.array(description.nodes)[shares.row[kept]] + 1,
            "share_of_cluster": shares.data[kept],
        }
    )
    return table.sort_values(["topic", "share_of_cluster"], ascending=[True, False], kind="stable", ignore_index=True)


# -- trends --------------------------------------------------------------------------------------------------------
def bounds_of(values: np.ndarray) -> np.ndarray:
    """Bounds of the steps that (n,) observed values are put in, from the least to above the largest."""
    distinct = np.unique(values)
    if (distinct == np.floor(distinct)).all() and distinct[-1] - distinct[0] < 2 * N_BINS:
        return np.arange(distinct[0], distinct[-1] + 2)
    return np.linspace(distinct[0], np.nextafter(distinct[-1], np.inf), N_BINS + 1)


def _trends(description: Description) -> pd.DataFrame:
    """A row for each topic or node, context of numbers and step: documents of a node, expected tokens of a topic."""
    parts = [part for name in sorted(description.corpus.contexts) for part in _trends_over(description, name)]
    columns = ["of", "number", "context", "start", "end", "count", "share"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _trends_over(description: Description, name: str) -> Iterator[pd.DataFrame]:
    if sp.issparse(description.corpus.contexts[name]):
        return
    values = own_unit(description.corpus, name)
    if description.corpus.units.get(name) is not None:
        values = np.round(values, 9)  # whole numbers again, after their unit was taken and given back
    seen = np.flatnonzero(~np.isnan(values))
    if len(np.unique(values[seen])) < 2:
        return
    bounds = bounds_of(values[seen])
    steps = np.searchsorted(bounds, values[seen], side="right") - 1
    into = sp.csr_matrix((np.ones(len(seen)), (steps, seen)), shape=(len(bounds) - 1, description.corpus.n_documents))
    for what, counts, numbers in (
        ("topic", into @ description.document_topics, np.arange(description.document_topics.shape[1])),
        ("cluster", into @ description.documents_of.T, np.array(description.nodes)),
    ):
        dense = np.asarray(counts.toarray())
        whole = dense.sum(axis=1) if what == "topic" else np.bincount(steps, minlength=len(dense)).astype(float)
        share = np.divide(dense, whole[:, None], where=whole[:, None] > 0, out=np.full_like(dense, np.nan))
        n_steps, n = dense.shape
        yield pd.DataFrame(
            {
                "of": what,
                "number": np.repeat(numbers + 1, n_steps),
                "context": name,
                "start": np.tile(bounds[:-1], n),
                "end": np.tile(bounds[1:], n),
                "count": dense.T.ravel(),
                "share": share.T.ravel(),
            }
        )


def _rank_correlation(part: pd.DataFrame) -> float:
    """Spearman's, of share and step; NaN where there are fewer than three steps or the share does not move."""
    known = part.dropna()
    if len(known) < 3 or known["share"].nunique() < 2:
        return float("nan")
    return float(stats.spearmanr(known["start"], known["share"]).statistic)
