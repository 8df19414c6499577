"""Tokens of every document in each topic, n_jm, as sparse rows: what all moves above the tokens look at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.inference.gibbs.state import Assignments


class TopicCounts(NamedTuple):
    """Row j holds the topics of document j in ascending order and its tokens in each."""

    start: np.ndarray  # (J + 1,) int64
    topic: np.ndarray  # int32
    n: np.ndarray  # int32, at least 1


@kernel
def _count_topics(start, topic, n_topics, rows, row_topic, row_count):
    n_j, place = np.zeros(n_topics, np.int32), 0
    for j in range(start.size - 1):
        for i in range(start[j], start[j + 1]):
            n_j[topic[i]] += 1
        rows[j] = place
        if start[j + 1] > start[j]:
            for m in range(n_topics):
                if n_j[m] > 0:
                    row_topic[place], row_count[place] = m, n_j[m]
                    n_j[m] = 0
                    place += 1
    rows[start.size - 1] = place


def count_topics(assignments: Assignments) -> TopicCounts:
    """n_jm of the assignments."""
    start, n_documents = assignments.document_start, len(assignments.cluster)
    most = int(np.minimum(np.diff(start), assignments.n_topics).sum())
    rows = np.empty(n_documents + 1, np.int64)
    topic, count = np.empty((2, most), np.int32)
    _count_topics(start, assignments.topic, assignments.n_topics, rows, topic, count)
    return TopicCounts(rows, topic[: rows[-1]], count[: rows[-1]])
