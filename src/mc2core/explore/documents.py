"""Tables of documents: their metadata, clusters and positions on the map."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.explore.description import Description
from mc2core.explore.variables import context_names, label_names, own_unit

MAX_POINTS = 8000
"""Largest number of documents on the map; larger corpora are sampled."""
MIN_PROBABILITY = 0.01
_BLOCK = 64
_DIMENSIONS = 50
_NEIGHBOURS = 30  # perplexity of t-SNE
N_WORDS = 3
"""Number of words that name a document without a title."""
_TITLES = ("title", "name", "headline", "subject")


def document_tables(description: Description, seed: int = 0, with_map: bool = True) -> dict[str, pd.DataFrame]:
    """Return the tables documents and document_clusters of the recommended clustering, by name.

    ``document_clusters`` lists the clusters of each document with a probability of at least MIN_PROBABILITY. If
    ``with_map`` is True, the columns x and y of ``documents`` are positions on the map (:func:`layout`). If the
    documents are a sample, the column ``corpus_document`` is the number of the document in the larger corpus.
    """
    corpus, probability = description.corpus, description.in_recommended
    cluster = description.at(description.recommended)
    n = corpus.n_documents
    table = pd.DataFrame({"document": np.arange(n) + 1, "title": with_words(titles_of(description), corpus)})
    if corpus.labels is not None and not sp.issparse(corpus.labels):
        table["label"] = np.array(label_names(corpus), dtype=object)[corpus.labels]
    if description.drawn is not None:
        table["corpus_document"] = description.drawn + 1
    table["tokens"] = corpus.document_lengths
    table["cluster"] = cluster + 1
    table["probability"] = probability[np.arange(n), cluster]
    table["misfit"] = misfit(description)
    if with_map:
        table[["x", "y"]] = layout(description, seed)
    for name in sorted(name for name, kind in corpus.context_kinds.items() if kind != "vector"):
        table[f"context_{name}"] = _context(description, name)
    metadata = corpus.documents.add_prefix("document_").reset_index(drop=True)
    row, column = np.nonzero(probability >= MIN_PROBABILITY)
    of_clusters = pd.DataFrame(
        {"document": row + 1, "cluster": column + 1, "probability": probability[row, column]}
    ).sort_values(["document", "probability"], ascending=[True, False], kind="stable", ignore_index=True)
    table = table.join(metadata)
    return {
        "documents": table if corpus.index is None else table.set_axis(corpus.index),
        "document_clusters": of_clusters,
    }


def document_topics(description: Description) -> pd.DataFrame:
    """Return a table of the topics of each document, the commonest first.

    The columns are document, topic, tokens (expected number) and share (of the document's tokens). Shares below
    MIN_PROBABILITY are left out. The table is empty if clusters are topics (FastEx, LDA).
    """
    if description.clusters_are_topics:
        return pd.DataFrame(columns=["document", "topic", "tokens", "share"])
    table = description.document_topics.tocoo()
    share = table.data / np.asarray(description.document_topics.sum(axis=1)).ravel()[table.row]
    entries = np.flatnonzero(share >= MIN_PROBABILITY)
    entries = entries[np.lexsort((table.col[entries], -share[entries], table.row[entries]))]
    columns = {"document": table.row[entries] + 1, "topic": table.col[entries] + 1}
    return pd.DataFrame({**columns, "tokens": table.data[entries], "share": share[entries]})


def _context(description: Description, name: str) -> Any:
    """Return the values of a context: numbers in the original unit, (J,), or names separated by semicolons."""
    corpus = description.corpus
    if corpus.context_kinds[name] == "number":
        return own_unit(corpus, name)
    names = np.array(context_names(corpus, name), dtype=object)
    table = corpus.contexts[name]
    values = names[table.indices]
    values[table.data > 1] += np.array([f":{count}" for count in table.data[table.data > 1]], dtype=object)
    return ["; ".join(values[a:b]) for a, b in itertools.pairwise(table.indptr)]


def misfit(description: Description) -> np.ndarray:
    """Return how far the overlap of each document with its cluster is below the usual overlap for its length.

    The result, (J,) float64, is in standard deviations, and NaN for documents without words.

    The overlap of words (for observations, of topics), from 0 to 1, also defines the typical documents in the table
    ``cluster_documents``. The usual overlap is a quadratic function of the logarithm of the length, fitted by least
    squares. The standard deviation is estimated from the median absolute deviation of the residuals.
    """
    corpus, cluster = description.corpus, description.at(description.recommended)
    overlap, features = np.full(corpus.n_documents, np.nan), description.document_features
    for start in range(0, description.recommended, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, description.recommended))
        rows = np.flatnonzero((cluster >= start) & (cluster <= block[-1]) & (corpus.document_lengths > 0))
        if len(rows):
            expected = description.node_features(block)
            for number in np.unique(cluster[rows]):
                members = rows[cluster[rows] == number]
                overlap[members] = features[members] @ expected[number - start]
    observed = np.flatnonzero(~np.isnan(overlap))
    if not len(observed):
        return overlap
    length = np.log(corpus.document_lengths[observed])
    base = np.vander((length - length.mean()) / max(length.std(), 1e-12), 3)
    residual = base @ np.linalg.lstsq(base, overlap[observed], rcond=None)[0] - overlap[observed]
    residual -= np.median(residual)
    overlap[observed] = residual / max(1.4826 * np.median(np.abs(residual)), 1e-6)
    return overlap


def titles_of(description: Description) -> list[str]:
    """Return the name of each document: its title, or else its id, or else its number."""
    metadata = description.corpus.documents
    by_name = {str(name).lower(): name for name in metadata.columns}
    of_import = (description.corpus.imported or {}).get("settings", {}).get("document", "")
    column = next((by_name[name] for name in (*_TITLES, "id", of_import.lower()) if name in by_name), None)
    numbers = [f"document {j + 1}" for j in range(description.corpus.n_documents)]
    if column is None:
        return numbers
    cells = metadata[column]
    return [
        number if pd.isna(one) or not str(one).strip() else str(one) for one, number in zip(cells, numbers, strict=True)
    ]


def with_words(titles: Sequence[str], corpus: Corpus) -> list[str]:
    """Return the titles, with distinctive words appended to the titles "document N" of documents without a title.

    At most N_WORDS words are appended: those with the largest count times ln(J / documents with the word).
    """
    untitled = [j for j, title in enumerate(titles) if title == f"document {j + 1}"]
    named = list(titles)
    if corpus.is_of_observations or not corpus.has_vocabulary or not untitled:
        return named
    counts, words = corpus.content, corpus.vocabulary
    weight = np.log(corpus.n_documents / np.maximum(np.bincount(counts.indices, minlength=corpus.n_words), 1))
    for j in untitled:
        of_document = slice(counts.indptr[j], counts.indptr[j + 1])
        column = counts.indices[of_document]
        best = column[np.argsort(-counts.data[of_document] * weight[column], kind="stable")[:N_WORDS]]
        named[j] += f": {', '.join(words[one] for one in best)}" if len(best) else ""
    return named


def layout(description: Description, seed: int) -> np.ndarray:
    """Return the position of each document on a map by t-SNE (scikit-learn), (J, 2) float64 in [0, 1].

    Documents are close if they have similar words (for observations, topics) and similar clusters. The features are the
    first singular components of the square roots of the shares of words or topics, and the square roots of the cluster
    probabilities. The map shows a random sample of MAX_POINTS documents; the positions of other documents are NaN. The
    same seed gives the same map on the same machine.
    """
    n = description.corpus.n_documents
    positions = np.full((n, 2), np.nan)
    rng = streams.generator(seed, "explore.map")
    chosen = np.sort(rng.permutation(n)[:MAX_POINTS])
    features = np.hstack([_components(description.document_features[chosen]), np.sqrt(description.probability[chosen])])
    with work("map of documents (t-SNE)"):
        positions[chosen] = flattened(features, _NEIGHBOURS, seed)
    return positions


def flattened(features: np.ndarray, neighbours: int, seed: int) -> np.ndarray:
    """Return positions by t-SNE (scikit-learn) with perplexity ``neighbours``, (n, 2) float64 in [0, 1].

    ``features`` (n, D) are reduced to _DIMENSIONS principal components if D and n are larger. Fewer than four points,
    or points that are all equal, are placed in a row. If D = 1, the feature is the horizontal position.
    """
    n = len(features)
    if n < 4 or np.allclose(features, features[0]):  # else t-SNE scales its initial positions by a variance of 0
        return np.column_stack([np.linspace(0.0, 1.0, n), np.full(n, 0.5)])
    if features.shape[1] == 1:
        return np.column_stack([_scale(features), np.full(n, 0.5)])
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):  # sums do not depend on the number of cores
        if min(features.shape) > _DIMENSIONS:
            features = PCA(_DIMENSIONS, svd_solver="randomized", random_state=seed).fit_transform(features)
        perplexity = min(neighbours, (n - 1) / 3)
        tsne = TSNE(perplexity=perplexity, init="pca", max_iter=500, random_state=seed, n_jobs=1)
        flat = tsne.fit_transform(features)
    return _scale(flat)


def _scale(values: np.ndarray) -> np.ndarray:
    """Rescale each column of ``values`` (n, D) to the range from 0 to 1; a constant column becomes 0."""
    low, high = values.min(axis=0), values.max(axis=0)
    return (values - low) / np.where(high > low, high - low, 1.0)


def _components(root: sp.csr_matrix) -> np.ndarray:
    """Return the coordinates of ``root`` (n, F) on its first singular vectors, (n, at most _DIMENSIONS)."""
    n = min(_DIMENSIONS, min(root.shape) - 1)
    if n < 1:
        return root.toarray()
    from sklearn.decomposition import TruncatedSVD

    with np.errstate(divide="ignore", invalid="ignore"):  # the variance of equal documents is 0
        return TruncatedSVD(n, random_state=0).fit_transform(root)
