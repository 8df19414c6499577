"""Every Gibbs kernel against the exact posterior of tiny corpora, without a document level and with it.

Frequencies of events (numbers of clusters and topics, pairs that share one, the likeliest states) over a run are
compared with their exact probabilities, in units of standard errors by means of 50 batches, but at least those of
independent draws. Events rarer than 0.04 are left out: batch means would be too skewed. So are means of the log ratios
of the posterior under one number 1.5 times as large to the exact one: they tell such a fault in half the sweeps or
less that events take. A test fails beyond 6 standard errors: for Student's t with 49 degrees of freedom a chance of
2.4e-7, so with at most 80 rows of events and ratios by chance with probability near 2e-5. Seeds are fixed.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.crossed import crossed
from helpers.document_level_enumeration import log_document_level_topics
from helpers.gibbs_chains import (
    DOCUMENTS,
    FAMILIES,
    assert_chain_follows,
    corpus_of,
    document_level_exact_of,
    exact_of,
    fixed,
)
from helpers.gibbs_enumeration import partitions

from mc2core.families import NormalGamma

MANY = [[0, 0], [1], [], [0, 1]]
#: contexts of the corpus, and families
ALL, VECTORS, WEAK = (FAMILIES[name] for name in ("all, some missing", "vectors, some missing", "of strength 1/4"))
YEARS = {"year": np.array([0.1, 0.2, 2.0, np.nan])}, {"year": NormalGamma(0.0, 0.3, 2.0, 0.3)}
NO_CONTEXTS = {}, {}
SWEEPS = {"collapsed": 1600, "blocked": 1200, "interleaved": 800}
#: documents, contexts, other settings
CASES = {
    "contexts": (DOCUMENTS, ALL, {}),
    "vectors": (DOCUMENTS, VECTORS, {}),
    "weak contexts": (DOCUMENTS, WEAK, {}),
    "many topics and clusters": (
        MANY,
        NO_CONTEXTS,
        {"group_concentration": 4.0, "table_concentration": 6.0, "topic_concentration": 5.0, "topic_word_prior": 0.02},
    ),
    "two clusters at most": (DOCUMENTS, ALL, {"n_clusters": 2}),
    "three clusters at most": (
        MANY,
        NO_CONTEXTS,
        {"n_clusters": 3, "group_concentration": 4.0, "table_concentration": 6.0, "topic_word_prior": 0.1},
    ),
    "HDP": (DOCUMENTS, NO_CONTEXTS, {"model": "hdp"}),
    "no content": ([[]] * 4, YEARS, {}),
}


def assert_case_follows(case, sweeps, exact_of, **more):
    documents, (contexts, families), settings = case
    n_words = 1 + max(itertools.chain(*documents), default=2)
    corpus = corpus_of(documents, n_words, contexts)
    engine, exact = fixed(contexts=families, **settings | more), exact_of(documents, n_words, corpus)
    if most := settings.get("n_clusters"):  # each number of clusters occurs, the most among them
        assert {max(z) + 1 for z, _ in exact(engine.model)} == set(range(1, most + 1))
    assert_chain_follows(engine, corpus, exact, sweeps)


@pytest.mark.parametrize(("case", "kernel"), crossed(list(CASES), list(SWEEPS), every=2))
def test_chains_have_the_enumerated_posterior(case, kernel):
    assert_case_follows(CASES[case], SWEEPS[kernel], exact_of, kernel=kernel)


# -- with a document level -----------------------------------------------------------------------------------------
def test_the_enumeration_sums_to_one_over_partitions():
    """p(l | z) of five tokens in three documents, two of them in one cluster, over the 52 partitions of the tokens."""
    total = 0.0
    for topics in partitions(5):
        n_jm = np.zeros((3, max(topics) + 1), int)
        np.add.at(n_jm, ([0, 0, 1, 1, 2], list(topics)), 1)
        total += np.exp(log_document_level_topics(n_jm, (0, 0, 1), 0.7, 1.5, 0.9))
    assert total == pytest.approx(1.0, abs=1e-12)


#: omega of cases; the one of small concentrations fails where shares of new topics are not drawn in logarithms
LEVEL = {
    "contexts": 0.5,
    "vectors": 0.5,
    "weak contexts": 3.0,
    "many topics and clusters": 4.0,
    "two clusters at most": 3.0,
    "three clusters at most": 3.0,
    "HDP": 0.8,
    "small concentrations": 1.5,
}
SMALL = {"table_concentration": 0.05, "topic_concentration": 0.3, "topic_word_prior": 0.05}


@pytest.mark.parametrize(("case", "kernel"), crossed(list(LEVEL), ["collapsed", "parallel"], every=4))
def test_document_level_chains_have_the_enumerated_posterior(case, kernel):
    omega = LEVEL[case]
    case = CASES.get(case, ([[0, 1], [0, 1], [1]], NO_CONTEXTS, SMALL))
    assert_case_follows(case, 1000, document_level_exact_of, kernel=kernel, document_concentration=omega)


@pytest.mark.parametrize(
    ("case", "omega", "kernel"),
    [
        ("no content", 0.8, "collapsed"),
        ("contexts", 1e8, "collapsed"),
        pytest.param("contexts", 1e8, "parallel", marks=pytest.mark.slow),
    ],
)
def test_document_level_is_mc2_without_content_or_if_omega_large(case, omega, kernel):
    assert_case_follows(CASES[case], 1000, exact_of, kernel=kernel, document_concentration=omega)
