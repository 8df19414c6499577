"""Tables of topics."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import stats

from mc2core.explore.coherence import coherence
from mc2core.explore.description import Description
from mc2core.explore.words import N_SHOWN, Top, name_of, often_enough, said, top_of, words_table
from mc2core.posterior import Posterior

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


def topic_tables(description: Description, trends: pd.DataFrame, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Tables by name: topics (the commonest first), topic_words, topic_clusters.

    The ``share`` of a topic is that of :func:`fitted_shares`, whatever documents are described; ``tokens`` are expected
    in these. ``trends`` are those of :func:`mc2core.explore.shares.shares_tables`, ``seed`` is that of
    :func:`coherence`.
    """
    tokens = np.asarray(description.document_topics.sum(axis=0)).ravel()
    tops = _tops(description, tokens)
    shown = [top.column[np.argsort(top.by_probability)[:N_SHOWN]] for top in tops]
    uses = _uses(description)
    used_by = uses[uses["cluster"] <= description.n_clusters].groupby("topic").size()
    number, vocabulary = np.arange(1, len(tokens) + 1), description.corpus.vocabulary
    given = description.names.get("topic", {})
    topics = pd.DataFrame(
        {
            "topic": number,
            "name": [given.get(topic) or name_of(vocabulary, top) for topic, top in enumerate(tops, start=1)],
            "tokens": tokens,
            "share": fitted_shares(description.posterior),
            "clusters": used_by.reindex(number, fill_value=0).to_numpy(),
            **coherence(description.corpus.content, shown, seed),
            "words": [said(vocabulary, top, top.by_probability) for top in tops],
            "distinctive_words": [said(vocabulary, top, top.by_relevance) for top in tops],
        }
    )
    for name, part in trends[trends["of"] == "topic"].groupby("context", sort=True):
        rank = part.groupby("number")[["start", "share"]].apply(_rank_correlation)
        topics[f"{name}_trend"] = topics["topic"].map(rank)
    topics = topics.sort_values("share", ascending=False, kind="stable").reset_index(drop=True)
    return {
        "topics": topics,
        "topic_words": words_table("topic", list(zip(number, tops, strict=True)), vocabulary),
        "topic_clusters": uses,
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


def _rank_correlation(part: pd.DataFrame) -> float:
    """Spearman's, of share and step; NaN where there are fewer than three steps or the share does not move."""
    known = part.dropna()
    if len(known) < 3 or known["share"].nunique() < 2:
        return float("nan")
    return float(stats.spearmanr(known["start"], known["share"]).statistic)
