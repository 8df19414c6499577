"""Dependence of a default fit on the number of topics at its start: ``python -m benchmarks.starts``.

There is one row per corpus and number of topics at the start. For each seed, it has the agreement of the clusters with
the classes (adjusted Rand index), the perplexity of held-out documents, and the numbers of clusters and topics. The
last lines have the largest difference between starts per corpus, for means over seeds. The aim is a difference of at
most 0.05 in the adjusted Rand index and 1 % in perplexity.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.cases import lacks
from benchmarks.suite import parser_of
from mc2core import Corpus
from mc2core.corpus import subsets
from mc2core.inference import Gibbs
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior.clustering import adjusted_rand_index
from mc2papers.datasets.collections import labelled_images, labelled_texts, nips

_TEST_FRACTION, _SEED = 0.1, 0
_PAPERS, _ABSTRACTS = 300, 1000


def sports(data_folder: Path) -> Corpus:
    files = (data_folder / "labelled" / f"uiuc-sports-{part}.txt" for part in ("annotations", "info"))
    return subsets.half(labelled_images.read_sports(*files)[0], "validation")


def abstracts(data_folder: Path) -> Corpus:
    whole = labelled_texts.read_ohsumed(data_folder / "labelled/ohsumed_single_23.tar.gz")[0]
    return some(subsets.half(whole, "validation"), _ABSTRACTS)


def papers(data_folder: Path) -> Corpus:
    return some(nips.read(data_folder / "nips/nips-corpus-20111211.zip"), _PAPERS)


def some(corpus: Corpus, n_documents: int) -> Corpus:
    """Return ``n_documents`` evenly spaced documents of a corpus, with only the words that occur in them.

    Corpora are sorted by class or year, so the first documents would not represent them.
    """
    rows = np.linspace(0, corpus.n_documents - 1, n_documents).astype(int)
    part = corpus.subset(rows)
    words = np.unique(part.content.indices)
    names = [corpus.vocabulary[word] for word in words]
    return Corpus(part.content[:, words], names, labels=part.labels, label_names=part.label_names)


CORPORA: dict[str, Callable[[Path], Corpus]] = {"UIUC-Sports": sports, "Ohsumed": abstracts, "NIPS": papers}


def rows(
    name: str, corpus: Corpus, topics: Sequence[int], seeds: Sequence[int], iterations: int
) -> Iterator[dict[str, Any]]:
    """Yield one row per number of topics and seed of the chain; all fits have the same held-out documents."""
    train, test = corpus.with_contexts({}).split(_TEST_FRACTION, seed=_SEED)
    for n_topics in topics:
        for seed in seeds:
            found = fit(train, MC2(), Gibbs(start_topics=n_topics), iterations=iterations, seed=seed, progress=False)
            last, posterior = found.trace.iloc[-1], found.posterior
            yield {
                "corpus": name, "start": n_topics, "seed": seed,
                "ARI": np.nan if train.labels is None else adjusted_rand_index(train.labels, posterior.cluster),
                "held_out": posterior.perplexity(test, progress=False),
                "K": int(last["clusters"]), "M": int(last["topics"]), "omega": last["document_concentration"],
                "CPU_s": found.provenance["cpu_seconds"],
            }  # fmt: skip


def as_markdown(table: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table with one line per number of topics at the start, and the differences of the means."""
    kinds = {"ARI": ".3f", "held_out": ",.5g", "K": "d", "M": "d", "omega": ".3g", "CPU_s": ".1f"}
    lines = ["| corpus | topics at the start | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 2) + "|"]
    frame = pd.DataFrame(table)
    for _, seeds in frame.groupby(["corpus", "start"], sort=False):
        name, n_topics = seeds[["corpus", "start"]].iloc[0]
        cells = [", ".join(f"{value:{kind}}" for value in seeds[column]) for column, kind in kinds.items()]
        lines.append(f"| {name} | {n_topics} | " + " | ".join(cells) + " |")
    for name, of_corpus in frame.groupby("corpus", sort=False):
        means = of_corpus.groupby("start")[["ARI", "held_out"]].mean()
        lowest, highest = means.min(), means.max()
        lines.append(f"\n{name!s}: means over seeds differ by {highest['ARI'] - lowest['ARI']:.3f} of ARI")
        lines[-1] += f" and {highest['held_out'] / lowest['held_out'] - 1:.1%} of perplexity"
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = parser_of("starts", __doc__, CORPORA)
    parser.add_argument("--topics", type=int, nargs="+", default=[1, 20, 100, 300], help="at the start")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the chains (default: 0)")
    parser.add_argument("--iterations", type=int, default=Gibbs.default_iterations, help="after the start")
    given = parser.parse_args()
    if lack := lacks("data_folder", given.data_folder):
        parser.error(lack)
    table = []
    for name in given.only:
        for row in rows(name, CORPORA[name](given.data_folder), given.topics, given.seeds, given.iterations):
            table.append(row)
            print(", ".join(f"{key} {value}" for key, value in row.items()), file=sys.stderr, flush=True)
    print(as_markdown(table), end="")


if __name__ == "__main__":
    main()
