"""Clusters of documents that are sets of vectors, and the time per observation: ``python -m benchmarks.observations``.

Each corpus is drawn from MC2 with a document level and Gaussian topics of 10 coordinates. There is one row per corpus.
MC2 is fitted with its defaults, and as printed in the papers. For comparison, two mixtures of scikit-learn are fitted
to the mean vectors of the documents: a Gaussian mixture with the true number of clusters, and a Dirichlet process
mixture. The last line compares the time per observation with the time per word, in sweeps with the same numbers of
tokens and topics.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from mc2core import Corpus
from mc2core.compute import streams
from mc2core.families.stacked import StackedContexts
from mc2core.inference import Gibbs
from mc2core.inference.gibbs.assignments import Assignments, document_start
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.inference.gibbs.tokens import sweep_document_topics
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior.clustering import adjusted_rand_index

CLUSTERS, DOCUMENTS, LENGTH, DIMENSION, TOPICS = 8, 500, 30, 10, 12
#: pairs of the standard deviation of the topics' centres (a topic has about 1) and the concentration of documents
CELLS = ((0.7, 5.0), (1.5, 5.0), (1.5, 100.0))
_TOPICS_OF_A_CLUSTER, _MAX_CLUSTERS, _REPEATS, _WORDS = 0.3, 20, 5, 1000


def draw(spread: float, omega: float, seed: int, documents: int = DOCUMENTS) -> tuple[Corpus, np.ndarray]:
    """Return a corpus with the true clusters as labels, and the (N,) true topics of its observations.

    The clusters have different proportions of the same topics.
    """
    rng = np.random.default_rng(seed)
    tau = rng.dirichlet(np.full(TOPICS, _TOPICS_OF_A_CLUSTER), CLUSTERS)
    centres = spread * rng.standard_normal((TOPICS, DIMENSION))
    sd = np.sqrt(1.0 / rng.gamma(3.0, 1.0 / 3.0, centres.shape))
    cluster = rng.integers(0, CLUSTERS, documents)
    theta = [rng.dirichlet(omega * tau[k] + 1e-9) for k in cluster]
    topic = np.concatenate([rng.choice(TOPICS, LENGTH, p=shares) for shares in theta])
    values = centres[topic] + sd[topic] * rng.standard_normal((len(topic), DIMENSION))
    return Corpus.from_observations(values, np.repeat(np.arange(documents), LENGTH), labels=cluster), topic


def row(spread: float, omega: float, seed: int, iterations: int, documents: int = DOCUMENTS) -> dict[str, float]:
    """Return the ARI of each method with the true clusters, and the default fit's numbers of clusters and topics."""
    corpus, topic = draw(spread, omega, seed, documents)
    assert corpus.observations is not None
    means = corpus.observations.reshape(documents, LENGTH, DIMENSION).mean(axis=1)
    told = GaussianMixture(CLUSTERS, n_init=5, random_state=seed)
    process = BayesianGaussianMixture(
        n_components=_MAX_CLUSTERS, weight_concentration_prior_type="dirichlet_process", n_init=3, max_iter=500,
        random_state=seed,
    )  # fmt: skip
    found, printed = (
        fit(corpus, model, Gibbs(), iterations=iterations, seed=seed, progress=False)
        for model in (MC2(), MC2(document_level=False))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clusterings = {
            "MC2": found.posterior.cluster,
            "MC2 as printed": printed.posterior.cluster,
            "Gaussian mixture": told.fit_predict(means),
            "DP mixture": process.fit_predict(means),
        }
    return {
        "spread": spread,
        "omega": omega,
        "seed": seed,
        **{name: adjusted_rand_index(one, corpus.labels) for name, one in clusterings.items()},
        "clusters": found.posterior.representative.n_clusters,
        "topics": found.posterior.representative.n_topics,
        "ARI of topics": adjusted_rand_index(found.state.arrays()["topic"], topic),
        "CPU s": found.provenance["cpu_seconds"],
    }


def cost() -> list[float]:
    """Return the median nanoseconds per observation and per word, in sweeps over tokens that start from the truth."""
    corpus, topic = draw(*CELLS[1], 0)
    rng = np.random.default_rng(0)
    psi = rng.dirichlet(np.full(_WORDS, 0.1), TOPICS)
    word, document = np.array([rng.choice(_WORDS, p=psi[m]) for m in topic]), np.repeat(np.arange(DOCUMENTS), LENGTH)
    counts = sp.csr_matrix((np.ones(len(word), int), (document, word)), shape=(DOCUMENTS, _WORDS))
    cluster, medians = np.unique(np.asarray(corpus.labels), return_inverse=True)[1], []
    for one, topics in ((corpus, topic), (Corpus(counts), topic[np.lexsort((word, document))])):
        weights, model = np.full(TOPICS, 0.99 / TOPICS), MC2().for_corpus(one)
        assert isinstance(model, MC2)
        assignments = Assignments(cluster.astype(np.int32), topics.astype(np.int32), document_start(one), weights, 0.01)
        assignments.count()
        state = DocumentLevelState.from_assignments(model, one, StackedContexts(one, {}), assignments)
        state.move_all_but_tokens(0, 0, None, is_burn_in=True)
        seconds = []
        for iteration in range(_REPEATS + 1):
            key, tau, omega = streams.key(0, "topics", iteration), state.proportions, state.omega
            began = time.process_time()
            if state.observations is not None:
                tau = state.observations.sweep(assignments, tau, omega, state.concentrations, key)
            else:
                given = omega, state.concentrations, state.topic_word_prior, key
                tau, _ = sweep_document_topics(assignments, one.content, tau, *given)
            seconds.append(time.process_time() - began)
            state.proportions = tau
        medians.append(1e9 * float(np.median(seconds[1:])) / one.n_tokens)  # the first compiles
    return medians


def table(rows: Sequence[dict[str, float]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; the last line has the means."""
    yield "| " + " | ".join(rows[0]) + " |"
    yield "|---" * len(rows[0]) + "|"
    for one in rows:
        yield "| " + " | ".join(f"{value:.3g}" for value in one.values()) + " |"
    means = {name: np.mean([one[name] for one in rows]) for name in rows[0]}
    yield "| mean | | | " + " | ".join(f"{value:.3g}" for value in list(means.values())[3:]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.observations", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of corpus and chains")
    parser.add_argument("--iterations", type=int, default=Gibbs.default_iterations, help="after the start")
    parser.add_argument("--out", type=Path, help="write the table there, as Markdown")
    given = parser.parse_args()
    lines = list(table([row(*cell, seed, given.iterations) for cell, seed in product(CELLS, given.seeds)]))
    of_observation, of_word = cost()
    ratio = of_observation / of_word
    lines += ["", f"An observation of {DIMENSION} numbers costs {of_observation:.0f} ns, a word {of_word:.0f}: "
              f"{ratio:.1f} times as much, in sweeps of {DOCUMENTS * LENGTH} tokens over {TOPICS} topics."]  # fmt: skip
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
