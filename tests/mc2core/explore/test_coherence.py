"""Coherence against sums over documents, and what it is where words have nothing to do with each other."""

import numpy as np
import pandas as pd
import pytest
from helpers.explored_fits import corpus, gibbs
from scipy import sparse

from mc2core.explore import tables
from mc2core.explore.coherence import PERMUTATIONS, coherence, in_words, is_coherent
from mc2core.explore.description import Description


def without_structure(seed, n_documents=400, n_words=1500, mean_length=60):
    """Words drawn one by one from Zipf's law, documents of different lengths."""
    rng = np.random.default_rng(seed)
    p = 1.0 / np.arange(1, n_words + 1)
    lengths = np.maximum(2, rng.lognormal(np.log(mean_length), 0.5, n_documents).astype(int))
    return sparse.csr_matrix(np.array([rng.multinomial(n, p / p.sum()) for n in lengths]))


def by_hand(present, words):
    """Mean over pairs of the smoothed NPMI, from a dense (J, V) table of booleans."""
    n, values = len(present), []
    for i, one in enumerate(words):
        for other in words[i + 1 :]:
            both = (present[:, one] & present[:, other]).sum()
            expected = present[:, one].sum() * present[:, other].sum() / n
            ratio = (both + 0.5) / (expected + 0.5)
            values.append(np.log(ratio) / -np.log(ratio * expected / n))
    return np.mean(values)


def test_it_is_that_of_pairs_of_words_by_hand():
    made = corpus()
    description = Description.from_posterior(gibbs(made), made)
    present = made.content.toarray() > 0
    table = tables.tables_of(description)["topics"]
    assert len(table) >= 3
    for row in table.itertuples():
        words = [made.vocabulary.index(word) for word in row.words.split()]
        often = [word for word in words if present[:, word].sum() >= 5]
        assert row.npmi == (
            pytest.approx(by_hand(present, often)) if len(often) > 1 else pytest.approx(np.nan, nan_ok=True)
        )


def test_words_of_few_documents_and_of_all_say_nothing():
    content = np.zeros((40, 6), int)
    content[:, :2] = 1  # in all documents
    content[:10, 2:4] = 3  # always together
    content[:4, 4] = content[36:, 5] = 1  # in four
    table = coherence(
        sparse.csr_matrix(content), [np.array(one) for one in ([0, 1], [2, 3], [4, 5], [2, 4], [2, 3, 4])]
    )
    assert table["npmi"].tolist()[0] == 0.0
    ratio = 10.5 / (2.5 + 0.5)
    together = np.log(ratio) / -np.log(ratio * 2.5 / 40)
    assert table["npmi"].tolist()[1] == pytest.approx(together)
    assert 0.8 < together < 1.0
    assert table["npmi"].isna().tolist() == [False, False, True, True, False]
    assert table["npmi"][4] == table["npmi"][1]


@pytest.mark.parametrize("mean_length", [15, 60])
def test_unrelated_words_are_at_the_stated_chance(mean_length):
    """Means over 200 lists; the sd of a list is below 0.06, so that 0.02 is over four errors of the mean."""
    content = without_structure(1, mean_length=mean_length)
    rng = np.random.default_rng(2)
    documents = np.bincount(content.indices, minlength=content.shape[1])
    rare = np.flatnonzero((documents >= 5) & (documents <= 8))
    frequent = np.argsort(-documents)[:40]
    for words in (np.flatnonzero(documents >= 5), rare, frequent):
        table = coherence(content, [rng.choice(words, 10, replace=False) for _ in range(200)])
        assert table["npmi"].std() < 0.06
        assert table["npmi"].mean() == pytest.approx(table["npmi_by_chance"].mean(), abs=0.02)
        assert abs(table["npmi_by_chance"].mean()) < 0.08
    # the words of one document, which met once, and words of one document each, which never met
    single = np.flatnonzero(documents == 1)
    assert coherence(content, [single[:10]])["npmi"].isna().all()


def test_words_that_belong_together_are_far_above_chance():
    made = corpus()
    groups = [np.arange(6 * g, 6 * g + 6) for g in range(3)]
    table = coherence(made.content, [*groups, np.array([0, 6, 12, 1, 7, 13])])
    apart = (table["npmi"] - table["npmi_by_chance"]) / table["npmi_by_chance_sd"]
    assert (apart[:3] > 5).all()
    assert (table["npmi"][:3] > 0.3).all()
    assert table["npmi"][3] < table["npmi_by_chance"][3]


def test_chance_is_that_of_permuted_corpora():
    """Tokens dealt to documents one by one, 200 times here; means within 4.5 errors."""
    content = without_structure(3, n_documents=60, n_words=80, mean_length=25)
    entries, rng = content.tocoo(), np.random.default_rng(4)
    row, column = np.repeat(entries.row, entries.data), np.repeat(entries.col, entries.data)
    words = np.array([0, 3, 10, 30, 50])
    values = []
    for _ in range(200):
        present = np.zeros(content.shape, bool)
        present[rng.permutation(row), column] = True
        values.append(by_hand(present, words))
    table = coherence(content, [words]).iloc[0]
    error = np.std(values) * np.sqrt(1 / 200 + 1 / PERMUTATIONS)
    assert table["npmi_by_chance"] == pytest.approx(np.mean(values), abs=4.5 * error)
    assert table["npmi_by_chance_sd"] == pytest.approx(np.std(values), rel=0.9)
    assert coherence(content, [words], seed=0).equals(coherence(content, [words], seed=0))
    assert not coherence(content, [words], seed=0).equals(coherence(content, [words], seed=1))


def test_the_number_of_coherent_topics_is_said():
    table = pd.DataFrame({"npmi": [0.3, 0.12, np.nan], "npmi_by_chance": 0.01, "npmi_by_chance_sd": [0.01, 0.05, 0.01]})
    assert is_coherent(table).tolist() == [True, False, False]
    more = "their words occur together more often than by chance."
    assert in_words(table) == f"1 of the 3 topics is coherent: {more}"
    assert in_words(pd.concat([table, table])) == f"2 of the 6 topics are coherent: {more}"
    none = "No topic is coherent: the words of each occur together hardly more often than by chance."
    assert in_words(table[1:]) == none
    assert in_words(table[:0]) == in_words(table[["npmi_by_chance"]]) == ""
