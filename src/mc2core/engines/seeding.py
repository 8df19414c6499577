"""Seeds among documents by k-means++ under Hellinger's distance, and clusters around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core.compute import variates
from mc2core.corpus import Corpus, take_rows

_LLOYD_PASSES = 10


_CANDIDATES = 4


def unit_rows(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Square roots of word frequencies: rows of length 1, whose squared distance is twice Hellinger's squared."""
    total = np.maximum(np.asarray(counts.sum(axis=1), dtype=np.float64).ravel(), 1.0)
    rows = sp.csr_matrix(counts, dtype=np.float64)
    rows.data = np.sqrt(rows.data / np.repeat(total, np.diff(rows.indptr)))
    return rows


def seed_rows(rows: sp.csr_matrix, n_seeds: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ seeds (indices) of unit rows under Euclidean distance, the best of a few candidates each time.

    Fewer than ``n_seeds`` where the rows have fewer distinct places.
    """
    n = rows.shape[0]
    chosen = [int(rng.integers(n))]
    nearest = _squared_distances(rows, chosen)[:, 0]
    while len(chosen) < n_seeds and nearest.max(initial=0.0) > 1e-9:
        candidates = variates.choose(nearest, rng, "documents to start clusters from", _CANDIDATES)
        distances = np.minimum(nearest[:, None], _squared_distances(rows, candidates))
        best = int(np.argmin(distances.sum(axis=0)))
        chosen.append(int(candidates[best]))
        nearest = distances[:, best]
    return np.array(chosen)


def _squared_distances(rows: sp.csr_matrix, seeds: Any) -> np.ndarray:
    """(n, seeds): squared Euclidean distances of unit rows."""
    return np.maximum(2.0 - 2.0 * (rows @ take_rows(rows, np.asarray(seeds)).toarray().T), 0.0)


def cluster_rows(rows: sp.csr_matrix, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) int: spherical k-means of unit rows from k-means++ seeds; clusters may end empty."""
    centres = take_rows(rows, seed_rows(rows, n_clusters, rng)).toarray()
    cluster = np.full(rows.shape[0], -1)
    for _ in range(_LLOYD_PASSES):
        new = np.asarray(rows @ centres.T).argmax(axis=1)
        if (new == cluster).all():
            break
        cluster = new
        centres = _sum_by(cluster, len(centres)) @ rows
        centres = centres.toarray() / np.maximum(sp.linalg.norm(centres, axis=1), 1e-300)[:, None]
    return cluster


def _sum_by(cluster: np.ndarray, n_clusters: int) -> sp.csr_matrix:
    """(n_clusters, n) indicator."""
    n = len(cluster)
    return sp.csr_matrix((np.ones(n), (cluster, np.arange(n))), shape=(n_clusters, n))


def hellinger_clusters(corpus: Corpus, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """(J,) int32: documents by the nearest of ``n_clusters`` seed documents, chosen by k-means++.

    Distance is Hellinger's, that of the square roots of word frequencies; empty documents go to the first seed.
    """
    rows = corpus.content.astype(np.float64)
    lengths = np.asarray(rows.sum(axis=1)).ravel()
    rows.data /= np.repeat(np.maximum(lengths, 1.0), np.diff(rows.indptr))
    np.sqrt(rows.data, out=rows.data)
    nearest = np.full(corpus.n_documents, 2.0)
    cluster = np.zeros(corpus.n_documents, np.int32)
    chance = np.where(lengths > 0, 1.0, 0.0)
    for k in range(n_clusters):
        if not chance.any():
            break
        seed = variates.choose(chance, rng, "documents to start clusters from")
        distance = 2.0 - 2.0 * np.asarray((rows @ rows[[seed]].T).todense()).ravel()
        closer = distance < nearest
        cluster[closer] = k
        nearest = np.minimum(nearest, distance)
        chance = np.where(lengths > 0, np.maximum(nearest, 0.0), 0.0)
        chance[seed] = 0.0
    return cluster
