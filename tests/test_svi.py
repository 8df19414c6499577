"""SVI-MC2 proved: against a per-token twin, finite differences, enumeration, and what must not change a bit."""

import copy
import itertools
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate, stats
from scipy.special import betaln, digamma, gammaln, log_softmax, logsumexp, polygamma, softmax

from mc2core import Corpus, sticks
from mc2core.engines import svi_local
from mc2core.engines.loop import fit
from mc2core.engines.svi import SVI, step_concentrations, step_tables, step_topics
from mc2core.engines.svi_state import Concentrations, Expectations, divergence
from mc2core.families import DirichletCategorical, GammaPoisson, NormalGamma
from mc2core.families.stacked import StackedContexts

FAMILIES = {"tag": DirichletCategorical(0.4), "time": NormalGamma(0.1, 1.2, 1.5, 0.8), "hits": GammaPoisson(1.5, 0.7)}


def small_corpus(seed=0, n_documents=6, n_words=5, mean_count=0.8):
    """Random counts and contexts with an empty document, missing contexts and a word that is never seen."""
    draw = np.random.default_rng(seed)
    content = draw.poisson(mean_count, (n_documents, n_words))
    content[:, -1] = 0
    content[0] = 0
    tags = draw.poisson(0.7, (n_documents, 3))
    time = np.where(draw.random(n_documents) < 0.3, np.nan, draw.normal(size=n_documents))
    hits = np.where(draw.random(n_documents) < 0.3, np.nan, draw.poisson(2.0, n_documents).astype(float))
    return Corpus(content, contexts={"tag": sp.csr_matrix(tags), "time": time, "hits": hits})


def engine_of(n_clusters=3, n_tables=2, n_topics=3, **settings):
    settings = {"batch_size": None, "contexts": FAMILIES, "topic_prior": 0.3, "initialisation": "random"} | settings
    return SVI(n_clusters=n_clusters, n_tables=n_tables, n_topics=n_topics, **settings)


def local_and_statistics(corpus, state, rows=None):
    rows = np.arange(corpus.n_documents) if rows is None else rows
    expected = Expectations.of(state)
    batch = svi_local.take_batch(corpus, state.contexts, rows)
    tables = svi_local.word_tables(state, expected, batch.words, None)
    shares, documents = svi_local.assign_documents(batch, tables.log_likelihood, expected, None)
    mass = svi_local.table_mass(tables, documents.word_mass, None)
    n_kt, log_likelihood = svi_local.table_statistics(tables, mass, None)
    topic_words = np.zeros((corpus.n_words, len(state.n_m)))
    topic_words[batch.words] = svi_local.topic_statistics(len(batch.words), mass, expected.table_topic, None)
    return shares, documents, n_kt, log_likelihood, topic_words


# -- the per-token twin -------------------------------------------------------------------------------------------
def log_weights(one):
    """E ln of stick weights, stick by stick, as the definition says."""
    out = np.zeros((*one.shape[1:-1], one.shape[-1] + 1))
    for i in range(one.shape[-1] + 1):
        for before in range(i):
            out[..., i] += digamma(one[1, ..., before]) - digamma(one[:, ..., before].sum(axis=0))
        if i < one.shape[-1]:
            out[..., i] += digamma(one[0, ..., i]) - digamma(one[:, ..., i].sum(axis=0))
    return out


def naive(corpus, state):
    """Local step token by token, in plain loops: (mu_jk, ln Z_j, n_kt, table log likelihood, topic words)."""
    mu = softmax(state.table_topic, axis=-1)
    dirichlet = state.topic_words.T + state.topic_prior
    log_psi = digamma(dirichlet) - digamma(dirichlet.sum(axis=1, keepdims=True))
    log_tau = log_weights(state.table_sticks)
    n_clusters, n_tables, n_topics = mu.shape
    score = log_weights(state.group_sticks) + state.contexts.log_likelihood(
        state.contexts.expected_parameters(state.natural)
    )
    tokens = [np.repeat(np.arange(corpus.n_words), row) for row in corpus.content.toarray()]
    by_table = np.einsum("ktm,mw->wkt", mu, log_psi) + log_tau
    for j, words in enumerate(tokens):
        for w in words:
            score[j] += logsumexp(by_table[w], axis=-1)
    log_evidence = logsumexp(score, axis=1)
    shares = np.exp(score - log_evidence[:, None])
    n_kt = np.zeros((n_clusters, n_tables))
    table_log_likelihood = np.zeros(mu.shape)
    topic_words = np.zeros((corpus.n_words, n_topics))
    for j, words in enumerate(tokens):
        for w in words:
            at = shares[j][:, None] * softmax(by_table[w], axis=-1)
            n_kt += at
            table_log_likelihood += at[:, :, None] * log_psi[:, w]
            topic_words[w] += np.einsum("kt,ktm->m", at, mu)
    return shares, log_evidence, n_kt, table_log_likelihood, topic_words


def naive_elbo(corpus, state, concentrations):
    """sum_j ln Z_j - KL, the divergences written out from their densities (concentrations are known numbers)."""
    total = naive(corpus, state)[1].sum()
    for one, c in zip((state.group_sticks, state.table_sticks, state.topic_sticks), concentrations, strict=True):
        a, b = one
        log_v, log_rest = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
        log_q = (a - 1) * log_v + (b - 1) * log_rest - betaln(a, b)
        total -= np.sum(log_q - (c - 1) * log_rest + betaln(1, c))
    log_mu = log_softmax(state.table_topic, axis=-1)
    total -= np.sum(np.exp(log_mu) * (log_mu - log_weights(state.topic_sticks)))
    s, dirichlet = state.topic_prior, state.topic_words + state.topic_prior
    log_psi = digamma(dirichlet) - digamma(dirichlet.sum(axis=0))
    total -= np.sum((dirichlet - s) * log_psi - gammaln(dirichlet) + gammaln(s))
    total -= np.sum(gammaln(dirichlet.sum(axis=0)) - gammaln(s * len(dirichlet)))
    return total - state.contexts.kl(state.natural).sum()


def test_a_word_that_no_table_of_a_cluster_expects():
    """exp(-1000) vanishes beside other clusters' terms; its logarithm must not."""
    corpus = small_corpus(0)
    state = engine_of(topic_prior=1e-3).init(corpus, 0)
    state.topic_words[1] = [0.0, 0.0, 5.0]
    state.fold()
    state.table_topic[:] = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])[:, None] * 50.0
    expected = Expectations.of(state)
    tables = svi_local.word_tables(state, expected, np.arange(corpus.n_words), None)
    dirichlet = state.topic_words + 1e-3
    log_psi = digamma(dirichlet) - digamma(dirichlet.sum(axis=0))
    assert log_psi[1, 0] < log_psi[1, 2] - 900
    # three clusters of hard tables, each on a topic of its own; exp(E ln tau) sums to less than 1
    known = log_psi + logsumexp(log_weights(state.table_sticks), axis=1)
    np.testing.assert_allclose(tables.log_likelihood, known, rtol=1e-10)


@pytest.mark.parametrize("tables", ["hard", "soft", "mixed"])
@pytest.mark.parametrize("topic_prior", [0.3, 1e-3])
def test_word_tables_equal_the_per_token_twin(tables, topic_prior):
    tolerance = 1e-10
    for seed in range(3):
        corpus = small_corpus(seed)
        state = engine_of(n_tables=4, topic_prior=topic_prior).init(corpus, seed)
        soft = {"hard": 0.0, "soft": 1.0, "mixed": np.random.default_rng(seed).integers(2, size=(3, 4, 1))}[tables]
        state.table_topic[:] = np.where(soft, np.random.default_rng(seed).normal(size=(3, 4, 3)), state.table_topic)
        shares, documents, n_kt, log_likelihood, topic_words = local_and_statistics(corpus, state)
        twin = naive(corpus, state)
        np.testing.assert_allclose(shares, twin[0], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(documents.log_evidence, twin[1].sum(), rtol=tolerance)
        np.testing.assert_allclose(documents.n_k, twin[0].sum(axis=0), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(
            documents.contexts, twin[0].T @ state.contexts.statistics.toarray(), rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(n_kt, twin[2], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(log_likelihood, twin[3], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(topic_words, twin[4], rtol=tolerance, atol=tolerance)


def test_divergence_equals_the_written_out_one():
    corpus = small_corpus(1)
    engine = engine_of(learn_concentrations=False, group_concentration=0.7, topic_concentration=2.0)
    state = engine.init(corpus, 1)
    known = engine.concentrations(state)
    elbo = naive(corpus, state)[1].sum() - divergence(state, known)
    assert elbo == pytest.approx(naive_elbo(corpus, state, known.mean), abs=1e-9)


# -- the global step ----------------------------------------------------------------------------------------------
def beta_fisher(a, b):
    together = polygamma(1, a + b)
    return np.array([[polygamma(1, a) - together, -together], [-together, polygamma(1, b) - together]])


def gradient(function, array):
    """Central differences of ``function()`` with respect to ``array``, which is changed and put back."""
    out = np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        kept, h = array[index], 1e-5 * max(1.0, abs(array[index]))
        values = []
        for sign in (1, -1):
            array[index] = kept + sign * h
            values.append(function())
        array[index] = kept
        out[index] = (values[0] - values[1]) / (2 * h)
    return out


@pytest.fixture(scope="module")
def at_a_point():
    """A state off any optimum, the ELBO as a function of it, and the targets of a step at rate 1."""
    corpus = small_corpus(2)
    engine = engine_of(learn_concentrations=False, table_concentration=1.7)
    state = engine.init(corpus, 2)
    known = engine.concentrations(state)
    _, documents, n_kt, log_likelihood, topic_words = local_and_statistics(corpus, state)
    target, expected = copy.deepcopy(state), Expectations.of(state)
    step_tables(target, expected, known, documents, n_kt, log_likelihood, 1.0, 1.0)
    words = np.arange(corpus.n_words)
    step_topics(target, expected.table_topic, known, words, topic_words, 1.0, 1.0)
    return state, target, lambda: naive_elbo(corpus, state, known.mean)


@pytest.mark.parametrize("name", ["group_sticks", "table_sticks", "topic_sticks"])
def test_stick_gradients(at_a_point, name):
    state, target, elbo = at_a_point
    one, change = getattr(state, name), getattr(target, name) - getattr(state, name)
    numeric = gradient(elbo, one)
    for index in np.ndindex(one.shape[1:]):
        np.testing.assert_allclose(
            numeric[(slice(None), *index)],
            beta_fisher(*one[(slice(None), *index)]) @ change[(slice(None), *index)],
            rtol=1e-5, atol=1e-7,
        )  # fmt: skip


def test_table_topic_gradient(at_a_point):
    state, target, elbo = at_a_point
    numeric = gradient(elbo, state.table_topic)
    change = target.table_topic - state.table_topic
    for k, t in np.ndindex(change.shape[:2]):
        mu = softmax(state.table_topic[k, t])
        np.testing.assert_allclose(numeric[k, t], (np.diag(mu) - np.outer(mu, mu)) @ change[k, t], rtol=1e-5, atol=1e-7)


def test_topic_word_gradient(at_a_point):
    state, target, elbo = at_a_point
    numeric = gradient(elbo, state.topic_words)
    change = target.topic_words - state.topic_words
    for m in range(change.shape[1]):
        dirichlet = state.topic_words[:, m] + state.topic_prior
        fisher = np.diag(polygamma(1, dirichlet)) - polygamma(1, dirichlet.sum())
        np.testing.assert_allclose(numeric[:, m], fisher @ change[:, m], rtol=1e-5, atol=1e-7)


def test_context_gradient(at_a_point):
    state, target, elbo = at_a_point
    numeric = gradient(elbo, state.natural)
    for k in range(len(numeric)):
        fisher = np.stack(
            [
                gradient(lambda i=i, k=k: state.contexts.expected_parameters(state.natural[k])[i], state.natural[k])
                for i in range(state.natural.shape[1])
            ]
        )
        np.testing.assert_allclose(numeric[k], fisher @ (target.natural[k] - state.natural[k]), rtol=1e-4, atol=1e-6)


def test_concentrations_are_where_their_gradient_is_zero():
    corpus = small_corpus(2)
    engine = engine_of(n_tables=3, concentration_priors={"group": (2.0, 0.5), "topic": (0.7, 3.0)})
    state = engine.init(corpus, 2)
    settings = engine.concentration_settings

    def slope():
        return gradient(lambda: divergence(state, Concentrations.of(state, settings)), state.concentration_rates)

    assert (np.abs(slope()) > 1e-2).all()
    step_concentrations(state, settings)
    np.testing.assert_allclose(slope(), 0.0, atol=1e-7)


def test_concentration_divergence_by_quadrature():
    engine = engine_of(n_tables=3, concentration_priors={"group": (2.0, 0.5), "topic": (0.7, 3.0)})
    state = engine.init(small_corpus(2), 2)
    learnt = Concentrations.of(state, engine.concentration_settings)
    total = 0.0
    for i, (n_sticks, prior) in enumerate([(2, (2.0, 0.5)), (6, (1.0, 1.0)), (2, (0.7, 3.0))]):
        q = stats.gamma(prior[0] + n_sticks, scale=1 / state.concentration_rates[i])
        p = stats.gamma(prior[0], scale=1 / prior[1])
        total += integrate.quad(lambda c, q=q, p=p: q.pdf(c) * (q.logpdf(c) - p.logpdf(c)), 0, 60, limit=200)[0]
        assert learnt.mean[i] == pytest.approx(q.mean())
        assert learnt.mean_log[i] == pytest.approx(
            integrate.quad(lambda c, q=q: q.pdf(c) * np.log(c), 0, 60)[0], rel=1e-6
        )
    assert learnt.divergence == pytest.approx(total, rel=1e-6)


def test_only_the_named_concentrations_are_learnt():
    corpus = small_corpus(2)
    engine = engine_of(learn_concentrations=["table"], group_concentration=0.3, topic_concentration=4.0)
    state = fit(corpus, engine, iterations=3, seed=0, progress=False).state
    mean = engine.concentrations(state).mean
    assert (mean[0], mean[2]) == (0.3, 4.0)
    assert mean[1] != 1.0


def test_single_document_steps_average_to_the_full_one():
    corpus = small_corpus(3)
    state = engine_of().init(corpus, 3)
    whole = local_and_statistics(corpus, state)
    single = [local_and_statistics(corpus, state, rows=np.array([j])) for j in range(corpus.n_documents)]
    for i in (2, 3, 4):
        np.testing.assert_allclose(whole[i], sum(one[i] for one in single), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(whole[1].n_k, sum(one[1].n_k for one in single), rtol=1e-10)
    np.testing.assert_allclose(whole[1].contexts, sum(one[1].contexts for one in single), rtol=1e-10, atol=1e-12)
    assert whole[1].log_evidence == pytest.approx(sum(one[1].log_evidence for one in single), rel=1e-12)


def test_rate_one_with_the_whole_corpus_is_the_batch_update():
    corpus = small_corpus(4, n_documents=20)
    full, batch = engine_of(), engine_of(batch_size=20, delay=0.0)
    states = [engine.init(corpus, 4) for engine in (full, batch)]
    for engine, state in zip((full, batch), states, strict=True):
        engine.step(corpus, state, 4, 1)
    for name in ("group_sticks", "table_sticks", "topic_sticks", "table_topic", "topic_words", "natural"):
        np.testing.assert_allclose(getattr(states[1], name), getattr(states[0], name), rtol=1e-12, atol=1e-12)


def test_shrunken_counts_are_the_blended_ones():
    corpus = small_corpus(5)
    state = engine_of().init(corpus, 5)
    twin = state.topic_words.copy()
    draw = np.random.default_rng(5)
    for step in range(40):
        words = np.sort(draw.permutation(corpus.n_words)[:2])
        counts, rate = draw.random((2, 3)), 0.99 if step < 35 else 0.3
        twin *= 1 - rate
        twin[words] += rate * counts
        state.blend_topic_words(words, counts / 3.0, 3.0, rate)
        np.testing.assert_allclose(state.n_m, twin.sum(axis=0), rtol=1e-9)
    assert state.shrink != 1.0  # folded on the way, when it got too small, and in use again
    np.testing.assert_allclose(state.arrays()["topic_words"], twin, rtol=1e-9)
    assert state.shrink == 1.0


# -- the bound ------------------------------------------------------------------------------------------------------
TRUNCATIONS = [(1, 1, 1), (1, 3, 2), (3, 1, 2), (2, 2, 1), (4, 3, 5)]


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("initialisation", ["random", "seeded"])
def test_full_batch_never_lowers_the_elbo(learn, initialisation):
    smallest = np.inf
    for seed, truncations in enumerate([*TRUNCATIONS, *TRUNCATIONS]):
        corpus = small_corpus(seed, n_documents=12, n_words=8, mean_count=1.5)
        contexts = dict(itertools.islice(FAMILIES.items(), seed % 4))
        engine = engine_of(
            *truncations, contexts=contexts, learn_concentrations=learn, initialisation=initialisation, topic_prior=0.05
        )
        trace = fit(corpus, engine, iterations=25, seed=seed, progress=False).trace
        smallest = min(smallest, np.diff(trace.elbo).min())
        assert trace.elbo.iloc[-1] > trace.elbo.iloc[0] or truncations == (1, 1, 1)
    assert smallest > -1e-9


def log_evidence(corpus, contexts, n_clusters, n_tables, n_topics, concentrations, topic_prior):
    """Evidence of the truncated model: all z, c and t listed, parameters integrated out in closed form."""
    tokens = [np.repeat(np.arange(corpus.n_words), row) for row in corpus.content.toarray()]
    owner = np.repeat(np.arange(len(tokens)), [len(words) for words in tokens])
    words = np.concatenate(tokens)

    def log_sticks(counts, c):
        posterior = sticks.stick_posterior(counts, c)
        return float(np.sum(betaln(*posterior) - betaln(1.0, c)))

    alpha, v, eta = concentrations
    terms = []
    for z in itertools.product(range(n_clusters), repeat=len(tokens)):
        z = np.array(z)
        log_z = log_sticks(np.bincount(z, minlength=n_clusters), alpha)
        log_z += contexts.log_base.sum() + contexts.log_marginal(contexts.natural(z, n_clusters)).sum()
        for t in itertools.product(range(n_tables), repeat=len(words)):
            n_kt = np.zeros((n_clusters, n_tables))
            np.add.at(n_kt, (z[owner], list(t)), 1)
            log_t = log_z + sum(log_sticks(row, v) for row in n_kt)
            for flat in itertools.product(range(n_topics), repeat=n_clusters * n_tables):
                c = np.array(flat).reshape(n_clusters, n_tables)
                n_mw = np.full((n_topics, corpus.n_words), topic_prior)
                np.add.at(n_mw, (c[z[owner], list(t)], words), 1)
                log_words = np.sum(gammaln(n_mw)) - n_mw.size * gammaln(topic_prior)
                log_words += np.sum(gammaln(topic_prior * corpus.n_words) - gammaln(n_mw.sum(axis=1)))
                terms.append(log_t + log_sticks(np.bincount(flat, minlength=n_topics), eta) + log_words)
    return logsumexp(terms)


def test_elbo_stays_below_the_enumerated_evidence():
    content = np.array([[1, 1, 0], [0, 0, 1], [0, 1, 0]])
    corpus = Corpus(content, contexts={"time": np.array([0.5, np.nan, -1.0])})
    families = {"time": FAMILIES["time"]}
    known = {"group_concentration": 0.8, "table_concentration": 1.3, "topic_concentration": 0.6}
    evidence = log_evidence(corpus, StackedContexts(corpus, families), 2, 2, 2, known.values(), 0.4)
    best = -np.inf
    for seed in range(4):
        engine = engine_of(2, 2, 2, contexts=families, topic_prior=0.4, learn_concentrations=False, **known)
        elbo = fit(corpus, engine, iterations=40, seed=seed, progress=False).state.elbo
        assert elbo < evidence
        best = max(best, elbo)
    # q keeps to one of the 2 x 2**2 x 2 ways to name clusters, tables and topics, which costs at most ln 16
    assert evidence - np.log(16) < best < evidence


def test_elbo_is_the_evidence_where_nothing_is_unknown_but_words_and_contexts():
    corpus = small_corpus(16)
    engine = engine_of(1, 1, 1, learn_concentrations=False)
    state = fit(corpus, engine, iterations=1, seed=0, progress=False).state
    n_w = np.asarray(corpus.content.sum(axis=0)).ravel() + 0.3
    words = gammaln(n_w).sum() - gammaln(n_w.sum()) - len(n_w) * gammaln(0.3) + gammaln(0.3 * len(n_w))
    contexts = StackedContexts(corpus, FAMILIES)
    everyone = np.zeros(corpus.n_documents, int)
    known = contexts.log_marginal(contexts.natural(everyone, 1)).sum() + contexts.log_base.sum()
    assert state.elbo == pytest.approx(words + known, abs=1e-9)


# -- what must not matter -------------------------------------------------------------------------------------------
def states_equal(one, other):
    left, right = one.arrays(), other.arrays()
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("batch_size", [None, 37])
def test_threads_do_not_change_a_bit(batch_size):
    draw = np.random.default_rng(8)
    content = sp.random(300, 1500, density=0.05, random_state=draw, data_rvs=lambda n: draw.integers(1, 5, n))
    corpus = Corpus(content, contexts={"time": draw.normal(size=300)})
    states = []
    for threads in (1, 2, 3):
        engine = engine_of(
            7, 5, 9, contexts={"time": NormalGamma()}, batch_size=batch_size, threads=threads, initialisation="seeded"
        )
        states.append(fit(corpus, engine, iterations=2, seed=1, progress=False).state)
    assert states_equal(states[0], states[1])
    assert states_equal(states[0], states[2])


@pytest.mark.parametrize("batch_size", [None, 7])
def test_a_resumed_run_is_the_same_bits(tmp_path, batch_size):
    corpus = small_corpus(9, n_documents=30)

    def stop(iteration, state):
        if iteration == 3:
            raise KeyboardInterrupt

    settings = {"batch_size": batch_size, "initialisation": "seeded"}
    straight = fit(corpus, engine_of(**settings), iterations=5, seed=2, progress=False)
    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        fit(
            corpus, engine_of(**settings), iterations=5, seed=2, progress=False,
            checkpoint=path, checkpoint_every=1, callback=stop,
        )  # fmt: skip
    resumed = fit(corpus, engine_of(**settings), iterations=5, seed=2, progress=False, checkpoint=path)
    assert states_equal(straight.state, resumed.state)
    assert straight.trace.elbo.tolist() == resumed.trace.elbo.tolist()


def test_missing_contexts_are_absent_contexts():
    content = small_corpus(10, n_documents=15).content
    missing = {"tag": sp.csr_matrix((15, 3), dtype=int), "time": np.full(15, np.nan), "hits": np.full(15, np.nan)}
    without = fit(Corpus(content), engine_of(contexts={}), iterations=5, seed=3, progress=False)
    empty = fit(Corpus(content, contexts=missing), engine_of(), iterations=5, seed=3, progress=False)
    np.testing.assert_allclose(empty.trace.elbo, without.trace.elbo, rtol=1e-12)
    np.testing.assert_array_equal(empty.state.topic_words, without.state.topic_words)


def test_without_content_it_is_a_mixture_over_contexts():
    draw = np.random.default_rng(11)
    truth = draw.integers(2, size=60)
    time = np.where(truth == 1, 4.0, -4.0) + draw.normal(size=60)
    corpus = Corpus(sp.csr_matrix((60, 4), dtype=int), contexts={"time": time})
    engine = engine_of(5, 2, 2, contexts={"time": NormalGamma()}, initialisation="seeded")
    result = fit(corpus, engine, iterations=60, seed=0, progress=False)
    assert np.diff(result.trace.elbo).min() > -1e-9
    first, second = (set(result.state.cluster[truth == one]) for one in (0, 1))
    assert not first & second
    assert result.trace.topics.iloc[-1] == 0


@pytest.mark.parametrize("batch_size", [None, 1, 4, 1000])
@pytest.mark.parametrize("initialisation", ["seeded", "random", "gibbs"])
def test_degenerate_sizes(batch_size, initialisation):
    corpus = small_corpus(12, n_documents=5)
    for truncations in [(1, 1, 1), (3, 1, 2), (2, 3, 2)]:
        engine = engine_of(*truncations, batch_size=batch_size, initialisation=initialisation)
        result = fit(corpus, engine, iterations=2, seed=0, progress=False)
        assert np.isfinite(result.trace.elbo).all()
        sample = result.model.last
        assert sample.n_clusters <= truncations[0]
        assert sample.n_topics <= truncations[2]
        assert sample.cluster_weights.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(sample.topic_given_cluster.sum(axis=1), 1.0, rtol=1e-9)
        assert (sample.topic_words >= 0).all()
        assert set(sample.cluster) == set(range(sample.n_clusters))
        assert np.isfinite(result.model.perplexity(corpus))


def test_a_batch_larger_than_the_corpus_is_the_corpus():
    corpus = small_corpus(13)
    states = [fit(corpus, engine_of(batch_size=size), iterations=3, seed=0, progress=False).state for size in (6, 99)]
    assert states_equal(*states)


def test_in_use_is_not_the_truncation():
    content = np.zeros((40, 6), int)
    content[:20, :3] = 5
    content[20:, 3:] = 5
    engine = engine_of(12, 4, 15, contexts={}, topic_prior=0.01, initialisation="seeded")
    result = fit(Corpus(content), engine, iterations=40, progress=False)
    assert result.trace.clusters.iloc[-1] == 2
    assert result.trace.topics.iloc[-1] <= 6
    assert len(set(result.state.cluster[:20])) == len(set(result.state.cluster[20:])) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters is 0; it must be a whole number of at least 1"),
        ({"batch_size": 0.5}, "batch_size is 0.5"),
        ({"delay": -1}, "delay is -1; it must be at least 0"),
        ({"forgetting": 0.5}, "forgetting is 0.5; it must lie above 0.5 and at most at 1"),
        ({"schedule": "papr"}, "did you mean 'paper'"),
        ({"initialisation": "seed"}, "did you mean 'seeded'"),
        ({"topic_prior": 0}, "topic_prior is 0"),
        ({"contexts": {"x": 3}}, "a family such as NormalGamma"),
        ({"learn_concentrations": ["tabel"]}, "did you mean 'table'"),
        ({"learn_concentrations": "table"}, "it must be true, false or a list"),
        ({"concentration_priors": {"group": (1, 0)}}, "rate is 0; it must be"),
        ({"concentration_priors": {"group": 3}}, "3; it must be (shape, rate)"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        SVI(**settings)


def test_paper_schedule():
    assert (SVI(schedule="paper").delay, SVI(schedule="paper").forgetting) == (1.0, 0.8)
    assert SVI(schedule="paper", delay=3).delay == 3


def test_a_state_of_another_corpus_is_refused():
    corpus, other = small_corpus(14), small_corpus(14, n_words=7)
    engine = engine_of()
    arrays = engine.init(corpus, 0).arrays()
    with pytest.raises(ValueError, match=r"topic_words is \(5, 3\); the corpus and the settings ask for \(7, 3\)"):
        engine.restore(other, arrays)


def test_parts_of_a_batch_add_up():
    """What a distributed runner does: documents in any parts, each needing the words' likelihoods only."""
    corpus = small_corpus(15, n_documents=50)
    state = engine_of().init(corpus, 0)
    expected = Expectations.of(state)
    words = np.arange(corpus.n_words)
    whole = svi_local.Batch(
        words, corpus.content.indptr.astype(np.int64), corpus.content.indices, corpus.content.data, state.contexts
    )
    tables = svi_local.word_tables(state, expected, words, None)
    _, once = svi_local.assign_documents(whole, tables.log_likelihood, expected, None)
    parts = None
    with ThreadPoolExecutor(2) as pool:
        for rows in np.array_split(np.arange(50), 3):
            piece = corpus.subset(rows).content
            batch = svi_local.Batch(
                words, piece.indptr.astype(np.int64), piece.indices, piece.data, state.contexts.take(rows)
            )
            _, one = svi_local.assign_documents(batch, tables.log_likelihood, expected, pool)
            parts = one if parts is None else parts + one
    assert parts.n_documents == 50
    assert parts.log_evidence == pytest.approx(once.log_evidence, rel=1e-12)
    for name in ("n_k", "word_mass", "contexts"):
        np.testing.assert_allclose(getattr(parts, name), getattr(once, name), rtol=1e-10, atol=1e-12)
