"""SVI of documents with proportions of their own on real NIPS, words only: rows of benchmarks/svi_own.md.

    python benchmarks/svi_own.py nips-corpus-20111211.zip [--epochs 2] [--seeds 1] [--only ROW] [--validation] [--rough]

Splits are those of benchmarks/svi_direct.py, so that of benchmarks/gibbs_own.py is the same. ``left_to_right`` of
posterior means; --rough scores every sixth held-out document in its two likeliest clusters. One thread, BLAS included;
CPU seconds are those of the start and of all epochs together, scoring excluded, kernels compiled before.

Row ``sklearn`` is scikit-learn's online LDA with the topics and batches of row "K 60, M 181", whose start
has a topic of all words and three of each cluster; it is scored as benchmarks/svi_rivals.py does. Row ``gibbs`` is that
of benchmarks/gibbs_own.py after 80 sweeps, its last sample.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from mc2core import fit
from mc2core.corpus import Corpus
from mc2core.engines.gibbs.engine import Gibbs
from mc2core.engines.svi.engine import SVI
from mc2core.model import Model, Sample, SparseRows, own_documents
from mc2core.sources.collections import nips

ROWS: dict[str, dict[str, Any]] = {
    "by rule": {},
    "K 60, M 181": {"n_clusters": 60, "n_topics": 181},
    **{f"K {k}, M {m}": {"n_clusters": k, "n_topics": m} for k in (40, 60, 100) for m in (200, 480, 800)},
    **{f"delay {delay}": {"delay": delay} for delay in (1, 8, 20, 64)},
    **{f"s {s}": {"topic_prior": s} for s in (0.003, 0.03, 0.1)},
}

RIVAL = 181, 49  # topics and documents of a batch of scikit-learn's


def run(train: Corpus, test: Corpus, settings: dict[str, Any], seed: int, epochs: int, threads: int) -> dict[str, Any]:
    """Figures of one fit."""
    engine = SVI(**{"document_concentration": "learn"} | settings)
    started = time.process_time()
    state = engine.init(train, seed)
    start = time.process_time() - started
    for epoch in range(1, epochs + 1):
        engine.step(train, state, seed, epoch)
    seconds = time.process_time() - started
    sample = engine.sample(train, state)
    sizes = np.bincount(sample.cluster)
    return {
        "clusters": len(sizes),
        "of 20 documents": int((sizes >= 20).sum()),
        "topics": len(sample.topic_weights),
        "omega": sample.document_concentration,
        "v": sample.table_concentration,
        "start s": start,
        "epochs s": seconds - start,
        "documents/s": epochs * train.n_documents / seconds,
        "left_to_right": engine.model(train, [sample], {}).perplexity(test, "left_to_right", threads=threads),
    }


def sklearn_lda(train: Corpus, test: Corpus, epochs: int, threads: int) -> dict[str, Any]:
    """The same of scikit-learn's online LDA."""
    from sklearn.decomposition import LatentDirichletAllocation

    n_topics, batch_size = RIVAL
    lda = LatentDirichletAllocation(
        n_topics, learning_method="online", max_iter=epochs, random_state=0, total_samples=train.n_documents,
        batch_size=batch_size,
    )  # fmt: skip
    started = time.process_time()
    lda.fit(train.content)
    seconds = time.process_time() - started
    even = np.full(n_topics, 1 / n_topics)
    sample = Sample(
        cluster_weights=np.ones(1), new_cluster_weight=0.0, topic_given_cluster=even[None],
        new_topic_weight=np.zeros(1), topic_words=np.asarray(lda.components_, dtype=np.float64), topic_prior=1e-10,
        topic_weights=even * (1 - 1e-9), table_concentration=1.0, contexts=SparseRows.of(np.zeros((1, 0))),
        cluster=np.zeros(train.n_documents, np.int32),
    )  # fmt: skip
    return {
        "topics": n_topics,
        "epochs s": seconds,
        "documents/s": epochs * train.n_documents / seconds,
        "left_to_right": Model([sample], {}, {}, train.vocabulary).perplexity(test, "left_to_right", threads=threads),
    }


def gibbs(train: Corpus, test: Corpus, threads: int) -> dict[str, Any]:
    """The same of a chain of the same model."""
    engine = Gibbs(document_concentration="learn", start_clusters=40, start_topics=150)
    started = time.process_time()
    model = fit(train, engine, iterations=80, burn_in=79, progress=False).model
    seconds = time.process_time() - started
    sizes = np.bincount(model.last.cluster)
    return {
        "clusters": len(sizes),
        "of 20 documents": int((sizes >= 20).sum()),
        "topics": len(model.last.topic_weights),
        "omega": model.last.document_concentration,
        "v": model.last.table_concentration,
        "sweeps s": seconds,
        "left_to_right": model.perplexity(test, "left_to_right", threads=threads),
    }


def show(name: str, every: list[dict[str, Any]]) -> None:
    """One row: means over seeds, half the range in brackets."""
    shown = [name]
    for key in every[0]:
        values = [float(one[key]) for one in every]
        half = f" ({np.ptp(values) / 2:.1f})" if len(values) > 1 else ""
        shown.append(f"{key} {np.mean(values):.1f}{half}")
    print("| " + " | ".join(shown) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="rows of these names; sklearn, gibbs for the rivals")
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--rough", action="store_true")
    parser.add_argument("--threads", type=int, default=1, help="of the scoring")
    options = parser.parse_args()
    train, test = nips.read(options.path).with_contexts({}).split(0.1, seed=0)
    if options.validation:
        train, test = train.split(0.1, seed=1)
    if options.rough:
        test = test.subset(np.arange(0, test.n_documents, 6))
        own_documents.CLUSTERS = own_documents.SCREENING_DRAWS = 2
    few = train.subset(np.arange(60))
    run(few, few.subset(np.arange(2)), {"n_clusters": 2, "n_topics": 4}, 0, 1, 1)  # compiles
    for name in options.only or [*ROWS, "sklearn", "gibbs"]:
        if name == "sklearn":
            show(name, [sklearn_lda(train, test, options.epochs, options.threads)])
        elif name == "gibbs":
            show(name, [gibbs(train, test, options.threads)])
        else:
            show(
                name,
                [run(train, test, ROWS[name], seed, options.epochs, options.threads) for seed in range(options.seeds)],
            )


if __name__ == "__main__":
    main()
