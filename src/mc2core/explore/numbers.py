"""Means and standard deviations of observations, which describe topics and clusters in place of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.explore.description import Description
from mc2core.explore.words import N_NAME, N_SHOWN, Emitted

N_TOPICS = 2
"""Number of topics in the name of a cluster."""


def topics(description: Description) -> Emitted:
    """Return the names of the topics, and the mean and sd of each coordinate of the observations in each topic.

    A topic is named by the means that differ most from the mean of all observations, in standard deviations.
    """
    contents, names = description.posterior.contents, description.corpus.vocabulary
    assert contents is not None
    mean, sd = contents.mean, contents.sd
    columns: dict[str, np.ndarray] = {}
    for d, name in enumerate(names):
        columns |= {f"{name}_mean": mean[:, d], f"{name}_sd": sd[:, d]}
    order = np.argsort(-np.abs(standing(description)), axis=1, kind="stable")
    called = [", ".join(f"{names[d]} {mean[m, d]:.3g}" for d in row[:N_NAME]) for m, row in enumerate(order)]
    return Emitted(called, columns, {"topic_means": _table(description, "topic", np.arange(len(mean)), mean, sd)})


def clusters(description: Description) -> Emitted:
    """Return the names of the nodes, and the mean and sd of each coordinate of the observations in each node.

    A node is named by its most characteristic topics. These topics have the largest p ln (p / q), where p is the share
    of the topic in the node and q its share in all documents.
    """
    shares, _ = description.topic_shares
    of_all = np.asarray(description.document_topics.sum(axis=0)).ravel()
    of_all = np.maximum(of_all / max(of_all.sum(), 1.0), np.finfo(float).tiny)
    information = np.where(shares > 0.0, shares * np.log(np.maximum(shares, np.finfo(float).tiny) / of_all), 0.0)
    order = np.argsort(-information, axis=1, kind="stable")
    user_names = description.names.get("topic", {})
    called = [user_names.get(topic) or name for topic, name in enumerate(topics(description).names, start=1)]
    names = ["; ".join(called[topic] for topic in row[:N_TOPICS]) for row in order]
    columns = {"topics": [" ".join(str(topic + 1) for topic in row[:N_SHOWN]) for row in order]}
    rows, mean, sd = _of_documents(description)
    return Emitted(names, columns, {"cluster_means": _table(description, "cluster", rows, mean, sd)})


def standing(description: Description) -> np.ndarray:
    """Return the means of the topics as standard scores with respect to all observations, (M, D)."""
    contents, (centre, scale) = description.posterior.contents, description.all_observations
    assert contents is not None
    return (contents.mean - centre) / scale


def _of_documents(description: Description) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes with observations (n,), and the mean and sd of the observations in these nodes, (n, D) each."""
    corpus, (centre, scale) = description.corpus, description.all_observations
    values = (np.asarray(corpus.observations) - centre) / scale  # squares of large values lose digits
    into = sp.csr_matrix(corpus.content, dtype=np.float64)
    first, second = (description.documents_of @ (into @ values**power) for power in (1, 2))
    n = description.documents_of @ corpus.document_lengths
    rows = np.flatnonzero(n > 0)
    first, second = (part[rows] / n[rows, None] for part in (first, second))
    return rows, first * scale + centre, np.sqrt(np.maximum(second - first**2, 0.0)) * scale


def _table(
    description: Description, kind: str, rows: Sequence[int] | np.ndarray, mean: np.ndarray, sd: np.ndarray
) -> pd.DataFrame:
    """Return a table with the mean and sd of each coordinate in each topic or cluster, and in all observations.

    The rows of a topic or cluster begin with the mean that differs most from the mean of all observations.
    """
    (centre, scale), names = description.all_observations, np.array(description.corpus.vocabulary, dtype=object)
    order = np.argsort(-np.abs((mean - centre) / scale), axis=1, kind="stable")
    return pd.DataFrame(
        {
            kind: np.repeat(np.asarray(rows) + 1, mean.shape[1]),
            "name": names[order].ravel(),
            "mean": np.take_along_axis(mean, order, axis=1).ravel(),
            "sd": np.take_along_axis(sd, order, axis=1).ravel(),
            "mean_of_all": centre[order].ravel(),
            "sd_of_all": scale[order].ravel(),
        }
    )
