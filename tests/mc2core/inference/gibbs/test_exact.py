"""Every Gibbs kernel against the exact posterior of tiny corpora.

Frequencies of events (numbers of clusters and topics, pairs that share one, the likeliest states) over a run are
compared with their exact probabilities, in units of standard errors by means of 50 batches, but at least those of
independent draws. Events rarer than 0.04 are left out: batch means would be too skewed. So are means of the log ratios
of the posterior under one number 1.5 times as large to the exact one: they tell such a fault in half the sweeps or
less that events take. A test fails beyond 6 standard errors: for Student's t with 49 degrees of freedom a chance of
2.4e-7, so with at most 80 rows of events and ratios by chance with probability near 2e-5. Seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.crossed import crossed
from helpers.gibbs_chains import (
    DOCUMENTS,
    FAMILIES,
    assert_chain_follows,
    corpus_of,
    exact_of,
    fixed,
)

from mc2core.corpus import Corpus
from mc2core.families import NormalGamma

KERNELS = ("collapsed", "blocked", "interleaved")


SWEEPS = {"collapsed": 1600, "blocked": 1200, "interleaved": 800}


@pytest.mark.parametrize(("family", "kernel"), crossed(list(FAMILIES), KERNELS))
def test_posterior_with_contexts(family, kernel):
    contexts, families = FAMILIES[family]
    corpus = corpus_of(DOCUMENTS, 3, contexts)
    engine = fixed(kernel=kernel, contexts=families)
    assert_chain_follows(engine, corpus, exact_of(DOCUMENTS, 3, corpus), SWEEPS[kernel])


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_with_many_topics_and_clusters(kernel):
    documents = [[0, 0], [1], [], [0, 1]]
    corpus = corpus_of(documents, 2)
    engine = fixed(
        kernel=kernel, group_concentration=4.0, table_concentration=6.0, topic_concentration=5.0, topic_word_prior=0.02
    )
    assert_chain_follows(engine, corpus, exact_of(documents, 2, corpus), SWEEPS[kernel])


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_of_at_most_two_clusters_with_contexts(kernel):
    """A finite mixture over three documents: two clusters, of which one may be empty."""
    contexts, families = FAMILIES["all, some missing"]
    corpus = corpus_of(DOCUMENTS, 3, contexts)
    engine = fixed(kernel=kernel, contexts=families, n_clusters=2)
    exact = exact_of(DOCUMENTS, 3, corpus)
    assert {max(z) for z, _ in exact(engine.model)} == {0, 1}
    assert_chain_follows(engine, corpus, exact, SWEEPS[kernel])


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_of_at_most_three_clusters(kernel):
    """Of four documents, with clusters that empty and come back."""
    documents = [[0, 0], [1], [], [0, 1]]
    corpus = corpus_of(documents, 2)
    engine = fixed(
        kernel=kernel, n_clusters=3, group_concentration=4.0, table_concentration=6.0, topic_concentration=2.0,
        topic_word_prior=0.1,
    )  # fmt: skip
    exact = exact_of(documents, 2, corpus)
    assert {max(z) for z, _ in exact(engine.model)} == {0, 1, 2}
    assert_chain_follows(engine, corpus, exact, SWEEPS[kernel])


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_of_the_hdp(kernel):
    corpus = corpus_of(DOCUMENTS, 3)
    engine = fixed("hdp", kernel=kernel)
    assert_chain_follows(engine, corpus, exact_of(DOCUMENTS, 3, corpus), SWEEPS[kernel])


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_without_content_is_that_of_a_mixture(kernel):
    values = np.array([0.1, 0.2, 2.0, np.nan])
    corpus = Corpus(sp.csr_matrix((4, 3), dtype=int), contexts={"year": values})
    engine = fixed(kernel=kernel, contexts={"year": NormalGamma(0.0, 0.3, 2.0, 0.3)})
    assert_chain_follows(engine, corpus, exact_of([[], [], [], []], 3, corpus), SWEEPS[kernel])
