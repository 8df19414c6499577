"""Held-out likelihood: enumeration over clusters and topics, plain twins, and what must not matter.

Statistical tests use fixed seeds; each has a false-alarm rate below 1e-4 over the choice of seed.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import at_strength
from helpers.posterior_samples import (
    COUNTS,
    V,
    clusters_of,
    corpus_of,
    draw_sample,
    enumerate_cluster,
    enumerate_document,
    model_of,
    tokens_of,
    topics_of,
)
from scipy import stats
from scipy.special import gammaln, logsumexp

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.posterior import SparseRows, mixture, perplexity
from mc2core.posterior import perplexity_kernels as kernels

EVERY = pytest.mark.parametrize("estimator", list(perplexity.ESTIMATORS))


# -- exact estimators ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("new_cluster", [0.0, 0.15])
def test_marginal_is_the_sum_over_clusters_and_topics(new_cluster):
    sample = draw_sample(1, new_cluster=new_cluster)
    new = mixture.SampleMixture(sample, 3, 0).tau[-1] if new_cluster else None
    weights, tau = clusters_of(sample, new)
    psi = topics_of(sample)
    expected = [np.log(sum(p * enumerate_cluster(tokens_of(row), t, psi) for p, t in zip(weights, tau, strict=True)))
                for row in COUNTS]  # fmt: skip
    np.testing.assert_allclose(model_of(sample).log_likelihood(corpus_of(), seed=3), expected, atol=1e-12)


def test_likelihood_of_clusters_is_the_sum_over_topics():
    sample = draw_sample(2)
    _, tau = clusters_of(sample)
    expected = [[np.log(enumerate_cluster(tokens_of(row), t, topics_of(sample))) for t in tau] for row in COUNTS]
    found = mixture.log_likelihood_of_clusters(corpus_of(), sample)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("strength", [0.0, 0.25, 1.0])
def test_context_reweighs_the_clusters(strength):
    sample, corpus = draw_sample(3), corpus_of()
    model = model_of(sample)
    model.families = at_strength(model.families, strength)
    weights, tau = clusters_of(sample, mixture.SampleMixture(sample, 0, 0).tau[-1])
    psi = topics_of(sample)
    natural = np.vstack([sample.natural, model.stacked(corpus).prior])
    for j, row in enumerate(COUNTS):
        seen = np.array([
            np.exp(sum(
                family.log_normaliser(eta + strength * family.statistics(corpus.contexts[name])[[j]].toarray()[0])
                - family.log_normaliser(eta) + strength * family.log_base(corpus.contexts[name])[j]
                for name, family, eta in (
                    ("author", model.families["author"], one[:3]), ("year", model.families["year"], one[3:]),
                )
            ))
            for one in natural
        ])  # fmt: skip
        posterior = weights * seen / (weights * seen).sum()
        p = sum(q * enumerate_cluster(tokens_of(row), t, psi) for q, t in zip(posterior, tau, strict=True))
        assert model.log_likelihood(corpus, "context")[j] == pytest.approx(np.log(p), abs=1e-12)


def test_context_without_contexts_is_marginal():
    model = model_of(replace(draw_sample(3), contexts=SparseRows.from_dense(np.zeros((3, 0)))))
    model.families, model.dimensions = {}, {}
    corpus = Corpus(COUNTS)
    np.testing.assert_allclose(
        model.log_likelihood(corpus, "context"), model.log_likelihood(corpus, "marginal"), atol=1e-12
    )


def test_icml14_is_the_printed_formula():
    """ICML14, A.4, written out: tau of the topics in use, psi smoothed by 0.1, the mean over samples of each token."""
    samples = [draw_sample(4), draw_sample(5, n_topics=3)]
    expected = []
    for row in COUNTS:
        per_token = []
        for sample in samples:
            psi = sample.topic_words.toarray() if sp.issparse(sample.topic_words) else np.asarray(sample.topic_words)
            psi = (psi + 0.1) / (psi.sum(axis=1, keepdims=True) + V * 0.1)
            tau, weights = sample.topic_given_cluster, sample.cluster_weights
            k = np.argmax([p * enumerate_cluster(tokens_of(row), t, psi) for p, t in zip(weights, tau, strict=True)])
            m = [np.argmax(tau[k] * psi[:, w]) for w in tokens_of(row)]
            per_token.append([tau[k, topic] * psi[topic, w] for topic, w in zip(m, tokens_of(row), strict=True)])
        expected.append(np.log(np.mean(per_token, axis=0)).sum())
    found = model_of(*samples).log_likelihood(corpus_of(), "icml14")
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_new_cluster_has_proportions_from_their_prior():
    sample = draw_sample(6)
    mixtures = [mixture.SampleMixture(sample, seed=0, number=number) for number in range(600)]
    drawn = np.array([mixture.tau[-1] for mixture in mixtures])
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0, atol=1e-12)
    alpha = sample.table_concentration * np.append(sample.topic_weights, 1 - sample.topic_weights.sum())
    for m, a in enumerate(alpha):
        assert stats.kstest(drawn[:, m], stats.beta(a, alpha.sum() - a).cdf).pvalue > 1e-5


# -- Monte Carlo estimators ---------------------------------------------------------------------------------------
def own_block(rows, psi):
    content = sp.csr_matrix(np.atleast_2d(rows))
    arrays = [part.astype(np.int64) for part in (content.indptr, content.indices, content.data)]
    return (*arrays, np.arange(100, 100 + content.shape[1]), np.ascontiguousarray(psi.T))


def estimates(kernel, block, alpha, draws, passes, key, first=0, last=None, out=None):
    """(J,) ln p(w_j) of documents whose proportions have one prior ``alpha``."""
    n_documents = len(block[0]) - 1
    out = np.full((n_documents, 1), np.nan) if out is None else out
    chosen, of_each = np.zeros((n_documents, 1), np.int64), np.full((n_documents, 1), float(draws))
    asked = kernels.Asked(alpha[None], np.array([key], np.uint64), chosen, of_each)
    kernel(*block, asked, passes, first, n_documents if last is None else last, out)
    return out[:, 0]


PSI = np.array([[0.70, 0.25, 0.04, 0.01], [0.02, 0.08, 0.30, 0.60], [0.25, 0.25, 0.25, 0.25]])
ALPHA = np.array([0.5, 0.9, 0.3])
OWN = np.array([[2, 0, 0, 1], [3, 0, 1, 3], [0, 0, 0, 1], [1, 2, 2, 1]])


@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        pytest.param(kernels.importance, (12, 2), id="importance, two updates"),
        pytest.param(kernels.importance, (3, 20), id="importance"),
        pytest.param(kernels.left_to_right, (1, 0), id="left_to_right, one particle, no moves"),
        pytest.param(kernels.left_to_right, (1, 3), id="left_to_right, one particle"),
        pytest.param(kernels.left_to_right, (0.8, 3), id="left_to_right, less than one particle"),
        pytest.param(kernels.left_to_right, (6, 0), id="left_to_right without moves"),
        pytest.param(kernels.left_to_right, (5.5, 2), id="left_to_right"),
    ],
)
def test_monte_carlo_is_unbiased(kernel, settings):
    """Mean of exp over 10,000 streams within 4.5 standard errors of the enumeration: false alarm 3e-5."""
    block = own_block(OWN, PSI)
    exact = np.array([enumerate_document(tokens_of(row), ALPHA, PSI) for row in OWN])
    found = [estimates(kernel, block, ALPHA, *settings, streams.key(run, "test")) for run in range(10_000)]
    ratio = np.exp(found) / exact
    errors = ratio.std(axis=0) / np.sqrt(len(ratio))
    assert (errors < 0.02).all()
    assert (np.abs(ratio.mean(axis=0) - 1) < 4.5 * errors + 1e-12).all()


def test_less_than_one_draw_of_importance_is_unbiased():
    """As above; single draws of longer documents differ too much to tell."""
    few = OWN[[0, 2]]
    exact = np.array([enumerate_document(tokens_of(row), ALPHA, PSI) for row in few])
    block = own_block(few, PSI)
    found = [estimates(kernels.importance, block, ALPHA, 0.6, 2, streams.key(run, "test")) for run in range(10_000)]
    ratio = np.exp(found) / exact
    np.testing.assert_allclose((ratio > 0).mean(axis=0), 0.6, atol=0.02)
    errors = ratio.std(axis=0) / np.sqrt(len(ratio))
    assert (errors < 0.02).all()
    assert (np.abs(ratio.mean(axis=0) - 1) < 4.5 * errors + 1e-12).all()


def test_estimates_agree_on_a_long_document():
    """p(w) of 120 tokens under 8 topics: the two methods within 0.3 nats (their standard errors are below 0.05)."""
    generator = np.random.default_rng(0)
    psi = generator.dirichlet(np.full(30, 0.1), 8)
    alpha = np.full(8, 0.2)
    row = generator.multinomial(120, generator.dirichlet(alpha) @ psi)
    block, key = own_block(row, psi), streams.key(0, "test")
    one = estimates(kernels.importance, block, alpha, 5000, 20, key)
    other = estimates(kernels.left_to_right, block, alpha, 200, 5, key)
    assert one[0] == pytest.approx(other[0], abs=0.3)


class Stream:
    """A document's stream, drawn from Python."""

    def __init__(self, key, words, counts):
        self.state = np.empty(2, np.uint64)
        kernels.seek_document(self.state, key, words, np.arange(len(words)), counts, 0, len(words))

    def uniform(self):
        return streams.uniform(self.state)

    def choice(self, weights):
        cumulative = np.cumsum(weights)
        return int(np.searchsorted(cumulative, self.uniform() * cumulative[-1], side="right"))


def plain_importance(words, counts, psi, alpha, draws, passes, key):
    stream = Stream(key, words, counts)
    q = psi * alpha
    q /= q.sum(axis=1, keepdims=True)
    for _ in range(passes):
        for u in range(len(q)):
            others = counts @ q - q[u]
            q[u] = psi[u] * (alpha + others)
            q[u] /= q[u].sum()
    log_weights = []
    for _ in range(draws):
        z = np.array([[u, stream.choice(q[u])] for u in range(len(q)) for _ in range(counts[u])])
        n = np.bincount(z[:, 1], minlength=len(alpha))
        log_p = np.sum(gammaln(alpha + n) - gammaln(alpha)) + gammaln(alpha.sum()) - gammaln(alpha.sum() + n.sum())
        log_weights.append(log_p + np.log(psi[z[:, 0], z[:, 1]] / q[z[:, 0], z[:, 1]]).sum())
    return logsumexp(log_weights) - np.log(draws)


def redraw(stream, of, psi, alpha, old=None):
    """A token of one topic, or of none so far, gets another; ``of`` holds a particle's topics in their order, and their
    tokens. Returns it as it is then, the topic, and the sum of the weights."""
    if old is not None:
        of[old] -= 1
        if of[old] == 0:
            last = list(of)[-1]
            n_last = of.pop(last)
            if last != old:  # it takes the place of the one that is gone
                of = {last if m == old else m: n_last if m == old else n for m, n in of.items()}
    known, rest = np.array([psi[m] * n for m, n in of.items()]), psi * alpha
    total = known.sum() + rest.sum()
    u = stream.uniform() * total
    if u < known.sum():
        m = list(of)[int(np.searchsorted(np.cumsum(known), u, side="right"))]
    else:
        m = int(np.searchsorted(np.cumsum(rest), u - known.sum(), side="right"))
    return of | {m: of.get(m, 0) + 1}, m, total


def plain_left_to_right(words, counts, psi, alpha, particles, moves, key):
    stream = Stream(key, words, counts)
    tokens = []
    for n, u in enumerate(np.repeat(np.arange(len(counts)), counts)):
        i = int(stream.uniform() * (n + 1))
        tokens = [*tokens[:i], u, *tokens[i + 1 :], *tokens[i : i + 1]]
    topics, of = [[] for _ in range(particles)], [{} for _ in range(particles)]
    weights, log_p, resampled = np.full(particles, 1 / particles), 0.0, 0
    for n, token in enumerate(tokens):
        predicted = np.empty(particles)
        for r, z in enumerate(topics):
            for _ in range(min(moves, n)):
                i = int(stream.uniform() * n)
                of[r], z[i], _ = redraw(stream, of[r], psi[tokens[i]], alpha, z[i])
            of[r], m, total = redraw(stream, of[r], psi[token], alpha)
            predicted[r] = total / (alpha.sum() + n)
            z.append(m)
        log_p += np.log(weights @ predicted)
        weights = weights * predicted / (weights @ predicted)
        if 1 / np.sum(weights**2) < particles / 2:
            points = (stream.uniform() + np.arange(particles)) / particles
            sources = np.searchsorted(np.cumsum(weights), points)
            topics, of = [list(topics[r]) for r in sources], [dict(of[r]) for r in sources]
            weights[:] = 1 / particles
            resampled += 1
    return log_p, resampled


def test_kernels_equal_their_plain_twins():
    generator = np.random.default_rng(1)
    key, resampled = streams.key(4, "twin"), 0
    psi = generator.dirichlet(np.full(12, 0.2), 4)
    alpha = np.array([0.1, 0.3, 0.05, 0.2])
    rows = generator.multinomial(15, np.full(12, 1 / 12), 20) * (generator.random((20, 12)) < 0.7)
    rows[3] = 0
    block = own_block(rows, psi)
    found = {kernel: np.full((20, 1), np.nan) for kernel in (kernels.importance, kernels.left_to_right)}
    for first, last in ((0, 7), (7, 20)):
        for kernel, settings in ((kernels.importance, (7, 4)), (kernels.left_to_right, (8, 3))):
            estimates(kernel, block, alpha, *settings, key, first, last, found[kernel])
    for j, row in enumerate(rows):
        present = np.flatnonzero(row)
        document = present + 100, row[present], psi.T[present], alpha
        expected = plain_importance(*document, 7, 4, key) if present.size else 0.0
        assert found[kernels.importance][j, 0] == pytest.approx(expected, abs=1e-9)
        expected, times = plain_left_to_right(*document, 8, 3, key)
        assert found[kernels.left_to_right][j, 0] == pytest.approx(expected, abs=1e-9)
        resampled += times
    assert resampled > 10  # the branch was taken
    tau, cluster = generator.dirichlet(np.ones(4), 3), generator.integers(0, 3, 20)
    values = np.ones(block[1].shape)
    kernels.likeliest_topic(block[0], block[1], block[4], tau, cluster, 0, 20, values)
    entry = [(j, w) for j in range(20) for w in np.flatnonzero(rows[j])]
    expected = [1 + np.max(tau[cluster[j]] * psi[:, w]) for j, w in entry]
    np.testing.assert_array_equal(values, expected)


def test_proportions_come_from_the_topics_in_use_and_the_rest():
    """The public estimators against enumeration with alpha = v (epsilon, 1 - sum epsilon): relative error below 0.1."""
    sample = draw_sample(7)
    alpha = sample.table_concentration * np.append(sample.topic_weights, 1 - sample.topic_weights.sum())
    exact = [np.log(enumerate_document(tokens_of(row), alpha, topics_of(sample))) for row in COUNTS]
    model = model_of(*[sample] * 40)
    for estimator in ("importance", "left_to_right"):
        np.testing.assert_allclose(model.log_likelihood(corpus_of(), estimator), exact, atol=0.1)


# -- what holds for every estimator ---------------------------------------------------------------------------------
@EVERY
@pytest.mark.parametrize("constant", [0, 3])
def test_uniform_model_has_perplexity_v(estimator, constant):
    for table in (np.full((2, V), constant), sp.csr_matrix(np.full((2, V), constant))):
        model = model_of(draw_sample(8), topic_words=table)
        assert model.perplexity(corpus_of(), estimator) == pytest.approx(V, rel=1e-12)


@EVERY
def test_samples_are_averaged_inside_the_logarithm(estimator):
    samples = [draw_sample(seed, new_cluster=0.0) for seed in (1, 2, 3)]
    together = model_of(*samples).log_likelihood(corpus_of(), estimator)
    alone = np.array([model_of(sample).log_likelihood(corpus_of(), estimator) for sample in samples])
    mean = logsumexp(alone, axis=0) - np.log(3)
    if estimator in ("marginal", "context"):
        np.testing.assert_allclose(together, mean, atol=1e-12)
    elif estimator == "icml14":  # the mean is over each token
        single = corpus_of(np.eye(V, dtype=int))
        alone = [model_of(sample).log_likelihood(single, estimator) for sample in samples]
        np.testing.assert_allclose(
            model_of(*samples).log_likelihood(single, estimator), logsumexp(alone, axis=0) - np.log(3), atol=1e-12
        )
    else:  # streams differ by sample
        np.testing.assert_allclose(together, mean, atol=0.3)


@pytest.mark.parametrize(
    ("estimator", "omega"),
    [*((name, np.inf) for name in perplexity.ESTIMATORS), ("importance", 2.0), ("left_to_right", 2.0)],
)
def test_a_document_is_independent_of_others_blocks_and_threads(estimator, omega, monkeypatch):
    generator = np.random.default_rng(9)
    counts = generator.poisson(1.0, (70, V))
    corpus = Corpus(counts, contexts={"year": generator.normal(size=70), "author": generator.poisson(0.5, (70, 3))})
    model = model_of(draw_sample(9), draw_sample(10), document_concentration=omega)
    whole = model.log_likelihood(corpus, estimator, seed=2)
    np.testing.assert_array_equal(model.log_likelihood(corpus, estimator, seed=2, threads=3), whole)
    order = generator.permutation(70)[:25]
    np.testing.assert_allclose(model.log_likelihood(corpus.subset(order), estimator, seed=2), whole[order], atol=1e-12)
    monkeypatch.setattr(mixture, "_CELLS", 12)
    np.testing.assert_allclose(model.log_likelihood(corpus, estimator, seed=2), whole, atol=1e-12)
    np.testing.assert_allclose(
        mixture.log_likelihood_of_clusters(corpus, model.representative)[order],
        mixture.log_likelihood_of_clusters(corpus.subset(order), model.representative),
        atol=1e-12,
    )


@EVERY
def test_dense_and_sparse_topics_agree(estimator):
    model = model_of(draw_sample(11))
    dense = model_of(draw_sample(11), topic_words=model.representative.topic_words.toarray())
    np.testing.assert_array_equal(
        model.log_likelihood(corpus_of(), estimator), dense.log_likelihood(corpus_of(), estimator)
    )


@EVERY
def test_empty_and_impossible_documents(estimator):
    sample = draw_sample(12, new_cluster=0.0)
    words = sp.csr_matrix([[3, 1, 0, 0, 0], [1, 2, 2, 0, 1]])
    model = model_of(
        sample,
        topic_words=words,
        topic_word_prior=0.0,
        new_topic_weight=np.zeros(3),
        topic_weights=np.array([0.5, 0.5]),
    )
    found = model.log_likelihood(corpus_of(), estimator)
    assert found[1] == 0
    assert np.isfinite(found[[0, 2, 4]]).all()
    if estimator == "icml14":  # has a smoothing of its own
        assert np.isfinite(found[3])
        return
    assert found[3] == -np.inf  # word 3 is in no topic
    assert model.perplexity(corpus_of(), estimator) == np.inf


@pytest.mark.parametrize("estimator", ["importance", "left_to_right"])
def test_seed_and_sample_number_make_the_stream(estimator):
    model = model_of(draw_sample(13), draw_sample(13))
    one, other = (model.log_likelihood(corpus_of(), estimator, seed=seed) for seed in (0, 1))
    assert (one != other)[[0, 2, 3]].all()
    single = model_of(draw_sample(13)).log_likelihood(corpus_of(), estimator)
    assert (one != single)[[0, 2, 3]].all()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "marginal"),
        ({"new_cluster_weight": 1.0}, "left_to_right"),
        ({"document_concentration": 2.0}, "left_to_right"),
    ],
    ids=["MC2", "HDP", "document level"],
)
def test_by_default_the_estimator_suits_the_model(changes, name):
    model = model_of(draw_sample(1), **changes)
    assert perplexity.suited(model) == name
    expected = model.log_likelihood(corpus_of(), name, seed=4)
    np.testing.assert_array_equal(model.log_likelihood(corpus_of(), seed=4), expected)
    np.testing.assert_array_equal(perplexity.log_likelihood(corpus_of(), model, seed=4), expected)
    assert model.perplexity(corpus_of(), seed=4) == perplexity.perplexity(corpus_of(), model, name, seed=4)
