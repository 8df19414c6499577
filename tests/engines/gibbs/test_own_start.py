"""The start of a chain whose documents have proportions of their own says nothing of the clusters it comes to."""

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus, fit
from mc2core.engines.gibbs.engine import Gibbs

CLUSTERS, DOCUMENTS, TOPICS, WORDS, LENGTH = 6, 150, 10, 100, 60


def simulated():
    """150 documents of 6 clusters, each of two topics of its own ten, and the clusters."""
    rng = np.random.default_rng(4)
    words = rng.dirichlet(np.full(WORDS, 0.05), TOPICS)
    cluster = rng.integers(0, CLUSTERS, DOCUMENTS)
    tau = rng.dirichlet(np.full(TOPICS, 0.2), CLUSTERS) + 1e-9
    content = [rng.multinomial(LENGTH, rng.dirichlet(20.0 * tau[k]) @ words) for k in cluster]
    return Corpus(sp.csr_matrix(np.array(content))), cluster


def test_clusters_do_not_depend_on_how_many_a_chain_starts_from():
    corpus, _ = simulated()
    found = {}
    for start in (1, 100):
        engine = Gibbs(document_concentration="learn", start_clusters=start, start_topics=20)
        done = fit(corpus, engine, iterations=40, seed=0, progress=False)
        found[start] = done.model.last.cluster
        assert abs((np.bincount(found[start]) >= 3).sum() - CLUSTERS) <= 1, (start, np.bincount(found[start]))
    # the start draws nothing that depends on the setting
    assert (found[1] == found[100]).all()


def test_a_chain_starts_with_the_clusters_of_its_topics():
    corpus, truth = simulated()
    engine = Gibbs(document_concentration="learn", start_topics=20)
    for seed in range(3):
        cluster = engine.init(corpus, seed).cluster
        # documents of a pair are together in both or apart in both
        together, should = cluster[:, None] == cluster, truth[:, None] == truth
        assert (together == should).mean() > 0.9
