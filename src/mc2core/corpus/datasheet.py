"""The datasheet of a corpus: contents, parts left out and why, next to the counts that the paper prints."""

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
from mc2core.corpus.row_blocks import count_columns

#: names of words and of values that a sheet shows
_MAX_FREQUENT = 10
PAPER_COLUMNS = ("dataset", "quantity", "count", "source")


@dataclass(frozen=True)
class PaperCount:
    """A count that a paper prints, as it prints it ("1.1 million"), and where."""

    count: str
    source: str


def read_paper_counts(path: str | os.PathLike[str], dataset: str) -> dict[str, PaperCount]:
    """Read the rows of one dataset from a CSV of ``PAPER_COLUMNS``; returns ``{quantity: count and source}``.

    Raises ValueError for another header, a row of another length, or a duplicate quantity.
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
    """Return the entries of a datasheet: sizes, contexts, labels, and mean and sd of each number of observations.

    A column "part" in ``documents`` is the official split, and its parts are counted. Contexts of counts give how many
    values there are, how many a document has, and the share of documents without any; numeric contexts give their
    range in their own unit. Of words, those with the most tokens are named, of a context the values of most documents.
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
    elif corpus.has_vocabulary:
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
    """Return the names with the highest numbers, such as "ann (12), bob (7)"; of equal ones the first."""
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
    """Write ``datasheet.md``, whole or not at all.

    Parameters
    ----------
    source : where the data came from: "real, ...", "real excerpt, ...", "simulated, ...".
    dropped : what the reader left out; nothing at all is said as such.
    warnings : what a reader of the figures must know, such as a truncated file that was accepted.
    paper : from :func:`read_paper_counts`; quantities we do not count ourselves are listed too. Nothing: the table has
        no columns for it.
    new : what was added to an earlier corpus, or to the words and values of one; nothing: no such list.
    notes : how things were counted. files : what was in each file, ``{file: {what: number}}``.
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
