"""Alignment of new documents with earlier documents: the same words, context values, kinds and units.

The words and contexts of the aligned corpus have the same columns as in the earlier documents. The names of the columns
in the new file default to the names in the earlier file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.base.checks import counted, whole
from mc2core.corpus.building.columns import CONTENT_KINDS, POOLED
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.building.settings import (
    CHOSEN,
    TABLE,
    TEXTS,
    TOKENS,
    UCI,
    WORDS,
    has_text,
    parse_contexts,
    parse_separator,
)
from mc2core.corpus.checks import KINDS, NUMBERS, Unit, all_missing, kind_of
from mc2core.corpus.embeddings import KEY, check_reduction
from mc2core.corpus.matching import check_length, in_units, named

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.corpus.building.rows import Make

#: settings of an import that a corpus stores, by the type of their values
_COLUMN = ("text", "bag", "counts", "labels", "id", "tokeniser", "stop_words", "date_format", "word_counts")
_COLUMNS, _NUMBER = ("contexts", "keep", "separators", "missing"), ("min_letters", "max_ngram")
_CONTENT = "content"
# largest number of new names that a datasheet shows
_MAX_NAMED = 10


@dataclass(frozen=True)
class Schema:
    """Words and contexts to which new documents are aligned.

    Attributes
    ----------
    what : str
        "the model" or "the corpus", for messages.
    words : list of str
        The V words.
    columns : dict
        Names of the values of each context of counts, by context; None for a context of numbers.
    vectors : dict of int
        Length of the vectors of each vector context.
    units : dict
        (mean, sd) of each context of numbers or vectors that is not in the original unit.
    form, settings
        Form and settings of the earlier import (:mod:`mc2core.corpus.building.settings`); None and {} without import.
    unused : dict of str
        Kinds of the contexts that were imported with a model's documents but that the model does not use. These
        contexts are read as in that import, and keep their own columns and units.
    embeddings : dict or None
        Reduction of the embeddings, as in ``imported``; None without embeddings.
    """

    what: str
    words: list[str]
    columns: dict[str, list[str] | None]
    vectors: Mapping[str, int]
    units: Mapping[str, Unit]
    form: str | None
    settings: dict[str, Any]
    unused: Mapping[str, str] = field(default_factory=dict)
    embeddings: Mapping[str, Any] | None = None

    def columns_of(self, name: str) -> list[str] | None:
        """Return the names of the values of a context, or None for a context of numbers.

        Raises ValueError if the context is absent or has vectors.
        """
        if name in self.vectors and name == (self.embeddings or {}).get("name"):
            raise ValueError(f"context {name!r} of {self.what} is embeddings; give them with --embeddings FILE.npy (in "
                             "Python embeddings=)")  # fmt: skip
        if name in self.vectors:
            raise ValueError(
                f"context {name!r} of {self.what} has vectors; give a file of them ({name}=FILE.npy:vector, in "
                "Python a dense matrix of floats)"
            )
        if name not in self.columns:
            available = ", ".join(sorted({*self.columns, *self.vectors})) or "none"
            raise ValueError(f"context {name!r} is not in {self.what}, which has: {available}")
        return self.columns[name]

    def kind_there(self, name: str) -> str:
        """Return the kind of a context in the schema: "number", "counts" or "vector".

        Raises ValueError if the context does not exist.
        """
        if name in self.vectors:
            return "vector"
        return "number" if self.columns_of(name) is None else "counts"

    def kind_of(self, name: str) -> str:
        """Return the kind of column from which a context is read, such as "date" or "bag".

        Raises ValueError if the context does not exist.
        """
        if name in self.unused:
            return self.unused[name]
        is_number = self.columns_of(name) is None
        earlier = parse_contexts(self.settings.get("contexts", ())).get(name)
        if earlier is not None and (earlier.kind in NUMBERS) == is_number:
            return earlier.kind
        return "number" if is_number else "bag"


class HasSchema(Protocol):
    """Attributes of a corpus or a posterior that are needed to align new documents."""

    @property
    def vocabulary(self) -> list[str]:
        """The V words."""

    @property
    def is_of_observations(self) -> bool:
        """Whether documents are sets of observations rather than words."""

    @property
    def context_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the values of each context of counts."""

    @property
    def context_kinds(self) -> Mapping[str, str]:
        """Kind of each context: "number", "counts" or "vector"."""

    @property
    def vector_lengths(self) -> Mapping[str, int]:
        """Length of the vectors of each vector context."""

    @property
    def units(self) -> Mapping[str, Unit]:
        """Original mean and standard deviation of each standardised context."""

    @property
    def imported(self) -> dict[str, Any] | None:
        """Settings of the import of the documents."""


def schema_of(like: HasSchema) -> Schema:
    """Return the schema of the documents of a corpus, or of the documents to which a model was fitted.

    The schema of a model has the contexts of the fit and, separately, imported contexts that the fit does not use.
    Raises ValueError if words or columns have no names, if a name occurs twice, or if documents are sets of
    observations.
    """
    if not hasattr(like, "context_kinds"):
        raise ValueError(f"like is {type(like).__name__}; a Corpus or a Posterior is needed")
    what, words = "the corpus" if hasattr(like, "content") else "the model", like.vocabulary
    if like.is_of_observations:
        raise ValueError(f"{what} has observations; use Corpus.from_observations for new ones")
    numbers = {name: kind == "number" for name, kind in like.context_kinds.items() if kind != "vector"}
    columns = {
        name: None if is_number else _distinct_names(what, f"columns of context {name!r}", like.context_names.get(name))
        for name, is_number in numbers.items()
    }
    form, settings = _stored_settings(what, like.imported)
    earlier = parse_contexts(settings.get("contexts", ())) if what == "the model" else {}
    unused = {name: one.kind for name, one in earlier.items() if name not in like.context_kinds}
    words, embeddings = _distinct_names(what, "words", words), (like.imported or {}).get(KEY)
    return Schema(what, words, columns, like.vector_lengths, like.units, form, settings, unused, embeddings)


def _distinct_names(what: str, columns: str, names: Sequence[str] | None) -> list[str]:
    # a column that is empty in all rows has an empty list of names, which is valid
    checked = [] if names is not None and not len(names) else named(names)
    if checked is None:
        raise ValueError(f"{what} does not name its {columns}, so no documents can be read in its columns")
    if (is_repeated := pd.Index(checked).duplicated()).any():
        twice = checked[is_repeated.argmax()]
        raise ValueError(f"{what} has the name {twice!r} twice among its {columns}; each name stands for one column")
    return checked


def _stored_settings(what: str, imported: Any) -> tuple[str | None, dict[str, Any]]:
    """Return form and settings of the import that ``imported`` records. Raises ValueError if the record is damaged."""
    if imported is None:
        return None, {}
    if not isinstance(imported, dict) or not isinstance(imported.get("settings"), dict):
        raise ValueError(f"the import settings of {what} are damaged: {str(imported)[:60]!r}")
    for name, value in imported["settings"].items():
        is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        fits = (name in _COLUMN, isinstance(value, str)), (name in _COLUMNS, is_list), (name in _NUMBER, is_whole)
        is_either = name == "stop_words" and is_list  # a language, or the words themselves
        if not is_either and (True, True) not in fits:
            raise ValueError(f"the import settings of {what} are damaged: {name!r} is {str(value)[:60]!r}")
    return str(imported.get("form")), dict(imported["settings"])


def files_of(imported: Mapping[str, Any] | None) -> set[str]:
    """Return the known digests of the files or folders from which the documents were imported."""
    record = imported or {}
    return {one["digest"] for one in (record, *record.get("appended", ())) if "digest" in one}


def align(schema: Schema, form: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Return the settings for reading new documents in the given ``form``.

    If the earlier documents had the same form, the columns of the earlier import are the defaults. ``options`` are the
    given settings. A given context must be in the schema. If no kind is given, the context has its kind in the schema.

    Returns
    -------
    settings : dict
        The given settings, completed by the schema.
    optional : set of str
        Columns that are taken from the earlier import, and that the new documents may lack.

    Raises
    ------
    ValueError
        If the given settings select words or values, extract words in another way than the schema, or name a context
        that the schema lacks.
    """
    makes_words = form in (TABLE, TEXTS)
    word_settings = {name: value for name, value in schema.settings.items() if makes_words and name in WORDS}
    for setting, value in options.items():
        if setting in CHOSEN and form != UCI:
            raise ValueError(f"{setting!r} cannot be given: {schema.what} fixes it")
        if word_settings.get(setting, value) != value:
            raise ValueError(f"{setting!r} is {value!r}, but {schema.what} was made with {word_settings[setting]!r}")
    texts = [
        one if ":" in one else f"{one}:{schema.kind_of(one.partition('=')[0])}" for one in options.get("contexts", ())
    ]
    for name in parse_contexts(texts).keys() - schema.unused.keys():
        schema.columns_of(name)
    options = {**options, "contexts": texts}
    codes = {name: value for name, value in schema.settings.items() if name == "missing"}
    earlier = schema.settings if schema.form == form else word_settings | codes
    has_content = any(kind in options for kind in CONTENT_KINDS)
    settings = {name: one for name, one in earlier.items() if not (has_content and name in CONTENT_KINDS)} | options
    of_contexts = _by_name(earlier.get("contexts", ())) | _by_name(texts)
    known_there = schema.columns.keys() | schema.unused.keys()
    settings["contexts"] = [text for name, text in of_contexts.items() if name in known_there]
    earlier_roles, roles, option_roles = _roles(earlier), _roles(settings), _roles(options)
    if "separators" in settings and "separators" not in options:
        renamed = {"": ""} | {column: roles[role] for role, column in earlier_roles.items() if role in roles}
        signs = ((text, parse_separator(text)[0]) for text in settings["separators"])
        settings["separators"] = [renamed[one] + text[len(one) :] for text, one in signs if one in renamed]
    if form == TABLE and not has_text(settings):
        settings = {name: one for name, one in settings.items() if name not in TOKENS or name in options}
    optional = {column for role, column in roles.items() if column and not option_roles.get(role)}
    return settings, optional - set(option_roles.values())


def _by_name(texts: Sequence[str]) -> dict[str, str]:
    """Return the contexts of settings by name."""
    return dict(zip(parse_contexts(texts), texts, strict=True))


def _roles(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of columns by their role, such as "context year" or "labels"."""
    contexts = parse_contexts(settings.get("contexts", ()))
    return {
        _CONTENT: next((settings[kind] for kind in CONTENT_KINDS if kind in settings), ""),
        **{f"context {name}": one.column for name, one in contexts.items()},
        **{name: settings[name] for name in ("labels", "id") if name in settings},
        **{f"keep {column}": column for column in settings.get("keep", ())},
    }


def missing_columns(corpus: Corpus, settings: Mapping[str, Any], optional: Collection[str]) -> list[Dropped]:
    """Return the columns in ``settings``, other than words and contexts, that ``corpus`` lacks."""
    names = [column for column in (settings.get("id"), *settings.get("keep", ())) if column in optional]
    gone = [Dropped("columns", 1, f"{name!r}, not among those given") for name in names if name not in corpus.documents]
    if settings.get("labels") in optional and corpus.labels is None:
        gone.append(
            Dropped("columns", 1, f"the labels {settings['labels']!r}, not among those given or not in every document")
        )
    return gone


@dataclass(frozen=True)
class NewColumns:
    """New words, and new values of contexts of counts, for which columns are added."""

    words: list[str]
    values: dict[str, list[str]]

    def messages(self) -> list[str]:
        """Return phrases with the number and the names of new words and values, for a datasheet."""
        lists = {"words": self.words, **{f"values of {name}": names for name, names in self.values.items()}}
        suffixes = {kind: ", ..." if len(names) > _MAX_NAMED else "" for kind, names in lists.items()}
        return [
            f"{counted(len(names), kind)}: {', '.join(map(repr, names[:_MAX_NAMED]))}{suffixes[kind]}"
            for kind, names in lists.items()
            if names
        ]


def extended(schema: Schema, corpus: Corpus, least: int) -> tuple[Schema, NewColumns]:
    """Return ``schema`` with additional columns for new words and values of ``corpus``.

    Parameters
    ----------
    schema : Schema
    corpus : Corpus
        New documents, with names of words and of context values. Contexts that the schema lacks are ignored.
    least : int
        Smallest number of documents of ``corpus`` with a name for which a column is added.
    """
    least, of_corpus = whole("new_columns", least), schema_of(corpus)
    words = _new_names(corpus.content, of_corpus.words, schema.words, least)
    values, columns = {}, dict(schema.columns)
    for name, schema_names in schema.columns.items():
        names = of_corpus.columns.get(name)
        if schema_names is None or names is None:
            continue
        if new := _new_names(corpus.contexts[name], names, schema_names, least):
            values[name], columns[name] = new, [*schema_names, *new]
    return replace(schema, words=[*schema.words, *words], columns=columns), NewColumns(words, values)


def new_to(like: HasSchema, corpus: Corpus) -> NewColumns:
    """Return the words and values of the aligned ``corpus`` that ``like`` lacks."""
    before, after = schema_of(like), schema_of(corpus)
    values = {
        name: names[len(before.columns_of(name) or ()) :]
        for name, names in after.columns.items()
        if names is not None and name not in before.unused
    }
    return NewColumns(after.words[len(before.words) :], {name: new for name, new in values.items() if new})


def _new_names(counts: sp.csr_matrix, names: Sequence[str], schema_names: Sequence[str], least: int) -> list[str]:
    """Return the ``names`` that occur in at least ``least`` rows of ``counts`` and are not in ``schema_names``."""
    common = np.asarray(names, object)[np.bincount(counts.indices, minlength=len(names)) >= least]
    return [*pd.Index(common).difference(schema_names, sort=False)]


def reindex_to_schema(make: Make, corpus: Corpus, schema: Schema) -> tuple[Corpus, list[Dropped]]:
    """Return the documents of ``corpus`` with the columns of ``schema``.

    Words and values that the schema lacks are left out, and their numbers are returned. If the corpus lacks a context,
    its values are missing in all documents. Contexts in ``schema.unused`` do not change.

    Raises
    ------
    ValueError
        If a context is not in the schema or has another kind there, or if the corpus has no word of the schema.
    """
    lost = f"unknown to {schema.what}"
    content, unknown = _in_columns(corpus.content, corpus.vocabulary, schema.words)
    dropped = [Dropped("words", unknown[0], lost), Dropped("tokens", unknown[1], f"of a word {lost}")]
    if content.nnz == 0 < corpus.content.nnz:
        raise ValueError(
            f"no word of the new documents is among the {counted(len(schema.words), 'words')} of {schema.what}"
        )
    contexts: dict[str, Any] = {}
    for name, context in corpus.contexts.items():
        if name in schema.unused:
            continue
        kind, target = kind_of(context), schema.kind_there(name)
        if kind != target:
            raise ValueError(f"context {name!r} is read as {KINDS[kind]}, but {schema.what} has {KINDS[target]} there")
    check_reduction(corpus, schema.embeddings, schema.vectors, schema.what)
    for name in (*schema.columns, *schema.vectors):
        kind, columns = schema.kind_there(name), schema.columns.get(name)
        if name not in corpus.contexts:
            dropped.append(Dropped("contexts", 1, f"{name}, not given: missing in every document"))
            size = schema.vectors.get(name, len(columns or ()))
            contexts[name] = all_missing(kind, corpus.n_documents, size)
        elif columns is not None:
            names = _distinct_names("the corpus", f"columns of context {name!r}", corpus.context_names.get(name))
            contexts[name], unknown = _in_columns(corpus.contexts[name], names, columns, POOLED)
            dropped.append(Dropped(f"values of {name}", unknown[0], lost))
            dropped.append(Dropped(f"counts of {name}", unknown[1], f"of a value {lost}"))
        else:
            contexts[name] = corpus.contexts[name]
            if kind == "vector":
                check_length(name, contexts[name].shape[1], schema.what, schema.vectors[name])
    unused = {name: one for name, one in corpus.contexts.items() if name in schema.unused}
    followed: Corpus = make(
        content,
        schema.words,
        contexts | unused,
        corpus.labels,
        corpus.documents,
        context_names={name: columns for name, columns in schema.columns.items() if columns is not None}
        | {name: columns for name, columns in corpus.context_names.items() if name in unused},
        label_names=corpus.label_names,
        units=corpus.units,
    )
    followed.imported = corpus.imported
    if schema.embeddings is not None:
        followed.imported = (corpus.imported or {"form": "", "settings": {}}) | {KEY: schema.embeddings}
    followed.set_index(corpus.index)
    return in_units(followed, contexts, schema.units), [one for one in dropped if one.number]


def _in_columns(
    counts: sp.csr_matrix, names: Sequence[str], target: Sequence[str], other_name: str | None = None
) -> tuple[sp.csr_matrix, tuple[int, int]]:
    """Return ``counts`` (J, A) of ``names`` as counts of the names ``target``, (J, B).

    Names that are not in ``target`` are left out, or counted as ``other_name`` if this name is in ``target``. The
    second result is the number of names and the sum of counts that were left out. If ``target`` begins with ``names``,
    the result shares the arrays of ``counts``.
    """
    index: Any = pd.Index(np.array(target, object))
    column_of = index.get_indexer(names).astype(np.int32)
    if other_name in index:
        column_of[column_of < 0] = index.get_loc(other_name)
    if np.array_equal(column_of, np.arange(len(names))):  # arrays are shared, because copies may take gigabytes
        table = sp.csr_matrix((counts.data, counts.indices, counts.indptr), shape=(counts.shape[0], len(target)))
        table.has_canonical_format = True
        return table, (0, 0)
    columns = column_of[counts.indices]
    is_known = columns >= 0
    indptr = np.concatenate([[0], np.cumsum(is_known)])[counts.indptr]
    data = np.asarray(counts.data)[is_known]  # a slice of a read-only memory map is also read-only
    table = sp.csr_matrix((data, columns[is_known], indptr), shape=(counts.shape[0], len(target)))
    table.sum_duplicates()
    occurs = np.bincount(counts.indices, minlength=len(names)) > 0
    return table, (int((occurs & (column_of < 0)).sum()), int(counts.data[~is_known].sum(dtype=np.int64)))
