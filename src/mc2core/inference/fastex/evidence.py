"""A document's log evidence in one cluster, by as many probes of the sparse counts as it has words.

Arguments are named tuples: ``documents`` with what :func:`document_columns` returns, ``clusters`` with n_k, mass and
squares, ``constants`` with what :func:`evidence_constants` returns; ``slots`` of
:mod:`mc2core.inference.fastex.sparse_counts`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from mc2core.compute.kernels import kernel
from mc2core.compute.simd import prefetch
from mc2core.corpus import Corpus
from mc2core.inference.fastex.components import Settings, document_mass, log_evidence, word_term
from mc2core.inference.fastex.sparse_counts import count_at, count_bits, preferred_slot

#: counts whose logarithms are tabulated; 192 kB stay in the second-level cache
N_TABULATED = 1 << 14


def document_columns(corpus: Corpus, component: int) -> dict[str, np.ndarray]:
    """The corpus as kernels read it.

    Returns
    -------
    indptr (J + 1,) int64, words and counts (cells,) int32, and mass (J,) int64: tokens; Gaussian: squared length.
    """
    content = corpus.content
    return {
        "indptr": content.indptr.astype(np.int64),
        "words": np.ascontiguousarray(content.indices, dtype=np.int32),
        "counts": np.ascontiguousarray(content.data, dtype=np.int32),
        "mass": document_mass(component, content.data, content.indptr),
    }


def evidence_constants(corpus: Corpus, settings: Settings) -> dict[str, Any]:
    """Scalars and a table of a run, by name; ``shift``: count bits of the sparse counts.

    ValueError where a cell of the sparse counts does not fit into 64 bits.
    """
    totals = np.bincount(corpus.content.indices, weights=corpus.content.data, minlength=corpus.n_words)
    return {
        "component": settings.component,
        "n_words": corpus.n_words,
        "shift": np.uint64(count_bits(settings.n_clusters, corpus.n_words, int(totals.max(initial=0)))),
        "word_prior": settings.word_prior,
        "weight_prior": settings.weight_prior,
        "rate_prior": settings.rate_prior,
        "log_gamma": gammaln(np.arange(N_TABULATED) + settings.word_prior),
    }


@kernel
def fetch_cells(documents, slots, n_words, j, k):
    """Ask for document j's cells of cluster k: in a table larger than the caches, waiting for each in turn is slow."""
    words, first_key = documents.words, np.uint64(k) * np.uint64(n_words)
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        prefetch(slots, preferred_slot(first_key + np.uint64(words[cell]), slots.size))


@kernel
def words_in(documents, slots, constants, j, k, is_inside):
    """Sum of word terms of document j in cluster k, and its share of the cluster's squares.

    ``is_inside``: 1 where the cluster's counts include the document, which is then taken out; else 0.
    """
    words, counts, table, prior = documents.words, documents.counts, constants.log_gamma, constants.word_prior
    shift, first_key = constants.shift, np.uint64(k) * np.uint64(constants.n_words)
    component = constants.component
    total = 0.0
    squares = np.int64(0)
    for cell in range(documents.indptr[j], documents.indptr[j + 1]):
        x = np.int64(counts[cell])
        n = count_at(slots, shift, first_key + np.uint64(words[cell])) - is_inside * x
        total += word_term(component, table, prior, n, x)
        squares += x * (2 * n + x)
    return total, is_inside * squares


@kernel
def log_evidence_in(documents, clusters, slots, constants, j, k, is_inside):
    """Log evidence of document j in cluster k without it; ``is_inside`` as in :func:`words_in`."""
    words, squares = words_in(documents, slots, constants, j, k, is_inside)
    mass = documents.mass[j]
    n_documents, others = clusters.n_k[k] - is_inside, clusters.mass[k] - is_inside * mass
    return log_evidence(constants, n_documents, others, clusters.squares[k] - squares, words, mass)
