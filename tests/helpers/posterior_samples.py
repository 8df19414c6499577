"""Samples of small models, and the likelihood of documents under them by enumeration."""

import itertools
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from mc2core import Corpus
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.posterior import Posterior, Sample, SparseRows

V = 5
COUNTS = np.array([[2, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 3], [1, 1, 1, 1, 1], [0, 4, 0, 0, 0]])
YEAR = np.array([0.3, 1.0, np.nan, -2.0, 0.1])
AUTHOR = sp.csr_matrix([[1, 0, 0], [0, 1, 0], [0, 2, 1], [0, 0, 0], [0, 0, 1]])


def draw_sample(seed, n_clusters=3, n_topics=2, new_cluster=0.15):
    generator = np.random.default_rng(seed)
    stacked_prior = np.array([0.5, 0.5, 0.5, *NormalGamma().prior(4)])
    natural = np.tile(stacked_prior, (n_clusters, 1))
    natural[:, :3] += generator.integers(0, 4, (n_clusters, 3))
    natural[:, 3:] += np.array([1.0, 2.0, 1.0, 3.0]) * generator.random((n_clusters, 1))
    return Sample(
        cluster_weights=generator.dirichlet(np.ones(n_clusters)),
        new_cluster_weight=new_cluster,
        topic_given_cluster=generator.dirichlet(np.ones(n_topics), n_clusters),
        new_topic_weight=generator.random(n_clusters) * 0.3,
        topic_words=sp.csr_matrix(generator.integers(0, 6, (n_topics, V))),
        topic_word_prior=0.2,
        topic_weights=generator.dirichlet(np.ones(n_topics + 1))[:n_topics],
        table_concentration=1.7,
        contexts=SparseRows.from_dense(natural),
        cluster=np.zeros(4, dtype=np.int32),
    )


def model_of(*samples, **changes):
    families = {"author": DirichletCategorical(0.5), "year": NormalGamma()}
    samples = [replace(sample, **changes) for sample in samples]
    return Posterior(samples, families, {"author": 3, "year": 4}, [f"w{v}" for v in range(V)])


def corpus_of(counts=COUNTS):
    return Corpus(sp.csr_matrix(counts), contexts={"year": YEAR, "author": AUTHOR})


def tokens_of(row):
    return np.repeat(np.arange(len(row)), row)


def topics_of(sample):
    """(M + 1, V): the sample's topics and the uniform one."""
    words = sample.topic_words.toarray() + sample.topic_word_prior
    return np.vstack([words / words.sum(axis=1, keepdims=True), np.full(V, 1 / V)])


def clusters_of(sample, new=None):
    """Weights and proportions over M + 1 topics, the new cluster last."""
    unused = sample.new_topic_weight[:, None]
    tau = np.hstack([sample.topic_given_cluster * (1 - unused), unused])
    if new is None:
        return sample.cluster_weights, tau
    mass = sample.new_cluster_weight
    return np.append(sample.cluster_weights * (1 - mass), mass), np.vstack([tau, new])


def enumerate_cluster(tokens, tau, psi):
    """p(w | cluster) as the sum over the topics of all tokens."""
    return sum(
        np.prod([tau[m] * psi[m, w] for m, w in zip(topics, tokens, strict=True)])
        for topics in itertools.product(range(len(tau)), repeat=len(tokens))
    )


def enumerate_document(tokens, alpha, psi):
    """p(w) with proportions Dirichlet(alpha) of the document's own, over the topics of all tokens."""
    total = 0.0
    for topics in itertools.product(range(len(alpha)), repeat=len(tokens)):
        n = np.bincount(topics, minlength=len(alpha))
        log_p = np.sum(gammaln(alpha + n) - gammaln(alpha)) + gammaln(alpha.sum()) - gammaln(alpha.sum() + n.sum())
        total += np.exp(log_p) * np.prod([psi[m, w] for m, w in zip(topics, tokens, strict=True)])
    return total
