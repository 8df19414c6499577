"""The start that Gibbs and SVI share: k-means++ and k-means of documents and of words."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import gibbs, svi

from mc2core import Corpus
from mc2core.families import NormalGamma
from mc2core.families.stacked import StackedContexts
from mc2core.inference import seeding


def planted(n_documents=60, n_clusters=3, seed=0):
    """Documents of three vocabularies that hardly overlap, every tenth of them empty, and their years."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_documents) % n_clusters
    words = rng.dirichlet(np.full(40, 0.05), n_clusters)
    content = np.array([rng.multinomial(rng.integers(5, 200), words[k]) for k in truth])
    content[::10] = 0
    return Corpus(content, contexts={"year": 100.0 * truth + rng.normal(size=n_documents)}), truth


def pairs(one, other):
    return {(int(a), int(b)) for a, b in zip(one, other, strict=True)}


def test_squared_distances_of_rows_are_twice_hellingers():
    counts = np.random.default_rng(0).poisson(1.0, (5, 9)) + np.eye(5, 9, dtype=int)
    rows = seeding.unit_rows(sp.csr_matrix(counts)).toarray()
    p = counts / counts.sum(axis=1, keepdims=True)
    hellinger = 1.0 - np.sqrt(p[:, None] * p).sum(axis=2)
    np.testing.assert_allclose(((rows[:, None] - rows) ** 2).sum(axis=2), 2.0 * hellinger, atol=1e-14)


@pytest.mark.parametrize(
    "engine",
    [
        gibbs(start_clusters=3, contexts={"year": NormalGamma()}),
        svi(max_clusters=3, max_topics=6, contexts={"year": NormalGamma()}),
    ],
)
def test_both_engines_start_from_the_planted_clusters(engine):
    """Empty documents, too, which only their years tell apart."""
    corpus, truth = planted()
    state = engine.init(corpus, 0)
    assert len(pairs(truth, state.cluster)) == 3


def test_seeds_are_distinct_places_and_no_more():
    rows = seeding.unit_rows(sp.csr_matrix(np.repeat(np.eye(4, dtype=int), 5, axis=0)))
    seeds = seeding.seed_rows(rows, 10, np.random.default_rng(0))
    assert sorted(seeds // 5) == [0, 1, 2, 3]


@pytest.mark.parametrize("most", [1, 100, 2**24])
def test_centres_may_be_taken_a_few_at_a_time(most, monkeypatch):
    corpus, _ = planted()
    contexts = StackedContexts(corpus, {})
    whole = seeding.cluster_documents(corpus, contexts, 7, np.random.default_rng(1))
    monkeypatch.setattr(seeding, "_MAX_DENSE", most)
    assert np.array_equal(seeding.cluster_documents(corpus, contexts, 7, np.random.default_rng(1)), whole)
    assert len(np.unique(whole)) > 3


@pytest.mark.parametrize("most", [1, 2**24])
def test_of_centres_as_near_the_first_is_taken(most, monkeypatch):
    monkeypatch.setattr(seeding, "_MAX_DENSE", most)
    content = sp.csr_matrix(np.array([[3, 0], [2, 0], [0, 4], [1, 0], [0, 5]]))
    joined = seeding.join_nearest(content, np.array([1, 2, 3, -1, -1]), 4)
    assert joined.tolist() == [1, 2, 3, 1, 3]


def test_more_clusters_than_documents_take_no_memory():
    corpus, _ = planted()
    contexts = StackedContexts(corpus, {"year": NormalGamma()})
    few, many = (
        seeding.cluster_documents(corpus, contexts, n_clusters, np.random.default_rng(0))
        for n_clusters in (corpus.n_documents, 2**31 - 1)
    )
    assert np.array_equal(few, many)


def test_documents_without_words_begin_with_one_in_each_cluster():
    corpus = Corpus(np.zeros((6, 2), int), contexts={"year": np.array([0.0, 0.1, 50.0, 50.1, 99.0, 99.1])})
    contexts = StackedContexts(corpus, {"year": NormalGamma()})
    cluster = seeding.cluster_documents(corpus, contexts, 6, np.random.default_rng(0))
    assert sorted(cluster) == [0, 1, 2, 3, 4, 5]


def test_documents_cluster_by_embeddings_before_words():
    """Words halve each of three directions. The last documents lack a direction, and one of them words, too."""
    group = np.arange(30) % 3
    words = np.eye(5, dtype=int)[np.r_[np.where(group == 2, 3 + np.arange(30) % 2, 2), 3, 0]]
    words[-1] = 0
    rng, directions = np.random.default_rng(0), np.zeros((32, 3))
    directions[:30] = np.eye(3)[group]
    corpus = Corpus(words, contexts={"year": np.r_[50.0 * group, 100.0, 50.0]})
    cluster = seeding.cluster_documents(corpus, StackedContexts(corpus, {"year": NormalGamma()}), 3, rng, directions)
    assert len(pairs(group, cluster[:30])) == 3
    assert cluster[30:].tolist() == [cluster[2], cluster[1]]


def test_words_are_clustered_by_the_documents_they_are_in():
    """Three groups of documents, each of words of its own, and a word of all and one of none."""
    rng = np.random.default_rng(0)
    group = np.arange(60) % 3
    content = np.zeros((60, 17), int)
    for j, k in enumerate(group):
        content[j, 5 * k : 5 * k + 5] = rng.poisson(2.0, 5)
    content[:, 15] = 1
    for seed in range(4):
        found = seeding.cluster_words(Corpus(sp.csr_matrix(content)), 3, np.random.default_rng(seed))
        assert found.shape == (17,)
        assert [len(set(found[5 * k : 5 * k + 5])) for k in range(3)] == [1, 1, 1]
        assert set(found[[0, 5, 10]]) == {0, 1, 2}
        assert found[16] == 0


def test_factors_of_words_are_those_of_the_svd():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 25)) @ np.diag(np.r_[np.full(25 - 5, 10.0), np.full(5, 0.1)])
    factors = seeding._latent_factors(sp.csr_matrix(rows), rng)
    _, values, right = np.linalg.svd(rows, full_matrices=False)
    assert factors.shape == (25, 20)
    expected = (right[:20].T * values[:20] ** 2) @ right[:20]
    np.testing.assert_allclose(factors @ factors.T, expected, rtol=1e-3, atol=1e-3 * values[0] ** 2)


@pytest.mark.parametrize("content", [np.zeros((3, 2), int), [[3]], [[1, 1], [1, 1]], [[1, 0, 2], [0, 0, 0], [2, 0, 4]]])
def test_words_of_few_documents_have_clusters(content):
    corpus = Corpus(sp.csr_matrix(content), contexts={"year": np.zeros(len(content))})
    found = seeding.cluster_words(corpus, 5, np.random.default_rng(0))
    assert found.shape == (np.shape(content)[1],)
    assert found.min() >= 0
    assert found.max() < 5
