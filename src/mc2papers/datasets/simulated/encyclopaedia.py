"""Simulate an encyclopaedia, with the sizes of W100 and W1000 of NIPS12 (section 4.1).

The corpora of the paper contain the articles of 100 or 1,000 sampled Wikipedia categories with all their words. The
simulation has the properties that are important for a clustering. Category sizes follow Zipf's law. Most tokens are
background words, which all categories share and which also follow Zipf's law. Other tokens are words typical of the
category; typical words of different categories overlap. The vocabulary grows with the corpus (about 8 words per
article, as in the paper), so most words are rare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.corpus import Corpus

_BLOCK = 20_000  # number of documents that are drawn together
_BACKGROUND_EXPONENT = 1.1
_TYPICAL_EXPONENT = 0.9


@dataclass(frozen=True)
class Encyclopaedia:
    """Settings of a simulated encyclopaedia.

    n_categories, n_documents, n_words : numbers K of categories, J of articles and V of words in the vocabulary
    distinct_words : approximate mean number of distinct words per article
    typical_words : number of typical words per category
    typical_share : fraction of tokens that are typical words
    skew : exponent of Zipf's law for category sizes
    """

    n_categories: int
    n_documents: int
    n_words: int
    distinct_words: float = 100.0
    typical_words: int = 2000
    typical_share: float = 0.3
    skew: float = 0.5


#: the papers' sizes (NIPS12 section 4.1)
W100 = Encyclopaedia(n_categories=100, n_documents=292_000, n_words=2_500_000)
W1000 = Encyclopaedia(n_categories=1000, n_documents=710_000, n_words=5_600_000)


def scaled(shape: Encyclopaedia, scale: float) -> Encyclopaedia:
    """Return ``shape`` with ``scale`` times the documents and words, and the same number of categories.

    The vocabulary keeps at least five times as many words as a category has typical words. Raises ValueError if no
    document remains.
    """
    n_documents = round(shape.n_documents * scale) if 0 < scale < np.inf else 0
    if n_documents < 1:
        raise ValueError(f"scale is {scale}; it must be a number above 0 that leaves a document")
    return replace(shape, n_documents=n_documents, n_words=max(round(shape.n_words * scale), 5 * shape.typical_words))


def simulate(shape: Encyclopaedia, seed: int) -> Corpus:
    """Simulate a corpus of ``shape`` with the categories as labels; the same shape and seed give the same corpus."""
    rng = streams.generator(seed, "simulated categories")
    weights = (np.arange(shape.n_categories) + 1.0) ** -shape.skew
    category = rng.choice(shape.n_categories, size=shape.n_documents, p=weights / weights.sum())
    background = _cdf(shape.n_words, _BACKGROUND_EXPONENT)
    typical = _cdf(shape.typical_words, _TYPICAL_EXPONENT)
    # very frequent words are background in all categories, so they are not typical of any category
    first = min(200, shape.n_words // 10)
    vocabulary = rng.integers(first, shape.n_words, size=(shape.n_categories, shape.typical_words), dtype=np.int32)
    blocks = []
    for block, start in enumerate(range(0, shape.n_documents, _BLOCK)):
        rows = np.arange(start, min(start + _BLOCK, shape.n_documents))
        rng = streams.generator(seed, "simulated articles", iteration=block)
        # a document has repeated words; with these distributions, it has about 1.45 tokens per distinct word
        lengths = 1 + rng.poisson(rng.gamma(8.0, 1.45 * shape.distinct_words / 8.0, len(rows)))
        row = np.repeat(np.arange(len(rows)), lengths)
        is_typical = rng.random(len(row)) < shape.typical_share
        word = np.searchsorted(background, rng.random(len(row)), side="right").astype(np.int32)
        rank = np.searchsorted(typical, rng.random(int(is_typical.sum())), side="right")
        word[is_typical] = vocabulary[category[rows][row[is_typical]], rank]
        ones = np.ones(len(row), np.int32)
        counts = sp.csr_matrix((ones, (row, word)), shape=(len(rows), shape.n_words))
        counts.sum_duplicates()
        blocks.append(counts)
    return Corpus(sp.vstack(blocks, format="csr"), labels=category)


def _cdf(n: int, exponent: float) -> np.ndarray:
    cdf = np.cumsum((np.arange(n) + 1.0) ** -exponent)
    return cdf / cdf[-1] * (1.0 + 1e-12)
