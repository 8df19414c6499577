"""A document's log evidence in one cluster, by as many probes of the sparse counts as it has words.

Arguments are named tuples: ``documents`` with indptr, words, counts and mass, ``clusters`` with n_k, mass and squares,
``constants`` with component, n_words, shift, log_gamma and the priors; ``slots`` of
:mod:`mc2core.engines.fastex.sparse_counts`.
"""

from __future__ import annotations

import numpy as np

from mc2core.compute.kernels import kernel
from mc2core.compute.simd import prefetch
from mc2core.engines.fastex.components import log_evidence, word_term
from mc2core.engines.fastex.sparse_counts import count_at, preferred_slot


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
