"""Sentence embeddings as a context, on development corpora: ``python -m benchmarks.embeddings strength``.

``embed`` computes the vectors with the package sentence-transformers and a model in a folder, and stores them in
``--vectors``. ``strength`` compares numbers of components and strengths by a mixture that EM fits in seconds. In this
mixture, each cluster has a distribution of words and one Gaussian per component. One document in eight is held out:
its words are predicted from its vector, and its vector from its words. ``table`` fits MC2 with two chains to words, to
embeddings and to both, and compares these fits with clusterings of the embeddings. Fits are stored in ``--cache``.
``cost`` measures the time and memory that embeddings add to a default fit of simulated documents.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.cluster import AgglomerativeClustering, KMeans

from benchmarks import development
from mc2core import Corpus
from mc2core.corpus import embeddings
from mc2core.inference.running.loop import fit, standardise
from mc2core.models import MC2
from mc2core.posterior import Posterior
from mc2core.posterior.clustering import adjusted_rand_index
from mc2core.posterior.hierarchy import recommend

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
    """Compute the embeddings of each corpus, and write them to NAME.npy."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(model, device="cpu", local_files_only=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        texts, _ = CORPORA[name]()
        np.save(folder / f"{name}.npy", encoder.encode(texts, show_progress_bar=False).astype(np.float32))


def embedded(name: str, folder: Path) -> tuple[Corpus, np.ndarray, list[str]]:
    """Return the corpus of all documents with words, with embeddings, and also their vectors and texts."""
    texts, labels = CORPORA[name]()
    vectors = np.load(folder / f"{name}.npy")
    corpus = Corpus.from_texts(texts, labels=labels, min_df=2)
    kept = np.flatnonzero(corpus.document_lengths)
    return corpus.subset(kept).with_embeddings(vectors[kept]), vectors[kept].astype(float), [texts[j] for j in kept]


# -- the strength ----------------------------------------------------------------------------------------------------
def mixture(counts: sp.csr_matrix, z: np.ndarray, n_clusters: int, strength: float) -> tuple[np.ndarray, ...]:
    """Fit a mixture by EM. Returns log weights (K,), log probabilities of words (V, K), precisions and means (K, d),
    and responsibilities (J, K)."""
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
    """Return (J, K) log densities of independent Gaussians, up to a constant."""
    squares = z**2 @ precision.T - 2.0 * z @ (precision * mean).T + (precision * mean**2).sum(axis=1)
    return 0.5 * (np.log(precision).sum(axis=1) - squares)


def strengths(
    corpus: Corpus, vectors: np.ndarray, components: list[int], per_token: list[float]
) -> Iterator[dict[str, Any]]:
    """Yield one row per number of components and number of components per token (which sets the strength)."""
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
    corpus: Corpus, vectors: np.ndarray, texts: list[str], seed: int, stem: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each method with the clusters of all documents; ``stem`` begins the paths of stored fits."""
    n_classes = len(np.unique(np.asarray(corpus.labels)))
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    yield "k-means of embeddings, K fixed", KMeans(n_classes, n_init=10, random_state=seed).fit_predict(directions)
    linkage = AgglomerativeClustering(n_classes, metric="cosine", linkage="average")
    yield "average linkage of embeddings, K fixed", linkage.fit_predict(directions)
    topics = bertopic(texts, vectors, seed, Path(f"{stem}.bertopic.{seed}.npy"))
    if topics is not None:
        yield "BERTopic", topics
    no_words = Corpus(0 * corpus.content, corpus.vocabulary, corpus.contexts, corpus.labels)
    no_words.imported = corpus.imported
    for name, part in {
        "words": corpus.with_contexts({}),
        "embeddings": no_words,
        "words and embeddings": corpus,
    }.items():
        path = f"{stem}.{name.replace(' ', '-')}"
        posterior = kept_fit(part, None, seed, Path(f"{path}.{seed}.npz"))
        found = posterior.hierarchy
        assert found is not None
        are_chains = len(posterior.chains) - len(posterior.provenance.get("stuck", [])) > 1
        size, _ = recommend(
            found.scores, found.agreement, are_chains
        )  # the current rule, which may be newer than the stored fit
        yield f"MC2, {name}, recommended", found.cut(size)
        yield f"MC2, {name}, all clusters", found.cluster
        yield f"MC2, {name}, K fixed", kept_fit(part, n_classes, seed, Path(f"{path}.fixed.{seed}.npz")).cluster


def bertopic(texts: list[str], vectors: np.ndarray, seed: int, path: Path) -> np.ndarray | None:
    """Return the topic of each document by BERTopic with its defaults; -1 marks documents without a topic.

    UMAP gets a seed. The result is None if BERTopic is not installed.
    """
    if path.is_file():
        return np.load(path)
    try:
        from bertopic import BERTopic
        from umap import UMAP
    except ImportError:
        print("BERTopic is not installed, and left out", file=sys.stderr)
        return None
    defaults = {"n_neighbors": 15, "n_components": 5, "min_dist": 0.0, "metric": "cosine"}
    topics = np.array(BERTopic(umap_model=UMAP(**defaults, random_state=seed)).fit_transform(texts, vectors)[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, topics)
    return topics


def kept_fit(corpus: Corpus, n_clusters: int | None, seed: int, path: Path) -> Posterior:
    """Return a default fit of two chains, with its hierarchy unless K is fixed.

    The fit is loaded from ``path`` if the file belongs to this corpus, and stored there otherwise.
    """
    model = MC2(n_clusters=n_clusters)
    digest = standardise(corpus, model.for_corpus(corpus).contexts).digest
    if path.is_file() and (kept := Posterior.load(path)).provenance["corpus"] == digest:
        return kept
    posterior = fit(corpus, model, seed=seed, chains=2, progress=False).posterior
    if n_clusters is None:
        posterior.find_hierarchy(corpus)
    path.parent.mkdir(parents=True, exist_ok=True)
    posterior.save(path)
    return posterior


def as_markdown(scores: dict[str, dict[str, list[tuple[float, int]]]]) -> str:
    """Return a Markdown table with one row per method: mean ARI, and ARI and number of clusters per corpus and seed."""
    methods = dict.fromkeys(method for of_corpus in scores.values() for method in of_corpus)
    lines = [f"| method | mean | {' | '.join(scores)} |", "|---" * (len(scores) + 2) + "|"]
    for method in methods:
        found = [of_corpus[method] for of_corpus in scores.values()]
        mean = np.mean([np.mean([ari for ari, _ in several]) for several in found])
        cells = [", ".join(f"{ari:.3f} ({n})" for ari, n in several) for several in found]
        lines.append(f"| {method} | {mean:.3f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


# -- cost ------------------------------------------------------------------------------------------------------------
def cost(n_documents: int, length: int = 384) -> Iterator[str]:
    """Yield lines on the cost of the reduction of vectors, and on default fits with and without embeddings."""
    plain = development.drawn(50, n_documents, 8, 80)
    rng = np.random.default_rng(_SEED)
    centres = 0.5 * rng.standard_normal((50, length), dtype=np.float32)
    vectors = rng.standard_normal((n_documents, length), dtype=np.float32)
    vectors += centres[np.asarray(plain.labels)]
    started = time.process_time()
    tracemalloc.start()
    corpus = plain.with_embeddings(vectors)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds = time.process_time() - started
    yield f"reduction: {seconds:.1f} CPU s; at most {most / vectors.nbytes:.2f} times the float32 matrix, next to it"
    fit(plain.subset(np.arange(500)), MC2(), iterations=2, progress=False)  # compiles kernels
    fit(corpus.subset(np.arange(500)), MC2(), iterations=2, progress=False)
    for name, one in {"words": plain, "words and embeddings": corpus}.items():
        started = time.process_time()
        posterior = fit(one, MC2(), seed=_SEED, chains=2, progress=False).posterior
        seconds = time.process_time() - started
        ari = adjusted_rand_index(np.asarray(one.labels), posterior.cluster)
        yield f"{name}: {seconds:.1f} CPU s, {len(np.unique(posterior.cluster))} clusters, ARI {ari:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.embeddings", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("what", choices=("embed", "strength", "table", "cost"))
    parser.add_argument("--only", nargs="+", choices=CORPORA, default=list(CORPORA), metavar="CORPUS")
    parser.add_argument("--model", help="folder of the model that makes the vectors")
    parser.add_argument("--vectors", type=Path, default=Path("results/embeddings"), help="folder of the vectors")
    parser.add_argument("--components", type=int, nargs="+", default=[embeddings.MAX_COMPONENTS, 50])
    parser.add_argument("--per-token", type=float, nargs="+", default=[0.02, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--cache", type=Path, default=Path("results/embeddings/fits"), help="folder of finished fits")
    parser.add_argument("--documents", type=int, default=20_000, help="of cost")
    given = parser.parse_args()
    if given.what == "embed":
        if not given.model:
            parser.error("embed needs --model")
        embed(given.model, given.vectors, given.only)
        return
    if given.what == "cost":
        for line in cost(given.documents):
            print(line, flush=True)
        return
    scores: dict[str, dict[str, list[tuple[float, int]]]] = {}
    for name in given.only:
        corpus, vectors, texts = embedded(name, given.vectors)
        if given.what == "strength":
            for row in strengths(corpus, vectors, given.components, given.per_token):
                print(f"| {name} | " + " | ".join(f"{value:.3f}" for value in row.values()) + " |", flush=True)
            continue
        labels = np.asarray(corpus.labels)
        lengths = f"{corpus.n_documents} documents of {corpus.n_tokens / corpus.n_documents:.0f} words"
        print(f"{name}: {lengths}, {len(np.unique(labels))} classes", file=sys.stderr, flush=True)
        of_corpus = scores.setdefault(name, {})
        for seed in given.seeds:
            for method, cluster in clusterings(corpus, vectors, texts, seed, str(given.cache / name)):
                ari, number = adjusted_rand_index(labels, cluster), len(np.unique(cluster))
                of_corpus.setdefault(method, []).append((ari, number))
                print(f"{name}, seed {seed}: {method}, {ari:.3f} ({number})", file=sys.stderr, flush=True)
    if scores:
        print(as_markdown(scores), end="")


if __name__ == "__main__":
    main()
