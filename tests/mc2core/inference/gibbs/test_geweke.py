"""Geweke's joint test (2004): every kernel, all concentrations and s learnt, three contexts, one of them sparse.

Draws of (concentrations, assignments, data) made forwards from the model are compared with a chain that alternates a
step of the sampler with fresh data given the assignments. Errors of the chain's means come from 40 batches. At most 13
statistics are compared for each kernel at 5.5 standard errors: a false alarm has a chance of about 1e-4 for the file
(Student's t with 39 degrees of freedom), and seeds are fixed.
"""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import gibbs, without_log_joint
from helpers.gibbs_forward import (
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
    draw_document_level_assignments,
    draw_topics,
    draw_words,
    statistics,
)

from mc2core import Corpus

ALL_PRIORS = PRIORS | {"document": (3.0, 2.0), "words": (2.0, 3.0)}
ALPHA = 6.0  # of at most three clusters


def row_of(numbers, has_level, cluster, topic, content, contexts):
    """Statistics of all that is drawn; ``numbers`` are alpha, v, eta, omega and s."""
    *concentrations, omega, s = numbers
    row = statistics(concentrations, cluster, topic, content, contexts)
    if has_level:
        first, second = topic[: LENGTHS[0]], topic[LENGTHS[0] : LENGTHS[0] + LENGTHS[1]]
        row[5] = np.log(omega)
        row[6] = len(np.unique(first)) + 10 * len(np.intersect1d(first, second)) * float(cluster[0] == cluster[1])
    return [*row, np.log(s), float(content[0] @ content[3]) * np.log(s)]


@functools.cache
def forward_draws(has_level, n_clusters):
    """((FORWARD, 13) statistics of draws from the model itself, a corpus of the last of them)."""
    rng, rows = np.random.default_rng(29), []
    for _ in range(FORWARD):
        drawn = {role: rng.gamma(shape, 1 / rate) for role, (shape, rate) in ALL_PRIORS.items()}
        numbers = list((drawn | ({} if n_clusters is None else {"group": ALPHA})).values())
        if has_level:
            cluster, topic = draw_document_level_assignments(numbers[:4], n_clusters, rng)
        else:
            cluster, topic = draw_assignments(*numbers[:3], rng)
        content, contexts, topic = draw_data(cluster, topic, rng, numbers[4])
        rows.append(row_of(numbers, has_level, cluster, topic, content, contexts))
    return np.array(rows), corpus_of(content, contexts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("has_level", "n_clusters", "kernel"),
    [
        (False, None, "interleaved"),  # sweeps of both
        pytest.param(False, None, "collapsed", marks=pytest.mark.thorough),
        pytest.param(False, None, "blocked", marks=pytest.mark.thorough),
        (True, None, "collapsed"),
        (True, None, "parallel"),
        pytest.param(True, 3, "collapsed", marks=pytest.mark.thorough),
    ],
)
def test_forward_draws_and_the_chain_agree(has_level, n_clusters, kernel):
    """Of at most three clusters alpha is held, and so one statistic says nothing."""
    forward, corpus = forward_draws(has_level, n_clusters)
    rng, priors, told = np.random.default_rng(30), dict(ALL_PRIORS), {"start_clusters": 2}
    if not has_level:
        del priors["document"]
    if n_clusters is not None:
        del priors["group"]
        told = {"n_clusters": n_clusters, "group_concentration": ALPHA}
    engine = gibbs(
        document_level=has_level, contexts=FAMILIES, topic_word_prior="learn", concentration_priors=priors,
        start_topics=2, kernel=kernel, **told,
    )  # fmt: skip
    state, chain = engine.init(corpus, 0), []
    for iteration in range(1, SWEEPS + 1):
        engine.step(corpus, without_log_joint(state), 0, iteration)
        content, contexts, topic = draw_data(state.cluster, state.topic, rng, state.topic_word_prior)
        corpus = corpus_of(content, contexts)
        arrays = state.arrays() | {"topic": topic}
        numbers = [*arrays["scalars"].tolist()[1:4], float(arrays.get("document_concentration", 1.0))]
        state = engine.restore(corpus, arrays)
        numbers.append(state.topic_word_prior)
        chain.append(row_of(numbers, has_level, state.cluster, topic, content, contexts))
    chain, varies = np.array(chain), forward.std(axis=0) > 1e-9
    assert varies.sum() == 13 - (n_clusters is not None)
    assert chain[:, ~varies] == pytest.approx(np.log(ALPHA))
    forward = forward[:, varies]
    assert_agree(chain[:, varies], forward.mean(axis=0), forward.std(axis=0) / np.sqrt(FORWARD))


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
        concentrations = [rng.gamma(shape, 1 / rate) for shape, rate in PRIORS.values()]
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
