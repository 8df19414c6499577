"""Difference between a default chain and chains from other starts: ``python -m benchmarks.search``.

Some documents of each corpus are held out. The others are fitted by one chain from each of four starts: the default
start, one cluster, the clusters of a mixture of multinomials (at most 300), and the true classes. There is one row per
start. ``behind`` is the held-out log score of the start minus the best score for the same corpus and seed, in nats per
document. ``error`` is its standard error over documents. Scores average three samples
(:mod:`mc2core.inference.gibbs.holdout`). A row also has the numbers of clusters and topics, the ARI with the classes,
and processor seconds. The joint density is not shown, because it can fall although more topics predict better
(docs/notes/starts.md).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import logsumexp

from benchmarks import development, recovery
from benchmarks.suite import DATA_FOLDER, parser_of
from mc2core import Corpus
from mc2core.compute import streams
from mc2core.corpus.matching import as_stored
from mc2core.families.stacked import StackedContexts
from mc2core.inference import FastEx, Gibbs
from mc2core.inference.gibbs import start
from mc2core.inference.gibbs.assignments import Assignments, document_start
from mc2core.inference.gibbs.holdout import draw_holdout, log_weights
from mc2core.inference.gibbs.repeats import Repeats, distinct
from mc2core.inference.gibbs.state import DocumentLevelState, GibbsState
from mc2core.inference.running.loop import fit
from mc2core.models import MC2, Mixture, TopicModel
from mc2core.posterior import Posterior
from mc2core.posterior.clustering import adjusted_rand_index

_MOST, _SWEEPS_OF_MIXTURE = 300, 10


class FromClusters(Gibbs):
    """A Gibbs engine that starts with the clusters ``cluster`` (J,); topics are drawn as in a default start."""

    cluster: np.ndarray

    def init(self, model: TopicModel, corpus: Corpus, seed: int) -> GibbsState:
        if corpus.n_documents != len(self.cluster):  # the few documents on which a fit compiles
            return super().init(model, corpus, seed)
        n_topics, contexts = start.topics_to_try(corpus)[-1], StackedContexts(corpus, model.cluster_contexts)
        drawn = distinct(corpus) if model.may_repeat else corpus
        _, topic = start.start_topics(model, drawn, n_topics, streams.generator(seed, "start topics"))
        weight = 1.0 / (n_topics + 1)
        assignments = Assignments(
            self.cluster.astype(np.int32), topic.copy(), document_start(drawn), np.full(n_topics, weight), weight
        )
        assignments.count()
        assignments.compact()
        state = DocumentLevelState.from_assignments(model, drawn, contexts, assignments)
        state.repeats = Repeats.first(corpus.content) if model.may_repeat else None
        start._burn_in(state, corpus, self.kernel, seed, 0, None, None, None, start.COMPARED)
        state.log_joint = state.compute_log_joint()
        return state


def clusters_of_mixture(corpus: Corpus, seed: int) -> np.ndarray:
    """Return the clusters of a mixture of multinomials after ten exact sweeps."""
    model = Mixture(n_clusters=_MOST)
    found = fit(corpus, model, FastEx(proposal="exact"), iterations=_SWEEPS_OF_MIXTURE, seed=seed, progress=False)
    return found.posterior.cluster


def score(posterior: Posterior, held_out: Corpus, seed: int) -> np.ndarray:
    """Return the (n,) log scores of held-out documents, with the probability averaged over three samples."""
    samples = posterior.samples[:: -(len(posterior.samples) // 3) or -1][:3]
    logs = [logsumexp(log_weights(one, held_out, None, seed), axis=1) for one in samples]
    return np.asarray(logsumexp(logs, axis=0) - math.log(len(logs)))


def rows(name: str, corpus: Corpus, starts: Sequence[str], seed: int, iterations: int) -> list[dict[str, Any]]:
    """Return one row per start."""
    labels, held_out = np.unique(np.asarray(corpus.labels), return_inverse=True)[1], draw_holdout(corpus, seed)
    fitted = np.setdiff1d(np.arange(corpus.n_documents), held_out)
    part, labels, unseen = as_stored(corpus.subset(fitted), corpus), labels[fitted], corpus.subset(held_out)
    clusters = {
        "one": lambda: np.zeros(len(fitted), np.int32),
        "mixture": lambda: clusters_of_mixture(part, seed),
        "truth": lambda: labels,
    }
    table, scores = [], []
    for one in starts:
        engine = Gibbs() if one == "default" else FromClusters()
        if isinstance(engine, FromClusters):
            engine.cluster = clusters[one]()
        found = fit(part, MC2(), engine, iterations=iterations, seed=seed, progress=False)
        last = found.trace.iloc[-1]
        scores.append(score(found.posterior, unseen, seed))
        table.append({
            "corpus": name, "start": one, "seed": seed, "K": int(last["clusters"]), "M": int(last["topics"]),
            "ARI": adjusted_rand_index(labels, found.posterior.cluster), "CPU_s": found.provenance["cpu_seconds"],
        })  # fmt: skip
        print(", ".join(f"{key} {value}" for key, value in table[-1].items()), file=sys.stderr, flush=True)
    best = max(scores, key=np.sum)
    return [
        row | {"behind": (of - best).mean(), "error": (of - best).std() / math.sqrt(len(best))}
        for row, of in zip(table, scores, strict=True)
    ]


# -- corpora -------------------------------------------------------------------------------------------------------
def questions(data_folder: Path, most: int = 6000) -> Corpus:
    """Return at most ``most`` questions of CLINC150, in 150 classes."""
    frame = pd.read_csv(data_folder / "clinc150/clinc150.csv.gz").sample(most, random_state=0)
    return _without_empty(Corpus.from_dataframe(frame, text="text", labels="label", min_df=2))


def papers(data_folder: Path, name: str) -> Corpus:
    """Return the papers of a citation network with their words, without the citations."""
    frame = pd.read_csv(data_folder / f"multiview/{name}.csv.gz")
    pairs = [[pair.split(":") for pair in cell.split("; ")] for cell in frame["words"]]
    words: Any = [{word: int(count) for word, count in one} for one in pairs]
    return _without_empty(Corpus.from_dataframe(frame.assign(words=words), bag="words", labels="label"))


def _without_empty(corpus: Corpus) -> Corpus:
    return corpus.subset(np.flatnonzero(corpus.document_lengths))


def simulated(n_clusters: int, n_documents: int, length: int, omega: float = 20.0) -> Corpus:
    """Draw documents from the model; with one cluster and an ``omega`` of 1, it is nearly LDA."""
    one = recovery.draw(recovery.Cell(n_clusters, n_documents, length, omega), 0)
    return Corpus(one.corpus.content, one.corpus.vocabulary, labels=one.cluster)


def noise(n_documents: int = 600, n_words: int = 500, length: int = 50) -> Corpus:
    """Return documents of random words from a uniform distribution."""
    counts = np.random.default_rng(0).multinomial(length, np.full(n_words, 1.0 / n_words), n_documents)
    names = [f"word {w}" for w in range(n_words)]
    return Corpus(sp.csr_matrix(counts), names, labels=np.zeros(n_documents, int))


def corpora(data_folder: Path) -> dict[str, Callable[[], Corpus]]:
    """Return functions that make the corpora, by name; they include all of :mod:`benchmarks.development`."""
    of_folder = {
        "questions": partial(questions, data_folder),
        **{name: partial(papers, data_folder, name) for name in ("cora", "citeseer", "acm")},
    }
    drawn: dict[str, Callable[[], Corpus]] = {
        "one class": partial(simulated, 1, 600, 50),
        "two classes": partial(simulated, 2, 600, 50),
        "eight classes": partial(simulated, 8, 1000, 50),
        "topics alone": partial(simulated, 1, 600, 50, 1.0),
        "noise": noise,
    }
    return {**development.corpora(data_folder), **of_folder, **drawn}


STARTS = "default", "one", "mixture", "truth"


def as_markdown(table: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table with one line per row."""
    columns = {"corpus": "", "start": "", "seed": "d", "behind": ".2f", "error": ".2f", "K": "d", "M": "d",
               "ARI": ".2f", "CPU_s": ".0f"}  # fmt: skip
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in table:
        lines.append("| " + " | ".join(format(row[name], kind) for name, kind in columns.items()) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = parser_of("search", __doc__, corpora(DATA_FOLDER))
    parser.add_argument("--starts", nargs="+", choices=STARTS, default=list(STARTS), help="of the chains")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the chains (default: 0)")
    parser.add_argument("--iterations", type=int, default=Gibbs.default_iterations, help="after the start")
    given = parser.parse_args()
    table = []
    for name in given.only:
        try:
            corpus = corpora(given.data_folder)[name]()
        except FileNotFoundError as error:
            print(f"{name}: left out; this machine lacks {error}", file=sys.stderr)
            continue
        for seed in given.seeds:
            table += rows(name, corpus, given.starts, seed, given.iterations)
    print(as_markdown(table), end="")


if __name__ == "__main__":
    main()
