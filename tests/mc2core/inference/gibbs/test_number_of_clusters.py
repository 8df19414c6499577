"""A finite mixture of clusters: its law, its limit, and chains that are told how many clusters there are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.crossed import first
from helpers.fits import gibbs
from helpers.gibbs_enumeration import canonical, log_clusters, partitions
from helpers.gibbs_twin import small_corpus

from mc2core import Corpus
from mc2core.inference import Gibbs
from mc2core.inference.gibbs import blocked
from mc2core.inference.gibbs.weights import PartitionLaw, log_partition
from mc2core.inference.running.loop import fit
from mc2core.models import MC2


@pytest.mark.parametrize(("alpha", "n_clusters"), [(0.3, 2), (3.0, 3), (5.0, 7), (1.2, math.inf)])
def test_partitions_have_the_probability_of_labelled_clusters(alpha, n_clusters):
    """Sums over all ways to number the clusters, pi integrated out; the Chinese restaurant without a bound."""
    law, expected = PartitionLaw.from_concentration(alpha, n_clusters), dict.fromkeys(partitions(4), 0.0)
    if n_clusters < math.inf:
        for z in itertools.product(range(n_clusters), repeat=4):
            sizes = np.bincount(z, minlength=n_clusters)
            rising = math.prod(alpha / n_clusters + i for size in sizes for i in range(size))
            expected[canonical(z)] += rising / math.prod(alpha + i for i in range(4))
    else:
        expected = {z: math.exp(log_clusters(z, alpha)) for z in expected}
    assert sum(expected.values()) == pytest.approx(1.0, abs=1e-12)
    for z, probability in expected.items():
        assert math.exp(log_clusters(z, alpha, n_clusters)) == pytest.approx(probability, rel=1e-10)
        if max(z) < n_clusters:
            assert math.exp(log_partition(law, np.bincount(z))) == pytest.approx(probability, rel=1e-10)


def test_weights_of_the_blocked_move_are_dirichlet():
    """Two clusters in use of five, none small: their weights and the sorted ones of the rest against the Dirichlet."""
    law, n_k, rng = PartitionLaw.from_concentration(4.0, 5), np.array([3, 1]), np.random.default_rng(0)
    drawn = [blocked.cut_clusters(n_k, law, rng)[0] for _ in range(4000)]
    assert max(map(len, drawn)) == 5
    found = np.array([[*pi[:2], *np.sort(np.append(pi[2:], [0.0] * (5 - len(pi))))] for pi in drawn])
    exact = rng.dirichlet(np.append(n_k, [0, 0, 0]) + 0.8, size=100_000)
    exact[:, 2:] = np.sort(exact[:, 2:], axis=1)
    # below the smallest cluster that is split off, nothing is
    for column in (0, 1, 4):
        score = (found[:, column].mean() - exact[:, column].mean()) / (found[:, column].std() / math.sqrt(4000))
        assert abs(score) < 5
        assert found[:, column].std() == pytest.approx(exact[:, column].std(), rel=0.06)


def test_many_clusters_are_a_dirichlet_process():
    """2**31 - 1 clusters at the same alpha: the draws of a Dirichlet process from as many clusters at the start."""
    corpus, chains = small_corpus(2), []
    for told in ({"n_clusters": 2**31 - 1}, {"start_clusters": corpus.n_documents}):
        pair = gibbs(kernel="collapsed", group_concentration=1.7, start_topics=5, **told)
        chains.append(fit(corpus, *pair, iterations=6, seed=1, progress=False))
    assert chains[0].trace.clusters.nunique() > 1
    np.testing.assert_array_equal(chains[0].trace.clusters, chains[1].trace.clusters)
    np.testing.assert_array_equal(chains[0].state.cluster, chains[1].state.cluster)
    assert chains[0].state.log_joint == pytest.approx(chains[1].state.log_joint, abs=1e-4)


@pytest.mark.parametrize("seed", first(range(3)))
def test_a_chain_has_the_clusters_it_is_told(seed):
    """200 documents of ten words, of six kinds: at alpha = N one of the six empties now and then."""
    rng = np.random.default_rng(seed)
    words, tau = rng.dirichlet(np.full(100, 0.05), 10), rng.dirichlet(np.full(10, 0.2), 6)
    content = [rng.multinomial(10, rng.dirichlet(20.0 * tau[j % 6] + 1e-9) @ words) for j in range(200)]
    corpus = Corpus(sp.csr_matrix(np.array(content)))
    found = fit(corpus, MC2(n_clusters=6), Gibbs(), iterations=30, seed=seed, progress=False)
    assert (found.trace.clusters == 6).all()


@pytest.mark.parametrize("document_level", [False, True])
@pytest.mark.parametrize("n_clusters", [1, 3, 50])
def test_no_chain_has_more_clusters_than_it_is_told(n_clusters, document_level):
    """From its start on, through a checkpoint's restore; there may be more clusters than documents."""
    corpus = small_corpus(3)
    pair = gibbs(document_level=document_level, n_clusters=n_clusters, start_topics=5)
    state = pair.init(corpus, 0)
    assert 1 <= state.assignments.n_clusters <= n_clusters
    for iteration in range(1, 6):
        pair.step(corpus, state, 0, iteration)
        state = pair.restore(corpus, state.arrays())
        assert state.assignments.n_clusters <= n_clusters
        assert state.concentrations.most_clusters == n_clusters
