"""Prediction of next year's documents by fits that continue with new documents: ``python -m benchmarks.arrivals``.

Documents are sorted by year. SVI fits MC2 with a document level to the first years. ``Stream`` then adds the later
years block by block, with three passes or with one pass per block. Another fit starts from scratch with all
documents. For comparison, scikit-learn's online LDA continues by ``partial_fit``, and gensim's HDP, if it is
installed, by ``update``. The score of all methods is the left-to-right perplexity of the documents of the next block,
restricted to words that occur in the first years.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation

from benchmarks.cases import lacks
from benchmarks.suite import parser_of
from mc2core import Corpus, Posterior
from mc2core.inference import SVI, Stream
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2papers.baselines.lda import lda_model
from mc2papers.datasets.collections import labelled_texts, nips

_SEED, _EPOCHS, _WORD_PRIOR = 0, 10, 0.01


class Collection(NamedTuple):
    """A corpus with years. Documents up to year ``first`` are fitted; later documents up to ``last`` arrive in blocks.

    A block has ``years`` years. One document in ``every`` documents of the next block is scored.
    """

    read: Callable[[Path], Corpus]
    first: int
    last: int
    years: int
    every: int


def real_nips(data_folder: Path) -> Corpus:
    return nips.read(data_folder / "nips/nips-corpus-20111211.zip")


def addresses(data_folder: Path) -> Corpus:
    return labelled_texts.read_addresses(data_folder / "labelled/state_union.zip")[0]


COLLECTIONS = {
    "NIPS": Collection(real_nips, 1992, 1995, 1, 5),
    "State of the Union": Collection(addresses, 1981, 1996, 5, 1),
}


def in_blocks(data_folder: Path, one: Collection) -> list[Corpus]:
    """Return the block of the first years, each later block, and a block to predict, with the words of the first."""
    corpus = one.read(data_folder)
    year = np.asarray(corpus.contexts["year"])
    ends = [*range(one.first, one.last + 1, one.years), one.last + one.years]
    rows = [np.flatnonzero((year > low) & (year <= high)) for low, high in zip([-np.inf, *ends], ends, strict=False)]
    words = np.flatnonzero(np.bincount(corpus.subset(rows[0]).content.indices, minlength=corpus.n_words))
    names = [corpus.vocabulary[word] for word in words]
    return [Corpus(corpus.subset(part).content[:, words], names) for part in rows]


# -- methods: each yields a posterior after every block except the last, which is held out ---------------------------
def streamed(blocks: list[Corpus], passes: int = 3) -> Iterator[Posterior]:
    done = fit(blocks[0], MC2(), SVI(), iterations=_EPOCHS, seed=_SEED, progress=False)
    yield done.posterior
    stream = Stream(done, total_samples=sum(block.n_documents for block in blocks[:-1]), passes=passes)
    for block in blocks[1:-1]:
        yield stream.partial_fit(block).posterior


def from_scratch(blocks: list[Corpus]) -> Iterator[Posterior | None]:
    """Yield None for each block except the last, and then a fit of all blocks; a fit per block would take too long."""
    yield from [None] * (len(blocks) - 2)
    together = Corpus.concatenate(blocks[:-1])
    yield fit(together, MC2(), SVI(), iterations=_EPOCHS, seed=_SEED, progress=False).posterior


def online_lda(blocks: list[Corpus]) -> Iterator[Posterior]:
    """Yield the posterior of LDA with 100 topics after each block; LDA processes the first block ten times."""
    prior = np.full(100, 0.1)
    model = LatentDirichletAllocation(
        len(prior), doc_topic_prior=prior[0], topic_word_prior=_WORD_PRIOR, learning_method="online",
        batch_size=50, max_iter=_EPOCHS, random_state=_SEED, total_samples=sum(one.n_documents for one in blocks[:-1]),
    )  # fmt: skip
    for number, block in enumerate(blocks[:-1]):
        content = sp.csr_matrix(block.content, dtype=np.float64)
        model = model.fit(content) if number == 0 else model.partial_fit(content)
        yield of_topics(block, np.maximum(model.components_ - _WORD_PRIOR, 0.0), prior)


def hdp(blocks: list[Corpus]) -> Iterator[Posterior]:
    """Yield the posterior of gensim's HDP (150 topics) after each block; it processes the first block ten times."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import HdpModel

    names = dict(enumerate(blocks[0].vocabulary))
    model = None
    for block in blocks[:-1]:
        documents = list(Sparse2Corpus(block.content, documents_columns=False))
        if model is None:
            model = HdpModel(documents * _EPOCHS, names, random_state=_SEED)
        else:
            model.update(documents)
        alpha, topics = model.hdp_to_lda()
        # probabilities of words become expected tokens; the factor is so large that the prior is negligible
        yield of_topics(block, 1e6 * topics, np.maximum(np.asarray(alpha), 1e-6))


def of_topics(corpus: Corpus, topic_words: np.ndarray, prior: np.ndarray) -> Posterior:
    """Return a posterior from (M, V) expected tokens and the (M,) prior of a document's proportions."""
    return lda_model(
        corpus, topic_words, _WORD_PRIOR, prior, np.full((corpus.n_documents, len(prior)), 1.0 / len(prior))
    )


METHODS: dict[str, Callable[[list[Corpus]], Iterator[Posterior | None]]] = {
    "MC2, streamed": streamed,
    "MC2, streamed in one pass": partial(streamed, passes=1),
    "MC2, from scratch": from_scratch,
    "online LDA (scikit-learn)": online_lda,
    "HDP (gensim)": hdp,
}


# -- all together ----------------------------------------------------------------------------------------------------
def rows(name: str, data_folder: Path) -> Iterator[dict[str, Any]]:
    """Yield one row per method: perplexity of the next block after each block, and processor seconds of the last."""
    one = COLLECTIONS[name]
    blocks = in_blocks(data_folder, one)
    asked = [block.subset(np.arange(0, block.n_documents, one.every)) for block in blocks[1:]]
    for method, run in METHODS.items():
        if run is hdp and importlib.util.find_spec("gensim") is None:
            print("HDP (gensim): left out; gensim is not installed", file=sys.stderr)
            continue
        row: dict[str, Any] = {"corpus": name, "documents": blocks[0].n_documents, "method": method}
        found, seconds = run(blocks), 0.0
        for number, held_out in enumerate(asked):
            before = time.process_time()
            posterior = next(found)
            seconds = time.process_time() - before
            last = one.first + (number + 1) * one.years
            row[f"to {last}"] = (
                None if posterior is None else posterior.perplexity(held_out, "left_to_right", progress=False)
            )
        yield row | {"CPU s of the last block": seconds}


def as_markdown(table: list[Mapping[str, Any]]) -> str:
    """Return one Markdown table per collection."""
    parts = []
    for name in dict.fromkeys(row["corpus"] for row in table):
        chosen = [row for row in table if row["corpus"] == name]
        lines = ["| " + " | ".join(chosen[0]) + " |", "|---" * len(chosen[0]) + "|"]
        for row in chosen:
            cells = (
                "" if one is None else f"{one:.4g}" if isinstance(one, float) else str(one) for one in row.values()
            )
            lines.append("| " + " | ".join(cells) + " |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    parser = parser_of("arrivals", __doc__, COLLECTIONS)
    parser.add_argument("--out", type=Path, help="write the tables to this Markdown file")
    given = parser.parse_args()
    if lack := lacks("data_folder", given.data_folder):
        parser.error(lack)
    table: list[Mapping[str, Any]] = []
    for name in given.only:
        for row in rows(name, given.data_folder):
            table.append(row)
            print(", ".join(f"{key} {value}" for key, value in row.items()), file=sys.stderr, flush=True)
    print(as_markdown(table), end="")
    if given.out:
        given.out.write_text(as_markdown(table), encoding="utf-8")


if __name__ == "__main__":
    main()
