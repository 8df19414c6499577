"""The datasheet of a corpus: its contents, the parts left out with reasons, and the counts that a paper reports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.pages import plain
from mc2core.base.records import csv_rows
from mc2core.corpus import Corpus
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.checks import CONTENT_KINDS
from mc2core.corpus.row_blocks import count_columns, count_repeated_rows

#: largest number of words, and of values of a context, that a datasheet shows
_MAX_FREQUENT = 10
PAPER_COLUMNS = ("dataset", "quantity", "count", "source")


@dataclass(frozen=True)
class PaperCount:
    """A count as a paper prints it, such as "1.1 million", and its source in the paper."""

    count: str
    source: str


def read_paper_counts(path: str | os.PathLike[str], dataset: str) -> dict[str, PaperCount]:
    """Return the counts that papers report for a dataset, by quantity, from a CSV with the columns ``PAPER_COLUMNS``.

    Raises ValueError if the header or the length of a row is wrong, or if a quantity occurs twice.
    """
    path = Path(path)
    counts: dict[str, PaperCount] = {}
    rows = csv_rows(path)
    if tuple(next(rows, (0, []))[1]) != PAPER_COLUMNS:
        raise ValueError(f"{path}: the header must be {','.join(PAPER_COLUMNS)}")
    for line, (name, quantity, count, source) in rows:
        if name == dataset:
            if quantity in counts:
                raise ValueError(f"{path}, line {line} gives {dataset}, {quantity} a second time")
            counts[quantity] = PaperCount(count, source)
    return counts


def quantities(corpus: Corpus) -> dict[str, str]:
    """Return the entries of a datasheet as texts, by quantity.

    The entries describe numbers of documents, words and tokens, documents with the same counts as an earlier one, the
    most frequent words, contexts and labels. For observations, the mean and sd of each coordinate replace the words. If
    ``documents`` has a column "part" (an official split), the documents of each part are counted. For a context of
    counts, the entries are the number of values, the mean number of values per document and the most frequent values.
    For a context of numbers, the entry is the range in the original unit. The share of missing values is given for all
    contexts.
    """
    lengths = corpus.document_lengths
    singular, columns, tokens = "word", "words", "tokens"
    if corpus.is_of_observations:
        singular, columns, tokens = "observation", CONTENT_KINDS[corpus.content_kind], "observations"
    sheet = {
        "documents": f"{corpus.n_documents:,}",
        columns: f"{corpus.n_words:,}",
        tokens: f"{corpus.n_tokens:,}",
        f"{tokens} per document, least / mean / most": f"{lengths.min():,} / {lengths.mean():,.1f} / {lengths.max():,}",
        f"documents without {'an' if corpus.is_of_observations else 'a'} {singular}": _share(
            int((lengths == 0).sum()), corpus.n_documents
        ),
    }
    if corpus.observations is not None:
        of_all = np.asarray(corpus.observations)
        for name, mean, sd in zip(corpus.vocabulary, of_all.mean(axis=0), of_all.std(axis=0), strict=True):
            sheet[f"{name}: mean, sd"] = f"{mean:.6g}, {sd:.6g}"
    else:
        repeated = count_repeated_rows(corpus.content)
        sheet["documents with the same words as an earlier one"] = _share(repeated, corpus.n_documents)
        if corpus.has_vocabulary:
            sheet["words: most frequent"] = _most_frequent(count_columns(corpus.content)[1], corpus.vocabulary)
    if "part" in corpus.documents:
        for part, number in corpus.documents["part"].value_counts(sort=False).items():
            sheet[f"{part} documents"] = f"{number:,}"
    for name, context in corpus.contexts.items():
        present = ~corpus.missing(name)
        if sp.issparse(context):
            spread, _ = count_columns(context)
            sheet[f"{name}: values"] = f"{context.shape[1]:,}"
            sheet[f"{name}: values in one document only"] = f"{(spread == 1).sum():,}"
            counts = np.diff(context.indptr)[present]
            if name in corpus.context_names:
                sheet[f"{name}: most frequent"] = _most_frequent(spread, corpus.context_names[name])
            sheet[f"{name}: distinct values per document"] = f"{counts.mean():.2f}" if len(counts) else "-"
        elif context.ndim == 2:
            sheet[f"{name}: numbers per document"] = f"{context.shape[1]:,}"
        else:
            mean, sd = corpus.units.get(name, (0.0, 1.0))
            values = np.asarray(context)[present] * sd + mean
            sheet[f"{name}: range"] = f"{values.min():.6g} to {values.max():.6g}" if len(values) else "-"
        sheet[f"{name}: missing"] = _share(int((~present).sum()), corpus.n_documents)
    if corpus.labels is not None:
        used = corpus.labels.indices if sp.issparse(corpus.labels) else corpus.labels
        sheet["labels in use"] = f"{len(np.unique(used)):,}"
    return sheet


def _most_frequent(numbers: np.ndarray, names: Sequence[str]) -> str:
    """Return the names with the highest numbers as a text such as "ann (12), bob (7)"."""
    places = np.argsort(-numbers, kind="stable")[:_MAX_FREQUENT].tolist()
    shown = {index: " ".join(names[index].split()) for index in places if numbers[index]}
    listed = ", ".join(
        f"{name if len(name) <= 40 else name[:37] + '...'} ({numbers[index]:,.0f})" for index, name in shown.items()
    )
    return listed or "-"


def _share(number: int, total: int) -> str:
    return f"{number:,} ({100 * number / total:.1f}%)"


def write(
    path: str | os.PathLike[str],
    title: str,
    source: str,
    corpus: Corpus,
    dropped: Sequence[Dropped] = (),
    warnings: Sequence[str] = (),
    paper: Mapping[str, PaperCount] | None = None,
    notes: Sequence[str] = (),
    files: Mapping[str, Mapping[str, int]] | None = None,
    new: Sequence[str] = (),
) -> None:
    """Write the datasheet ``path`` as Markdown.

    Parameters
    ----------
    path : path
        File to write. An old file is replaced only when the new file is complete.
    title : str
        Heading of the datasheet.
    source : str
        Origin of the data, such as "real, ...", "real excerpt, ..." or "simulated, ...".
    corpus : Corpus
    dropped : sequence of Dropped
        Parts that the reader left out. If nothing was left out, the datasheet reports "Nothing."
    warnings : sequence of str
        Facts that affect the figures, such as a truncated file that was accepted.
    paper : mapping, optional
        Counts of :func:`read_paper_counts`, which are shown next to the counts of the corpus.
    notes : sequence of str
        Sentences on the rules of counting.
    files : mapping, optional
        Counts in each file, by file and quantity.
    new : sequence of str
        Documents, words and values that were added to an earlier corpus.
    """
    ours, paper = quantities(corpus), paper or {}
    names = [*ours, *(name for name in paper if name not in ours)]
    table = [["quantity", "here"], ["---", "---"], *([name, ours.get(name, "-")] for name in names)]
    if paper:
        printed = [paper.get(name, PaperCount("", "")) for name in names]
        beside = [("paper", "source in the paper"), ("---", "---"), *((one.count, one.source) for one in printed)]
        table = [[*row, *extra] for row, extra in zip(table, beside, strict=True)]
    lines = [f"# {plain(title)}", "", f"Source: {plain(source)}", ""]
    lines += ["| " + " | ".join(map(plain, row)) + " |" for row in table]
    if new:
        lines += ["", "## New", "", *(f"- {plain(one)}" for one in new)]
    lines += ["", "## Left out", ""]
    nonzero = [one for one in dropped if one.number]
    lines += [f"- {plain(str(one))}" for one in nonzero] or ["Nothing."]
    if notes:
        lines += ["", "## How it was counted", "", *(f"- {plain(one)}" for one in notes)]
    if files:
        columns = sorted({column for counts in files.values() for column in counts})
        lines += ["", "## Files", "", f"| file | {' | '.join(map(plain, columns))} |", "|---|" + "---|" * len(columns)]
        for file, counts in files.items():
            lines.append("| " + " | ".join([plain(file), *(f"{counts.get(column, 0):,}" for column in columns)]) + " |")
    if warnings:
        lines += ["", "## Warnings", "", *(f"- {plain(one)}" for one in warnings)]
    with storage.replacing(path) as stream:
        stream.write("\n".join(lines) + "\n")
