"""Corpora of observations, drawn, and closed forms of their likelihood that share no code with the package."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaln, gammaln, multigammaln

from mc2core import Corpus
from mc2core.families import ContentFamily


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


def log_gauss_wishart(x: np.ndarray, mu0: float, kappa0: float, a0: float, b0: float) -> float:
    """ln p(x) of (n, D) vectors of one Normal whose mean and precision are integrated out (Murphy 2007, eq. 266)."""
    n, size = x.shape
    nu0, psi0 = size - 1 + 2 * a0, 2 * b0 * np.eye(size)
    mean = x.mean(axis=0)
    scatter = (x - mean).T @ (x - mean)
    psi = psi0 + scatter + kappa0 * n / (kappa0 + n) * np.outer(mean - mu0, mean - mu0)
    gammas = multigammaln((nu0 + n) / 2, size) - multigammaln(nu0 / 2, size)
    dets = nu0 / 2 * np.linalg.slogdet(psi0)[1] - (nu0 + n) / 2 * np.linalg.slogdet(psi)[1]
    return float(gammas + dets + size / 2 * np.log(kappa0 / (kappa0 + n)) - n * size / 2 * np.log(np.pi))


def log_gamma_poisson(x: np.ndarray, unit: float, a0: float, b0: float) -> float:
    """ln p(x) of (n,) counts, Poisson with mean ``unit`` times a rate that is integrated out."""
    base = (x * np.log(unit) - gammaln(x + 1)).sum()
    a, b = a0 + x.sum(), b0 + len(x) * unit
    return float(base + gammaln(a) - gammaln(a0) + a0 * np.log(b0) - a * np.log(b))


def log_beta_bernoulli(x: np.ndarray, a0: float, b0: float) -> float:
    """ln p(x) of (n,) zeros and ones, their probability integrated out."""
    return float(betaln(a0 + x.sum(), b0 + (1 - x).sum()) - betaln(a0, b0))


def log_values(family: ContentFamily, values: np.ndarray, topics: tuple[int, ...]) -> float:
    """ln p(x | l) of (N, D) observations of any kind as the corpus has them, less the unit of numbers."""
    labels = np.array(topics)
    groups = [labels == m for m in np.unique(labels)]
    hyper = list(family.settings().values())[:-1]  # without the strength
    if family.content_kind == "numbers":
        x = standardised(values)
        if family.name == "diagonal_normal_gamma":
            return log_observations(x, topics, *hyper)
        return sum(log_gauss_wishart(x[group], *hyper) for group in groups)
    if family.content_kind == "counts":
        units = values.mean(axis=0)
        pairs = [(column[group], unit) for group in groups for column, unit in zip(values.T, units, strict=True)]
        return sum(log_gamma_poisson(x, unit, *hyper) for x, unit in pairs)
    return sum(log_beta_bernoulli(column[group], *hyper) for group in groups for column in values.T)


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
