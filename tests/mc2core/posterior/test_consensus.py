"""The consensus of samples against Binder's loss pair by pair, over every partition of few documents."""

import itertools

import numpy as np
import pytest

from mc2core.posterior import clustering
from mc2core.posterior.consensus import agreement_between, consensus, interval, representative, shares


def loss_by_pairs(samples, cluster):
    """Share of pairs that are together in one of the two and apart in the other, pair by pair."""
    pairs = list(itertools.combinations(range(len(cluster)), 2))
    differ = [(one[i] == one[j]) != (cluster[i] == cluster[j]) for one in samples for i, j in pairs]
    return np.mean(differ)


def sweep_by_pairs(samples, start):
    """What the kernel does, with a probability of being together for each pair."""
    cluster = list(samples[start])
    together = np.mean([np.equal.outer(one, one) for one in samples], axis=0)
    while True:
        moved = 0
        for j in range(len(cluster)):
            others = [(i, cluster[i]) for i in range(len(cluster)) if i != j]
            gain = {k: sum(together[j, i] - 0.5 for i, at in others if at == k) for k in {at for _, at in others}}
            gain.setdefault(cluster[j], 0.0)
            best = max(gain, key=lambda k: (round(gain[k], 9), k == cluster[j], -k))
            moved += best != cluster[j]
            cluster[j] = best
        if not moved:
            return cluster


def partitions(n, most):
    """Every partition of n documents into at most so many clusters, numbered by first document."""
    if n == 0:
        yield []
        return
    for head in partitions(n - 1, most):
        for k in range(min(max(head, default=-1) + 2, most)):
            yield [*head, k]


def draws(seed, n_documents, n_samples, n_clusters, kept=0.7):
    """Samples around one clustering, each with numbers of its own; all numbers below the largest are in use."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_clusters, size=n_documents)
    samples = []
    for _ in range(n_samples):
        drawn = np.where(rng.random(n_documents) < kept, truth, rng.integers(n_clusters, size=n_documents))
        samples.append(np.unique(rng.permutation(n_clusters)[drawn], return_inverse=True)[1].astype(np.int32))
    return truth, samples


@pytest.mark.parametrize("seed", range(6))
def test_losses_are_those_of_pairs(seed):
    _, samples = draws(seed, 13, 5, 4)
    losses = [loss_by_pairs(samples, one) for one in samples]
    assert losses[representative(samples, [1] * len(samples))] == pytest.approx(min(losses))


def test_of_equal_samples_the_usual_number_of_topics_represents():
    one, other = np.array([0, 0, 1]), np.array([0, 1, 1])
    assert representative([one, one, other], [5, 5, 5]) == 1
    assert representative([one, other], [5, 5]) == 1
    assert representative([other], [5]) == 0
    assert representative([one, 1 - one, one, one, other], [31, 26, 20, 29, 26]) == 1
    assert representative([one, one, other], [9, 5, 4]) == 1
    rng = np.random.default_rng(0)
    for _ in range(20):
        numbers = rng.poisson(25, 30)
        low, high = interval(numbers)
        assert low <= numbers[representative([one] * 30, numbers)] <= high


@pytest.mark.parametrize("seed", range(12))
def test_sweeps_end_at_the_least_loss_of_all_partitions(seed):
    """None ends above its start, each is what the plain twin finds, and the best of them is the best there is."""
    _, samples = draws(seed, 7, 6, 3)
    ends = []
    for start in range(len(samples)):
        found = consensus(samples, start)
        assert found.tolist() == sweep_by_pairs(samples, start)
        ends.append(loss_by_pairs(samples, found))
        assert ends[-1] <= loss_by_pairs(samples, samples[start])
    n_clusters = max(one.max() + 1 for one in samples)
    least = min(loss_by_pairs(samples, one) for one in partitions(7, n_clusters))
    assert min(ends) == pytest.approx(least)


@pytest.mark.parametrize("seed", range(3))
def test_the_consensus_is_nearer_to_the_truth_than_any_sample(seed):
    """Each sample draws documents that are not sure anew: half of these draws are wrong, their consensus is not."""
    truth, samples = draws(seed, 300, 20, 5, kept=0.5)
    samples.append(np.where(samples[-1] == 0, -1, samples[-1]))  # documents of no cluster are no reason to fail
    start = representative(samples, [1] * len(samples))
    found = consensus(samples, start)
    best = max(clustering.adjusted_rand_index(truth, one) for one in samples)
    assert best < 0.5
    assert clustering.adjusted_rand_index(truth, found) > 0.9
    assert set(found) <= set(samples[start])


def test_a_cluster_keeps_the_number_it_has_in_the_start():
    rng = np.random.default_rng(0)
    truth = np.repeat([2, 0, 1], 20)
    samples = [np.where(rng.random(60) < 0.9, truth, rng.integers(3, size=60)) for _ in range(9)]
    assert (consensus(samples, 4) == truth).all()
    table = np.array([1, 2, 0])
    assert (consensus([table[one] for one in samples], 4) == table[truth]).all()


def test_unclustered_documents_stay_so_where_most_samples_agree():
    samples = [np.array([-1, 0, 0, 1, 1, -1]), np.array([-1, 1, 1, 0, 0, -1]), np.array([0, 0, 0, 1, 1, 1])]
    assert consensus(samples, 0).tolist() == [-1, 0, 0, 1, 1, -1]


def test_a_table_that_is_too_large_leaves_the_sample(monkeypatch):
    _, samples = draws(0, 60, 9, 3, kept=0.6)
    assert (consensus(samples, 2) != samples[2]).any()
    monkeypatch.setattr("mc2core.posterior.consensus.MAX_CELLS", 80)
    assert (consensus(samples, 2) == samples[2]).all()


def test_shares_are_those_of_members_one_by_one():
    _, samples = draws(3, 25, 6, 4)
    cluster = consensus(samples, 0)
    cluster[7] = 4  # alone
    expected = np.zeros((25, 6))
    for j, k in itertools.product(range(25), range(6)):
        members = [i for i in range(25) if cluster[i] == k and i != j]
        if members:
            expected[j, k] = np.mean([[one[i] == one[j] for i in members] for one in samples])
        elif cluster[j] == k:
            expected[j, k] = np.mean([np.count_nonzero(one == one[j]) == 1 for one in samples])
    found = shares(samples, cluster, 6)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found[:, 5] == 0).all()


def test_a_document_alone_in_every_sample_is_surely_alone():
    samples = [np.array([0, 0, 1]), np.array([1, 1, 0])]
    np.testing.assert_array_equal(shares(samples, samples[0], 2), [[1, 0], [1, 0], [0, 1]])


def test_agreement_is_a_mean_over_pairs():
    one, other, third = np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), np.array([0, 1, 0, 1])
    assert agreement_between([one, other]) == {"ari": 1.0, "vi_bits": 0.0}
    found = agreement_between([one, other, third])
    assert found["ari"] == pytest.approx((1.0 - 0.5 - 0.5) / 3)  # of third: no pair in common, 2 of 6 by chance
    assert found["vi_bits"] == pytest.approx((0 + 2 + 2) / 3)


def test_an_interval_holds_nine_of_ten_values():
    assert interval(range(1, 101)) == (5, 96)
    assert interval([7]) == (7, 7)
    values = np.random.default_rng(0).poisson(30, 200)
    low, high = interval(values)
    assert np.mean((values >= low) & (values <= high)) >= 0.9
    assert np.mean((values > low) & (values < high)) < 0.9
