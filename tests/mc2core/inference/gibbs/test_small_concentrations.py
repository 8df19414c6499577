"""Gibbs kernels at small concentrations and priors, where Gamma variates underflow and chains mix slowly.

**Chains that start in the posterior.** At v = 1e-4 a chain hardly moves, so the frequencies of one long chain say
nothing of bias. Here many short chains start from exact draws of the posterior (enumeration gives z and l, then tables,
then the topic weights given the tables). If the kernel leaves the posterior invariant, every state of every chain has
its law, and chains are independent. An event's frequency is compared with its probability in units of the standard
error between chains. Student's t with 399 degrees of freedom passes 6 with a chance of 4e-9; rarer events than 0.04 are
left out, which 400 chains would judge by a skewed sum. With at most 35 events in 16 runs a change of the seeds gives a
false alarm once in 4e5 times.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.crossed import crossed
from helpers.fits import FIXED, gibbs, without_log_joint
from helpers.gibbs_chains import corpus_of, events
from helpers.gibbs_enumeration import canonical, log_tables, posterior

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

DOCUMENTS, N_WORDS = [[0, 0, 1], [1, 1], [0, 2]], 3
CHAINS, STEPS, LIMIT = 400, 5, 6.0
SETTINGS = {
    "table": "table_concentration",
    "group": "group_concentration",
    "topic": "topic_concentration",
    "s": "topic_word_prior",
}


def engine_of(**changed):
    return gibbs(**(FIXED | {"topic_word_prior": 0.5, "start_topics": 2, "start_clusters": 2} | changed))


def draw_from(weights, rng):
    """A key of ``weights``, a mapping to log weights."""
    logs = np.array(list(weights.values()))
    p = np.exp(logs - logs.max())
    return list(weights)[rng.choice(len(p), p=p / p.sum())]


def exact_start(engine, corpus, z, topics, v, eta, rng):
    """State of the engine with the partitions z and l, its topic weights drawn given them."""
    document = np.repeat(np.arange(corpus.n_documents), corpus.document_lengths)
    n_km = np.zeros((max(z) + 1, max(topics) + 1), np.int64)
    np.add.at(n_km, (np.array(z)[document], list(topics)), 1)
    weights = rng.dirichlet([*draw_from(log_tables(n_km, v, eta), rng), eta])
    scalars = np.array([weights[-1], engine.model.group_concentration, v, eta, 0.0])
    arrays = {"cluster": np.array(z), "topic": np.array(topics), "topic_weights": weights[:-1], "scalars": scalars}
    return engine.restore(corpus, arrays)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "value", "small"), crossed([*itertools.product(["collapsed", "blocked"], [1e-4, 1e-2])], list(SETTINGS))
)
def test_chains_that_start_in_the_posterior_stay_in_it(small, value, kernel):
    engine = engine_of(kernel=kernel, **{SETTINGS[small]: value})
    model = engine.model
    alpha, v, eta = model.group_concentration, model.table_concentration, model.topic_concentration
    corpus = corpus_of(DOCUMENTS, N_WORDS)
    exact = posterior(DOCUMENTS, N_WORDS, alpha, v, eta, model.topic_word_prior)
    number = {state: i for i, state in enumerate(exact)}
    table = events(exact, corpus.n_documents, corpus.n_tokens)
    rng = np.random.default_rng(5)
    states, p = list(exact), np.array(list(exact.values()))
    probability = table @ p
    seen = np.zeros((CHAINS, len(probability)))
    for chain in range(CHAINS):
        z, topics = states[rng.choice(len(p), p=p)]
        state = without_log_joint(exact_start(engine, corpus, z, topics, v, eta, rng))
        for iteration in range(1, STEPS + 1):
            engine.step(corpus, state, chain, iteration)
            seen[chain] += table[:, number[canonical(state.cluster), canonical(state.topic)]] / STEPS
    score = (seen.mean(axis=0) - probability) / (seen.std(axis=0, ddof=1) / np.sqrt(CHAINS))
    assert len(score) > 10
    assert np.abs(score).max() < LIMIT, dict(zip(probability, score, strict=True))
