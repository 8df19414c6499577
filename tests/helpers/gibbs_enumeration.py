"""The exact posterior of MC2 on tiny data, by listing every pair of partitions; shares no code with the engine.

Topic weights and all other measures are integrated out. The partition of tokens into topics then has the law of a
Chinese restaurant franchise with the tables summed out by Stirling numbers:

    p(l | z) = sum_o prod_k G(v) / G(v + n_k.) v**o_k. prod_m |s(n_km, o_km)|
                     eta**M prod_m (o_.m - 1)! G(eta) / G(eta + o_..)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Every set partition of n items, as labels in order of first appearance."""

    def extend(labels: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
        if len(labels) == n:
            yield labels
            return
        for label in range(used + 1):
            yield from extend((*labels, label), max(used, label + 1))

    return extend((), 0)


def canonical(labels: np.ndarray) -> tuple[int, ...]:
    """Labels renumbered in order of first appearance."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(label), len(seen)) for label in labels)


def stirling(n: int, k: int) -> int:
    """Unsigned Stirling number of the first kind."""
    if n == k:
        return 1
    if k <= 0 or k > n:
        return 0
    return (n - 1) * stirling(n - 1, k) + stirling(n - 1, k - 1)


def log_tables(n_km: np.ndarray, v: float, eta: float) -> dict[tuple[int, ...], float]:
    """ln p(l, o_. | z) of the counts (K, M) by the tables o_.m of each topic, less sum_k ln G(v) / G(v + n_k.)."""
    # weights[m] maps the topic's number of tables to its log weight
    weights: list[dict[int, float]] = []
    for m in range(n_km.shape[1]):
        weight = {0: 1}
        for n in n_km[:, m]:
            if n > 0:
                added: dict[int, int] = {}
                for tables, value in weight.items():
                    for more in range(1, n + 1):
                        added[tables + more] = added.get(tables + more, 0) + value * stirling(n, more)
                weight = added
        weights.append({o: math.log(value) + o * math.log(v) + math.lgamma(max(o, 1)) for o, value in weight.items()})
    result = {}
    for chosen in itertools.product(*(weight.items() for weight in weights)):
        tables = tuple(o for o, _ in chosen)
        value = sum(weight for _, weight in chosen) + len(tables) * math.log(eta)
        result[tables] = value + math.lgamma(eta) - math.lgamma(eta + sum(tables))
    return result


def log_topics(n_km: np.ndarray, v: float, eta: float) -> float:
    """ln p(l | z) of the counts (K, M), by the sum over tables."""
    logs = log_tables(n_km, v, eta).values()
    top = max(logs)
    result = top + math.log(sum(math.exp(value - top) for value in logs))
    for n in n_km.sum(axis=1):
        result += math.lgamma(v) - math.lgamma(v + n)
    return result


def log_clusters(z: tuple[int, ...], alpha: float, n_clusters: float = math.inf) -> float:
    """ln p(z) of the Chinese restaurant process; of at most ``n_clusters``, every way to number them counted."""
    sizes = np.bincount(z)
    if n_clusters < math.inf:
        each, ways = alpha / n_clusters, math.perm(int(n_clusters), len(sizes))
        result = sum(math.lgamma(each + size) - math.lgamma(each) for size in sizes)
        return (math.log(ways) if ways else -math.inf) + result + math.lgamma(alpha) - math.lgamma(alpha + len(z))
    return (
        len(sizes) * math.log(alpha)
        + sum(math.lgamma(size) for size in sizes)
        + math.lgamma(alpha)
        - math.lgamma(alpha + len(z))
    )


def log_words(topics: tuple[int, ...], words: list[int], n_words: int, s: float) -> float:
    """ln p(w | l) of the Dirichlet-multinomials."""
    counts = np.zeros((max(topics, default=-1) + 1, n_words))
    np.add.at(counts, (list(topics), words), 1)
    result = 0.0
    for row in counts:
        result += math.lgamma(n_words * s) - math.lgamma(n_words * s + row.sum())
        result += sum(math.lgamma(s + n) - math.lgamma(s) for n in row)
    return result


def posterior(
    documents: list[list[int]],
    n_words: int,
    alpha: float,
    v: float,
    eta: float,
    s: float,
    log_context: Callable[[list[int]], float] = lambda members: 0.0,
    fixed_clusters: bool = False,
    log_tokens: Callable[[tuple[int, ...]], float] = lambda topics: 0.0,
    n_clusters: float = math.inf,
) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    """Probability of each possible (partition of documents, partition of tokens).

    ``log_context``: log marginal likelihood of the contexts of the given documents; ``log_tokens``: of what tokens emit
    beside their words, given their topics.
    """
    document_of = [j for j, words in enumerate(documents) for _ in words]
    words = [word for document in documents for word in document]
    n_documents = len(documents)
    logs: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    token_terms = {
        topics: log_words(topics, words, n_words, s) + log_tokens(topics) for topics in partitions(len(words))
    }
    cached: dict[bytes, float] = {}
    for z in [tuple(range(n_documents))] if fixed_clusters else partitions(n_documents):
        log_z = 0.0 if fixed_clusters else log_clusters(z, alpha, n_clusters)
        if log_z == -math.inf:
            continue
        log_z += sum(log_context([j for j in range(n_documents) if z[j] == k]) for k in range(max(z) + 1))
        for topics, log_w in token_terms.items():
            n_km = np.zeros((max(z) + 1, max(topics, default=-1) + 1), np.int64)
            np.add.at(n_km, ([z[j] for j in document_of], list(topics)), 1)
            key = n_km.tobytes() + bytes([len(n_km)])
            if key not in cached:
                cached[key] = log_topics(n_km, v, eta)
            logs[z, topics] = log_z + log_w + cached[key]
    top = max(logs.values())
    total = sum(math.exp(value - top) for value in logs.values())
    return {state: math.exp(value - top) / total for state, value in logs.items()}
