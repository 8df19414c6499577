"""Geweke's joint test (2004) of every kernel with learned concentrations and two contexts, one of them sparse.

Draws of (concentrations, assignments, data) made forwards from the model are compared with a chain that alternates a
step of the sampler with fresh data given the assignments. Errors of the chain's means come from 40 batches. Ten
statistics are compared for each kernel at 5.5 standard errors, nine where tokens have times, twelve where s is
learnt: a false alarm has a chance of about 1e-4 for the file (Student's t with 39 degrees of freedom), and seeds are
fixed.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import gibbs, without_log_joint
from helpers.gibbs_forward import (
    BATCHES,
    FAMILIES,
    FORWARD,
    LENGTHS,
    PRIORS,
    SWEEPS,
    TOPIC_PRIOR,
    assert_agree,
    corpus_of,
    draw_assignments,
    draw_data,
    draw_topics,
    draw_words,
    statistics,
)

from mc2core import Corpus


def draw_prior(rng):
    return [rng.gamma(shape, 1 / rate) for shape, rate in PRIORS.values()]


@pytest.fixture(scope="module")
def forward():
    """(FORWARD, 10) statistics of draws from the model itself."""
    rng, rows = np.random.default_rng(19), []
    for _ in range(FORWARD):
        concentrations = draw_prior(rng)
        cluster, topic = draw_assignments(*concentrations, rng)
        content, contexts, topic = draw_data(cluster, topic, rng)
        rows.append(statistics(concentrations, cluster, topic, content, contexts))
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param("collapsed", marks=pytest.mark.thorough),
        pytest.param("blocked", marks=pytest.mark.thorough),
        "interleaved",  # sweeps of both
    ],
)
def test_forward_draws_and_the_chain_agree(kernel, forward):
    rng = np.random.default_rng(20)
    engine = gibbs(
        kernel=kernel, contexts=FAMILIES, topic_word_prior=TOPIC_PRIOR, concentration_priors=PRIORS,
        start_topics=2, start_clusters=2,
    )  # fmt: skip
    concentrations = draw_prior(rng)
    cluster, topic = draw_assignments(*concentrations, rng)
    content, contexts, topic = draw_data(cluster, topic, rng)
    corpus = corpus_of(content, contexts)
    state = engine.init(corpus, 0)
    chain = []
    for iteration in range(1, SWEEPS + 1):
        engine.step(corpus, without_log_joint(state), 0, iteration)
        content, contexts, topic = draw_data(state.cluster, state.topic, rng)
        corpus = corpus_of(content, contexts)
        arrays = state.arrays() | {"topic": topic}
        _, *concentrations, _ = arrays["scalars"].tolist()
        state = engine.restore(corpus, arrays)
        chain.append(statistics(concentrations, state.cluster, topic, content, contexts))
    chain = np.array(chain[SWEEPS % BATCHES :])

    assert_agree(chain, forward.mean(axis=0), forward.std(axis=0) / np.sqrt(FORWARD))


@pytest.mark.slow
def test_forward_draws_and_the_chain_agree_where_s_is_learnt():
    def all_statistics(concentrations, s, cluster, topic, content, contexts):
        found = statistics(concentrations, cluster, topic, content, contexts)
        return [*found, np.log(s), float(content[0] @ content[3]) * np.log(s)]

    rng, rows = np.random.default_rng(23), []
    for _ in range(FORWARD):
        *concentrations, s = [*draw_prior(rng), rng.gamma(2.0, 1 / 3.0)]
        cluster, topic = draw_assignments(*concentrations, rng)
        content, contexts, topic = draw_data(cluster, topic, rng, s)
        rows.append(all_statistics(concentrations, s, cluster, topic, content, contexts))
    forward = np.array(rows)

    engine = gibbs(
        contexts=FAMILIES, concentration_priors={**PRIORS, "words": (2.0, 3.0)}, start_topics=2, start_clusters=2,
        topic_word_prior="learn",
    )  # fmt: skip
    corpus = corpus_of(content, contexts)
    state = engine.init(corpus, 0)
    chain = []
    for iteration in range(1, SWEEPS + 1):
        engine.step(corpus, without_log_joint(state), 0, iteration)
        s = state.topic_word_prior
        content, contexts, topic = draw_data(state.cluster, state.topic, rng, s)
        corpus = corpus_of(content, contexts)
        arrays = state.arrays() | {"topic": topic}
        _, *concentrations, _ = arrays["scalars"].tolist()
        state = engine.restore(corpus, arrays)
        chain.append(all_statistics(concentrations, s, state.cluster, topic, content, contexts))
    chain = np.array(chain[SWEEPS % BATCHES :])
    assert_agree(chain, forward.mean(axis=0), forward.std(axis=0) / np.sqrt(FORWARD))


# -- times of tokens -----------------------------------------------------------------------------------------------
#: of the documents; each of their tokens has it, so that a corpus of such times cannot be drawn: they stay as they are
YEAR = np.array([-0.8, np.nan, 0.0, 1.1])


def log_times(topic):
    """ln p(times of all tokens | l), topics' parameters integrated out."""
    family, year = FAMILIES["year"], np.repeat(YEAR, LENGTHS)
    rows = family.statistics(year).toarray()
    naturals = [family.prior(4) + rows[topic == m].sum(axis=0) for m in np.unique(topic)]
    return sum(family.log_marginal(natural) for natural in naturals)


def timed_statistics(concentrations, topic, content):
    _, v, eta = concentrations
    first, second, last = topic[:4], topic[4:7], topic[7:]
    return [
        len(np.unique(topic)),
        np.bincount(topic).max(),
        np.log(v),
        np.log(eta),
        float(np.mean(first[:, None] == last)),
        float(np.mean(first[:, None] == second)),
        float(np.mean(first[:, None] == first)),
        float(content[0] @ content[3]),
        float(content[0] @ content[1]) * float(np.mean(first[:, None] == last)),
    ]


@pytest.mark.slow
def test_forward_draws_and_the_chain_agree_where_tokens_have_times():
    """Forward draws of all but the times are weighted by the probability of these."""
    rng = np.random.default_rng(21)
    clusters, rows, logs = np.arange(len(LENGTHS)), [], []
    for _ in range(FORWARD):
        concentrations = draw_prior(rng)
        topic = draw_topics(clusters, *concentrations[1:], rng)
        logs.append(log_times(topic))
        content, topic = draw_words(topic, rng)
        rows.append(timed_statistics(concentrations, topic, content))
    forward, weights = np.array(rows), np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    assert 1.0 / (weights**2).sum() > FORWARD / 6
    mean = weights @ forward
    error = np.sqrt(weights**2 @ (forward - mean) ** 2)

    engine = gibbs(
        kernel="collapsed", model="nptot", contexts={"year": FAMILIES["year"]},
        concentration_priors={role: PRIORS[role] for role in ("table", "topic")}, topic_word_prior=TOPIC_PRIOR,
        start_topics=2,
    )  # fmt: skip
    content, _ = draw_words(draw_topics(clusters, 1.0, 1.0, rng), rng)
    corpus = Corpus(sp.csr_matrix(content), contexts={"year": YEAR})
    state, chain = engine.init(corpus, 0), []
    for iteration in range(1, 2 * SWEEPS + 1):
        engine.step(corpus, without_log_joint(state), 0, iteration)
        content, topic = draw_words(state.topic, rng)
        corpus = Corpus(sp.csr_matrix(content), contexts={"year": YEAR})
        arrays = state.arrays() | {"topic": topic}
        _, *concentrations, _ = arrays["scalars"].tolist()
        state = engine.restore(corpus, arrays)
        chain.append(timed_statistics(concentrations, topic, content))
    assert_agree(np.array(chain), mean, error)
