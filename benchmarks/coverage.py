"""Coverage of 90 % intervals of numbers, shares and effects: ``python -m benchmarks.coverage``.

Corpora are drawn from the model (:mod:`benchmarks.recovery`). Each document belongs to one of two groups, whose shares
differ between clusters. Recommended clusters are matched one to one to drawn clusters if their Jaccard index is at
least one half. Topics are matched to drawn topics if their words overlap by at least one half (Bhattacharyya's
coefficient).

There is one row per model (with or without a document level), length of documents, prior of words and number of
chains. The row has the coverage for the number of main clusters, the number of topics, the shares of clusters and
topics in each group, and the effects of the group. The last two columns compare a mean probability with the true
frequency. For pairs of documents, the probability is that both are in one cluster (only pairs above one half). For new
documents, the probability is that of the predicted recommended cluster.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from benchmarks.recovery import Cell, draw
from mc2core import Corpus
from mc2core.explore.description import Description
from mc2core.explore.shares import effects, shares_by_value
from mc2core.explore.variables import variables_of
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior import Posterior
from mc2core.posterior.consensus import COUNTED, n_main

_MIN_JACCARD, _MIN_OVERLAP = 0.5, 0.5
_GROUPS = "first", "second"
_KINDS = "clusters", "topics", "cluster share", "cluster effect", "topic share", "topic effect"
_PREDICTED = "pairs of documents", "new documents"
_NEW = 100


def rows(
    length: int, chains: int, document_level: bool, words_prior: float, seeds: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield one row per interval or probability: its quantity, whether it is right, and the probability if any."""
    for seed in seeds:
        drawn = draw(Cell(6, 300 + _NEW, length, 20.0 if document_level else math.inf), seed, words_prior)
        truth, rng = drawn.cluster[:-_NEW], np.random.default_rng([seed, 1])
        content = drawn.corpus.content
        topics = drawn.topic[: int(content[:-_NEW].sum())]
        in_first = np.linspace(0.2, 0.8, truth.max() + 1)
        group = rng.random(len(truth)) < in_first[truth]
        documents = pd.DataFrame({"group": np.where(group, *_GROUPS)})
        corpus = Corpus(content[:-_NEW], drawn.corpus.vocabulary, documents=documents)
        model = MC2(document_level=document_level)
        posterior = fit(corpus, model, seed=seed, chains=chains, progress=False).posterior
        posterior.find_hierarchy(corpus)
        description = Description.from_posterior(posterior, corpus)
        yield from _probabilities(posterior, Corpus(content[-_NEW:], drawn.corpus.vocabulary), drawn.cluster)
        for what, number in (("clusters", n_main(truth)), ("topics", len(np.unique(topics)))):
            least, most = posterior.interval(COUNTED[what])
            yield {"of": what, "holds": least <= number <= most}
        sizes = np.bincount(truth) / len(truth)
        shares = np.array([sizes * in_first, sizes * (1.0 - in_first)])
        shares /= shares.sum(axis=1, keepdims=True)
        variable = next(one for one in variables_of(description) if one.name == "group")
        of_shares = shares_by_value(description, variable).set_index(["of", "number", "value"])
        of_effects = effects(description, [variable]).set_index(["of", "number"])
        matches = {
            "cluster": _matched(description.at(description.recommended), truth),
            "topic": _matched_topics(posterior, corpus, topics),
        }
        for what, truths in (("cluster", shares), ("topic", shares @ drawn.proportions)):
            for one, own in matches[what]:
                for value, share in zip(_GROUPS, truths[:, own], strict=True):
                    low, high = of_shares.loc[(what, one + 1, value), ["low", "high"]]
                    yield {"of": f"{what} share", "holds": low <= share <= high}
                row = of_effects.loc[[(what, one + 1)]].iloc[0]
                effect = np.subtract(*truths[:, own]) * (1.0 if row["value"] == _GROUPS[0] else -1.0)
                yield {"of": f"{what} effect", "holds": row["low"] <= effect <= row["high"]}


def _probabilities(posterior: Posterior, new: Corpus, truth: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield the probability of each pair of documents that is likely in one cluster, and of each new document.

    The last entries of ``truth`` are the true clusters of the new documents.
    """
    together = np.mean([one[:, None] == one for one in posterior.clusterings], axis=0)
    first, second = np.nonzero(np.triu(together > 0.5, 1))
    known = truth[: len(together)]
    for predicted, holds in zip(together[first, second], known[first] == known[second], strict=True):
        yield {"of": _PREDICTED[0], "holds": holds, "predicted": predicted}
    assert posterior.hierarchy is not None
    size = posterior.hierarchy.recommended
    cluster, probability = posterior.assign(new, cut=size)
    counts = np.zeros((size, truth.max() + 1))
    np.add.at(counts, (posterior.hierarchy.cut(size), known), 1.0)
    for one, predicted, own in zip(cluster, probability.max(axis=1), truth[len(known) :], strict=True):
        yield {"of": _PREDICTED[1], "holds": counts[one].argmax() == own, "predicted": predicted}


def _matched_topics(posterior: Posterior, corpus: Corpus, topic: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield pairs of a topic of the posterior and a drawn topic; ``topic`` has the drawn topic of each token."""
    words = np.zeros((topic.max() + 1, corpus.n_words))
    np.add.at(words, (topic, np.repeat(corpus.content.indices, corpus.content.data)), 1.0)
    words /= np.maximum(words.sum(axis=1, keepdims=True), 1.0)
    overlap = np.sqrt(posterior.word_given_topic) @ np.sqrt(words).T
    for one, own in zip(*linear_sum_assignment(-overlap), strict=True):
        if overlap[one, own] >= _MIN_OVERLAP:
            yield int(one), int(own)


def _matched(cluster: np.ndarray, truth: np.ndarray) -> Iterator[tuple[int, int]]:
    both = np.zeros((cluster.max() + 1, truth.max() + 1))
    np.add.at(both, (cluster, truth), 1.0)
    jaccard = both / (both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both)
    for one, own in zip(*linear_sum_assignment(-jaccard), strict=True):
        if jaccard[one, own] >= _MIN_JACCARD:
            yield int(one), int(own)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coverage", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[15, 40], help="words per document")
    parser.add_argument("--chains", type=int, nargs="+", default=[2])
    parser.add_argument("--word-priors", type=float, nargs="+", default=[0.01, 0.1], help="by which words are drawn")
    parser.add_argument("--seeds", type=int, default=20, help="corpora for each row (default 20)")
    given = parser.parse_args()
    print(f"| document level | words | their prior | chains | {' | '.join((*_KINDS, *_PREDICTED))} |")
    print("|---" * (4 + len(_KINDS) + len(_PREDICTED)) + "|")
    cells_of = product((True, False), given.lengths, given.word_priors, given.chains)
    for document_level, length, words_prior, chains in cells_of:
        table = pd.DataFrame(rows(length, chains, document_level, words_prior, range(given.seeds))).groupby("of")
        coverage = table["holds"].agg(["size", "mean"]).reindex(_KINDS)
        cells = [
            "" if np.isnan(size) else f"{mean:.2f} of {size:.0f}" for size, mean in coverage.itertuples(index=False)
        ]
        predicted = table[["predicted", "holds"]].mean().reindex(_PREDICTED)
        cells += [f"{one:.2f}, {share:.2f}" for one, share in predicted.itertuples(index=False)]
        is_there = "yes" if document_level else "no"
        print(f"| {is_there} | {length} | {words_prior:g} | {chains} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
