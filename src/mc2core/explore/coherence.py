"""Coherence of topics: whether their likeliest words occur together more often than by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import counted
from mc2core.compute import streams

MIN_DOCUMENTS = 5
"""Words in fewer documents are left out, because their co-occurrences are too rare to measure."""
PERMUTATIONS = 10
"""Number of permuted corpora from which the value by chance is computed."""
MIN_ABOVE, MIN_DEVIATIONS = 0.1, 3
"""A topic is coherent if its NPMI exceeds the NPMI by chance by MIN_ABOVE and by MIN_DEVIATIONS standard deviations."""
_SHRINKAGE = 0.5


def coherence(content: sp.spmatrix, words: Sequence[np.ndarray], seed: int = 0) -> pd.DataFrame:
    """Return the normalised pointwise mutual information (NPMI) of each list of words, and the NPMI by chance.

    Let n_v and n_w of the n documents contain the words v and w, and let O documents contain both. Let E = n_v n_w / n
    be the number of documents expected to contain both under independence. Then

        r = (O + 1/2) / (E + 1/2),    NPMI = ln r / -ln(r E / n)

    is between -1 and 1, and 0 if O = E. The coherence of a list is the mean over its pairs of words (Lau, Newman and
    Baldwin, 2014).

    Without the terms 1/2, this is the NPMI of Bouma (2009). Bouma's NPMI is -1 for all words that never occur together,
    even if E is small, and near 1 for rare words that occur together once. The terms 1/2 shrink such estimates towards
    0, as Noren, Hopstadius and Bate (2013) do for observed-to-expected ratios. The tiny constant that Roeder, Both and
    Hinneburg (2015) add to O / n only keeps logarithms finite.

    The NPMI by chance is the mean over ``PERMUTATIONS`` corpora in which the tokens are permuted among the documents.
    Permutations do not change document lengths and word frequencies. Topics are scored on the documents to which they
    were fitted. Topics therefore exceed the NPMI by chance even if the corpus has no structure: nine of ten topics by
    less than 0.09 (docs/how_to/guide.md).

    Parameters
    ----------
    content : (J, V) CSR
        Counts of the words in the documents.
    words : sequence of arrays
        Columns of the words of each list. Words in fewer than ``MIN_DOCUMENTS`` documents are left out.
    seed : int, optional
        Seed of the permutations.

    Returns
    -------
    DataFrame
        One row per list, with the columns npmi, npmi_by_chance and npmi_by_chance_sd (over the permuted corpora). The
        values are NaN if fewer than two words are left.
    """
    counts = sp.csc_matrix(content)
    documents = np.diff((counts > 0).indptr)
    frequent = [one[documents[one] >= MIN_DOCUMENTS] for one in words]
    columns = np.unique(np.concatenate([*frequent, np.zeros(0, np.int64)]))
    places = [np.searchsorted(columns, one) for one in frequent]
    tokens = np.repeat(counts.indices, counts.data)  # document of each token
    of_words, generator = counts[:, columns], streams.generator(seed, "explore.coherence")
    ends = np.concatenate([[0], np.cumsum(np.asarray(of_words.sum(axis=0)).ravel())])
    by_chance = []
    for _ in range(PERMUTATIONS):
        dealt = generator.permutation(tokens)[: ends[-1]]
        by_chance.append(_scores(sp.csc_matrix((np.ones_like(dealt), dealt, ends), of_words.shape), places))
    return pd.DataFrame(
        {
            "npmi": _scores(of_words, places),
            "npmi_by_chance": np.mean(by_chance, axis=0),
            "npmi_by_chance_sd": np.std(by_chance, axis=0, ddof=1),
        }
    )


def is_coherent(topics: pd.DataFrame) -> pd.Series:
    """Return whether each topic of the table is coherent, bool; False if the NPMI of the topic is NaN."""
    above = topics["npmi"] - topics["npmi_by_chance"]
    return above >= np.maximum(MIN_ABOVE, MIN_DEVIATIONS * topics["npmi_by_chance_sd"])


def in_words(topics: pd.DataFrame) -> str:
    """Return a sentence on the number of coherent topics of the table, or "" if the table has no column ``npmi``."""
    if "npmi" not in topics or topics.empty:
        return ""
    n, every = int(is_coherent(topics).sum()), len(topics)
    if not n:
        return "No topic is coherent: the words of each occur together hardly more often than by chance."
    text = f"{n:,} of the {counted(every, 'topics')} {'is' if n == 1 else 'are'} coherent"
    return f"{text}: their words occur together more often than by chance."


def _scores(counts: sp.csc_matrix, places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean NPMI over the pairs of columns of each list, (lists,); NaN for fewer than two columns."""
    counts.sum_duplicates()
    occurs = sp.csc_matrix((np.ones_like(counts.indices), counts.indices, counts.indptr), counts.shape)
    n, scores = occurs.shape[0], np.full(len(places), np.nan)
    for number, columns in enumerate(places):
        if len(columns) < 2:
            continue
        part = occurs[:, columns]
        together = (part.T @ part).toarray()
        first, second = np.triu_indices(len(columns), 1)
        expected = together[first, first] * (together[second, second] / n)
        ratio = (together[first, second] + _SHRINKAGE) / (expected + _SHRINKAGE)
        joint = ratio * expected / n
        sure = joint >= 1.0  # both words are in all documents, as expected by chance
        scores[number] = np.where(sure, 0.0, np.log(ratio) / -np.log(np.where(sure, 0.5, joint))).mean()
    return scores
