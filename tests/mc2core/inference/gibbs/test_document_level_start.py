"""The start of a chain with a document level, and how little is left of it."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.document_level_states import assignments_at, corpus_and_state, log_contexts, log_topics_of_cluster
from helpers.fits import gibbs
from helpers.gibbs_enumeration import log_clusters, partitions
from helpers.gibbs_transitions import FAMILIES

from mc2core import Corpus, fit
from mc2core.inference.gibbs.document_level import start as starting
from mc2core.inference.gibbs.document_level.start import log_clustering
from mc2core.inference.gibbs.document_level.state import DocumentLevel
from mc2core.inference.gibbs.state import Concentrations
from mc2core.inference.gibbs.weights import GammaPrior

CLUSTERS, DOCUMENTS, TOPICS, WORDS, LENGTH = 6, 150, 10, 100, 60


def simulated():
    """150 documents of 6 clusters, each of two topics of its own ten, and the clusters."""
    rng = np.random.default_rng(4)
    words = rng.dirichlet(np.full(WORDS, 0.05), TOPICS)
    cluster = rng.integers(0, CLUSTERS, DOCUMENTS)
    tau = rng.dirichlet(np.full(TOPICS, 0.2), CLUSTERS) + 1e-9
    content = [rng.multinomial(LENGTH, rng.dirichlet(20.0 * tau[k]) @ words) for k in cluster]
    return Corpus(sp.csr_matrix(np.array(content))), cluster


@pytest.mark.parametrize("start", [1, 100])
def test_clusters_do_not_depend_on_how_many_a_chain_starts_from(start):
    corpus, _ = simulated()
    engine = gibbs(document_level=True, start_clusters=start, start_topics=20)
    found = fit(corpus, *engine, iterations=40, seed=0, progress=False).posterior.representative.cluster
    assert abs((np.bincount(found) >= 3).sum() - CLUSTERS) <= 1, np.bincount(found)


def test_a_chain_soon_has_the_clusters_of_its_topics():
    corpus, truth = simulated()
    engine = gibbs(document_level=True, start_topics=20)
    for seed in range(3):
        cluster = fit(corpus, *engine, iterations=20, seed=seed, progress=False).posterior.representative.cluster
        # documents of a pair are together in both or apart in both
        together, should = cluster[:, None] == cluster, truth[:, None] == truth
        assert (together == should).mean() > 0.9


def test_of_two_clusterings_the_likelier_is_the_start(monkeypatch):
    corpus, _ = simulated()
    engine, likelihood = gibbs(document_level=True, start_topics=20), starting.likelihood
    likelier = engine.init(corpus, 0)
    monkeypatch.setattr(starting, "likelihood", lambda state: -likelihood(state))
    other = engine.init(corpus, 0)
    assert (likelier.topic == other.topic).all()
    assert likelihood(likelier) > likelihood(other)


@pytest.mark.parametrize("n_clusters", [math.inf, 5])
def test_how_likely_a_clustering_is_agrees_with_the_sum_over_tables(n_clusters):
    """ln p of the 15 partitions of four documents up to a constant, tau summed out exactly; and the priors."""
    contexts, start, n_jm = corpus_and_state(FAMILIES)
    alpha, v, eta, omega = 1.3, 2.0, 0.8, 2.5
    priors = {"group": GammaPrior(2.0, 0.5), "table": None, "topic": GammaPrior(1.0, 3.0), "document": None}
    nothing = dict.fromkeys(priors)
    differences = []
    for z in partitions(4):
        assignments = assignments_at(z, start)
        eps = assignments.topic_weights
        exact = log_clusters(z, alpha, n_clusters) + log_contexts(contexts, z)
        exact += sum(log_topics_of_cluster(n_jm[np.array(z) == k], eps, v, omega) for k in range(max(z) + 1))
        level = DocumentLevel(np.zeros((max(z) + 1, 4)), assignments.n_km, omega)
        concentrations = Concentrations(alpha, v, eta, n_clusters)
        found = log_clustering(assignments, level, concentrations, nothing, contexts)
        differences.append(found - exact)
        more = log_clustering(assignments, level, concentrations, priors, contexts) - found
        assert more == pytest.approx(np.log(alpha) - 0.5 * alpha - 3.0 * eta, abs=1e-9)
    assert np.ptp(differences) < 1.0
