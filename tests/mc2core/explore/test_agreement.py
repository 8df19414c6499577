"""Which clusters and topics other samples have, against sets of documents and words written out."""

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.explored_fits import corpus, gibbs

from mc2core.explore import agreement
from mc2core.explore.clusters import cluster_tables
from mc2core.explore.description import Description, chosen_samples
from mc2core.explore.topics import topic_map, topic_tables


@pytest.fixture(scope="module")
def one():
    made = corpus()
    return Description.from_posterior(gibbs(made), made)


def with_samples(description, clusters, chains=None, **changes):
    """The description of as many samples, the first as it is; the clusters of documents stay those of the first."""
    sample = description.posterior.samples[0]
    samples = [dataclasses.replace(sample, cluster=one.astype(np.int32)) for one in clusters]
    for name, values in changes.items():
        samples = [dataclasses.replace(each, **{name: value}) for each, value in zip(samples, values, strict=True)]
    provenance = description.posterior.provenance | ({"chains": chains} if chains else {})
    posterior = dataclasses.replace(description.posterior, samples=samples, provenance=provenance)
    return dataclasses.replace(description, posterior=posterior)


def test_a_cluster_is_found_where_a_samples_clusters_make_it_up(one):
    own, k = one.cluster, one.n_clusters
    large = np.argmax(np.bincount(own))
    other = np.flatnonzero(np.bincount(own, minlength=k) < np.bincount(own).max())[0]
    split = own.copy()
    half = np.flatnonzero(own == large)[::2]
    split[half] = other  # half of it moves to another cluster
    mixed = np.arange(60) % k
    several = with_samples(one, [own, own, split, mixed])
    first, own = several.first[k], several.at(k)
    found = agreement.found_clusters(several)
    assert found.shape == (4, len(one.nodes))
    found = found[:, first : first + k]
    assert found[:2, np.bincount(own, minlength=k) > 0].all()
    for row, cluster in ((2, split), (3, mixed)):
        for node in np.unique(own):
            inside = [c for c in np.unique(cluster) if np.mean(own[cluster == c] == node) > 0.5]
            union = np.isin(cluster, inside)
            jaccard = (union & (own == node)).sum() / (union | (own == node)).sum()
            both = union.sum() * (own == node).sum() / 60
            by_chance = both / (union.sum() + (own == node).sum() - both)
            assert found[row, node] == (jaccard - by_chance >= 0.5 * (1.0 - by_chance))
    assert not found[2:].all()


def test_clusterings_at_random_do_not_find_a_large_cluster(one):
    """Without the correction for chance, most of them do."""
    rng = np.random.default_rng(0)
    own = (np.arange(60) >= 36).astype(np.int32)
    several = with_samples(one, [own, own, *(rng.permutation(own) for _ in range(18))])
    several = dataclasses.replace(several, cluster=own)
    large = np.flatnonzero(np.diff(several.documents_of.indptr) == 36)
    assert len(large)
    assert agreement.found_clusters(several)[:, large].mean() <= 0.15  # those that are the same


def test_certainty_is_the_share_of_clusters_inside_a_cluster(one):
    rng, own = np.random.default_rng(2), one.cluster
    drawn = [np.where(rng.random(60) < 0.3, rng.integers(0, one.n_clusters, 60), own) for _ in range(4)]
    several = with_samples(one, drawn)
    first, own = several.first[one.n_clusters], several.at(one.n_clusters)
    sure = agreement.certainty(several)[first:]
    for node in np.unique(own):
        each = [np.mean(own[cluster == cluster[j]] == node) for cluster in drawn for j in np.flatnonzero(own == node)]
        assert sure[node] == pytest.approx(np.mean(each))
    assert np.isnan(agreement.certainty(one)).all()


def test_chains_are_counted_that_mostly_have_a_cluster(one):
    other = np.arange(60) % one.n_clusters
    several = with_samples(one, [one.cluster] * 3 + [other] * 2, chains=[3, 2])
    table = cluster_tables(several)["clusters"]
    assert table["found"].to_numpy()[agreement.found_clusters(several)[3][table["cluster"] - 1] == 0] == pytest.approx(
        0.6
    )
    assert set(table["chains"]) <= {1, 2}
    assert (table["chains"] == 1).any()
    assert "chains" not in cluster_tables(with_samples(one, [one.cluster] * 3))["clusters"]
    assert "found" not in cluster_tables(one)["clusters"]


def test_a_topic_is_found_where_one_shares_half_of_its_words(one):
    table = one.posterior.samples[0].topic_words
    table = table.toarray() if sp.issparse(table) else np.asarray(table)
    one_word = np.zeros_like(table)
    one_word[:, 0] = 1
    # of equal samples the last is the representative
    several = with_samples(one, [one.cluster] * 3, topic_words=[one_word, table[::-1], table])
    found = agreement.found_topics(several)
    assert found[1:].all()
    assert not found[0][(table > 0).sum(axis=1) > 2].any()
    topics = topic_tables(several)["topics"].set_index("topic")
    assert topics["found"][1] == pytest.approx(found[:, 0].mean())


def test_of_many_samples_some_are_asked_and_of_one_none(one):
    assert chosen_samples(one.posterior) == []
    many = dataclasses.replace(one.posterior, samples=one.posterior.samples * 45)
    chosen = chosen_samples(many)
    assert (len(chosen), chosen[0], chosen[-1]) == (20, 0, 44)


def test_parents_are_the_next_cuts_clusters_with_most_documents(one):
    sizes = [one.n_clusters, *one.cuts]
    for size, smaller in itertools.pairwise(sizes):
        for number in np.unique(one.at(size)):
            counts = np.bincount(one.at(smaller)[one.at(size) == number], minlength=smaller)
            assert counts[one.parent[one.first[size] + number] - one.first[smaller]] == counts.max()
    assert one.parent[-1] == -1


def test_topics_with_like_words_lie_near_each_other():
    made = corpus()
    description = Description.from_posterior(gibbs(made), made)
    n = description.posterior.representative.n_topics
    assert n > 3  # fewer stand in a row
    places, words = topic_map(description), description.posterior.representative.words_of(np.arange(n))
    assert places.min() >= 0
    assert places.max() <= 1
    likeness = np.sqrt(words) @ np.sqrt(words).T
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(likeness, -1)
    assert np.mean(distance[np.arange(n), likeness.argmax(axis=1)]) < np.mean(distance[~np.eye(n, dtype=bool)])
