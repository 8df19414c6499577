"""Joint distribution test (Geweke 2004) of MC2 with a document level, all four concentrations learnt.

As in test_geweke.py: 40 batches, ten statistics of which log omega is one, 5.5 standard errors, a false alarm with a
chance of about 4e-5 (Student's t with 39 degrees of freedom); seeds are fixed.
"""

import functools

import numpy as np
import pytest
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
    draw_data,
    draw_document_level_assignments,
    statistics,
)

ALPHA = 6.0
FOUR_PRIORS = PRIORS | {"document": (3.0, 2.0)}


def document_level_statistics(concentrations, cluster, topic, content, contexts):
    found = statistics(concentrations[:3], cluster, topic, content, contexts)
    first, second = topic[: LENGTHS[0]], topic[LENGTHS[0] : LENGTHS[0] + LENGTHS[1]]
    found[5] = np.log(concentrations[3])
    found[6] = len(np.unique(first)) + 10 * len(np.intersect1d(first, second)) * float(cluster[0] == cluster[1])
    return found


def draw_prior(n_clusters, rng):
    drawn = {role: rng.gamma(shape, 1 / rate) for role, (shape, rate) in FOUR_PRIORS.items()}
    return list((drawn if n_clusters is None else drawn | {"group": ALPHA}).values())


@functools.cache
def forward_draws(n_clusters):
    """((FORWARD, 11) statistics of draws from the model itself, a corpus of the last of them)."""
    rng, rows = np.random.default_rng(29), []
    for _ in range(FORWARD):
        concentrations = draw_prior(n_clusters, rng)
        cluster, topic = draw_document_level_assignments(concentrations, n_clusters, rng)
        content, contexts, topic = draw_data(cluster, topic, rng)
        rows.append(document_level_statistics(concentrations, cluster, topic, content, contexts))
    return np.array(rows), corpus_of(content, contexts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_clusters", "kernel"),
    [(None, "collapsed"), (None, "parallel"), pytest.param(3, "collapsed", marks=pytest.mark.thorough)],
)
def test_forward_draws_and_the_chain_agree(n_clusters, kernel):
    """Of at most three clusters alpha is held, and so one statistic says nothing."""
    forward, corpus = forward_draws(n_clusters)
    rng = np.random.default_rng(30)
    priors, told = FOUR_PRIORS, {"start_clusters": 2}
    if n_clusters is not None:
        priors = {role: prior for role, prior in FOUR_PRIORS.items() if role != "group"}
        told = {"n_clusters": n_clusters, "group_concentration": ALPHA}
    engine = gibbs(
        document_level=True, contexts=FAMILIES, topic_word_prior=TOPIC_PRIOR, concentration_priors=priors,
        start_topics=2, kernel=kernel, **told,
    )  # fmt: skip
    state = engine.init(corpus, 0)
    chain = []
    for iteration in range(1, SWEEPS + 1):
        engine.step(corpus, without_log_joint(state), 0, iteration)
        content, contexts, topic = draw_data(state.cluster, state.topic, rng)
        corpus = corpus_of(content, contexts)
        arrays = state.arrays() | {"topic": topic}
        _, *concentrations, _ = arrays["scalars"].tolist()
        concentrations.append(float(arrays["document_concentration"]))
        state = engine.restore(corpus, arrays)
        chain.append(document_level_statistics(concentrations, state.cluster, topic, content, contexts))
    chain = np.array(chain[SWEEPS % BATCHES :])
    if n_clusters is not None:
        assert (chain[:, 2] == np.log(ALPHA)).all()
        chain, forward = np.delete(chain, 2, axis=1), np.delete(forward, 2, axis=1)

    assert_agree(chain, forward.mean(axis=0), forward.std(axis=0) / np.sqrt(FORWARD))
