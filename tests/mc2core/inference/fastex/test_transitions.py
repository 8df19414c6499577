"""FastEx's transition matrices, from the kernels' own weights and acceptance, against the enumerated posterior.

No sampling error hides a bug here. Of 3 clusters and 4 documents there are 81 states, and each document's kernel is an
81 x 81 matrix P for which pi P = pi must hold, and so pi (P_0 P_1 P_2 P_3) = pi for a sweep.
"""

from dataclasses import replace

import numba
import numpy as np
import pytest
from helpers.crossed import crossed
from helpers.fastex_twin import (
    STATES,
    TINY,
    A,
    K,
    assert_invariant,
    first_uniform,
    log_joint,
    matrices,
    posterior,
    settings_of,
    uniforms_of,
)
from scipy.special import gammaln

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.compute.signatures import BITS
from mc2core.compute.streams import draw_from_logs
from mc2core.inference.fastex import exact
from mc2core.inference.fastex.components import GAUSSIAN, MULTINOMIAL, POISSON
from mc2core.inference.fastex.exact import ExactState, Terms, fill_terms, weigh_document
from mc2core.inference.fastex.hashed import HashedState
from mc2core.inference.fastex.hashed_kernels import choose, log_acceptance, workspace
from mc2core.inference.fastex.sparse_counts import log_evidence_in

COMPONENTS = [MULTINOMIAL, POISSON, GAUSSIAN]


# -- every cluster scored ------------------------------------------------------------------------------------------
@numba.njit
def exact_row(model, log_gamma, cells, tables, clusters, j, own):
    """(K,) probabilities with which :func:`sweep_exact` draws document j's cluster."""
    n_clusters = clusters.n_k.size
    terms = Terms(np.empty(n_clusters), np.empty(n_clusters), np.empty(n_clusters), np.empty(n_clusters))
    fill_terms(model, clusters, terms)
    scores, likely = np.empty(n_clusters), np.empty(n_clusters, np.int64)
    n = weigh_document(model, log_gamma, cells, tables, clusters, terms, j, own, scores, likely)
    draw_from_logs(np.zeros(2, np.uint64), scores[:n])
    row = np.zeros(n_clusters)
    for i in range(n):
        row[likely[i]] = scores[i] / scores[:n].sum()
    return row


def exact_kernels(component):
    def rows(cluster):
        s = ExactState(TINY, settings_of(component), cluster)
        data = s.constants, s.log_gamma, s.cells, s.tables, s.clusters
        return [exact_row(*data, j, k) for j, k in enumerate(cluster)]

    return matrices(rows)


def short_gammaln(x):
    """ln G to 12 binary digits after the point: float32 holds sums and differences of it without an error."""
    return np.round(gammaln(x) * 4096) / 4096


@pytest.mark.parametrize(
    ("component", "clusters_per_document"),
    crossed(COMPONENTS, [4, 2, 0]),  # all words frequent, two of three, none
)
def test_exact_draws_leave_the_posterior_as_it_is(component, clusters_per_document, monkeypatch):
    """Frequent words' terms are float32: with log-gammas that float32 holds, theirs must be as exact as lists are."""
    monkeypatch.setattr(exact, "CLUSTERS_PER_DOCUMENT", clusters_per_document)
    monkeypatch.setattr(exact, "gammaln", short_gammaln)
    log_p = np.array([log_joint(cluster, component) for cluster in STATES])
    if component != GAUSSIAN:
        x = TINY.content.toarray()
        counts = np.array([[x[cluster == k].sum(axis=0) for k in range(K)] for cluster in STATES]) + A
        log_p += (short_gammaln(counts) - gammaln(counts)).sum(axis=(1, 2))
    p = np.exp(log_p - log_p.max())
    assert_invariant(p / p.sum(), exact_kernels(component))


@pytest.mark.parametrize("component", COMPONENTS)
def test_exact_draws_with_rounded_terms(component):
    """As users have it: what float32 leaves of frequent words' terms is worth less than 1e-6."""
    assert_invariant(posterior(component), exact_kernels(component), 1e-6)


def test_exact_draws_with_gsdmms_priors_are_those_of_its_paper():
    """Yin and Wang (KDD 2014), eq. 4, word by word: GSDMM of the tables is this engine with these priors."""
    alpha = beta = 0.1
    x, (n_documents, n_words) = TINY.content.toarray(), TINY.content.shape
    settings = replace(settings_of(), topic_word_prior=beta, weight_prior=alpha)
    for cluster in STATES:
        state = ExactState(TINY, settings, cluster)
        data = state.constants, state.log_gamma, state.cells, state.tables, state.clusters
        for d in range(n_documents):
            printed = np.empty(K)
            for z in range(K):
                others = (cluster == z) & (np.arange(n_documents) != d)
                words = x[others].sum(axis=0)
                printed[z] = (others.sum() + alpha) / (n_documents - 1 + K * alpha)
                printed[z] *= np.prod([words[w] + beta + j for w in range(n_words) for j in range(x[d, w])])
                printed[z] /= np.prod([words.sum() + n_words * beta + i for i in range(x[d].sum())])
            row = exact_row(*data, d, cluster[d])
            np.testing.assert_allclose(row, printed / printed.sum(), rtol=1e-5)


@pytest.mark.parametrize("clusters_per_document", [4, 2, 0])
@pytest.mark.parametrize("component", COMPONENTS)
def test_exact_sweeps_draw_from_these_rows(component, clusters_per_document, monkeypatch):
    """The sweep's own bookkeeping, over 300 sweeps: a document's uniform number tells where its row sends it."""
    monkeypatch.setattr(exact, "CLUSTERS_PER_DOCUMENT", clusters_per_document)
    kernels = exact_kernels(component)
    state, i = ExactState(TINY, settings_of(component), STATES[5]), 5
    for t in range(300):
        key = streams.key(4, "test", t)
        state.sweep(key, np.zeros(2, np.int64))
        for j, kernel in enumerate(kernels):
            ends = np.flatnonzero(kernel[i])
            i = ends[np.searchsorted(np.cumsum(kernel[i, ends]), first_uniform(key, j))]
        assert np.array_equal(state.cluster, STATES[i])


# -- hashed proposals ----------------------------------------------------------------------------------------------
@numba.njit
def log_evidences(documents, clusters, slots, constants, j, own):
    logs = np.empty(clusters.n_k.size)
    for k in range(logs.size):
        logs[k] = log_evidence_in(documents, clusters, slots, constants, j, k, int(k == own))
    return logs


def weights_of(state, j):
    """(K,) weights of the proposal for document j, and (K,) exact log evidences; its own cluster's without it."""
    own, work = int(state.cluster[j]), workspace(state.clusters)
    args = state.documents, state.clusters, state.projection, state.constants, state.slots
    choose(*args, j, own, np.zeros(2, np.uint64), work)
    logs = log_evidences(state.documents, state.clusters, state.slots, state.constants, j, own)
    return work.weights[: len(state.sizes)], logs


def moves(state, j, n_proposals):
    """(K, K) of ``n_proposals`` Metropolis-Hastings moves of document j, the others being where they are in
    ``state``."""
    weights, logs = weights_of(state, j)
    n_clusters = len(weights)
    one = np.empty((n_clusters, n_clusters))
    for k in range(n_clusters):
        ratios = [log_acceptance(logs[k], logs[m], weights[k], weights[m]) for m in range(n_clusters)]
        one[k] = weights / weights.sum(dtype=np.float64) * np.exp(np.minimum(ratios, 0.0))
        one[k, k] += 1.0 - one[k].sum()
    return np.linalg.matrix_power(one, n_proposals)


def hashed_rows(settings):
    """``rows(cluster)`` for :func:`matrices`, all with one and the same projection."""
    first = HashedState(TINY, settings, np.array([0, 1, 2, 0]))
    projection_fit = first.centre, first.scale, first.inverse_temperature

    def rows(cluster):
        state = HashedState(TINY, settings, cluster, projection_fit)
        return [moves(state, j, settings.n_proposals)[cluster[j]] for j in range(TINY.n_documents)]

    return rows


HASHES = [(bits, is_balanced, None) for bits in (BITS[0], 64, BITS[-1]) for is_balanced in (True, False)]
HASHES += [(16, True, 0.1), (64, False, 0.1)]


@pytest.mark.parametrize(
    ("component", "n_proposals", "bits", "is_balanced", "failure"), crossed(COMPONENTS, [1, 2], HASHES, every=2)
)
def test_hashed_moves_leave_the_posterior_as_it_is(component, n_proposals, bits, is_balanced, failure):
    rows = hashed_rows(settings_of(component, bits, is_balanced, failure, n_proposals=n_proposals))
    assert_invariant(posterior(component), matrices(rows))


@pytest.mark.parametrize(
    ("component", "n_proposals", "is_balanced", "failure"), crossed(COMPONENTS, [1, 3], [(True, None), (False, 0.1)])
)
def test_hashed_sweeps_make_these_moves(component, n_proposals, is_balanced, failure):
    """100 sweeps by the same uniform numbers: proposals from the weights, and acceptances, of :func:`moves`."""
    settings = settings_of(component, 64, is_balanced, failure, n_proposals=n_proposals)
    state = HashedState(TINY, settings, np.array([0, 1, 2, 0]))
    cluster, projection_fit = state.cluster.copy(), (state.centre, state.scale, state.inverse_temperature)
    found, made = np.zeros(2, np.int64), np.zeros(2, np.int64)
    for t in range(100):
        key = streams.key(4, "test", t)
        state.sweep(key, found)
        for j in range(TINY.n_documents):
            uniforms = iter(uniforms_of(key, j, 2 * n_proposals))
            weights, logs = weights_of(HashedState(TINY, settings, cluster, projection_fit), j)
            own = now = int(cluster[j])
            for _ in range(n_proposals):
                new = int(np.searchsorted(np.cumsum(weights), next(uniforms) * weights.sum(dtype=np.float64)))
                if new != now:
                    made[0] += 1
                    ratio = log_acceptance(logs[now], logs[new], weights[now], weights[new])
                    if ratio >= 0 or next(uniforms) < np.exp(ratio):
                        now = new
            made[1] += now != own
            cluster[j] = now
        assert np.array_equal(state.cluster, cluster)
    assert made.tolist() == found.tolist()
    assert 40 < made[1] < made[0]


@pytest.mark.parametrize("component", COMPONENTS)
def test_hashed_moves_among_several_blocks_of_clusters(component):
    """66 clusters: a document's kernel given where one other document is, in the first block or in the second."""
    corpus = Corpus(TINY.content.toarray()[[0, 2]])
    settings = settings_of(component, n_clusters=66, n_proposals=2)
    first = HashedState(corpus, settings, np.array([0, 1]))
    projection_fit = first.centre, first.scale, first.inverse_temperature
    together, apart = (log_joint(np.array(c), component, corpus) for c in ([0, 0], [0, 1]))
    for other in (0, 65):
        p = np.ones(66)
        p[other] = np.exp(together - apart)
        p /= p.sum()
        states = (HashedState(corpus, settings, np.array([k, other]), projection_fit) for k in range(66))
        kernel = np.array([moves(state, 0, settings.n_proposals)[k] for k, state in enumerate(states)])
        assert_invariant(p, [kernel])


def together(p):
    """(J, J) probabilities that two documents share a cluster."""
    return np.einsum("s,sij->ij", p, STATES[:, :, None] == STATES[:, None, :])


def test_rounds_are_approximate_and_single_documents_exact():
    """What chains converge to, where all four documents are a round: that two share a cluster is off by over 0.05."""
    settings = settings_of(n_proposals=2)
    rows = hashed_rows(settings)
    p = posterior(MULTINOMIAL)
    at_once = np.array(
        [np.prod([row[STATES[:, j]] for j, row in enumerate(rows(cluster))], axis=0) for cluster in STATES]
    )
    in_order = np.linalg.multi_dot(list(matrices(rows)))
    for kernel, least, most in ((at_once, 0.05, 1.0), (in_order, 0.0, 1e-10)):
        limit = np.linalg.matrix_power(kernel, 2**16)[0]
        assert least <= np.abs(together(limit) - together(p)).max() < most
