"""Clustering measures: a textbook example, cases computed by hand, symmetries, and soft memberships."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from mc2core.posterior import clustering

# Manning, Raghavan and Schuetze, "Introduction to Information Retrieval", figure 16.4 and table 16.2
TRUTH = np.array([0] * 5 + [1] + [0] + [1] * 4 + [2] + [0] * 2 + [2] * 3)
CLUSTERS = np.array([0] * 6 + [1] * 6 + [2] * 5)
ALL = [
    clustering.purity,
    clustering.nmi,
    clustering.rand_index,
    clustering.f_score,
    clustering.variation_of_information,
    clustering.adjusted_rand_index,
    clustering.extended_nmi,
]
EVERY = pytest.mark.parametrize("measure", ALL, ids=lambda measure: measure.__name__)


def test_textbook_example():
    assert clustering.purity(TRUTH, CLUSTERS) == pytest.approx(12 / 17)
    assert clustering.nmi(TRUTH, CLUSTERS) == pytest.approx(0.36, abs=0.005)
    assert clustering.rand_index(TRUTH, CLUSTERS) == pytest.approx(92 / 136)
    assert clustering.f_score(TRUTH, CLUSTERS) == pytest.approx(2 * 20 / (2 * 20 + 20 + 24))


def test_computed_by_hand():
    # joint masses 1/4 each: independent, H = 1 bit each
    truth, clusters = [0, 0, 1, 1], [0, 1, 0, 1]
    assert clustering.variation_of_information(truth, clusters) == pytest.approx(2.0)
    assert clustering.nmi(truth, clusters) == pytest.approx(0.0, abs=1e-12)
    # one class of four against two of two: I = 0, H = 1 bit
    assert clustering.variation_of_information([0, 0, 0, 0], truth) == pytest.approx(1.0)
    # a refinement: I = H(truth) = 1, H(clusters) = 1.5 bits
    assert clustering.nmi([0, 0, 1, 1], [0, 1, 2, 2]) == pytest.approx(2 * 1 / 2.5)
    assert clustering.purity([0, 0, 1, 1], [0, 1, 2, 2]) == 1.0
    assert clustering.purity([0, 1, 2, 2], [0, 0, 1, 1]) == 0.75
    # pairs: {01} and {23} in truth, {23} in clusters
    assert clustering.rand_index([0, 0, 1, 1], [0, 1, 2, 2]) == pytest.approx(5 / 6)
    assert clustering.f_score([0, 0, 1, 1], [0, 1, 2, 2]) == pytest.approx(2 / 3)
    # of 6 pairs: 2 in truth, 1 in clusters and both; 1/3 expected, 3/2 at most
    assert clustering.adjusted_rand_index([0, 0, 1, 1], [0, 1, 2, 2]) == pytest.approx((1 - 1 / 3) / (3 / 2 - 1 / 3))
    # 2 and 2 of 6, none in both; 2/3 expected: worse than chance
    assert clustering.adjusted_rand_index([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(-(2 / 3) / (2 - 2 / 3))


def test_the_adjusted_rand_index_is_scikit_learns():
    rng = np.random.default_rng(3)
    for n_classes, n_clusters in ((2, 2), (3, 9), (8, 200)):
        truth, clusters = rng.integers(0, n_classes, 300), rng.integers(0, n_clusters, 300)
        clusters = np.where(rng.random(300) < 0.5, truth, clusters)
        expected = adjusted_rand_score(truth, clusters)
        assert clustering.adjusted_rand_index(truth, clusters) == pytest.approx(expected, abs=1e-12)


@EVERY
def test_perfect_clusterings_and_names_of_labels(measure):
    best = 0.0 if measure is clustering.variation_of_information else 1.0
    assert measure(TRUTH, (TRUTH + 1) % 3) == pytest.approx(best, abs=1e-12)
    assert measure(TRUTH, np.array(["b", "a", "c"])[TRUTH]) == pytest.approx(best, abs=1e-12)
    generator = np.random.default_rng(0)
    order = generator.permutation(len(TRUTH))
    expected = measure(TRUTH, CLUSTERS)
    assert measure(TRUTH[order], CLUSTERS[order]) == pytest.approx(expected, abs=1e-12)
    assert measure(7 * TRUTH + 3, 100 - CLUSTERS) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ALL[1:], ids=lambda measure: measure.__name__)
def test_all_but_purity_are_symmetric(measure):
    one, other = TRUTH[:12], CLUSTERS[:12] % 2
    assert measure(one, other) == pytest.approx(measure(other, one), abs=1e-12)


@EVERY
def test_degenerate_partitions_are_defined_and_quiet(measure):
    one, apart = np.zeros(6, dtype=int), np.arange(6)
    best = 0.0 if measure is clustering.variation_of_information else 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measure(one, one) == pytest.approx(best, abs=1e-12)
        assert measure(apart, apart) == pytest.approx(best, abs=1e-12)
        expected = {"purity": 1.0, "variation_of_information": np.log2(6)}.get(measure.__name__, 0.0)
        assert measure(one, apart) == pytest.approx(expected, abs=1e-12)
        assert measure([5], [3]) == pytest.approx(best)


def test_purity_is_at_least_the_share_of_the_largest_class():
    """So UAI16's purities of 0.14 to 0.179 for two classes (table 4) are no purities."""
    generator = np.random.default_rng(2)
    for _ in range(50):
        labels, found = generator.random(40) < 0.3, generator.integers(0, 6, 40)
        assert clustering.purity(labels, found) >= max(labels.mean(), 1 - labels.mean()) - 1e-12


def test_variation_of_information_is_a_metric():
    generator = np.random.default_rng(1)
    for _ in range(50):
        a, b, c = generator.integers(0, 4, (3, 12))
        direct = clustering.variation_of_information(a, c)
        detour = clustering.variation_of_information(a, b) + clustering.variation_of_information(b, c)
        assert direct <= detour + 1e-12


class TestExtendedNMI:
    def test_hard_memberships_give_nmi(self):
        truth = sp.csr_matrix((np.ones(17), (np.arange(17), TRUTH)))
        expected = clustering.nmi(TRUTH, CLUSTERS)
        assert clustering.extended_nmi(truth, CLUSTERS) == pytest.approx(expected, abs=1e-12)
        assert clustering.extended_nmi(3 * truth.toarray(), CLUSTERS) == pytest.approx(expected, abs=1e-12)

    def test_by_hand(self):
        # p(l, k): document 0 spreads over both labels; joint [[1/4 + 0], [1/4 + 1/2]] for clusters 0 and 1
        truth = np.array([[1.0, 1.0], [0.0, 2.0]])
        joint = np.array([[0.25, 0.0], [0.25, 0.5]])
        one, other = joint.sum(axis=1), joint.sum(axis=0)
        information = sum(joint[i, k] * np.log(joint[i, k] / (one[i] * other[k])) for i, k in ((0, 0), (1, 0), (1, 1)))
        entropy = -np.sum(one * np.log(one)) - np.sum(other * np.log(other))
        assert clustering.extended_nmi(truth, [0, 1]) == pytest.approx(2 * information / entropy, abs=1e-12)

    def test_explicit_zeros_do_not_matter(self):
        truth = sp.csr_matrix(([1.0, 0.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
        assert clustering.extended_nmi(truth, [0, 1]) == pytest.approx(1.0)

    def test_masses_of_next_to_nothing_count_as_none(self):
        """The least number above 0 is 0 over the sum of all."""
        truth = np.array([[1.0, 5e-324], [0.0, 2.0], [1.0, 0.0]])
        expected = clustering.extended_nmi(np.where(truth > 1e-300, truth, 0.0), [0, 1, 1])
        assert clustering.extended_nmi(truth, [0, 1, 1]) == expected


def test_a_million_documents_without_a_table_of_pairs():
    """Seven measures on 1e6 documents: seconds (2 each, thrice that allowed), not the terabytes of J x J."""
    generator = np.random.default_rng(2)
    truth = generator.integers(0, 1000, 1_000_000)
    clusters = np.where(generator.random(1_000_000) < 0.5, truth, generator.integers(0, 1000, 1_000_000))
    start = time.perf_counter()
    values = {measure.__name__: measure(truth, clusters) for measure in ALL}
    assert time.perf_counter() - start < 7 * 2 * 3
    assert 0.5 < values["purity"] < 0.52
    assert values["extended_nmi"] == pytest.approx(values["nmi"], abs=1e-9)
