"""Sentence embeddings as a context, on development corpora: ``python -m benchmarks.embeddings strength``.

``embed`` makes the vectors, by a model in a folder and the package sentence-transformers, and keeps them in
``--vectors``. ``strength`` compares numbers of components and strengths by a mixture that EM fits in seconds: each
cluster has a distribution of words and a Gaussian for each component. Of a document in eight, words are predicted from
the vector and the vector from the words. ``table`` fits MC2 to words, to embeddings and to both, and compares them with
clusterings of the embeddings.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.cluster import AgglomerativeClustering, KMeans

from benchmarks import development
from mc2core import Corpus, fit
from mc2core.corpus import embeddings
from mc2core.models import MC2
from mc2core.posterior.clustering import adjusted_rand_index
from mc2core.posterior.hierarchy import find_hierarchy

_SEED, _SWEEPS, _TOPIC_WORD_PRIOR = 0, 25, 0.05
_CLUSTERS_PER_CLASS = 1.5
CORPORA: dict[str, Callable[[], tuple[list[str], list[str]]]] = {
    "sources": partial(development.drawn_texts, development.of_sources),
    "sections": partial(development.drawn_texts, development.of_sections),
    "fields": partial(development.drawn_texts, development.of_fields),
    "docstrings-short": partial(development.drawn_texts, development.of_docstrings, 2000, 15),
    "docstrings": partial(development.drawn_texts, development.of_docstrings, 1200),
}


def embed(model: str, folder: Path, names: list[str]) -> None:
    """Write NAME.npy for each corpus."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(model, device="cpu", local_files_only=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        texts, _ = CORPORA[name]()
        np.save(folder / f"{name}.npy", encoder.encode(texts, show_progress_bar=False).astype(np.float32))


def embedded(name: str, folder: Path) -> tuple[Corpus, np.ndarray, list[str]]:
    """The documents of a corpus that have a word, with their embeddings, the vectors and the texts."""
    texts, labels = CORPORA[name]()
    vectors = np.load(folder / f"{name}.npy")
    corpus = Corpus.from_texts(texts, labels=labels, min_df=2)
    kept = np.flatnonzero(corpus.document_lengths)
    return corpus.subset(kept).with_embeddings(vectors[kept]), vectors[kept].astype(float), [texts[j] for j in kept]


# -- the strength ----------------------------------------------------------------------------------------------------
def mixture(counts: sp.csr_matrix, z: np.ndarray, n_clusters: int, strength: float) -> tuple[np.ndarray, ...]:
    """Log weights (K,), log probabilities of words (V, K), precisions and means (K, d), and responsibilities (J, K)."""
    start = KMeans(n_clusters, n_init=1, max_iter=15, random_state=_SEED).fit_predict(z)
    shares = np.eye(n_clusters)[start]
    for _ in range(_SWEEPS):
        n = shares.sum(axis=0)
        weights = np.log((n + 1.0) / (n + 1.0).sum())
        of_words = counts.T @ shares + _TOPIC_WORD_PRIOR
        of_words = np.log(of_words / of_words.sum(axis=0))
        kappa = 1.0 + strength * n[:, None]
        mean = strength * (shares.T @ z) / kappa
        scatter = 1.0 + 0.5 * (strength * (shares.T @ z**2) - kappa * mean**2)
        precision = (1.0 + 0.5 * strength * n[:, None]) / scatter
        log_likely = weights + counts @ of_words + strength * log_normal(z, precision, mean)
        shares = np.exp(log_likely - logsumexp(log_likely, axis=1, keepdims=True))
    return weights, of_words, precision, mean, shares


def log_normal(z: np.ndarray, precision: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """(J, K): log densities of independent Gaussians, up to a constant."""
    squares = z**2 @ precision.T - 2.0 * z @ (precision * mean).T + (precision * mean**2).sum(axis=1)
    return 0.5 * (np.log(precision).sum(axis=1) - squares)


def strengths(
    corpus: Corpus, vectors: np.ndarray, components: list[int], per_token: list[float]
) -> Iterator[dict[str, Any]]:
    """A row for each number of components and of components per token."""
    labels, n = np.asarray(corpus.labels), corpus.n_documents
    order = np.random.default_rng(_SEED).permutation(n)
    held_out, known = order[: n // 8], order[n // 8 :]
    n_clusters = round(_CLUSTERS_PER_CLASS * len(np.unique(labels)))
    counts, tokens = corpus.content.astype(float), corpus.n_tokens / n
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    centre = directions[known].mean(axis=0)
    _, scale, axes = np.linalg.svd(directions[known] - centre, full_matrices=False)
    for d in components:
        z = (directions - centre) @ axes[:d].T / scale[:d] * np.sqrt(len(known))
        for each in per_token:
            strength = min(1.0, each * tokens / d)
            weights, of_words, precision, mean, shares = mixture(counts[known], z[known], n_clusters, strength)
            words, of_vector = counts[held_out] @ of_words, log_normal(z[held_out], precision, mean)
            given = weights + strength * of_vector
            of_all = logsumexp(given + words, axis=1) - logsumexp(given, axis=1)
            other = logsumexp(weights + words + of_vector, axis=1) - logsumexp(weights + words, axis=1)
            yield {
                "components": d, "per token": each, "strength": round(strength, 3),
                "words": of_all.sum() / counts[held_out].sum(),
                "vectors": other.mean() - log_normal(z[held_out], np.ones((1, d)), np.zeros((1, d))).mean(),
                "ARI": adjusted_rand_index(labels[known], shares.argmax(axis=1)),
            }  # fmt: skip


# -- clusterings -----------------------------------------------------------------------------------------------------
def clusterings(
    corpus: Corpus, vectors: np.ndarray, texts: list[str], seed: int, iterations: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Names of methods, and the cluster of each document."""
    n_classes = len(np.unique(np.asarray(corpus.labels)))
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    yield "k-means, K given", KMeans(n_classes, n_init=10, random_state=seed).fit_predict(directions)
    linkage = AgglomerativeClustering(n_classes, metric="cosine", linkage="average")
    yield "average linkage, K given", linkage.fit_predict(directions)
    try:
        from bertopic import BERTopic

        yield "BERTopic", np.array(BERTopic().fit_transform(texts, vectors)[0])
    except ImportError:
        print("BERTopic is not installed, and left out", file=sys.stderr)
    no_words = Corpus(0 * corpus.content, corpus.vocabulary, corpus.contexts, corpus.labels)
    no_words.imported = corpus.imported
    for name, part in {
        "words": corpus.with_contexts({}),
        "embeddings": no_words,
        "words and embeddings": corpus,
    }.items():
        for n_clusters in (None, n_classes):
            model = MC2(n_clusters=n_clusters)
            posterior = fit(part, model, iterations=iterations, seed=seed, chains=1, progress=False).posterior
            yield f"MC2, {name}" + (", K given" if n_clusters else ""), posterior.cluster
            if n_clusters is None and part.n_tokens:
                hierarchy = find_hierarchy(posterior, part)
                yield f"MC2, {name}, recommended", hierarchy.cut(hierarchy.recommended)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.embeddings", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("what", choices=("embed", "strength", "table"))
    parser.add_argument("--only", nargs="+", choices=CORPORA, default=list(CORPORA), metavar="CORPUS")
    parser.add_argument("--model", help="folder of the model that makes the vectors")
    parser.add_argument("--vectors", type=Path, default=Path("results/embeddings"), help="folder of the vectors")
    parser.add_argument("--components", type=int, nargs="+", default=[embeddings.MAX_COMPONENTS, 50])
    parser.add_argument("--per-token", type=float, nargs="+", default=[0.02, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--iterations", type=int, default=60)
    given = parser.parse_args()
    if given.what == "embed":
        if not given.model:
            parser.error("embed needs --model")
        embed(given.model, given.vectors, given.only)
        return
    for name in given.only:
        corpus, vectors, texts = embedded(name, given.vectors)
        if given.what == "strength":
            for row in strengths(corpus, vectors, given.components, given.per_token):
                print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in row.values()) + " |", flush=True)
        else:
            for seed in given.seeds:
                for method, cluster in clusterings(corpus, vectors, texts, seed, given.iterations):
                    ari = adjusted_rand_index(np.asarray(corpus.labels), cluster)
                    print(f"| {name} | {method} | {seed} | {len(np.unique(cluster))} | {ari:.3f} |", flush=True)


if __name__ == "__main__":
    main()
