"""SVI of documents with proportions of their own on 100,000 short simulated ones: a table of benchmarks/svi_own.md.

    python benchmarks/svi_own_large.py [--documents 100000] [--epochs 2]

30 clusters, 60 topics, 31 tokens a document on average, a year and two authors that depend on the cluster. One thread;
CPU seconds include compilation where kernels are not stored yet.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np
import scipy.sparse as sp

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from mc2core.corpus import Corpus
from mc2core.engines.svi.engine import SVI
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.model.clustering import adjusted_rand_index, nmi

N_WORDS, N_TOPICS, N_CLUSTERS, N_AUTHORS = 5000, 60, 30, 2000


def draw(n_documents: int) -> Corpus:
    """The corpus, with its true clusters as labels."""
    rng = np.random.default_rng(0)
    psi = rng.dirichlet(np.full(N_WORDS, 0.02), N_TOPICS)
    tau = rng.dirichlet(np.full(N_TOPICS, 0.08), N_CLUSTERS)
    cluster = rng.integers(0, N_CLUSTERS, n_documents)
    lengths = rng.poisson(30, n_documents) + 1
    topic = np.concatenate(
        [rng.choice(N_TOPICS, n, p=own) for n, own in zip(lengths, tau[cluster], strict=True)],
    )
    place, word = rng.random(len(topic)), np.empty(len(topic), int)
    for m, sums in enumerate(psi.cumsum(axis=1)):
        word[topic == m] = np.minimum(np.searchsorted(sums, place[topic == m]), N_WORDS - 1)
    document = np.repeat(np.arange(n_documents), lengths)
    shape = n_documents, N_WORDS
    year = 1980.0 + cluster + rng.integers(0, 5, n_documents)
    author = (np.repeat(cluster, 2) * 60 + rng.integers(0, 100, 2 * n_documents)) % N_AUTHORS
    authors = np.repeat(np.arange(n_documents), 2), author
    return Corpus(
        sp.csr_matrix((np.ones(len(word), np.int32), (document, word)), shape=shape),
        contexts={
            "year": year,
            "author": sp.csr_matrix((np.ones(len(author), np.int32), authors), shape=(n_documents, N_AUTHORS)),
        },
        labels=cluster,
    ).standardised("year")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    corpus = draw(options.documents)
    contexts = {"year": NormalGamma(), "author": DirichletCategorical(0.1)}
    engine = SVI(contexts=contexts, document_concentration="learn")
    processor = time.process_time()
    state = engine.init(corpus, 0)
    for epoch in range(options.epochs + 1):
        if epoch:
            engine.step(corpus, state, 0, epoch)
        sizes, tokens = np.bincount(state.cluster), state.n_m
        found = {
            "clusters": np.count_nonzero(sizes),
            "of 1 %": np.count_nonzero(sizes >= 0.01 * corpus.n_documents),
            "topics": np.count_nonzero(tokens >= 0.5),
            "topics of 1 %": np.count_nonzero(tokens >= 0.01 * tokens.sum()),
            "largest topic": round(float(tokens.max() / tokens.sum()), 3),
            "omega": round(state.document_concentration, 1),
            "NMI": round(nmi(corpus.labels, state.cluster), 3),
            "ARI": round(adjusted_rand_index(corpus.labels, state.cluster), 3),
            "CPU seconds": round(time.process_time() - processor, 1),
            "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        print("| " + " | ".join([f"epoch {epoch}", *(f"{name} {value}" for name, value in found.items())]) + " |")


if __name__ == "__main__":
    main()
