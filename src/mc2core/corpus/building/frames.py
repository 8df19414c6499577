"""Conversion of lists of texts and of data frames to a corpus, the Python counterpart of ``mc2 import``.

The class Corpus calls these functions and passes itself as ``make``, because importing it here would be circular.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import counted, did_you_mean, mapping, once, several, shown
from mc2core.corpus import alignment
from mc2core.corpus.building.cells import Missing, is_missing
from mc2core.corpus.building.columns import ContextColumn, Layout
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.building.rows import Make, corpus_of_rows
from mc2core.corpus.building.settings import (
    CHOSEN,
    FUNCTION,
    NONE,
    TABLE,
    TEXTS,
    WORDS,
    codes_of,
    complete,
    layout_of,
    missing_of,
    rule_of,
    stored,
    tokeniser_of,
)
from mc2core.corpus.building.tokens import Tokenise
from mc2core.corpus.checks import NUMBERS, kind_of

logger = logging.getLogger(__name__)

_TEXT, _LABELS = "texts", "labels"


def from_texts(
    make: Make,
    texts: Iterable[str],
    contexts: Mapping[str, Any] | None,
    labels: Sequence[Any] | None,
    documents: pd.DataFrame | None,
    embeddings: Any,
    like: Any,
    tokenise: Tokenise | None,
    options: dict[str, Any],
) -> Any:
    """Implement :meth:`mc2core.Corpus.from_texts`; ``options`` is the result of :func:`settings_of`."""
    if isinstance(texts, str):
        raise ValueError("texts is a single text; give a list with one text per document")
    schema = _schema(like)
    settings = complete(options if schema is None else alignment.align(schema, TEXTS, options)[0])
    missing = missing_of(settings)
    columns: dict[str, Any] = {_TEXT: _to_list(_TEXT, texts)}
    layout_contexts: dict[str, ContextColumn] = {}
    counts: dict[str, Any] = {}
    for name, values in mapping("contexts", contexts or {}).items():
        if sp.issparse(values) or (isinstance(values, np.ndarray) and values.ndim == 2):
            counts[name] = values  # checked by Corpus
            continue
        columns[f"contexts[{name!r}]"] = listed = _to_list(f"contexts[{name!r}]", values)
        layout_contexts[name] = ContextColumn(f"contexts[{name!r}]", _kind_of(name, listed, schema, missing))
    if labels is not None:
        columns[_LABELS] = _to_list(_LABELS, labels)
    n_documents = len(columns[_TEXT])
    for name, listed in columns.items():
        if len(listed) != n_documents:
            entries = counted(len(listed), "entries")
            raise ValueError(f"{name} has {entries}, but texts has {n_documents:,}")
    layout = Layout(
        _TEXT,
        contexts=layout_contexts,
        labels=None if labels is None else _LABELS,
        tokeniser=tokeniser_of(settings, tokenise),
        separators={"": None},
        word_counts=settings["word_counts"],
        missing=missing,
    )
    rows = zip(*(columns[name] for name in layout.columns), strict=True)
    placed = ((f"index {index}", row) for index, row in enumerate(rows))
    of_words = settings.get("vocabulary"), rule_of(settings)
    followed = None if schema is None else schema.words
    corpus, dropped = corpus_of_rows(make, "texts", placed, layout, *of_words, followed=followed)
    if counts or documents is not None:
        corpus = _with_counts(make, corpus, counts, contexts or {}, documents, schema)
    if isinstance(texts, pd.Series):
        corpus.set_index(texts.index)
    corpus.imported = stored(TEXTS, {name: settings[name] for name in (*WORDS, *CHOSEN, "missing") if name in settings})
    corpus = corpus if embeddings is None else corpus.with_embeddings(embeddings, like)
    return _reindex(make, corpus, schema, dropped, missing)


def from_dataframe(
    make: Make,
    frame: pd.DataFrame,
    options: dict[str, Any],
    *,
    text: str | None,
    bag: str | None,
    contexts: Mapping[str, str] | Sequence[str],
    labels: str | None,
    id: str | None,
    keep: Sequence[str],
    separator: str | None,
    embeddings: Any,
    like: Any,
    tokenise: Tokenise | None,
) -> Any:
    """Implement :meth:`mc2core.Corpus.from_dataframe`; ``options`` is the result of :func:`settings_of`."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"frame is {type(frame).__name__}; a pandas DataFrame is needed")
    for name, columns_given in (("contexts", contexts), ("keep", keep)):
        if isinstance(columns_given, str):
            raise ValueError(f"{name} is {columns_given!r}; a list of columns is needed: [{columns_given!r}]")
        several(name, columns_given)
    if not isinstance(separator, str | None):
        raise ValueError(f"separator is {shown(separator)}; a sign such as ';' is needed")
    frame, schema = frame.rename(columns=str), _schema(like)
    one_each = {"text": text, "bag": bag, "labels": labels, "id": id}
    options |= {name: str(column) for name, column in one_each.items() if column is not None}
    options |= {"keep": [str(column) for column in keep]} if len(keep) else {}
    options |= {"separators": [separator]} if separator is not None else {}
    columns = contexts if isinstance(contexts, Mapping) else once(((str(one), one) for one in contexts), "context")
    options["contexts"] = [
        f"{name}={column}:{_kind_of(name, _cells(frame, str(column)), schema, missing_of(options))}"
        for name, column in columns.items()
    ]
    settings, optional = (options, set[str]()) if schema is None else alignment.align(schema, TABLE, options)
    settings = complete(settings, NONE)
    layout = layout_of(settings, optional, tokenise).among(list(frame.columns), "frame")
    cells = [_cells(frame, column) for column in layout.columns]
    placed = ((f"row {index!r}", row) for index, row in zip(frame.index, zip(*cells, strict=True), strict=True))
    of_words = settings.get("vocabulary"), rule_of(settings)
    followed = None if schema is None else schema.words
    corpus, dropped = corpus_of_rows(make, "frame", placed, layout, *of_words, followed=followed)
    corpus.imported = stored(TABLE, settings)
    corpus.set_index(frame.index)
    corpus = corpus if embeddings is None else corpus.with_embeddings(embeddings, like)
    dropped += alignment.missing_columns(corpus, settings, optional)
    return _reindex(make, corpus, schema, dropped, layout.missing)


def _schema(like: Any) -> alignment.Schema | None:
    return None if like is None else alignment.schema_of(like)


def settings_of(tokenise: Tokenise | None, stop_words: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options as settings of an import. Stop words that the user did not give are left out."""
    settings = {name: one for name, one in options.items() if one is not None}
    if "missing" in settings:
        settings["missing"] = codes_of(settings["missing"])
    if "vocabulary" in settings:
        settings["vocabulary"] = [str(word) for word in several("vocabulary", settings["vocabulary"])]
    if stop_words is None or isinstance(stop_words, str):
        settings["stop_words"] = NONE if stop_words is None else stop_words
    elif isinstance(stop_words, Iterable):
        settings["stop_words"] = list(stop_words)
    return settings if tokenise is None else settings | {"tokeniser": FUNCTION}


def _kind_of(name: str, values: Sequence[Any], schema: alignment.Schema | None, missing: Missing) -> str:
    """Return the kind of a column: "number", "date" or "bag" from its values, or the kind in ``schema`` if given."""
    present = [value for value in values if not (is_missing(value) or missing.code_of(value))]
    if present and all(isinstance(value, datetime.date | np.datetime64 | pd.Period) for value in present):
        value_kind = "date"
    elif all(isinstance(value, int | float | np.number | Decimal) and not isinstance(value, bool) for value in present):
        value_kind = "number"
    else:
        value_kind = "bag"
    if schema is None:
        return value_kind
    kind = schema.kind_of(name)
    return value_kind if kind in NUMBERS and value_kind == "date" else kind


def _with_counts(
    make: Make,
    corpus: Any,
    counts: Mapping[str, Any],
    order: Iterable[str],
    documents: pd.DataFrame | None,
    schema: alignment.Schema | None,
) -> Any:
    """Return the corpus with matrices of ``counts`` as contexts, contexts in the given ``order``, and ``documents``.

    With a ``schema``, the columns of a matrix of counts have the names in the schema. Raises ValueError if the number
    of columns differs from the schema.
    """
    names = dict(corpus.context_names)
    for name, matrix in counts.items():
        if schema is not None and kind_of(matrix) == "counts":
            names[name] = columns = schema.columns_of(name) or []
            if matrix.shape[1] != len(columns):
                n_columns, n_names = matrix.shape[1], len(columns)
                raise ValueError(f"contexts[{name!r}] has {n_columns} columns, but {schema.what} has {n_names} there")
    return make(
        corpus.content,
        corpus.vocabulary,
        {name: counts[name] if name in counts else corpus.contexts[name] for name in order},
        corpus.labels,
        documents,
        context_names=names,
        label_names=corpus.label_names,
    )


def _reindex(
    make: Make, corpus: Any, schema: alignment.Schema | None, dropped: Sequence[Dropped], missing: Missing
) -> Any:
    """Return the corpus with the words and contexts of a schema, if given, and log the parts that were left out.

    Without a schema, only the codes that were read as ``missing`` values are logged.
    """
    what, lost = "the corpus", missing.dropped()
    if schema is not None:
        corpus, unknown = alignment.reindex_to_schema(make, corpus, schema)
        what, lost = "the new documents", [*dropped, *unknown]
    if lost:
        logger.warning("left out of %s: %s", what, "; ".join(map(str, lost)))
    return corpus


def _cells(frame: pd.DataFrame, name: str) -> list[Any]:
    """Return the values of a column, None for missing values. Raises ValueError unless the column exists once."""
    if name not in frame.columns:
        raise ValueError(f"frame has no column {name!r}{did_you_mean(name, frame.columns)}")
    column = frame[name]
    if not isinstance(column, pd.Series):
        raise ValueError(f"frame has the column {name!r} twice")
    return _to_list(name, column)


def _to_list(name: str, values: Any) -> list[Any]:
    """Return the values of a column or list; missing values of pandas become None, and categories texts."""
    if not isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        return several(name, values)
    column = pd.Series(values)
    if isinstance(column.dtype, pd.CategoricalDtype):
        names = [str(one) for one in column.cat.categories.tolist()]
        return [None if code < 0 else names[code] for code in column.cat.codes.tolist()]
    listed = [None if is_na else value for value, is_na in zip(column.tolist(), column.isna().tolist(), strict=True)]
    is_dictionary = str(column.dtype).startswith("dictionary<")  # the categories of arrow
    return [value if value is None else str(value) for value in listed] if is_dictionary else listed
