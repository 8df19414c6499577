"""Log joints from assignments alone, written out from the models: they share no code with the engines.

Each function returns (log joint, sum of the absolute values of its terms): the second says how many digits of the first
rounding leaves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from math import lgamma, log

import numpy as np
import scipy.sparse as sp
from scipy.special import multigammaln

from mc2core import Corpus
from mc2core.families import DirichletCategorical, Family, GammaPoisson, NormalGamma

LOG_2PI = math.log(2.0 * math.pi)


def log_joint_of_mc2(
    corpus: Corpus,
    cluster: np.ndarray,
    topic: np.ndarray,
    topic_weights: np.ndarray,
    *,
    alpha: float | None,
    n_clusters: int | None,
    v: float,
    s: float,
    families: Mapping[str, Family],
    token_families: Mapping[str, Family],
    document_level: tuple[float, np.ndarray] | None,
) -> tuple[float, float]:
    """ln p(w, x, z, l | epsilon, alpha, v) with tau, psi, phi and pi integrated out (ICML14); alpha None: z is given;
    ``n_clusters`` None: as many as there are documents for.

    ``topic``: of each token, tokens in CSR order, a count of c giving c tokens in a row. ``token_families``: contexts
    that topics emit with each token (npTOT). ``document_level``: omega and tau (K, at least M), which is given.
    """
    content = corpus.content
    words = np.repeat(content.indices, content.data)
    document = np.repeat(np.arange(corpus.n_documents), np.diff(content.indptr))
    document = np.repeat(document, content.data)
    terms = [*_terms_of_words(topic, words, s, corpus.n_words), *_terms_of_clusters(cluster, alpha, n_clusters)]
    if document_level is None:
        terms += _terms_of_proportions(cluster[document], topic, v, np.tile(topic_weights, (cluster.max() + 1, 1)))
    else:
        omega, tau = document_level
        terms += _terms_of_proportions(document, topic, omega, tau[cluster])
    for name, family in families.items():
        values = corpus.contexts[name]
        terms += [one for k in set(cluster.tolist()) for one in _terms_of_context(family, values[cluster == k])]
    for name, family in token_families.items():
        times = corpus.contexts[name][document]
        terms += [one for m in set(topic.tolist()) for one in _terms_of_context(family, times[topic == m])]
    return math.fsum(terms), math.fsum(map(abs, terms))


def _terms_of_clusters(cluster: np.ndarray, alpha: float | None, n_clusters: int | None) -> Iterator[float]:
    """Of the Chinese restaurant process, or of a finite mixture; none where clusters are given."""
    sizes = Counter(cluster.tolist())
    if alpha is not None:
        if n_clusters is None:
            yield len(sizes) * log(alpha)
            yield from (lgamma(size) for size in sizes.values())
        else:
            yield from (log(n_clusters - i) for i in range(len(sizes)))
            yield from (lgamma(size + alpha / n_clusters) for size in sizes.values())
            yield -len(sizes) * lgamma(alpha / n_clusters)
        yield lgamma(alpha)
        yield -lgamma(alpha + len(cluster))


def _terms_of_proportions(group: np.ndarray, topic: np.ndarray, mass: float, weights: np.ndarray) -> Iterator[float]:
    """Of the topics of tokens, the proportions of each token's ``group`` having the prior Dir(mass x its weights)."""
    for (g, m), n in Counter(zip(group.tolist(), topic.tolist(), strict=True)).items():
        prior = mass * weights[g, m]
        yield lgamma(prior + n)
        yield -lgamma(prior)
    for n in Counter(group.tolist()).values():
        yield lgamma(mass)
        yield -lgamma(mass + n)


def _terms_of_words(topic: np.ndarray, words: np.ndarray, s: float, n_words: int) -> Iterator[float]:
    for n in Counter(zip(topic.tolist(), words.tolist(), strict=True)).values():
        yield lgamma(s + n)
        yield -lgamma(s)
    for n in Counter(topic.tolist()).values():
        yield lgamma(s * n_words)
        yield -lgamma(s * n_words + n)


def _terms_of_context(family: Family, values: np.ndarray | sp.csr_matrix) -> Iterator[float]:
    """Of ln of the marginal likelihood of the observations of one cluster, each to the power of the strength."""
    strength = family.strength
    if isinstance(family, DirichletCategorical):
        a, counts = family.concentration, strength * np.asarray(values.sum(axis=0)).ravel()
        for n in counts[counts > 0].tolist():
            yield lgamma(a + n)
            yield -lgamma(a)
        yield lgamma(a * len(counts))
        yield -lgamma(a * len(counts) + counts.sum())
        return
    seen = values[~np.isnan(values)]
    n = strength * len(seen)
    if isinstance(family, GammaPoisson):
        total = strength * float(seen.sum())
        yield lgamma(family.a0 + total)
        yield -lgamma(family.a0)
        yield family.a0 * log(family.b0)
        yield -(family.a0 + total) * log(family.b0 + n)
        yield from (-strength * lgamma(x + 1.0) for x in seen.tolist())
    elif n:
        assert isinstance(family, NormalGamma)
        mean = float(seen.mean())
        a, kappa = family.a0 + n / 2, family.kappa0 + n
        b = family.b0 + strength * float(((seen - mean) ** 2).sum()) / 2
        b += family.kappa0 * n * (mean - family.mu0) ** 2 / (2 * kappa)
        yield lgamma(a)
        yield -lgamma(family.a0)
        yield family.a0 * log(family.b0)
        yield -a * log(b)
        yield (log(family.kappa0) - log(kappa)) / 2
        yield -n / 2 * LOG_2PI


def log_joint_of_mixture(
    corpus: Corpus,
    cluster: np.ndarray,
    *,
    n_clusters: int,
    component: str,
    topic_word_prior: float,
    weight_prior: float,
    rate_prior: float,
) -> tuple[float, float]:
    """ln p(x, z) of the finite mixture (NIPS12) with all else integrated out, without ln x! of the count models."""
    return _summed(
        _terms_of_mixture(corpus, cluster, n_clusters, component, topic_word_prior, weight_prior, rate_prior)
    )


def _terms_of_mixture(corpus, cluster, n_clusters, component, a, weight_prior, rate) -> Iterator[float]:  # type: ignore[no-untyped-def]
    n_words = corpus.n_words
    yield lgamma(n_clusters * weight_prior)
    yield -lgamma(n_clusters * weight_prior + len(cluster))
    for k, size in Counter(cluster.tolist()).items():
        yield lgamma(size + weight_prior)
        yield -lgamma(weight_prior)
        rows = corpus.content[np.flatnonzero(cluster == k)].toarray().astype(float)
        counts = rows.sum(axis=0)
        if component == "gaussian":
            shape = 1.0 + size * n_words / 2
            spread = ((rows - counts / size) ** 2).sum() + (counts**2).sum() * a / (size * (a + size))
            yield lgamma(shape)
            yield log(rate)
            yield -shape * log(rate + spread / 2)
            yield n_words / 2 * (log(a) - log(a + size))
            yield -size * n_words / 2 * LOG_2PI
            continue
        if component == "gauss_wishart":
            mean = counts / size
            psi = 2 * rate * np.eye(n_words) + (rows - mean).T @ (rows - mean)
            psi += a * size / (a + size) * np.outer(mean, mean)
            yield float(multigammaln((n_words + 1 + size) / 2, n_words))
            yield -float(multigammaln((n_words + 1) / 2, n_words))
            yield n_words * (n_words + 1) / 2 * log(2 * rate)
            yield -(n_words + 1 + size) / 2 * float(np.linalg.slogdet(psi)[1])
            yield n_words / 2 * (log(a) - log(a + size))
            yield -size * n_words / 2 * log(math.pi)
            continue
        for n in counts[counts > 0].tolist():
            yield lgamma(a + n)
            yield -lgamma(a)
        if component == "multinomial":
            yield lgamma(a * n_words)
            yield -lgamma(a * n_words + counts.sum())
        else:
            yield a * n_words * (log(rate) - log(rate + size))
            yield -counts.sum() * log(rate + size)


def _summed(terms: Iterator[float]) -> tuple[float, float]:
    listed = list(terms)
    return math.fsum(listed), math.fsum(map(abs, listed))
