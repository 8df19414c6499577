"""SVI beside gensim's HDP and scikit-learn's online LDA: documents per CPU second and held-out perplexity on real NIPS.

    python benchmarks/svi_rivals.py nips-corpus-20111211.zip [--passes 1 3] [--only svi ...]

Corpus and split are those of benchmarks/svi_trials.py. Everybody's topics are scored by the same code: an LDA or HDP
document has proportions of its own, so their topics and prior go into a :class:`mc2core.model.model.Sample` which the
``importance`` estimator reads; SVI's figure is given under it too (its topics, with its Q_0 as the documents' prior),
and under ``marginal``, which only a model with document clusters has. Each row runs in a process of its own on
one thread, BLAS included; the CPU time of the fit counts, start included, scoring excluded.

The rivals are no part of this package: install them beside it, ``pip install gensim scikit-learn``, in an environment
of your own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mc2core import Corpus
from mc2core.engines.svi.engine import SVI
from mc2core.model import Model, Sample, SparseRows
from mc2core.sources.collections import nips

N_TOPICS = 120
WORD_PRIOR = 0.01


def own_proportions(word_counts: np.ndarray, weights: np.ndarray, concentration: float, corpus: Corpus) -> Model:
    """Topics (M, V) of a model whose documents draw proportions from Dir(concentration weights), as a Model."""
    sample = Sample(
        cluster_weights=np.ones(1),
        new_cluster_weight=0.0,
        topic_given_cluster=(weights / weights.sum())[None],
        new_topic_weight=np.zeros(1),
        topic_words=word_counts,
        topic_prior=WORD_PRIOR,
        topic_weights=weights / weights.sum() * (1 - 1e-9),
        table_concentration=concentration,
        contexts=SparseRows.of(np.zeros((1, 0))),
        cluster=np.zeros(corpus.n_documents, np.int32),
    )
    return Model([sample], {}, {}, corpus.vocabulary)


def svi(train: Corpus, passes: int) -> tuple[float, dict[str, Model]]:
    """Our default; the model, and its topics as an HDP's."""
    engine = SVI(n_clusters=40, n_tables=20, n_topics=N_TOPICS)
    engine.step(train, engine.init(train, 0), 0, 1)  # compiles
    started = time.process_time()
    state = engine.init(train, 0)
    for epoch in range(1, passes + 1):
        engine.step(train, state, 0, epoch)
    seconds = time.process_time() - started
    model = engine.model(train, [engine.sample(train, state)], {})
    last = model.last
    weights = last.cluster_weights @ last.topic_given_cluster
    as_hdp = own_proportions(last.topic_words, weights, last.table_concentration, train)
    return seconds, {"marginal": model, "importance": as_hdp}


def gensim_hdp(train: Corpus, passes: int) -> tuple[float, dict[str, Model]]:
    """gensim.models.HdpModel with its defaults (150 topics, batches of 256), one thread."""
    from gensim.corpora import Dictionary
    from gensim.matutils import Sparse2Corpus
    from gensim.models import HdpModel

    documents = [[(word, int(n)) for word, n in one] for one in Sparse2Corpus(train.content.T.tocsc())]
    dictionary = Dictionary()
    dictionary.token2id = {word: i for i, word in enumerate(train.vocabulary)}
    dictionary.id2token = dict(enumerate(train.vocabulary))
    started = time.process_time()
    hdp = HdpModel(documents, dictionary, random_state=0, max_chunks=None)
    for _ in range(passes - 1):
        hdp.update(documents)
    hdp.update_expectations()
    seconds = time.process_time() - started
    alpha = hdp.hdp_to_lda()[0]
    counts = np.asarray(hdp.m_lambda, dtype=np.float64)  # without their prior, which is 0.01 too
    # hdp_to_lda's prior of a document: alpha times the weights of the topics
    return seconds, {"importance": own_proportions(counts, alpha / alpha.sum(), float(alpha.sum()), train)}


def sklearn_lda(train: Corpus, passes: int) -> tuple[float, dict[str, Model]]:
    """sklearn's LatentDirichletAllocation, online, batches of 128 (its default), topic and document priors 1 / M."""
    from sklearn.decomposition import LatentDirichletAllocation

    lda = LatentDirichletAllocation(
        N_TOPICS,
        learning_method="online",
        max_iter=passes,
        random_state=0,
        total_samples=train.n_documents,
    )
    started = time.process_time()
    lda.fit(train.content)
    seconds = time.process_time() - started
    prior = np.full(N_TOPICS, 1 / N_TOPICS)
    counts = np.asarray(lda.components_, dtype=np.float64)  # their prior, 1 / M, is within: as good as ours
    return seconds, {"importance": own_proportions(counts, prior, 1.0, train)}


RIVALS: dict[str, tuple[str | None, Callable[[Corpus, int], Any]]] = {
    "svi": (None, svi),
    "gensim HDP": ("gensim", gensim_hdp),
    "scikit-learn online LDA": ("sklearn", sklearn_lda),
}


def measure(name: str, path: str, passes: int) -> dict[str, Any]:
    """One row."""
    train, test = nips.read(path).with_contexts({}).split(0.1, seed=0)
    seconds, models = RIVALS[name][1](train, passes)
    return {
        "name": name,
        "passes": passes,
        "seconds": seconds,
        "documents_per_second": passes * train.n_documents / seconds,
        **{estimator: model.perplexity(test, estimator) for estimator, model in models.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--only", choices=RIVALS, nargs="+", default=list(RIVALS))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.only[0], options.path, options.passes[0])))
        return
    print(
        "| method | passes | documents / CPU s | perplexity, importance | perplexity, marginal |\n|---|---|---|---|---|"
    )
    for name in options.only:
        package = RIVALS[name][0]
        if package is not None and importlib.util.find_spec(package) is None:
            print(f"{name}: not installed here; pip install gensim scikit-learn", file=sys.stderr)
            continue
        for passes in options.passes:
            command = [sys.executable, __file__, options.path, "--one", "--only", name]
            command += ["--passes", str(passes)]
            one_thread = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=one_thread)
            row = json.loads(done.stdout.splitlines()[-1])
            marginal = f"{row['marginal']:,.0f}" if "marginal" in row else ""
            figures = f"{row['documents_per_second']:,.0f} | {row['importance']:,.0f} | {marginal}"
            print(f"| {name} | {passes} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
