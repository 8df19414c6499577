"""Initial clusters for all engines: k-means++ seeds and k-means of documents under the Hellinger distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.corpus import Corpus, take_rows
from mc2core.families.stacked import StackedContexts

_LLOYD_PASSES = 10
_FACTORS, _SUBSPACE_PASSES = 20, 4  # latent factors of words, and passes of the subspace iteration that computes them
_BLOCK = 10_000  # documents per block in which square roots of word frequencies are computed
_CANDIDATES = 4  # candidates for each seed, of which k-means++ takes the best
_MAX_DENSE = 2**24  # largest number of entries of a dense array of centres, or of products with centres


def cluster_documents(
    corpus: Corpus,
    contexts: StackedContexts,
    n_clusters: int,
    rng: np.random.Generator,
    directions: np.ndarray | None = None,
) -> np.ndarray:
    """Cluster documents by their words, and documents without words by their contexts; return the clusters, (J,) int.

    If no document has words, each cluster starts with one random document. ``directions`` (J, d) are embeddings of
    length 1, or 0 if missing. If they are given, documents are clustered by them; documents without an embedding then
    join the cluster with the most similar words.
    """
    n_clusters = min(n_clusters, corpus.n_documents)
    has_words = corpus.document_lengths > 0
    cluster = np.full(corpus.n_documents, -1)
    if directions is not None and (known := directions.any(axis=1)).any():
        cluster[known] = cluster_rows(sp.csr_matrix(directions[known]), n_clusters, rng)
        cluster = join_nearest(corpus.content, cluster, n_clusters).astype(np.int64)
    elif has_words.any():
        rows = unit_rows(take_rows(corpus.content, np.flatnonzero(has_words)))
        cluster[has_words] = cluster_rows(rows, n_clusters, rng)
    else:
        seeds = rng.permutation(corpus.n_documents)[:n_clusters]
        cluster[seeds] = np.arange(len(seeds))
    left = np.flatnonzero(cluster < 0)
    if len(left):
        parameters = contexts.expected_parameters(contexts.natural(cluster, n_clusters))
        cluster[left] = contexts.take(left).log_likelihood(parameters).argmax(axis=1)
    return cluster


def cluster_words(corpus: Corpus, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Cluster words by k-means of their latent factors, scaled to length 1; return (V,) int, 0 for unused words."""
    cluster = np.zeros(corpus.n_words, np.int64)
    words = np.unique(corpus.content.indices)
    if len(words):
        factors = _latent_factors(sp.csr_matrix(unit_rows(corpus.content)[:, words]), rng)
        lengths = np.maximum(np.linalg.norm(factors, axis=1, keepdims=True), 1e-300)
        cluster[words] = cluster_rows(sp.csr_matrix(factors / lengths), min(n_clusters, len(words)), rng)
    return cluster


def _latent_factors(rows: sp.csr_matrix, rng: np.random.Generator) -> np.ndarray:
    """Return the right singular vectors of the largest singular values, (V, factors), by subspace iteration."""
    factors = rng.standard_normal((rows.shape[1], min(_FACTORS, *rows.shape)))
    for _ in range(_SUBSPACE_PASSES):
        factors = rows.T @ _orthonormal(rows @ _orthonormal(factors))
    return factors


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the column space.

    ``einsum`` is used because BLAS libraries sum in an order that depends on the number of threads.
    """
    values, vectors = np.linalg.eigh(np.einsum("ij,ik->jk", columns, columns))
    kept = values > 1e-9 * values.max()
    return np.einsum("ij,jk->ik", columns, vectors[:, kept] / np.sqrt(values[kept]))


def unit_rows(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return the square roots of word frequencies, as rows of length 1.

    The Euclidean distance of two rows is sqrt(2) times the Hellinger distance of the documents.
    """
    total = np.maximum(np.asarray(counts.sum(axis=1), dtype=np.float64).ravel(), 1.0)
    rows = sp.csr_matrix(counts, dtype=np.float64)
    rows.data = np.sqrt(rows.data / np.repeat(total, np.diff(rows.indptr)))
    return rows


def seed_rows(rows: sp.csr_matrix, n_seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Return the indices of k-means++ seeds among unit rows, under Euclidean distance.

    Each seed is the best of several candidates (the greedy variant of Arthur and Vassilvitskii 2007). If there are
    fewer than ``n_seeds`` distinct rows, fewer seeds are returned.
    """
    n = rows.shape[0]
    chosen = [int(rng.integers(n))]
    nearest = _squared_distances(rows, chosen)[:, 0]
    with work("documents to start clusters from", n_seeds, "documents") as told:
        while len(chosen) < n_seeds and nearest.max(initial=0.0) > 1e-9:
            candidates = streams.choose(nearest, rng, "documents to start clusters from", _CANDIDATES)
            distances = np.minimum(nearest[:, None], _squared_distances(rows, candidates))
            best = int(np.argmin(distances.sum(axis=0)))
            chosen.append(int(candidates[best]))
            nearest = distances[:, best]
            told.advance()
    return np.array(chosen)


def _squared_distances(rows: sp.csr_matrix, seeds: Any) -> np.ndarray:
    """Return squared Euclidean distances between unit rows and seeds, (n, seeds)."""
    return np.maximum(2.0 - 2.0 * (rows @ take_rows(rows, np.asarray(seeds)).toarray().T), 0.0)


def cluster_rows(rows: sp.csr_matrix, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Cluster unit rows by spherical k-means from k-means++ seeds; return (n,) int. Some clusters may be empty."""
    centres = take_rows(rows, seed_rows(rows, n_clusters, rng))
    cluster = np.full(rows.shape[0], -1)
    with work("k-means", _LLOYD_PASSES, "passes") as told:
        for _ in range(_LLOYD_PASSES):
            new = _nearest_centres(rows, centres)
            if (new == cluster).all():
                break
            cluster = new
            centres = sp.csr_matrix(members(cluster, centres.shape[0]) @ rows)
            lengths = np.maximum(sp.linalg.norm(centres, axis=1), 1e-300)
            centres.data /= np.repeat(lengths, np.diff(centres.indptr))
            told.advance()
    return cluster


def join_nearest(content: sp.csr_matrix, cluster: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return ``cluster`` (J,) with unassigned documents (-1) assigned to the cluster of the nearest centre.

    Centres are means of the square roots of word frequencies, scaled to length 1. Documents without words remain
    unassigned.
    """
    joined = cluster.astype(np.int32)
    seated = np.flatnonzero(cluster >= 0)
    centres = np.zeros((n_clusters, content.shape[1]))
    for some in _blocks(seated):
        centres += members(cluster[some], n_clusters) @ unit_rows(take_rows(content, some))
    centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-300)
    for some in _blocks(np.flatnonzero((cluster < 0) & (np.diff(content.indptr) > 0))):
        joined[some] = _nearest_centres(unit_rows(take_rows(content, some)), sp.csr_matrix(centres))
    return joined


def _blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield ``rows`` in blocks of ``_BLOCK`` rows."""
    for first in range(0, len(rows), _BLOCK):
        yield rows[first : first + _BLOCK]


def _nearest_centres(rows: sp.csr_matrix, centres: sp.csr_matrix) -> np.ndarray:
    """Return the centre with the largest scalar product with each row, (n,) int; the first one if several are equal."""
    cluster, largest = np.zeros(rows.shape[0], np.int64), np.full(rows.shape[0], -np.inf)
    together = max(1, _MAX_DENSE // max(rows.shape))
    for first in range(0, centres.shape[0], together):
        products = np.asarray(rows @ centres[first : first + together].toarray().T)
        best = products.argmax(axis=1)
        product = np.take_along_axis(products, best[:, None], axis=1)[:, 0]
        is_closer = product > largest
        cluster[is_closer], largest[is_closer] = first + best[is_closer], product[is_closer]
    return cluster


def members(cluster: np.ndarray, n_clusters: int) -> sp.csr_matrix:
    """Return the (n_clusters, n) indicator matrix of clusters; its product with (n, V) rows is the sum per cluster."""
    n = len(cluster)
    return sp.csr_matrix((np.ones(n), (cluster, np.arange(n))), shape=(n_clusters, n))
