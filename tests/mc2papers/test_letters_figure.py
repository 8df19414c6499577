"""ICML14 figure 2: which letters a fit tells apart, by topics made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from mc2papers.datasets.simulated import letters as source
from mc2papers.icml2014 import letters

NAMES = list(source.bitmaps())
TRUTH = source.simulate(0, n_documents=4, n_tokens=4)[1]
LETTERS = TRUTH.word_given_topic
M, N, I, T = (NAMES.index(letter) for letter in "MNIT")  # noqa: E741


class Made:
    """A model of these topics."""

    def __init__(self, topics):
        self.word_given_topic = topics


def mixed(*pairs):
    """The letters, but those of each pair have their average in place of each."""
    topics = LETTERS.copy()
    for one, other in pairs:
        topics[[one, other]] = (LETTERS[one] + LETTERS[other]) / 2
    return topics


@pytest.mark.parametrize(
    ("pair", "topics", "outcome"),
    [
        ("MN", LETTERS[::-1], "apart"),
        ("IT", LETTERS, "apart"),
        ("MN", mixed((M, N)), "mixed up"),
        ("MN", mixed((M, N))[[M, I]], "mixed up"),  # one topic for both
        ("IT", mixed((M, N)), "apart"),
        ("IT", mixed((I, T)), "mixed up"),
        ("MN", np.full((13, 35), 1 / 35), "not found"),
        ("MN", np.delete(LETTERS, N, axis=0), "not found"),  # M alone
        ("MN", np.vstack([LETTERS, mixed((M, N))[M]]), "apart"),  # an average beside both
    ],
)
def test_a_pair_of_letters(pair, topics, outcome):
    assert letters.what_became_of(pair, LETTERS, topics) == outcome


def test_rivals_are_compared_by_distance_of_letters_to_topics():
    both, one, none = Made(mixed((M, N), (I, T))), Made(mixed((M, N))), Made(LETTERS)
    uniform = Made(np.full((13, 35), 1 / 35))

    def judged(mc2=none, **fits):
        return letters.judge_rivals(TRUTH, {"MC2": [mc2] * 6, **fits})

    def verdicts(mc2=none, **fits):
        return [one.verdict for one in judged(mc2, **fits)]

    recovered, pairs = judged(LDA=[both] * 5 + [one], HDP=[both] * 5 + [none])
    assert recovered.text == "LDA and HDP recover the 13 letters less well than MC2"
    assert recovered.favours == pairs.favours == "MC2"
    far, near = (np.mean(np.abs(LETTERS - one.word_given_topic).sum(axis=1)[[M, N, I, T]]) for one in (both, one))
    assert f"mean distance MC2 0.00, LDA {(5 * far + near) / 6:.2f}, HDP {5 * far / 6:.2f}; M/N told" in pairs.numbers
    assert "M/N told apart by MC2 in 6 of 6, LDA in 0 of 6, HDP in 1 of 6 fits; I/T" in pairs.numbers
    assert "; letters found at most: MC2 13, LDA " in recovered.numbers
    assert recovered.verdict == pairs.verdict == "reproduced"
    # one rival that is as near, or a chance that it is, is enough
    assert verdicts(LDA=[both] * 6, HDP=[none] * 6) == ["inconclusive"] * 2
    # where no method recovers the letters, the nearer one is still ahead
    assert verdicts(uniform, LDA=[both] * 6, HDP=[uniform] * 6) == ["not reproduced"] * 2
    missing = letters.judge_rivals(TRUTH, {"MC2": [none], "LDA": [both]})
    assert [(one.verdict, one.reason) for one in missing] == [("precondition not met", "no fit of HDP")] * 2


CORPUS, DRAWN = source.simulate(0, n_documents=400, n_tokens=10)
CORPUS = CORPUS.standardised("number")


class Clustered(Made):
    """A model of the letters whose clusters are the words, each split into so many, with normal contexts.

    strays : share of the documents of each word that are in the next word's cluster
    """

    def __init__(self, split=1, shift=0.0, strays=0.0):
        super().__init__(LETTERS)
        word = np.asarray(CORPUS.labels)
        place = np.arange(len(word)) // 4
        word = np.where(place < strays * 100, (word + 1) % 4, word)
        cluster = word * split + place % split
        self.representative = SimpleNamespace(n_clusters=4 * split, cluster=cluster, n_topics=len(LETTERS))
        self.cluster_weights = np.full(4 * split, 0.25 / split)
        self.moved = np.repeat(np.array(DRAWN.contexts["number"]), split, axis=0) + np.array([shift, 0.0])

    def context_parameters(self, name):
        """Natural parameters of a Normal-Gamma posterior so certain that its predictive is the normal itself."""
        mean, sd = CORPUS.units[name]
        n, located, spread = np.full(len(self.moved), 1e6), (self.moved[:, 0] - mean) / sd, self.moved[:, 1] / sd
        return np.column_stack([n * located, n, n / 2, n / 2 * (located**2 + spread**2)])


@pytest.mark.parametrize(
    ("model", "reproduced"),
    [
        (Clustered(), [True, True, True, True]),
        (Clustered(split=3), [False, False, True, True]),
        (Clustered(shift=0.5), [True, True, False, True]),
        (Clustered(strays=0.04), [True, True, True, True]),
        (Clustered(strays=0.06), [True, False, True, True]),
    ],
)
def test_recovery_is_judged_by_four_measures(model, reproduced):
    found = letters.judge_recovery(CORPUS, DRAWN, [model] * 10, 100)
    assert [one.text for one in found] == [
        "100 sweeps find exactly 4 clusters",
        "each of the 4 clusters corresponds to one word of the letters data (at least 95% of the "
        "documents are in the cluster of their word, our threshold)",
        "the context distribution of each cluster is close to the true one (their "
        "densities overlap by at least 90%, our threshold)",
        "100 sweeps find all 13 letters",
    ]
    assert [one.verdict == "reproduced" for one in found] == reproduced
    assert {one.whose for one in found} == {"paper"}


def test_claims_on_another_sampler_begin_with_its_name():
    found = letters.judge_recovery(CORPUS, DRAWN, [Clustered()] * 10, 100, "MC2, interleaved (ours)")
    assert all(one.text.startswith("MC2, interleaved (ours): ") for one in found)
    assert {one.whose for one in found} == {"our variant"}


def test_the_overlap_of_contexts_is_that_of_their_densities():
    """Of two normals of one sd, apart by 0.5, the overlap is 2 Phi(-0.5 / 2 sd); the narrowest decides."""
    sd = min(one for _, one in DRAWN.contexts["number"])
    expected = 2 * norm.cdf(-0.5 / (2 * sd))
    assert letters.context_overlap(CORPUS, DRAWN, Clustered(shift=0.5)) == pytest.approx(expected, abs=1e-3)
    assert letters.context_overlap(CORPUS, DRAWN, Clustered()) == pytest.approx(1.0, abs=1e-3)


def test_clusters_come_in_the_order_of_their_words():
    # documents of the four words in clusters 4, 2, 0 and 1; of the third word two stray to cluster 3
    cluster = np.array([4] * 5 + [2] * 5 + [0] * 3 + [3] * 2 + [1] * 5)
    model = SimpleNamespace(
        representative=SimpleNamespace(n_clusters=5, cluster=cluster), cluster_weights=np.array([0.2] * 5)
    )
    corpus = SimpleNamespace(labels=np.repeat(np.arange(4), 5))
    assert letters.match_clusters(corpus, model) == {
        4: "International", 2: "Conference", 0: "Machine", 1: "Learning", 3: "",
    }  # fmt: skip
    # fewer clusters than words: a word without documents in any that is left has none
    model.representative = SimpleNamespace(n_clusters=2, cluster=np.repeat([1, 0], 10))
    model.cluster_weights = np.array([0.5, 0.5])
    assert list(letters.match_clusters(corpus, model)) == [1, 0]


def test_large_clusters_have_three_in_a_hundred_documents():
    class Strays:
        class representative:
            n_clusters = 5
            cluster = np.repeat([0, 1, 2, 3, 4], [40, 30, 25, 3, 2])

    assert letters.sizes(Strays) == (5, 4)
