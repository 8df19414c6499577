"""What FastEx's tests share: a tiny corpus with all its states, and plain twins of kernels, written from the model."""

import itertools

import numba
import numpy as np
from scipy.special import gammaln
from scipy.stats import multivariate_t

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.inference.fastex.components import GAUSS_WISHART, GAUSSIAN, MULTINOMIAL, ChainSettings, ProposalSettings

TINY = Corpus(np.array([[2, 0, 1, 0], [0, 1, 1, 0], [1, 0, 4, 0], [0, 0, 0, 0]]))
K, A, G, B = 3, 0.3, 0.7, 0.5
VISITS = ProposalSettings(n_neighbours=2, list_budget=100, n_proposals=4, uniform_share=0.2, exact_sweeps=())
STATES = np.array(list(itertools.product(range(K), repeat=TINY.n_documents)))
PLACE = 3 ** np.arange(TINY.n_documents - 1, -1, -1)


def settings_of(
    component=MULTINOMIAL, bits=64, is_balanced=True, failure=None, n_clusters=K, n_proposals=1, visits=VISITS
):
    return ChainSettings(n_clusters, A, G, B, component, bits, is_balanced, failure, 0.8, n_proposals, 1, visits)


def log_joint(cluster, component, corpus=TINY):
    """The twin, written from the model."""
    x = corpus.content.toarray()
    n = np.bincount(cluster, minlength=K)
    counts = np.array([x[cluster == k].sum(axis=0) for k in range(K)])
    log_p = gammaln(K * G) - gammaln(K * G + len(x)) + np.sum(gammaln(n + G) - gammaln(G))
    if component == GAUSSIAN:
        return log_p + sum(log_multivariate_t(x[cluster == k]) for k in range(K))
    if component == GAUSS_WISHART:
        return log_p + sum(log_gauss_wishart(x[cluster == k]) for k in range(K))
    log_p += np.sum(gammaln(counts + A) - gammaln(A))
    total = corpus.n_words * A
    if component == MULTINOMIAL:
        return log_p + np.sum(gammaln(total) - gammaln(total + counts.sum(axis=1)))
    return log_p + np.sum(total * np.log(B) - (counts.sum(axis=1) + total) * np.log(B + n))


def log_multivariate_t(rows):
    """Chain rule: each document by Student's t, given those before it (Normal-Gamma, one precision for all words)."""
    total, shape, rate, strength, mean = 0.0, 1.0, B, A, np.zeros(rows.shape[1])
    for row in rows:
        scale = rate * (strength + 1) / (shape * strength)
        total += multivariate_t.logpdf(row, loc=mean, shape=scale * np.eye(len(row)), df=2 * shape)
        shape += len(row) / 2
        rate += strength * np.sum((row - mean) ** 2) / (2 * (strength + 1))
        mean = (strength * mean + row) / (strength + 1)
        strength += 1
    return total


def predictive(rows, x):
    """ln p(x | rows) under a Gauss-Wishart prior, Student's t: mean 0 worth A rows, V + 1 degrees of freedom."""
    n, n_words = rows.shape
    strength, total = A + n, rows.sum(axis=0)
    psi = 2 * B * np.eye(n_words) + rows.T @ rows - np.outer(total, total) / strength
    degrees = n_words + 1 + n - n_words + 1
    shape = psi * (strength + 1) / (strength * degrees)
    return multivariate_t.logpdf(x, loc=total / strength, shape=shape, df=degrees)


def log_gauss_wishart(rows):
    """Chain rule: each document given those before it."""
    return sum(predictive(rows[:i], row) for i, row in enumerate(rows))


def posterior(component):
    log_p = np.array([log_joint(state, component) for state in STATES])
    p = np.exp(log_p - log_p.max())
    return p / p.sum()


def matrices(rows):
    """(J, 81, 81) from ``rows(cluster)``, (J, K): where a state's documents go, each on its own."""
    found = np.zeros((TINY.n_documents, len(STATES), len(STATES)))
    for i, cluster in enumerate(STATES):
        for j, row in enumerate(rows(cluster)):
            for k in range(K):
                found[j, i, i + (k - cluster[j]) * PLACE[j]] = row[k]
    return found


def assert_invariant(p, kernels, tolerance=1e-12):
    for kernel in kernels:
        np.testing.assert_allclose(kernel.sum(axis=1), 1.0, rtol=0, atol=1e-13)
        np.testing.assert_allclose(p @ kernel, p, rtol=0, atol=tolerance)
        flow = p[:, None] * kernel
        np.testing.assert_allclose(flow, flow.T, rtol=0, atol=tolerance)  # detailed balance, which is more


@numba.njit
def uniforms_of(key, j, n):
    """The first uniform numbers of document j."""
    stream = np.zeros(2, np.uint64)
    streams.seek(stream, key, j)
    return np.array([streams.uniform(stream) for _ in range(n)])


def first_uniform(key, j):
    return uniforms_of(key, j, 1)[0]


def small_corpus(n_documents=40, n_words=30, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n_documents) % 4
    words = rng.dirichlet(np.full(n_words, 0.2), size=4)
    return Corpus(np.array([rng.multinomial(30, words[k]) for k in truth]), labels=truth), truth


def assert_stationary(batches, exact):
    """Batch means against exact probabilities: no state off by more than 6 standard errors.

    40 batches, 81 states: false-alarm rate below 81 * P(|t_39| > 6) = 5e-5. No error is smaller than that of
    independent draws, which keeps states apart that were hardly ever visited.
    """
    share = batches / batches.sum(axis=1, keepdims=True)
    error = np.sqrt(share.var(axis=0, ddof=1) / len(share) + exact / batches.sum())
    assert np.max(np.abs(share.mean(axis=0) - exact) / error) < 6
    distance = 0.5 * np.abs(share.mean(axis=0) - exact).sum()
    assert distance < 0.05  # a gross error shows here, too, where 6 errors are wide


def hashed_vectors(corpus, cluster, state):
    """(J, V) of documents and (4, V) of clusters: what the state's projection hashes of count models."""
    x = corpus.content.toarray().astype(float)
    p = x.sum(axis=0) / x.sum() if state.settings.is_balanced else np.zeros(corpus.n_words)
    theta = np.log1p(np.array([x[cluster == k].sum(axis=0) for k in range(4)]) / A)
    kept = state.scale > 0
    parameters = np.where(kept, (theta - state.centre) / np.where(kept, state.scale, 1.0), 0.0)
    return (x - x.sum(axis=1, keepdims=True) * p) * state.scale, parameters


def proposal_scores(columns, query, norm, mass, bits, slack, inverse_temperature):
    """(K',) of NIPS12 eq. 14, and with slack of eq. 15, for a document of this signature, norm and mass."""
    apart = np.bitwise_count(columns.signature ^ query[:, None]).sum(axis=0)
    angle = np.pi * np.maximum(apart / bits - slack, 0.0)
    return inverse_temperature * (
        columns.constant + mass * columns.slope.astype(float) + norm * columns.norm * np.cos(angle)
    )


def exact_scores(component, n, x):
    """(K,) sums of terms of counts x (V,) in clusters of counts n (K, V), over those of clusters without the words."""
    terms = n * x if component == GAUSSIAN else gammaln(n + A + x) - gammaln(n + A) - gammaln(A + x) + gammaln(A)
    return terms.sum(axis=1)
