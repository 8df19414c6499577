"""Corpora of observations, drawn, and closed forms of their likelihood that share no code with the package."""

from __future__ import annotations

import math

import numpy as np

from mc2core import Corpus


def log_normal_gamma(x: np.ndarray, mu0: float, kappa0: float, a0: float, b0: float) -> float:
    """ln p(x) of (n,) numbers of one Normal whose mean and precision are integrated out (Murphy 2007, eq. 99)."""
    n = len(x)
    if n == 0:
        return 0.0
    mean = float(np.mean(x))
    spread = float(((x - mean) ** 2).sum())
    kappa, a = kappa0 + n, a0 + n / 2
    b = b0 + 0.5 * spread + kappa0 * n * (mean - mu0) ** 2 / (2 * kappa)
    gammas = math.lgamma(a) - math.lgamma(a0)
    return gammas + a0 * math.log(b0) - a * math.log(b) + 0.5 * math.log(kappa0 / kappa) - n / 2 * math.log(2 * math.pi)


def log_observations(values: np.ndarray, topics: tuple[int, ...], *hyper: float) -> float:
    """ln p(x | l) of (N, D) observations that are standardised already."""
    labels = np.array(topics)
    return sum(
        log_normal_gamma(values[labels == m, d], *hyper) for m in np.unique(labels) for d in range(values.shape[1])
    )


def standardised(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(axis=0)) / values.std(axis=0)


def crossed_corpus(n_documents=60, n_observations=40, dimension=3, n_clusters=3, n_topics=5, seed=0):
    """(corpus with the clusters as labels, (N,) topics): clusters share Gaussian topics in other proportions."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_topics, 0.4), n_clusters)
    centres = 4 * rng.standard_normal((n_topics, dimension))
    cluster = rng.integers(0, n_clusters, n_documents)
    document = np.repeat(np.arange(n_documents), n_observations)
    topic = np.array([rng.choice(n_topics, p=shares[cluster[j]]) for j in document])
    values = 10.0 + 3.0 * (centres[topic] + rng.standard_normal((len(topic), dimension)))
    return Corpus.from_observations(values, document, labels=cluster), topic
