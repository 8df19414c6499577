"""Lists of texts and data frames to a corpus: what ``mc2 import`` does with files, from Python.

A corpus offers these functions as its own, so its class, ``make``, is handed to them and not imported.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import did_you_mean
from mc2core.corpus.building.cells import is_missing
from mc2core.corpus.building.columns import ContextColumn, Layout
from mc2core.corpus.building.counts import VocabularyRule
from mc2core.corpus.building.rows import Make, corpus_of_rows
from mc2core.corpus.building.tokens import Tokenise, Tokeniser

_TEXT, _LABEL = "texts", "labels"


def from_texts(
    make: Make,
    texts: Iterable[str],
    contexts: Mapping[str, Any] | None = None,
    labels: Sequence[Any] | None = None,
    *,
    documents: pd.DataFrame | None = None,
    vocabulary: Sequence[str] | None = None,
    tokenise: Tokenise | None = None,
    stop_words: Any = "default",
    min_letters: int | None = None,
    ngrams: int = 1,
    min_documents: int = 1,
    max_share: float = 1.0,
    max_words: int | None = None,
    word_counts: str = "raw",
) -> Any:
    """See :meth:`mc2core.Corpus.from_texts`."""
    if isinstance(texts, str):
        raise ValueError("texts is one text; a list of texts, one a document, is needed")
    columns: dict[str, Any] = {_TEXT: list(texts)}
    layout_contexts: dict[str, ContextColumn] = {}
    given: dict[str, Any] = {}
    for name, values in (contexts or {}).items():
        if sp.issparse(values) or (isinstance(values, np.ndarray) and values.ndim == 2):
            given[name] = values  # counts, checked by Corpus
            continue
        columns[f"contexts[{name!r}]"] = listed = list(values)
        layout_contexts[name] = ContextColumn(f"contexts[{name!r}]", _kind_of(listed))
    if labels is not None:
        columns[_LABEL] = list(labels)
    n_documents = len(columns[_TEXT])
    for name, listed in columns.items():
        if len(listed) != n_documents:
            raise ValueError(f"{name} has {len(listed)} entries, but there are {n_documents} texts")
    rule = _rule(vocabulary, min_documents, max_share, max_words)
    layout = Layout(
        _TEXT,
        contexts=layout_contexts,
        labels=None if labels is None else _LABEL,
        tokeniser=Tokeniser(tokenise, stop_words=stop_words, min_letters=min_letters, ngrams=ngrams),
        separators={"": None},
        word_counts=word_counts,
    )
    rows = zip(*(columns[name] for name in layout.columns), strict=True)
    placed = ((f"index {place}", row) for place, row in enumerate(rows))
    corpus, _ = corpus_of_rows(make, "texts", placed, layout, vocabulary, rule)
    return _complete(make, corpus, given, contexts or {}, documents)


def _rule(
    vocabulary: Sequence[str] | None, min_documents: int, max_share: float, max_words: int | None
) -> VocabularyRule | None:
    rule = VocabularyRule(min_documents, max_words, max_share)
    if vocabulary is None:
        return rule
    if rule != VocabularyRule():
        raise ValueError("a given vocabulary is kept as it is: min_documents, max_share and max_words are for none")
    return None


def _kind_of(values: Sequence[Any]) -> str:
    """ "number", "date" or "bag": what the values that are there are."""
    present = [value for value in values if not is_missing(value)]
    if present and all(isinstance(value, datetime.date | np.datetime64) for value in present):
        return "date"
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in present):
        return "number"
    return "bag"


def _complete(
    make: Make, corpus: Any, given: Mapping[str, Any], order: Iterable[str], documents: pd.DataFrame | None
) -> Any:
    """The corpus with contexts that are counts already, in their place, and the table of documents."""
    if not given and documents is None:
        return corpus
    return make(
        corpus.content,
        corpus.vocabulary,
        {name: given[name] if name in given else corpus.contexts[name] for name in order},
        corpus.labels,
        documents,
        context_names=corpus.context_names,
        label_names=corpus.label_names,
    )


def from_dataframe(
    make: Make,
    frame: pd.DataFrame,
    text: str | None = None,
    *,
    bag: str | None = None,
    contexts: Mapping[str, str] | Sequence[str] = (),
    labels: str | None = None,
    id: str | None = None,
    keep: Sequence[str] = (),
    separator: str | None = None,
    vocabulary: Sequence[str] | None = None,
    tokenise: Tokenise | None = None,
    stop_words: Any = "default",
    min_letters: int | None = None,
    ngrams: int = 1,
    min_documents: int = 1,
    max_share: float = 1.0,
    max_words: int | None = None,
    word_counts: str = "raw",
) -> Any:
    """See :meth:`mc2core.Corpus.from_dataframe`."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"frame is {type(frame).__name__}; a pandas DataFrame is needed")
    content = [(kind, column) for kind, column in (("text", text), ("bag", bag)) if column is not None]
    if len(content) != 1:
        raise ValueError("give the column of the words, either as 'text' or as 'bag'")
    for name, several in (("contexts", contexts), ("keep", keep)):
        if isinstance(several, str):
            raise ValueError(f"{name} is {several!r}; a list of columns is needed: [{several!r}]")
    columns = {}
    for name, column in contexts.items() if isinstance(contexts, Mapping) else ((one, one) for one in contexts):
        columns[name] = ContextColumn(column, _kind_of(_cells(frame, column)))
    layout = Layout(
        content[0][1],
        content[0][0],
        columns,
        labels=labels,
        id=id,
        keep=keep,
        tokeniser=Tokeniser(tokenise, stop_words=stop_words, min_letters=min_letters, ngrams=ngrams),
        separators={"": separator},
        word_counts=word_counts,
    )
    cells = [_cells(frame, column) for column in layout.columns]
    placed = ((f"row {index!r}", row) for index, row in zip(frame.index, zip(*cells, strict=True), strict=True))
    rule = _rule(vocabulary, min_documents, max_share, max_words)
    return corpus_of_rows(make, "frame", placed, layout, vocabulary, rule)[0]


def _cells(frame: pd.DataFrame, name: str) -> list[Any]:
    """The values of a column, None where one is missing."""
    if name not in frame.columns:
        raise ValueError(f"frame has no column {name!r}{did_you_mean(name, frame.columns)}")
    column = frame[name]
    if not isinstance(column, pd.Series):
        raise ValueError(f"frame has the column {name!r} twice")
    return [None if is_na else value for value, is_na in zip(column.tolist(), column.isna(), strict=True)]
