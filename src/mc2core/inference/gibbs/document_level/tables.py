"""Tables of documents and the proportions of clusters, where documents have proportions of their own.

With theta summed out, document j's tokens sit at tables whose topics are drawn from tau_k, k = z_j. Given t_jm, the
number of its tables with topic m, the tables of a cluster's documents are to tau_k what tokens are in MC2, so z, v,
epsilon, eta and alpha are moved as there, with tables in place of tokens and tau summed out.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from mc2core.compute import streams, variates
from mc2core.compute.kernels import kernel
from mc2core.compute.threads import in_blocks
from mc2core.inference.gibbs.state import Assignments, Concentrations

_BLOCK = 256  # documents that a thread takes at a time


@kernel(error_model="numpy")
def _seat(key, first, last, cluster, topic, start, prior, n_j, tables, n_tables):
    """Topics of the tables of documents first..last, from each one's first token on, and how many it has."""
    stream = np.zeros(2, np.uint64)
    n_topics = prior.shape[1]
    for j in range(first, last):
        streams.seek(stream, key, j)
        n_j[:] = 0
        for i in range(start[j], start[j + 1]):
            n_j[topic[i]] += 1
        place = start[j]
        for m in range(n_topics):
            if n_j[m] == 0:
                continue
            a = prior[cluster[j], m]
            tables[place] = m
            place += 1
            # token i opens a table with probability a / (a + i)
            for i in range(1, n_j[m]):
                if streams.uniform(stream) * (a + i) < a:
                    tables[place] = m
                    place += 1
        n_tables[j] = place - start[j]


@kernel
def _close_up(start, n_tables, tables, closed):
    """Copy the tables of all documents one after the other."""
    place = 0
    for j in range(n_tables.size):
        for t in range(start[j], start[j] + n_tables[j]):
            closed[place] = tables[t]
            place += 1


def draw_document_tables(
    assignments: Assignments, prior: np.ndarray, key: np.uint64, pool: Executor | None
) -> Assignments:
    """Draw t_jm given l: documents whose "tokens" are their tables, a topic t_jm times over.

    t_jm = sum over i < n_jm of Bernoulli(omega tau_km / (omega tau_km + i)), the first being 1 (Antoniak's law).

    Parameters
    ----------
    prior : (K, M) float64
        omega tau_km.
    key : one stream for each document
    pool : threads, which change no bit

    Returns
    -------
    Assignments
        Clusters (copied) and topic weights of ``assignments``, tables for tokens, counted.
    """
    start, topic, n_documents = assignments.document_start, assignments.topic, len(assignments.cluster)
    tables, n_tables = np.empty(len(topic), np.int32), np.zeros(n_documents, np.int64)

    def seat(first: int, last: int) -> None:
        n_j = np.zeros(assignments.n_topics, np.int64)
        _seat(key, first, last, assignments.cluster, topic, start, prior, n_j, tables, n_tables)

    in_blocks(pool, seat, n_documents, _BLOCK)
    table_start = np.concatenate([[0], np.cumsum(n_tables)])
    closed = np.empty(table_start[-1], np.int32)
    _close_up(start, n_tables, tables, closed)
    seated = Assignments(
        assignments.cluster.copy(), closed, table_start, assignments.topic_weights, assignments.rest
    )  # fmt: skip
    seated.count(assignments.n_clusters)
    return seated


def draw_proportions(
    tables: np.ndarray, assignments: Assignments, concentrations: Concentrations, rng: np.random.Generator
) -> np.ndarray:
    """(K, M + 1) float64: tau_k ~ Dir(v epsilon + t_k), the rest in the last column, given (K, M) ``tables``."""
    prior = concentrations.table * np.append(assignments.topic_weights, assignments.rest)
    shape = np.tile(prior, (len(tables), 1))
    shape[:, :-1] += tables
    return variates.dirichlet(shape, rng)
