"""Build the papers' corpora of Wikipedia and PubMed from shards (:mod:`mc2papers.datasets.dumps.shards`).

A reader takes its input files by role and its settings as keywords. It reports which data were dropped, and why.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mc2core.corpus import Corpus
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.building.letters import STOP_WORDS
from mc2papers.datasets.dumps import categorygraph, pubmed, shards, wikipedia
from mc2papers.datasets.dumps.vocabulary import count_vocabulary, read_vocabulary

Files = Mapping[str, Sequence[Path]]
"""Input files by role: "shards", "vocabulary", "writers", ..."""
# names of parsers' counts that are totals and not reasons for dropping a record
_TOTALS = ("pages", "articles", "citations", "documents", "deletions")
# pages that are dropped here, but that other counts of the same dumps include in the articles
_ALMOST_ARTICLES = ("disambiguation",)


@dataclass
class Reading:
    """Results of a reader.

    dropped : which data were dropped, and why
    notes : rules by which documents and words were counted
    warnings : warnings, for example about a truncated file
    files : counts of the parser by file
    """

    corpus: Corpus
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: dict[str, Counter[str]] = field(default_factory=dict)


def read_wikipedia(
    files: Files,
    seed: int,
    *,
    vocabulary: int | str | None,
    min_letters: int,
    drop_stop_words: bool,
    contexts: Sequence[str],
    root: str,
) -> Reading:
    """Read articles of dumps (UAI16, section 5).

    Parameters
    ----------
    files : "shards"; "vocabulary" (one word list) if ``vocabulary`` is a name; "writers"
        (:func:`mc2papers.datasets.dumps.wikipedia.parse_first_writers`) for the context "writer"; "links" and, for
        newer dumps, "targets" for the context "topic".
    seed : not used, because nothing is random.
    vocabulary : number of most frequent words, None for all words, or the name of a word list.
    contexts : any of "category", "writer" and "topic".
    root : the category whose subcategories are the top-level categories of the context "topic".
    """
    chosen = shards.choose(files["shards"], counted=_ALMOST_ARTICLES)
    gathered = _gather(chosen, files, vocabulary, min_letters, drop_stop_words)
    warnings = wikipedia.add_writers(gathered, files["writers"]) if "writer" in contexts else []
    if "topic" in contexts:
        targets = [categorygraph.read_targets(path) for path in files["targets"]]
        pages = categorygraph.category_pages(chosen.shards)
        links = categorygraph.read_links(files["links"][0], pages, targets[0] if targets else None)
        categorygraph.add_topics(gathered, *categorygraph.nearest_tops(links, root))
    reading = _reading(gathered.corpus(contexts), chosen, gathered, "pages", "articles", _ALMOST_ARTICLES)
    reading.warnings += warnings
    return reading


def read_categories(
    files: Files, seed: int, *, n_categories: int, least_articles: int, min_letters: int, drop_stop_words: bool
) -> Reading:
    """Read the articles of sampled categories with all their words: W100 and W1000 (NIPS12, section 4.1).

    The label of an article is its sampled category. If an article has several sampled categories, its label is the
    category with the fewest articles.

    Parameters
    ----------
    files : "shards".
    seed : seed of the sampling of categories.
    n_categories : number of sampled categories; only categories with at least ``least_articles`` articles are sampled.
    """
    chosen = shards.choose(files["shards"], counted=_ALMOST_ARTICLES)
    names = wikipedia.sample_categories(chosen, n_categories, seed, least_articles)
    pooled = wikipedia.in_categories(chosen, names)
    gathered = _gather(pooled, files, None, min_letters, drop_stop_words)
    matrix, known = gathered.members["category"]
    kept = np.flatnonzero(np.isin(known, names))
    sizes = np.asarray(matrix[:, kept].sum(axis=0)).ravel()
    order = np.argsort(sizes, kind="stable")
    by_size = matrix[:, kept[order]].tocsr()
    by_size.sort_indices()  # the first entry of each row is now its smallest category
    whole = gathered.corpus([])
    corpus = Corpus(
        whole.content,
        whole.vocabulary,
        labels=order[by_size.indices[by_size.indptr[:-1]]],
        documents=whole.documents,
        label_names=[known[column] for column in kept],
    )
    reading = _reading(corpus, pooled, gathered, "pages", "articles", _ALMOST_ARTICLES)
    several = int((np.diff(by_size.indptr) > 1).sum())
    reading.notes += [
        f"{n_categories:,} categories were drawn (seed {seed}) from the categories with at least {least_articles:,} "
        f"articles; {chosen.n_documents - pooled.n_documents:,} articles are in none of them.",
        f"{several:,} articles are in several of these categories; their label is the category with the fewest "
        "articles.",
    ]
    return reading


def read_pubmed(
    files: Files,
    seed: int,
    *,
    vocabulary: int | str | None,
    min_letters: int,
    drop_stop_words: bool,
    check_tags: bool,
    contexts: Sequence[str],
    labels: str | None,
) -> Reading:
    """Read citations of PubMed (UAI16, section 5) or of PNAS (ICML14, section 4.2), which the parser has selected.

    Parameters
    ----------
    files : "shards"; "vocabulary" (one word list) if ``vocabulary`` is a name.
    seed : not used, because nothing is random.
    vocabulary : number of most frequent words, None for all words, or the name of a word list.
    check_tags : whether to keep the MeSH tags that indexers add routinely
        (:data:`mc2papers.datasets.dumps.pubmed.CHECK_TAGS`).
    contexts : any of "mesh", "mesh_major" and "year".
    labels : "mesh" or "mesh_major" for true classes, several per document; None for no labels.
    """
    parsed = [shards.read_about(shard) for shard in files["shards"]]
    reasons = sorted({reason for one in parsed for reason in one["counts"]} - {*_TOTALS, "book"})
    chosen = shards.choose(files["shards"], pubmed.deleted_keys(files["shards"]), counted=reasons)
    gathered = _gather(chosen, files, vocabulary, min_letters, drop_stop_words)
    if not check_tags:
        for name in ("mesh", "mesh_major"):
            pubmed.drop_names(gathered, name, pubmed.CHECK_TAGS)
    return _reading(gathered.corpus(contexts, labels), chosen, gathered, "citations", "documents", reasons)


def _gather(
    chosen: shards.Chosen, files: Files, vocabulary: int | str | None, min_letters: int, drop_stop_words: bool
) -> shards.Gathered:
    if isinstance(vocabulary, str):
        return shards.gather(chosen, read_vocabulary(files["vocabulary"][0], min_letters))
    stop_words = STOP_WORDS if drop_stop_words else ()
    with tempfile.TemporaryDirectory() as scratch:
        words = count_vocabulary(chosen, vocabulary, scratch, min_letters=min_letters, stop_words=stop_words)
    return shards.gather(chosen, words)


def _reading(
    corpus: Corpus,
    chosen: shards.Chosen,
    gathered: shards.Gathered,
    records: str,
    documents: str,
    counted: Sequence[str],
) -> Reading:
    """Return a corpus with the reports of its parser and of the choice of documents.

    records, documents : names of the parser's totals
    counted : reasons that were passed to ``choose``
    """
    files: dict[str, Counter[str]] = {}
    warnings: list[str] = []
    for about in map(shards.read_about, chosen.shards):
        files.setdefault(about["source"], Counter()).update(about["counts"])
        warnings += about["warnings"]
    totals: Counter[str] = sum(files.values(), Counter())
    dropped = [Dropped("records", totals[reason], reason) for reason in sorted(set(totals) - set(_TOTALS))]
    dropped += [
        Dropped(documents, chosen.repeated, "replaced by a later version"),
        Dropped(documents, chosen.deleted, "withdrawn by the source"),
        Dropped(documents, gathered.empty, "without a word of the vocabulary"),
        Dropped("tokens", gathered.outside, "stop words and words outside the vocabulary"),
    ]
    everything = totals[documents] + sum(totals[reason] for reason in counted)
    named = records if everything == totals[records] else " and ".join([documents, *counted])
    others = ", ".join(f"{n:,} {reason}" for reason, n in chosen.fates.items() if reason != shards.KEPT)
    notes = [
        f"{named} in the files: {everything:,}; distinct: {sum(chosen.fates.values()):,}. "
        f"Counted by their latest version, {chosen.fates.get(shards.KEPT, 0):,} are {documents}"
        + (f", {others}." if others else "."),
        f"A word has {shards.MIN_LETTERS} or more letters a-z; shorter ones are not counted anywhere.",
    ]
    return Reading(corpus, [one for one in dropped if one.number], notes, warnings, files)
