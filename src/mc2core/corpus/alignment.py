"""New documents in the columns of earlier ones: their words, the values, kinds and units of their contexts.

What the words and contexts mean is the earlier documents' and stays. Which column holds what is the new documents':
the same names as before, unless others are given.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp

from mc2core.base.checks import counted, whole
from mc2core.base.kinds import NUMBERS
from mc2core.corpus.building.columns import CONTENT_KINDS, POOLED
from mc2core.corpus.building.counts import Dropped
from mc2core.corpus.building.settings import (
    ANNDATA,
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
from mc2core.corpus.checks import KINDS, Unit, all_missing, kind_of
from mc2core.corpus.embeddings import KEY
from mc2core.corpus.matching import check_length, in_units, named

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.corpus.building.rows import Make

#: settings of an import that a corpus stores, by the type of their values
_COLUMN = (
    *("text", "bag", "counts", "labels", "id", "layer"),
    *("tokeniser", "stop_words", "date_format", "word_counts"),
)
_COLUMNS, _NUMBER = ("contexts", "keep", "separators"), ("min_letters", "max_ngram")
_CONTENT = "content"
# new names that a datasheet shows
_MAX_NAMED = 10


@dataclass(frozen=True)
class Schema:
    """What new documents follow.

    Attributes
    ----------
    what : "the model" or "the corpus", for messages
    words : V names
    columns : ``{context: names of its columns}``, None for a number
    vectors : ``{context: how many numbers a vector has}``, which no column holds
    units : ``{context: (mean, sd)}`` of the numbers and vectors that are not in their own unit
    form, settings : of the import that it came from (:mod:`mc2core.corpus.building.settings`); None and {} without one
    unused : kinds of the contexts that the import of a model's documents had and that the model does not use: they are
        read as the import read them, and keep their own columns and units
    embeddings : how they were reduced, as ``imported`` holds it; None where there were none
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
        """Names of the columns of a context, None for a number; ValueError where there is none, or it is vectors."""
        if name in self.vectors:
            raise ValueError(
                f"context {name!r} of {self.what} is vectors: a file of them ({name}=FILE.npy:vector) is needed, in "
                "Python a dense matrix of floats"
            )
        if name not in self.columns:
            known = ", ".join(sorted({*self.columns, *self.vectors})) or "none"
            raise ValueError(f"context {name!r} is none of those of {self.what}: {known}")
        return self.columns[name]

    def kind_there(self, name: str) -> str:
        """ "number", "counts" or "vector"; ValueError where there is no such context."""
        if name in self.vectors:
            return "vector"
        return "number" if self.columns_of(name) is None else "counts"

    def kind_of(self, name: str) -> str:
        """The kind of column that a context was read from, or may be; ValueError where there is no such context."""
        if name in self.unused:
            return self.unused[name]
        if name in self.vectors:
            return "vector"
        is_number = self.columns_of(name) is None
        earlier = parse_contexts(self.settings.get("contexts", ())).get(name)
        if earlier is not None and (earlier.kind in NUMBERS) == is_number:
            return earlier.kind
        return "number" if is_number else "bag"


class HasSchema(Protocol):
    """A Corpus or a Model, as far as new documents can follow it."""

    @property
    def vocabulary(self) -> list[str]:
        """V words."""

    @property
    def is_of_observations(self) -> bool:
        """Whether documents are sets of observations, not of words."""

    @property
    def context_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the columns of count contexts."""

    @property
    def context_kinds(self) -> Mapping[str, str]:
        """ "number", "counts" or "vector" for each context."""

    @property
    def vector_lengths(self) -> Mapping[str, int]:
        """How many numbers a vector of each context of vectors has."""

    @property
    def units(self) -> Mapping[str, Unit]:
        """Mean and sd of standardised numbers."""

    @property
    def imported(self) -> dict[str, Any] | None:
        """How the documents were read."""


def schema_of(like: HasSchema) -> Schema:
    """What documents like those of a corpus, or like those a model was fitted on, look like.

    Of a model these are the contexts it was fitted with, and next to them those of the import that it does not use.
    ValueError where words or columns have no names, a name
    stands for two of them, or documents are sets of observations.
    """
    if not hasattr(like, "context_kinds"):
        raise ValueError(f"like is {type(like).__name__}; a Corpus or a Posterior is needed")
    what, words = "the corpus" if hasattr(like, "content") else "the model", like.vocabulary
    if like.is_of_observations:
        raise ValueError(f"{what} is of observations; Corpus.from_observations makes a corpus of others like it")
    numbers = {name: kind == "number" for name, kind in like.context_kinds.items() if kind != "vector"}
    columns = {
        name: None if is_number else _distinct(what, f"columns of context {name!r}", like.context_names.get(name))
        for name, is_number in numbers.items()
    }
    form, settings = _stored(what, like.imported)
    earlier = parse_contexts(settings.get("contexts", ())) if what == "the model" else {}
    unused = {name: one.kind for name, one in earlier.items() if name not in like.context_kinds}
    words, embeddings = _distinct(what, "words", words), (like.imported or {}).get(KEY)
    return Schema(what, words, columns, like.vector_lengths, like.units, form, settings, unused, embeddings)


def _distinct(what: str, columns: str, names: Sequence[str] | None) -> list[str]:
    # a column of the file that is empty in all rows has no names, which is no lack of them
    known = [] if names is not None and not len(names) else named(names)
    if known is None:
        raise ValueError(f"{what} does not name its {columns}, so that documents cannot be read like those behind it")
    if len(set(known)) < len(known):
        twice = next(name for place, name in enumerate(known) if name in known[:place])
        raise ValueError(f"{what} has the name {twice!r} twice among its {columns}; documents like it cannot be read")
    return known


def _stored(what: str, imported: Any) -> tuple[str | None, dict[str, Any]]:
    """Form and settings as :func:`mc2core.corpus.building.settings.stored` has them; ValueError for anything else."""
    if imported is None:
        return None, {}
    if not isinstance(imported, dict) or not isinstance(imported.get("settings"), dict):
        raise ValueError(f"what {what} stores of its import is damaged: {str(imported)[:60]!r}")
    for name, value in imported["settings"].items():
        is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        fits = (name in _COLUMN, isinstance(value, str)), (name in _COLUMNS, is_list), (name in _NUMBER, is_whole)
        is_either = name == "stop_words" and is_list  # a language, or the words themselves
        if not is_either and (True, True) not in fits:
            raise ValueError(f"what {what} stores of its import is damaged: {name!r} is {str(value)[:60]!r}")
    return str(imported.get("form")), dict(imported["settings"])


def files_of(imported: Mapping[str, Any] | None) -> set[str]:
    """Digests of the files, or folders of texts, that the documents were imported from, as far as they are known."""
    known = imported or {}
    return {one["digest"] for one in (known, *known.get("appended", ())) if "digest" in one}


def align(schema: Schema, form: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Settings that documents of a ``form`` are read by.

    Where the pattern comes from the same form, columns are those of then, unless others are ``given``: a context that
    is given has that column, under its name in the pattern, and its kind there where none is given.

    Returns
    -------
    settings : what is given, and what the pattern adds to it.
    optional : columns of then, which nobody named for these documents.

    Raises
    ------
    ValueError
        What is given contradicts the pattern: which words or values are counted, how words are made, or a context that
        it does not have.
    """
    makes_words = form in (TABLE, TEXTS)
    made = {name: value for name, value in schema.settings.items() if makes_words and name in WORDS}
    for setting, value in given.items():
        if setting in CHOSEN and form != UCI:
            raise ValueError(f"{setting!r} cannot be given: {schema.what} that is followed has decided it")
        if made.get(setting, value) != value:
            raise ValueError(f"{setting!r} is {value!r}, but {schema.what} that is followed has {made[setting]!r}")
    texts = [
        one if ":" in one else f"{one}:{schema.kind_of(one.partition('=')[0])}" for one in given.get("contexts", ())
    ]
    for name in parse_contexts(texts).keys() - schema.unused.keys():
        known = schema.kind_there if form == ANNDATA else schema.columns_of
        known(name)
    given = {**given, "contexts": texts}
    earlier = schema.settings if schema.form == form else made
    has_content = any(kind in given for kind in CONTENT_KINDS)
    settings = {name: one for name, one in earlier.items() if not (has_content and name in CONTENT_KINDS)} | given
    of_contexts = _by_name(earlier.get("contexts", ())) | _by_name(texts)
    known_there = schema.columns.keys() | schema.vectors.keys() | schema.unused.keys()
    settings["contexts"] = [text for name, text in of_contexts.items() if name in known_there]
    then, now, said = _roles(earlier), _roles(settings), _roles(given)
    if "separators" in settings and "separators" not in given:
        renamed = {"": ""} | {column: now[role] for role, column in then.items() if role in now}
        signs = ((text, parse_separator(text)[0]) for text in settings["separators"])
        settings["separators"] = [renamed[one] + text[len(one) :] for text, one in signs if one in renamed]
    if form == TABLE and not has_text(settings):
        settings = {name: one for name, one in settings.items() if name not in TOKENS or name in given}
    optional = {column for role, column in now.items() if column and not said.get(role)}
    return settings, optional - set(said.values())


def _by_name(texts: Sequence[str]) -> dict[str, str]:
    """Contexts as settings have them, by their names."""
    return dict(zip(parse_contexts(texts), texts, strict=True))


def _roles(settings: Mapping[str, Any]) -> dict[str, str]:
    """What columns are for, and their names."""
    contexts = parse_contexts(settings.get("contexts", ()))
    return {
        _CONTENT: next((settings[kind] for kind in CONTENT_KINDS if kind in settings), ""),
        **{f"context {name}": one.column for name, one in contexts.items()},
        **{name: settings[name] for name in ("labels", "id") if name in settings},
        **{f"keep {column}": column for column in settings.get("keep", ())},
    }


def lacking(corpus: Corpus, settings: Mapping[str, Any], optional: Collection[str]) -> list[Dropped]:
    """Columns beside words and contexts that ``settings`` name, and that ``corpus`` was made without."""
    kept = [column for column in (settings.get("id"), *settings.get("keep", ())) if column in optional]
    gone = [Dropped("columns", 1, f"{name!r}, not among those given") for name in kept if name not in corpus.documents]
    if settings.get("labels") in optional and corpus.labels is None:
        gone.append(
            Dropped("columns", 1, f"the labels {settings['labels']!r}, not among those given or not in every document")
        )
    return gone


@dataclass(frozen=True)
class New:
    """Names that get columns: ``words``, and ``values`` of each context of counts that has new ones."""

    words: list[str]
    values: dict[str, list[str]]

    def told(self) -> list[str]:
        """Numbers and names, for a datasheet."""
        lists = {"words": self.words, **{f"values of {name}": names for name, names in self.values.items()}}
        more = {what: ", ..." if len(names) > _MAX_NAMED else "" for what, names in lists.items()}
        return [
            f"{counted(len(names), what)}: {', '.join(map(repr, names[:_MAX_NAMED]))}{more[what]}"
            for what, names in lists.items()
            if names
        ]


def extended(schema: Schema, corpus: Corpus, least: int) -> tuple[Schema, New]:
    """``schema`` with columns for the words and values of ``corpus`` that it lacks, behind its own.

    Parameters
    ----------
    corpus : its words, and columns of contexts that the pattern has, are named; other contexts are not looked at.
    least : a name gets a column where so many documents of ``corpus`` have it.
    """
    least, own = whole("new_columns", least), schema_of(corpus)
    words = _new_names(corpus.content, own.words, schema.words, least)
    values, columns = {}, dict(schema.columns)
    for name, known in schema.columns.items():
        names = own.columns.get(name)
        if known is None or names is None:
            continue
        if new := _new_names(corpus.contexts[name], names, known, least):
            values[name], columns[name] = new, [*known, *new]
    return replace(schema, words=[*schema.words, *words], columns=columns), New(words, values)


def new_to(like: HasSchema, corpus: Corpus) -> New:
    """The names of words and values of ``corpus``, which follows ``like``, that this has not."""
    before, now = schema_of(like), schema_of(corpus)
    values = {
        name: names[len(before.columns_of(name) or ()) :]
        for name, names in now.columns.items()
        if names is not None and name not in before.unused
    }
    return New(now.words[len(before.words) :], {name: new for name, new in values.items() if new})


def _new_names(counts: sp.csr_matrix, names: Sequence[str], known: Sequence[str], least: int) -> list[str]:
    """Those ``names`` of columns, in their order, that ``least`` rows have and that are not ``known``."""
    rows, before = np.bincount(counts.indices, minlength=len(names)), set(known)
    return [name for name, n in zip(names, rows.tolist(), strict=True) if n >= least and name not in before]


def conform(make: Make, corpus: Corpus, schema: Schema) -> tuple[Corpus, list[Dropped]]:
    """The documents of ``corpus`` in the columns of ``schema``.

    Words and values that the pattern lacks are left out and counted. A context that the corpus lacks is missing in all
    documents; contexts that are ``unused`` stay as they are.

    Raises
    ------
    ValueError
        A context that the pattern lacks or has of another kind, or no word that it has.
    """
    lost = f"unknown to {schema.what}"
    content, unknown = _in_columns(corpus.content, corpus.vocabulary, schema.words)
    dropped = [Dropped("words", unknown[0], lost), Dropped("tokens", unknown[1], f"of a word {lost}")]
    if content.nnz == 0 < corpus.content.nnz:
        raise ValueError(f"no word of the new documents is among the {len(schema.words)} words of {schema.what}")
    contexts: dict[str, Any] = {}
    for name, context in corpus.contexts.items():
        if name in schema.unused:
            continue
        kind, wanted = kind_of(context), schema.kind_there(name)
        if kind != wanted:
            raise ValueError(f"context {name!r} is read as {KINDS[kind]}, but {schema.what} has {KINDS[wanted]} there")
    for name in (*schema.columns, *schema.vectors):
        kind, columns = schema.kind_there(name), schema.columns.get(name)
        if name not in corpus.contexts:
            dropped.append(Dropped("contexts", 1, f"{name}, which was not given: missing in every document"))
            size = schema.vectors.get(name, len(columns or ()))
            contexts[name] = all_missing(kind, corpus.n_documents, size)
        elif columns is not None:
            names = _distinct("the corpus", f"columns of context {name!r}", corpus.context_names.get(name))
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
    counts: sp.csr_matrix, names: Sequence[str], wanted: Sequence[str], others: str | None = None
) -> tuple[sp.csr_matrix, tuple[int, int]]:
    """(J, A) counts of ``names`` as (J, B) counts of the ``wanted``, and how many names and counts are of others.

    The others are left out, or counted as ``others`` where that is among the wanted. Where ``names`` are the first of
    the wanted, in their order, what is returned shares the arrays of ``counts``.
    """
    place = {name: column for column, name in enumerate(wanted)}
    other = -1 if others is None else place.get(others, -1)
    column_of = np.array([place.get(name, other) for name in names], dtype=np.int32)
    if np.array_equal(column_of, np.arange(len(names))):  # the same arrays do, whose copies may be gigabytes
        found = sp.csr_matrix((counts.data, counts.indices, counts.indptr), shape=(counts.shape[0], len(wanted)))
        found.has_canonical_format = True
        return found, (0, 0)
    columns = column_of[counts.indices]
    known = columns >= 0
    kept = np.concatenate([[0], np.cumsum(known)])[counts.indptr]
    found = sp.csr_matrix((counts.data[known], columns[known], kept), shape=(counts.shape[0], len(wanted)))
    found.sum_duplicates()
    seen = np.bincount(counts.indices, minlength=len(names)) > 0
    return found, (int((seen & (column_of < 0)).sum()), int(counts.data[~known].sum(dtype=np.int64)))
