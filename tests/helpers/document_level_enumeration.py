"""The exact posterior of MC2 with a document level, by listing partitions and tables of documents.

    p(l | z) = sum_t prod_j G(omega) / G(omega + N_j) prod_m |s(n_jm, t_jm)| omega**t_jm  p(t | z)

with p(t | z) the law of MC2's topics for tables in place of tokens (``enumeration.log_topics``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from helpers.gibbs_enumeration import log_clusters, log_topics, log_words, partitions, stirling


def log_document_level_topics(n_jm: np.ndarray, z: tuple[int, ...], omega: float, v: float, eta: float) -> float:
    """ln p(l | z) of the counts (J, M), theta, tau and epsilon summed out."""
    cells = [(j, m) for j, m in zip(*np.nonzero(n_jm), strict=True)]
    terms = []
    for tables in itertools.product(*(range(1, n_jm[cell] + 1) for cell in cells)):
        t_km = np.zeros((max(z) + 1, n_jm.shape[1]), np.int64)
        value = 0.0
        for (j, m), t in zip(cells, tables, strict=True):
            t_km[z[j], m] += t
            value += math.log(stirling(int(n_jm[j, m]), t)) + t * math.log(omega)
        terms.append(value + log_topics(t_km, v, eta))
    top = max(terms)
    result = top + math.log(sum(math.exp(value - top) for value in terms))
    return result + sum(math.lgamma(omega) - math.lgamma(omega + n) for n in n_jm.sum(axis=1))


def document_level_posterior(
    documents: list[list[int]],
    n_words: int,
    concentrations: tuple[float, float, float, float],
    s: float,
    log_context: Callable[[list[int]], float],
    fixed_clusters: bool,
    n_clusters: float = math.inf,
    log_tokens: Callable[[tuple[int, ...]], float] = lambda topics: 0.0,
) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    """Probability of each possible (partition of documents, partition of tokens) given alpha, v, eta and omega.

    ``log_tokens``: log marginal likelihood of what tokens emit beside their words, given their topics.
    """
    alpha, v, eta, omega = concentrations
    document_of = [j for j, words in enumerate(documents) for _ in words]
    words = [word for document in documents for word in document]
    n_documents = len(documents)
    logs: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    cached: dict[tuple[tuple[int, ...], bytes], float] = {}
    for z in [tuple(range(n_documents))] if fixed_clusters else partitions(n_documents):
        log_z = 0.0 if fixed_clusters else log_clusters(z, alpha, n_clusters)
        if log_z == -math.inf:
            continue
        log_z += sum(log_context([j for j in range(n_documents) if z[j] == k]) for k in range(max(z) + 1))
        for topics in partitions(len(words)):
            n_jm = np.zeros((n_documents, max(topics, default=-1) + 1), np.int64)
            np.add.at(n_jm, (document_of, list(topics)), 1)
            key = z, n_jm.tobytes()
            if key not in cached:
                cached[key] = log_document_level_topics(n_jm, z, omega, v, eta)
            logs[z, topics] = log_z + log_words(topics, words, n_words, s) + log_tokens(topics) + cached[key]
    top = max(logs.values())
    total = sum(math.exp(value - top) for value in logs.values())
    return {state: math.exp(value - top) / total for state, value in logs.items()}
