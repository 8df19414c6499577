"""Starting state of the Gibbs engine."""

from __future__ import annotations

import numpy as np

from mc2core import rng
from mc2core.corpus import Corpus
from mc2core.engines.gibbs_state import Seating


def hellinger_clusters(corpus: Corpus, n_clusters: int, draw: np.random.Generator) -> np.ndarray:
    """(J,) int32: documents by the nearest of ``n_clusters`` seed documents, chosen by k-means++.

    Distance is Hellinger's, that of the square roots of word frequencies; empty documents go to the first seed.
    """
    rows = corpus.content.astype(np.float64)
    lengths = np.asarray(rows.sum(axis=1)).ravel()
    rows.data /= np.repeat(np.maximum(lengths, 1.0), np.diff(rows.indptr))
    np.sqrt(rows.data, out=rows.data)
    nearest = np.full(corpus.n_documents, 2.0)
    cluster = np.zeros(corpus.n_documents, np.int32)
    chance = np.where(lengths > 0, 1.0, 0.0)
    for k in range(n_clusters):
        if not chance.any():
            break
        seed = rng.choose(chance, draw, "documents to start clusters from")
        distance = 2.0 - 2.0 * np.asarray((rows @ rows[[seed]].T).todense()).ravel()
        closer = distance < nearest
        cluster[closer] = k
        nearest = np.minimum(nearest, distance)
        chance = np.where(lengths > 0, np.maximum(nearest, 0.0), 0.0)
        chance[seed] = 0.0
    return cluster


def start_seating(corpus: Corpus, n_clusters: int | None, n_topics: int, draw: np.random.Generator) -> Seating:
    """Clusters by :func:`hellinger_clusters` (None: one for each document); topics at random."""
    if n_clusters is None:
        cluster = np.arange(corpus.n_documents, dtype=np.int32)
    else:
        cluster = hellinger_clusters(corpus, n_clusters, draw)
    topic = draw.integers(0, n_topics, corpus.n_tokens, dtype=np.int32)
    document_start = np.concatenate([[0], np.cumsum(corpus.document_lengths, dtype=np.int64)])
    weights = np.full(n_topics, 1.0 / (n_topics + 1))
    seating = Seating(cluster, topic, document_start, weights, 1.0 / (n_topics + 1))
    seating.count()
    seating.compact()
    return seating
