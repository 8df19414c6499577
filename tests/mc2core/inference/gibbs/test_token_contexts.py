"""npTOT: topics that emit the document's time with every token."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from helpers import gibbs_transitions as transitions
from helpers.crossed import first
from helpers.fits import gibbs
from helpers.gibbs_chains import DOCUMENTS, assert_chain_follows, corpus_of, fixed
from helpers.gibbs_enumeration import log_words, posterior
from helpers.gibbs_twin import (
    CONCENTRATIONS,
    PRIOR,
    assignments_of,
    plain_timed_sweep,
    plain_weigh_counts,
    small_corpus,
    tokens_of,
)
from scipy.special import gammaln

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.families import NormalGamma
from mc2core.inference.gibbs import token_contexts, tokens
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.token_contexts import TokenTimes, log_student, sweep_timed_topics
from mc2core.inference.gibbs.weights import Concentrations
from mc2core.inference.registry import specify
from mc2core.inference.running.loop import fit
from mc2papers import warm_kernels

NPTOT = {"model": "nptot", "kernel": "collapsed"}


def one_each(corpus, **more):
    """Assignments with document j in cluster j."""
    assignments = assignments_of(corpus, **more)
    assignments.cluster = np.arange(corpus.n_documents, dtype=np.int32)
    assignments.count()
    return assignments


def log_times(family, values, topics):
    """ln p(values | topics), one value for each token, parameters of the topics integrated out."""
    rows = family.statistics(np.asarray(values, float)).toarray()
    sums = [rows[np.array(topics) == m].sum(axis=0) for m in range(max(topics, default=-1) + 1)]
    return float(sum(family.log_marginal(family.prior(4) + one) for one in sums))


# -- the kernel ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "family", [NormalGamma(), NormalGamma(0.7, 1e-3, 0.2, 50.0), NormalGamma(-2.0, 40.0, 9.0, 0.1)]
)
def test_factor_is_the_familys_predictive(family):
    rng = np.random.default_rng(3)
    sizes = [0, 1, 2, 3, 14, 15, 16, 1000, 300_000]
    sums = np.zeros((4, len(sizes)))
    for m, n in enumerate(sizes):
        sums[:, m] = family.statistics(rng.normal(0.5, 0.8, n)).sum(axis=0)
    of_document = rng.integers(0, 3, (2, len(sizes))).astype(np.int32)
    found = np.empty(len(sizes))
    for x in (-1.3, 0.0, 0.6, 4.0):
        log_student(x, of_document, 1, len(sizes), sums, family.prior(4), found)
        natural = family.prior(4) + sums.T + of_document[1][:, None] * [x, 1.0, 0.5, 0.5 * x * x]
        expected = np.log(family.predictive(natural).pdf(x))
        np.testing.assert_allclose(found - 0.5 * math.log(math.pi), expected, rtol=0, atol=2e-9)


@pytest.mark.parametrize("family", [NormalGamma(), NormalGamma(0.2, 0.1, 20.0, 0.05)])
@pytest.mark.parametrize("seed", range(3))
def test_sweep_equals_its_plain_twin(seed, family):
    corpus = small_corpus(seed)
    assignments = one_each(corpus, seed=seed)
    key, values = streams.key(seed, "test"), corpus.contexts["year"]
    topic, eps, remaining = plain_timed_sweep(assignments, corpus, values, family, key)
    used = np.unique(topic)
    sweep_timed_topics(assignments, corpus, TokenTimes(corpus, {"year": family}), CONCENTRATIONS, PRIOR, key)
    np.testing.assert_array_equal(assignments.topic, np.searchsorted(used, topic))
    np.testing.assert_allclose(assignments.topic_weights, eps[used], rtol=1e-12)
    assert assignments.remaining == pytest.approx(remaining + eps.sum() - eps[used].sum(), rel=1e-9)
    counted = one_each(corpus)
    counted.topic, counted.topic_weights = assignments.topic, assignments.topic_weights
    counted.count()
    np.testing.assert_array_equal(assignments.n_km, counted.n_km)


def test_sweep_resumes_at_the_token_that_outgrows_its_arrays():
    # as that of tokens.py: the twin's arrays have room for more topics from the start
    corpus = small_corpus(5, mean=60)
    many, times = Concentrations(1.0, 400.0, 300.0), TokenTimes(corpus, {"year": NormalGamma()})
    assignments, twin = one_each(corpus), one_each(corpus)
    twin.topic_weights = np.concatenate([twin.topic_weights, np.full(402, 1e-300)])
    twin.count()
    key = streams.key(0, "test")
    sweep_timed_topics(assignments, corpus, times, many, PRIOR, key)
    sweep_timed_topics(twin, corpus, times, many, PRIOR, key)
    assert assignments.n_topics > 32
    np.testing.assert_array_equal(assignments.topic, twin.topic)
    np.testing.assert_allclose(assignments.topic_weights, twin.topic_weights, rtol=1e-12)


YEARS = {
    "all": [0.4, -0.9, 0.7],
    "one missing": [0.4, np.nan, 0.7],
    "none": [np.nan] * 3,
    "far apart": [0.0, 1.0, -1.0],
}
#: with the last, factors of a document's topics differ by e**200 and change by as much with one token
SHARP = NormalGamma(0.0, 0.5, 50.0, 1e-3)


@pytest.mark.parametrize(
    ("years", "v", "s", "precision", "tolerances"),
    first(
        [
            ("one missing", 1.7, 0.4, "float32", (1e-6, 1e-5)),
            # states less likely than what is negligible have no relative accuracy
            ("far apart", 1.7, 0.4, "float32", (1e-6, None)),
            ("far apart", 1e-2, 1e-2, "float32", (1e-6, None)),
            ("one missing", 1e-4, 1e-2, "float32", (1e-6, 1e-5)),
            ("one missing", 1e-2, 1e-4, "float32", (1e-6, 1e-5)),
            ("all", 1.7, 0.4, "float64", (1e-8, 1e-7)),
            ("none", 1.7, 0.4, "float64", (1e-12, 1e-9)),
        ],
        number=2,
    ),
)
def test_sweep_leaves_its_posterior_invariant(years, v, s, precision, tolerances, monkeypatch):
    """l given epsilon, three topics and no new one: from every state along every path, no sampling error.

    With all times missing pi is the HDP's. Weights in float32 as they are, and the same in float64.
    """
    family = SHARP if years == "far apart" else NormalGamma(0.1, 0.6, 1.5, 0.4)
    # the draws of one token more take nine times as long: once is enough for a word that two documents have
    documents = [[0, 0], [1], [0]] if precision == "float64" else [[0, 0], [1]]
    values, eps = np.array(YEARS[years][: len(documents)]), np.array([0.5, 0.3, 0.2])
    corpus = corpus_of(documents, 2, {"year": values})
    words, document = [0, 0, 1, 0][: corpus.n_tokens], np.array([0, 0, 1, 2])[: corpus.n_tokens]
    times = TokenTimes(corpus, {"year": family})
    kernels = ["_sweep_timed"]
    if precision == "float64":
        kernels += ["_scale_all", "_compute_steps", "_move_document", "_weigh_word", "_weigh_topic", "log_student"]
        for module in (tokens, token_contexts):
            monkeypatch.setattr(module, "np", transitions.InFloat64())
            monkeypatch.setattr(module, "weigh_counts", plain_weigh_counts)
        monkeypatch.setattr(tokens, "prefetch", lambda *_: None)
        monkeypatch.setattr(token_contexts, "weigh", tokens.weigh.py_func)
    monkeypatch.setattr(tokens, "find_lane", transitions.take_lane)
    for name in ("find_block", "find_topic"):
        monkeypatch.setattr(tokens, name, getattr(tokens, name).py_func)
    monkeypatch.setattr(token_contexts, "draw_other", tokens.draw_other.py_func)
    anew, scale_all = [], token_contexts._scale_all
    states = list(itertools.product(range(3), repeat=corpus.n_tokens))
    log_pi = np.array(
        [log_words(topics, words, 2, s) + log_times(family, values[document], topics) for topics in states]
    )
    for i, topics in enumerate(states):
        n_km = np.zeros((len(documents), 3))
        np.add.at(n_km, (document, list(topics)), 1)
        log_pi[i] += (gammaln(v * eps + n_km) - gammaln(v * eps)).sum()
    matrix = np.zeros((len(states), len(states)))
    for i, topics in enumerate(states):

        def run(topics=topics):
            start = np.concatenate([[0], np.cumsum(corpus.document_lengths)])
            cluster = np.arange(len(documents), dtype=np.int32)
            assignments = Assignments(cluster, np.array(topics, np.int32), start, eps, 0.0)
            assignments.count()
            monkeypatch.setattr(assignments, "compact", lambda: None)  # topics keep their numbers
            with monkeypatch.context() as patch:
                if precision == "float32":
                    patch.setattr(
                        token_contexts, "_scale_all", lambda *given: anew.append(given[1]) or scale_all(*given)
                    )
                sweep_timed_topics(assignments, corpus, times, Concentrations(1.0, v, 1.0), s, np.uint64(0))
            return tuple(assignments.topic.tolist())

        n_paths = 0
        for probability, result in transitions.paths(run, token_contexts, kernels, monkeypatch, transitions.TopicDraw):
            matrix[i, states.index(result)] += probability
            n_paths += 1
        # factors computed anew in the middle of a document: with the sharp prior in some path from every state
        assert precision == "float64" or years != "far apart" or len(anew) > 3 * n_paths
        anew.clear()
    if tolerances[1] is None:
        pi = np.exp(log_pi - log_pi.max())
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-6)
        np.testing.assert_allclose(pi @ matrix, pi, rtol=0, atol=tolerances[0])
    else:
        transitions.assert_invariant(matrix, log_pi, *tolerances)


# -- the engine ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("years", YEARS)
def test_posterior_is_the_enumerated_one(years):
    """As test_exact.py; new topics are opened. False alarms: 2e-5 for each."""
    family = NormalGamma(0.0, 0.5, 2.0, 0.3) if years == "far apart" else NormalGamma(0.0, 0.5, 1.5, 0.7)
    values = np.array(YEARS[years])
    corpus = corpus_of(DOCUMENTS, 3, {"year": values})
    engine = fixed(contexts={"year": family}, **NPTOT)
    of_tokens = np.repeat(values, [len(words) for words in DOCUMENTS])

    def exact(model):
        return posterior(
            DOCUMENTS, 3, 1.0, model.table_concentration, model.topic_concentration, model.topic_word_prior,
            fixed_clusters=True, log_tokens=lambda topics: log_times(family, of_tokens, topics),
        )  # fmt: skip

    assert_chain_follows(engine, corpus, exact, 1200)


def run(corpus, iterations, state=None, first=1):
    engine = gibbs(contexts={"year": NormalGamma()}, start_topics=5, **NPTOT)
    state = engine.init(corpus, 0) if state is None else engine.restore(corpus, state)
    for iteration in range(first, iterations + 1):
        engine.step(corpus, state, 0, iteration)
    return engine, state


def test_a_restored_state_goes_on_bit_for_bit():
    corpus = small_corpus(7)
    stored = {name: array.copy() for name, array in run(corpus, 3)[1].arrays().items()}
    resumed, undisturbed = run(corpus, 6, stored, 4)[1].arrays(), run(corpus, 6)[1].arrays()
    for name, array in undisturbed.items():
        np.testing.assert_array_equal(array, resumed[name], err_msg=name)


def test_log_joint_equals_its_factors_written_out():
    corpus = small_corpus(8)
    engine, state = run(corpus, 3)
    document, word = tokens_of(corpus)
    topics, v, s = state.topic, state.concentrations.table, engine.model.topic_word_prior
    year, expected = corpus.contexts["year"][document], 0.0
    for i, m in enumerate(topics):  # tokens one by one
        past = np.arange(corpus.n_tokens) < i
        same, of_topic = past & (document == document[i]), past & (topics == m)
        expected += math.log((np.sum(same & (topics == m)) + v * state.assignments.topic_weights[m]) / (same.sum() + v))
        expected += math.log((np.sum(of_topic & (word == word[i])) + s) / (of_topic.sum() + s * corpus.n_words))
        if not np.isnan(year[i]):
            natural = NormalGamma().prior(4) + NormalGamma().statistics(year[of_topic]).toarray().sum(axis=0)
            expected += math.log(NormalGamma.predictive(natural).pdf(year[i]))
    assert state.log_joint == pytest.approx(expected, rel=1e-10)


def test_times_tell_topics_apart_and_a_model_does_not_read_them():
    # two halves use the same words at different times: the HDP sees one topic's words, npTOT two topics
    rng = np.random.default_rng(4)
    content = rng.multinomial(40, rng.dirichlet(np.ones(20)), 30)
    year = np.where(np.arange(30) < 15, -1.0, 1.0) + rng.normal(0, 0.1, 30)
    corpus = Corpus(content, contexts={"year": year})
    engine = gibbs(contexts={"year": NormalGamma(b0=0.1)}, start_topics=10, **NPTOT)
    done = fit(corpus, *engine, iterations=60, progress=False)
    document, _ = tokens_of(corpus)
    mean = [np.repeat(year, 40)[done.state.topic == m].mean() for m in range(done.state.assignments.n_topics)]
    assert (np.sign(mean)[done.state.topic] == np.sign(year)[document]).mean() > 0.98
    assert done.posterior.families == {}
    later = Corpus(content, contexts={"year": year + 5.0})
    without = Corpus(content)
    words = [done.posterior.perplexity(one, "left_to_right") for one in (corpus, later, without)]
    assert words[0] == words[1] == words[2] < 20


@pytest.mark.parametrize(
    "family",
    [
        *(NormalGamma(kappa0=value) for value in (1e-10, 1e10)),
        *(NormalGamma(a0=value) for value in (1e-10, 1e10)),
        *(NormalGamma(b0=value) for value in (1e-15, 1e50)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("more", [{}, {"table_concentration": 1e-10}, {"topic_word_prior": 1e-10}], ids=repr)
def test_priors_at_the_ends_of_their_range(family, more):
    corpus = small_corpus(1)
    known = {"table_concentration": 1, "topic_concentration": 1} | more
    engine = gibbs(contexts={"year": family}, start_topics=4, **NPTOT, **known)
    done = fit(corpus, *engine, iterations=6, progress=False)
    assert np.isfinite(done.trace.to_numpy(float)).all()
    assert np.isfinite(done.posterior.perplexity(corpus, "left_to_right"))


def test_warming_up_compiles_kernels_of_one_configured_context(monkeypatch):
    used = []
    monkeypatch.setattr(warm_kernels, "specify", lambda *given: used.append(given[3]) or specify(*given))
    contexts = {"tag": "dirichlet", "year": "normal_gamma", "place": "diagonal_normal_gamma", "hits": "gamma_poisson"}
    contexts = {name: {"family": family} for name, family in contexts.items()}
    warm_kernels.warm_kernels("gibbs", [NPTOT, {"model": "mc2"}], contexts, ["left_to_right"])
    assert [list(one) for one in used] == [["year"], list(contexts)]
