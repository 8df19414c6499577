"""Starting state of the Gibbs engine."""

from __future__ import annotations

import numpy as np

from mc2core.corpus import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.state import Assignments
from mc2core.inference.seeding import cluster_documents


def document_start(corpus: Corpus) -> np.ndarray:
    """(J + 1,) int64: where each document's tokens begin."""
    return np.concatenate([[0], np.cumsum(corpus.document_lengths, dtype=np.int64)])


def start_assignments(
    corpus: Corpus, contexts: StackedContexts, n_clusters: int | None, n_topics: int, rng: np.random.Generator
) -> Assignments:
    """Clusters by :func:`cluster_documents` (None: one for each document); topics at random."""
    if n_clusters is None:
        cluster = np.arange(corpus.n_documents, dtype=np.int32)
    else:
        cluster = cluster_documents(corpus, contexts, n_clusters, rng).astype(np.int32)
    topic = rng.integers(0, n_topics, corpus.n_tokens, dtype=np.int32)
    weights = np.full(n_topics, 1.0 / (n_topics + 1))
    assignments = Assignments(cluster, topic, document_start(corpus), weights, 1.0 / (n_topics + 1))
    assignments.count()
    assignments.compact()
    return assignments
