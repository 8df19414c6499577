"""Whether the clusters of a state are worth anything, given its topics."""

import numpy as np
import pytest
import scipy.sparse as sp

from mc2core import Corpus
from mc2core.families.stacked import StackedContexts
from mc2core.inference import SVI, Gibbs
from mc2core.inference.gibbs.assignments import Assignments, document_start
from mc2core.inference.gibbs.cluster_odds import log_odds_of_clusters
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.inference.running.loop import fit
from mc2core.models import HDP, MC2
from mc2core.posterior.descent import find_hierarchy

TOPICS, OF_TOPIC, DOCUMENTS, LENGTH = 6, 5, 120, 40


def drawn(n_clusters, omega=20.0, seed=0):
    """Documents whose words each belong to one topic, and their clusters."""
    rng = np.random.default_rng(seed)
    tau = rng.dirichlet(np.full(TOPICS, 0.3), n_clusters) + 1e-3
    cluster = rng.integers(0, n_clusters, DOCUMENTS)
    theta = [rng.dirichlet(omega * tau[k] / tau[k].sum()) for k in cluster]
    counts = [rng.multinomial(LENGTH, np.repeat(one, OF_TOPIC) / OF_TOPIC) for one in theta]
    return Corpus(sp.csr_matrix(np.array(counts))), cluster


def state_of(corpus, cluster, omega=20.0):
    topic = np.repeat(corpus.content.indices // OF_TOPIC, corpus.content.data).astype(np.int32)
    weights = np.full(TOPICS, 1.0 / (TOPICS + 1))
    assignments = Assignments(cluster.astype(np.int32), topic, document_start(corpus), weights, 1.0 / (TOPICS + 1))
    assignments.count()
    state = DocumentLevelState.from_assignments(MC2(), corpus, StackedContexts(corpus, {}), assignments)
    state.omega = omega
    return state


def test_clusters_that_are_there_are_likelier_than_one():
    corpus, cluster = drawn(4)
    assert log_odds_of_clusters(state_of(corpus, cluster)) > 50.0


@pytest.mark.parametrize("n_clusters", [2, 10])
def test_clusters_at_random_are_less_likely_than_one(n_clusters):
    corpus, _ = drawn(1)
    cluster = np.random.default_rng(1).integers(0, n_clusters, DOCUMENTS)
    assert log_odds_of_clusters(state_of(corpus, cluster)) < -20.0


def test_odds_depend_on_no_omega_and_leave_that_of_the_state():
    corpus, cluster = drawn(4)
    low, high = (state_of(corpus, cluster, omega) for omega in (0.1, 1000.0))
    assert log_odds_of_clusters(low) == pytest.approx(log_odds_of_clusters(high), abs=1e-6)
    assert (low.omega, high.omega) == (0.1, 1000.0)
    assert (low.assignments.cluster == cluster).all()


def test_one_cluster_has_odds_of_nought():
    corpus, _ = drawn(1)
    assert log_odds_of_clusters(state_of(corpus, np.zeros(DOCUMENTS))) == 0.0


@pytest.mark.parametrize("engine", [Gibbs(), SVI()])
def test_only_states_with_a_document_level_have_odds(engine):
    corpus, _ = drawn(2)
    model = MC2(document_level=False) if isinstance(engine, Gibbs) else MC2()
    assert engine.log_odds_of_clusters(engine.init(model, corpus, 0)) is None


def test_documents_that_are_clusters_have_no_odds():
    corpus, _ = drawn(2)
    assert Gibbs().log_odds_of_clusters(Gibbs().init(HDP(document_level=True), corpus, 0)) is None


@pytest.mark.parametrize(("n_clusters", "is_one"), [(1, True), (4, False)])
def test_one_cluster_is_recommended_where_documents_are_alike(n_clusters, is_one):
    corpus, _ = drawn(n_clusters, seed=1)
    posterior = fit(corpus, MC2(), iterations=10, chains=2, seed=0, progress=False).posterior
    assert (posterior.provenance["log_odds_of_clusters"] <= 0.0) == is_one
    assert (find_hierarchy(posterior, corpus).recommended == 1) == is_one


def test_a_fixed_number_is_recommended_where_one_is_likelier():
    corpus, _ = drawn(1)
    posterior = fit(corpus, MC2(n_clusters=2), iterations=4, seed=0, progress=False).posterior
    assert find_hierarchy(posterior, corpus).recommended == posterior.representative.n_clusters
