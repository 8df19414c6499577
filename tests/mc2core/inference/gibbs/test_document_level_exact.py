"""MC2 with a document level: the chain against the enumerated posterior of tiny corpora.

As in test_exact.py: at most 80 events a test, 6 standard errors, a false alarm with probability near 2e-5; fixed seeds.
"""

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

from mc2core.corpus import Corpus
from mc2core.families import NormalGamma

SWEEPS = 1000
KERNELS = ("collapsed", "parallel")


def test_the_enumeration_sums_to_one_over_partitions():
    """p(l | z) of five tokens in three documents, two of them in one cluster, over the 52 partitions of the tokens."""
    from helpers.gibbs_enumeration import partitions

    total = 0.0
    for topics in partitions(5):
        n_jm = np.zeros((3, max(topics) + 1), int)
        np.add.at(n_jm, ([0, 0, 1, 1, 2], list(topics)), 1)
        total += np.exp(log_document_level_topics(n_jm, (0, 0, 1), 0.7, 1.5, 0.9))
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("family", "omega"), crossed(list(FAMILIES), [0.5, 3.0]))
def test_posterior_with_contexts(family, omega):
    contexts, families = FAMILIES[family]
    corpus = corpus_of(DOCUMENTS, 3, contexts)
    engine = fixed(document_concentration=omega, contexts=families)
    assert_chain_follows(engine, corpus, document_level_exact_of(DOCUMENTS, 3, corpus), SWEEPS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_with_many_topics_and_clusters(kernel):
    """It fails where a new topic's share of its own cluster's rest is drawn like those of the others."""
    documents = [[0, 0], [1], [], [0, 1]]
    corpus = corpus_of(documents, 2)
    engine = fixed(
        document_concentration=4.0, group_concentration=4.0, table_concentration=6.0, topic_concentration=5.0,
        topic_word_prior=0.02, kernel=kernel,
    )  # fmt: skip
    assert_chain_follows(engine, corpus, document_level_exact_of(documents, 2, corpus), 4 * SWEEPS)


@pytest.mark.parametrize(("n_clusters", "family"), [(2, "all, some missing"), (3, "none")])
def test_posterior_of_at_most_so_many_clusters(n_clusters, family):
    """A finite mixture: of two clusters of three documents with contexts, of three of four documents of words."""
    contexts, families = FAMILIES[family]
    documents, n_words = (DOCUMENTS, 3) if families else ([[0, 0], [1], [], [0, 1]], 2)
    corpus = corpus_of(documents, n_words, contexts)
    engine = fixed(document_concentration=3.0, n_clusters=n_clusters, group_concentration=4.0, contexts=families)
    exact = document_level_exact_of(documents, n_words, corpus)
    assert {max(z) + 1 for z, _ in exact(engine.model)} == set(range(1, n_clusters + 1))
    assert_chain_follows(engine, corpus, exact, 2 * SWEEPS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_with_small_concentrations(kernel):
    """Parameters of Dirichlets far below 1: the shares of new topics are drawn in logarithms."""
    documents = [[0, 1], [0, 1], [1]]
    corpus = corpus_of(documents, 2)
    engine = fixed(
        document_concentration=1.5,
        table_concentration=0.05,
        topic_concentration=0.3,
        topic_word_prior=0.05,
        kernel=kernel,
    )
    assert_chain_follows(engine, corpus, document_level_exact_of(documents, 2, corpus), SWEEPS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_posterior_of_the_hdp_of_three_levels(kernel):
    corpus = corpus_of(DOCUMENTS, 3)
    engine = fixed("hdp", document_concentration=0.8, kernel=kernel)
    assert_chain_follows(engine, corpus, document_level_exact_of(DOCUMENTS, 3, corpus), SWEEPS)


def test_posterior_without_content_is_that_of_a_mixture():
    import scipy.sparse as sp

    values = np.array([0.1, 0.2, 2.0, np.nan])
    corpus = Corpus(sp.csr_matrix((4, 3), dtype=int), contexts={"year": values})
    engine = fixed(document_concentration=0.8, contexts={"year": NormalGamma(0.0, 0.3, 2.0, 0.3)})
    assert_chain_follows(engine, corpus, exact_of([[], [], [], []], 3, corpus), SWEEPS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_large_document_concentration_is_mc2(kernel):
    contexts, families = FAMILIES["all, some missing"]
    corpus = corpus_of(DOCUMENTS, 3, contexts)
    engine = fixed(document_concentration=1e8, contexts=families, kernel=kernel)
    assert_chain_follows(engine, corpus, exact_of(DOCUMENTS, 3, corpus), SWEEPS)
