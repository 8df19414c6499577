"""The corpus: the only form in which engines and scores accept data."""

from __future__ import annotations

import copy
import csv
import io
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.checks import choice, counted, finite, mapping, several, whole
from mc2core.corpus.checks import (
    CONTENT_KINDS,
    KINDS,
    Context,
    Unit,
    check_context,
    check_context_name,
    check_distinct,
    check_documents,
    check_kind_of_values,
    check_labels,
    check_names,
    check_observations,
    check_unit,
    columns_of,
    count_labels,
    csr_of,
    kind_of,
    ones,
    placeholders,
    whole_counts,
)

# pandas, numba and what turns texts to counts are imported where they are used: they take longer to load than all else
if TYPE_CHECKING:
    import pandas as pd

FORMAT = "mc2core corpus 1"
#: paths of what is written to the folder of a corpus, by ``Corpus.save`` and ``mc2 import``
CORPUS_FILES = (
    r"corpus\.json|index\.csv|(observations|(content|labels|context\.[^/]+)(\.(data|indices|indptr))?)\.npy"
    r"|context\.[^/]+\.names\.txt|(label_names|vocabulary)\.txt|documents\.csv|datasheet\.md|bad_rows\.tsv"
)


class _English:
    """The default of stop words, which differs from a given "english"."""

    def __repr__(self) -> str:
        return "'english'"


ENGLISH = _English()
_META = "corpus.json"
_ROWS = 1 << 14  # documents of which a temporary array is made at a time
_TABLE_ROWS = 100_000  # of the table of documents of a saved corpus that are read at a time
_OF_WHOLE = "digest", "appended"  # of ``imported``: what says which files all documents are of
_LOADS = 3  # attempts to load a folder that another process replaces meanwhile
_CHUNK = 1 << 18  # entries that stay in the processor's cache while several things are looked at
_LARGEST = 2**31 - 1
_SHOWN_VALUES = 3  # of a context in a notebook
_SHOWN_DOCUMENTS = 5  # in a notebook


def take_rows(matrix: sp.csr_matrix, rows: np.ndarray) -> sp.csr_matrix:
    """Return ``matrix[rows]`` of a CSR matrix, reading only those rows.

    SciPy's own indexing first converts the indices to one type, which reads the whole of a memory-mapped matrix.
    """
    start = matrix.indptr[rows].astype(np.int64)
    length = matrix.indptr[rows + 1].astype(np.int64) - start
    indptr = np.concatenate([[0], np.cumsum(length)])
    positions = np.repeat(start - indptr[:-1], length) + np.arange(indptr[-1])
    taken = sp.csr_matrix(
        (np.asarray(matrix.data[positions]), np.asarray(matrix.indices[positions]), indptr),
        shape=(len(rows), matrix.shape[1]),
    )
    taken.has_canonical_format = True
    return taken


def _take(context: Context, rows: np.ndarray) -> Context:
    return take_rows(context, rows) if sp.issparse(context) else np.asarray(context[rows])


class Corpus:
    """Collection of documents, as counts of words, with their contexts.

    A corpus is usually built by :meth:`from_texts`, :meth:`from_dataframe` or ``mc2 import``. The constructor takes
    counts.

    Parameters
    ----------
    content : (J, V) sparse or dense matrix, or DataFrame, of whole, non-negative counts
        Counts of V words in J documents. A document may be empty.
    vocabulary : V different strings, optional
        The words. By default, the column names of a DataFrame.
    contexts : mapping, optional
        Contexts by name. A context is a (J,) float array of numbers (NaN if missing), a (J, A) matrix of counts, either
        sparse or dense with an integer dtype (empty row if missing), or a (J, D) dense float array of vectors (NaN for
        a missing coordinate).
    labels : (J,) ints or (J, L) sparse membership, optional
        True classes, for scores only.
    documents : pandas DataFrame of J rows, optional
        Titles, ids and other columns for tables and reports.
    context_names : ``{name: A strings}``, optional
        Names of the columns of a context of counts, such as authors.
    label_names : strings, optional
        Names of the classes.
    units : ``{name: (mean, sd)}``, optional
        Original mean and standard deviation of each context that :meth:`standardised` has scaled, so that the original
        value is the stored value * sd + mean. For vectors, both are tuples of D floats.

    Attributes
    ----------
    imported : dict or None
        Settings of the import, so that later documents can be read in the same way.
    index : pandas Index or None
        Index of the DataFrame or Series from which the documents were read. Tables of documents use the same index.
    observations : (N, D) float64 or None
        Observations, in the order of the documents, if :meth:`from_observations` built the corpus; otherwise None. If
        there are observations, ``content`` is a (J, N) matrix with one column per observation.
    content_kind : {"words", "numbers", "counts", "binary"}
        Kind of the content: words, or observations that are numbers, counts, or zeros and ones.

    Raises
    ------
    ValueError
        If the arguments are invalid. The message names the field, the document and the allowed values.

    See Also
    --------
    mc2core.fit : fits a model to a corpus.

    Examples
    --------
    >>> import mc2core
    >>> counts = [[2, 1, 0], [0, 1, 3]]
    >>> mc2core.Corpus(counts, ["apple", "tree", "iron"], contexts={"year": [1990.0, 2001.0]})
    Corpus(2 documents, 3 words, 7 tokens, contexts: year (numbers))
    """

    def __init__(
        self,
        content: Any,
        vocabulary: Sequence[str] | None = None,
        contexts: Mapping[str, Any] | None = None,
        labels: Any = None,
        documents: pd.DataFrame | None = None,
        *,
        context_names: Mapping[str, Sequence[str]] | None = None,
        label_names: Sequence[str] | None = None,
        units: Mapping[str, Unit] | None = None,
    ) -> None:
        self.content = whole_counts(content, "content")
        n_documents, n_words = self.content.shape
        if n_documents == 0:
            raise ValueError("content has no documents")
        if n_words == 0:
            raise ValueError("content has no words: it needs a column, even if every document is empty")
        given, columns, scales = (
            {} if one is None else mapping(name, one)
            for name, one in (("contexts", contexts), ("context_names", context_names), ("units", units))
        )
        self.contexts = {name: check_context(name, context, n_documents) for name, context in given.items()}
        words = columns_of(content) if vocabulary is None else vocabulary
        self._vocabulary = check_distinct(check_names(words, "vocabulary", n_words), "vocabulary")
        self.context_names: dict[str, list[str]] = {}
        for name, names in columns.items():
            known = self.contexts.get(name)
            if known is None or not sp.issparse(known):
                raise ValueError(f"context_names names {name!r}, which is not a count context of the corpus")
            self.context_names[name] = check_names(names, f"context_names[{name!r}]", known.shape[1]) or []
        self.labels = check_labels(labels, n_documents)
        n_labels = None if self.labels is None else count_labels(self.labels)
        if n_labels is not None and not sp.issparse(self.labels):
            n_labels = max(n_labels, len(label_names or ()))  # a subset may lack the last labels
        self.label_names = None if n_labels is None else check_names(label_names, "label_names", n_labels)
        self._documents = None if documents is None else check_documents(documents, n_documents)
        self.index: Any = None
        self.set_index(own_index(documents, content))
        self.units: dict[str, Unit] = {}
        lengths = dict.fromkeys(self.contexts) | self.vector_lengths
        for name, unit in scales.items():
            try:
                self.units[name] = check_unit(unit, lengths[name])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"units[{name!r}] must be (mean, sd > 0) of a context of the corpus") from error
        self.imported: dict[str, Any] | None = None
        self.observations: np.ndarray | None = None
        self.content_kind = "words"
        self._table: _Table | None = None
        self._digest: str | None = None
        self._origin: tuple[Corpus, np.ndarray] | None = None  # the corpus this is a part of, and its rows

    @classmethod
    def from_observations(
        cls, values: Any, document: Any, contexts: Any = None, labels: Any = None, documents: Any = None,
        *, kind: str = "numbers", names: Sequence[str] | None = None, n_documents: int | None = None,
        context_names: Mapping[str, Sequence[str]] | None = None, label_names: Sequence[str] | None = None,
        units: Mapping[str, Unit] | None = None,
    ) -> Corpus:  # fmt: skip
        """Build a corpus whose documents are sets of observations: vectors of numbers, counts, or zeros and ones.

        Parameters
        ----------
        values : (N, D) or (N,) finite floats
            One row per observation (such as a student, or a descriptor of an image), in any order.
        document : (N,) whole numbers
            Number of the document of each observation, counted from 0. A document may have no observations.
        contexts, labels, documents
            As in :class:`Corpus`.
        kind : {"numbers", "counts", "binary"}, default "numbers"
            Kind of the values; "binary" means zeros and ones.
        names : D strings, optional
            Names of the columns of ``values``; they are stored as ``vocabulary``.
        n_documents : int, optional
            Number of documents; by default one more than the largest number in ``document``.
        context_names, label_names, units
            As in :class:`Corpus`.

        Raises
        ------
        ValueError
            If an observation is not finite, is not of the given kind, or has no document. The message names the first
            one.

        Examples
        --------
        >>> import mc2core
        >>> scores, school = [[35.0, 40.0], [50.0, 55.0], [36.0, 41.0]], [0, 0, 1]
        >>> mc2core.Corpus.from_observations(scores, school, names=["maths", "reading"])
        Corpus(2 documents, 3 observations of 2 numbers, contexts: none)
        """
        table, of = check_observations(values, document, n_documents, kind)
        order = np.argsort(of, kind="stable")
        n_documents = int(of.max()) + 1 if n_documents is None else n_documents
        corpus = cls(
            ones(np.bincount(of, minlength=n_documents)), None, contexts, labels, documents,
            context_names=context_names, label_names=label_names, units=units,
        )  # fmt: skip
        corpus.observations, corpus.content_kind = np.ascontiguousarray(table[order]), kind
        columns = columns_of(values) if names is None else names
        corpus._vocabulary = check_distinct(check_names(columns, "names", table.shape[1]), "names")
        return corpus

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        contexts: Mapping[str, Any] | None = None,
        labels: Any = None,
        *,
        documents: pd.DataFrame | None = None,
        embeddings: Any = None,
        like: Any = None,
        tokenise: Callable[[str], Iterable[str]] | None = None,
        stop_words: Any = ENGLISH,
        min_letters: int | None = None,
        max_ngram: int | None = None,
        vocabulary: Sequence[str] | None = None,
        min_df: int | None = None,
        max_df: float | None = None,
        max_features: int | None = None,
        word_counts: str | None = None,
        missing: str | Iterable[Any] | None = None,
    ) -> Corpus:
        """Build a corpus from a list of texts by counting their words.

        Parameters
        ----------
        texts : J texts
        contexts : mapping, optional
            Contexts by name. A context is a list of J numbers (None or NaN if missing), dates, names or lists of names,
            a dense (J, D) matrix of floats (vectors), or a (J, A) matrix of counts.
        labels : J names or numbers, or lists of them, optional
            True classes, for scores only.
        documents : DataFrame of J rows, optional
            Titles and other columns for tables and reports.
        embeddings : (J, D) matrix, optional
            Sentence embeddings of the documents (:meth:`with_embeddings`).
        like : Posterior or Corpus, optional
            Fit or corpus whose vocabulary, contexts and units are used. Unknown words and values are left out, and a
            warning is logged. The options below then take the values of the earlier import.
        tokenise : function (text) -> words, optional
            Function that replaces the built-in tokeniser.
        stop_words : language, list of words or None, default "english"
            Words to leave out; None keeps all words.
        min_letters : int, optional
            Shortest word, in letters (default 2).
        max_ngram : int, optional
            Largest number of words in a sequence of words that is counted as one (default 1: single words only).
        vocabulary : strings, optional
            The words to count, in column order.
        min_df, max_df, max_features : optional
            Limits on the vocabulary. A word is kept if it occurs in at least ``min_df`` documents (default 1) and in at
            most the share ``max_df`` of all documents. Of these words, the ``max_features`` most frequent are kept.
        word_counts : {"raw", "presence", "log"}, optional
            Count that is stored for a word that occurs n times in a document: n ("raw", the default), 1 ("presence") or
            1 + floor(log2 n) ("log").
        missing : codes, optional
            Further texts and numbers that stand for a missing value, such as ``["unknown", -99]``. The default codes
            are those of pandas (NA, N/A, NaN, null, None, ...); "none" as one of the codes leaves these out. A text,
            number, date or single name that equals a code is missing. A word within a text is not.

        Raises
        ------
        ValueError
            If documents cannot be read (the message gives their numbers, counted from 0), or if arguments contradict
            ``like``.

        Examples
        --------
        >>> import mc2core
        >>> texts = ["An apple tree", "The iron forge"]
        >>> corpus = mc2core.Corpus.from_texts(texts, contexts={"author": [["Ann", "Bob"], None]})
        >>> corpus
        Corpus(2 documents, 4 words, 4 tokens, contexts: author (names))
        >>> mc2core.Corpus.from_texts(["Another tree"], like=corpus).n_tokens
        1
        """
        from mc2core.corpus.building import frames

        options = {
            "min_letters": min_letters, "max_ngram": max_ngram, "vocabulary": vocabulary, "min_df": min_df,
            "max_df": max_df, "max_features": max_features, "word_counts": word_counts, "missing": missing,
        }  # fmt: skip
        given = frames.settings_of(tokenise, stop_words, options)
        return frames.from_texts(cls, texts, contexts, labels, documents, embeddings, like, tokenise, given)

    @classmethod
    def from_dataframe(
        cls,
        frame: pd.DataFrame,
        text: str | None = None,
        *,
        bag: str | None = None,
        contexts: Mapping[str, str] | Sequence[str] = (),
        labels: str | None = None,
        id: str | None = None,
        keep: Sequence[str] = (),
        separator: str | None = None,
        embeddings: Any = None,
        like: Any = None,
        tokenise: Callable[[str], Iterable[str]] | None = None,
        stop_words: Any = ENGLISH,
        min_letters: int | None = None,
        max_ngram: int | None = None,
        vocabulary: Sequence[str] | None = None,
        min_df: int | None = None,
        max_df: float | None = None,
        max_features: int | None = None,
        word_counts: str | None = None,
        missing: str | Iterable[Any] | None = None,
    ) -> Corpus:
        """Build a corpus from a data frame with one document per row.

        Parameters
        ----------
        frame : DataFrame
            One document per row.
        text : str, optional
            Column of running text.
        bag : str, optional
            Column whose cells are words, lists of words or dicts of counts. It is used instead of ``text``.
        contexts : list of columns, or ``{name: column}``, optional
            Columns of numbers, dates, names or lists of names. Strings are taken as names; convert dates by
            ``pd.to_datetime``.
        labels, id : str, optional
            Column of the true classes; column of the unique ids of the documents.
        keep : list of columns, optional
            Further columns for tables and reports.
        separator : str, optional
            Separator of the names in a cell, such as ";". By default, a cell holds one name.
        embeddings : (J, D) matrix, optional
            Sentence embeddings of the documents (:meth:`with_embeddings`).
        like, tokenise, stop_words, min_letters, max_ngram, vocabulary, min_df, max_df, max_features, word_counts, \
        missing
            As in :meth:`from_texts`. With ``like``, the columns default to those of the earlier data frame or import.

        Raises
        ------
        ValueError
            If rows cannot be read (the message gives their index), or if arguments contradict ``like``.

        Examples
        --------
        >>> import mc2core
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"abstract": ["An apple tree", "The iron forge"], "year": [1990, 2001]})
        >>> mc2core.Corpus.from_dataframe(frame, text="abstract", contexts=["year"])
        Corpus(2 documents, 4 words, 4 tokens, contexts: year (numbers))
        """
        from mc2core.corpus.building import frames

        options = {
            "min_letters": min_letters, "max_ngram": max_ngram, "vocabulary": vocabulary, "min_df": min_df,
            "max_df": max_df, "max_features": max_features, "word_counts": word_counts, "missing": missing,
        }  # fmt: skip
        given = frames.settings_of(tokenise, stop_words, options)
        return frames.from_dataframe(
            cls, frame, given, text=text, bag=bag, contexts=contexts, labels=labels, id=id, keep=keep,
            separator=separator, embeddings=embeddings, like=like, tokenise=tokenise,
        )  # fmt: skip

    @classmethod
    def from_bibliography(
        cls,
        path: str | os.PathLike[str],
        *,
        like: Any = None,
        stop_words: Any = ENGLISH,
        min_letters: int | None = None,
        max_ngram: int | None = None,
        min_df: int | None = None,
        max_df: float | None = None,
        max_features: int | None = None,
        word_counts: str | None = None,
        rare: Sequence[str] | None = None,
    ) -> Corpus:
        """Build a corpus from an export of a reference manager or of a literature database.

        A document is a record, and its text is the title and the abstract. Contexts are year, author, journal, keyword,
        mesh and reference, as far as the file has them. ``documents`` has the id (DOI, else PMID) and the title.
        Authors have the form "Surname, I.". Duplicates are left out: records with the same DOI or PMID, and records of
        the same title, year and first author. What was left out or merged is logged as a warning.

        Parameters
        ----------
        path : path
            RIS (.ris), BibTeX (.bib), PubMed (.xml, .nbib, .txt), Web of Science (.txt), OpenAlex (.jsonl), or CSV
            with a title, authors and an abstract, such as that of Scopus (.csv). It may be compressed (.gz).
        like, stop_words, min_letters, max_ngram, min_df, max_df, max_features, word_counts
            As in :meth:`from_texts`.
        rare : list of "CONTEXT=N" or "CONTEXT=N:pool", optional
            Values of a context in fewer than N documents are left out, or counted as one value (pool). By default, N is
            2 for authors, keywords and references.

        Raises
        ------
        ValueError
            If the file is no bibliography, is damaged or cut off (one sentence with file and line), or if arguments
            contradict ``like``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import mc2core
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "export.ris"
        >>> record = "TY  - JOUR\\nTI  - Apple trees\\nPY  - 1990\\nER  - \\n"
        >>> _ = path.write_text(record + record.replace("Apple", "Pear"))
        >>> mc2core.Corpus.from_bibliography(path)
        Corpus(2 documents, 3 words, 4 tokens, contexts: year (numbers))
        """
        import importlib

        from mc2core.corpus.building import frames

        # by its name: fits of the workflow do not depend on what reads files
        reading = importlib.import_module("mc2core.corpus.readers.reading")
        options = {
            "min_letters": min_letters, "max_ngram": max_ngram, "min_df": min_df, "max_df": max_df,
            "max_features": max_features, "word_counts": word_counts, "rare": rare,
        }  # fmt: skip
        return reading.read_bibliography(Path(path), frames.settings_of(None, stop_words, options), like)

    @classmethod
    def concatenate(cls, corpora: Iterable[Corpus]) -> Corpus:
        """Concatenate the documents of several corpora in memory.

        Columns are matched by name. The result has the words, context values and labels of all corpora; those of the
        first corpus come first. If a corpus lacks a context or a column of ``documents``, the values are missing for
        its documents. A standardised context has the units of the first corpus that contains it. ``imported`` is taken
        from the first corpus.

        Raises
        ------
        ValueError
            If no corpus is given, if columns have no names, or if contexts, vectors or labels differ in kind between
            corpora.
        """
        from mc2core.corpus.concatenation import concatenate

        return concatenate(cls, corpora)

    # -- what it holds -------------------------------------------------------------------------------------
    @property
    def n_documents(self) -> int:
        """Number of documents J."""
        return self.content.shape[0]

    @property
    def is_of_observations(self) -> bool:
        """Whether documents are sets of observations rather than words."""
        return self.observations is not None

    @property
    def n_words(self) -> int:
        """Size V of the vocabulary; for observations, their dimension D."""
        return self.content.shape[1] if self.observations is None else self.observations.shape[1]

    @property
    def n_tokens(self) -> int:
        """Number of tokens: the sum of all counts."""
        return int(self.content.data.sum(dtype=np.int64))

    @property
    def document_lengths(self) -> np.ndarray:
        """(J,) int64: number of tokens of each document."""
        lengths, start = np.empty(self.n_documents, np.int64), self.content.indptr
        for first in range(0, self.n_documents, _ROWS):
            last = min(first + _ROWS, self.n_documents)
            total = np.concatenate([[0], np.cumsum(self.content.data[start[first] : start[last]], dtype=np.int64)])
            lengths[first:last] = np.diff(total[start[first : last + 1] - start[first]])
        return lengths

    @property
    def has_vocabulary(self) -> bool:
        """Whether the words have names."""
        return self._vocabulary is not None

    @property
    def vocabulary(self) -> list[str]:
        """The V words, or the names of the D columns of observations. Without names, ``w0``, ``w1``, ..."""
        return placeholders(self.n_words) if self._vocabulary is None else self._vocabulary

    @property
    def context_kinds(self) -> dict[str, str]:
        """Kind of each context: "number", "counts" or "vector"."""
        return {name: kind_of(context) for name, context in self.contexts.items()}

    @property
    def vector_lengths(self) -> dict[str, int]:
        """Number of coordinates D of each vector context, by name."""
        return {name: self.contexts[name].shape[1] for name, kind in self.context_kinds.items() if kind == "vector"}

    @property
    def documents(self) -> pd.DataFrame:
        """Table with one row per document: titles, ids and other columns."""
        if self._documents is None:
            if self._origin is not None:
                whole, rows = self._origin
                self._documents = _taken(whole.document_blocks(), rows)
            elif self._table is not None:
                (self._documents,) = self._table.blocks(self.n_documents, self.n_documents + 1)
            else:
                import pandas as pd

                self._documents = pd.DataFrame(index=pd.RangeIndex(self.n_documents))
            self.set_index(self.index)
        return self._documents

    def set_index(self, index: Any) -> None:
        """Set the :attr:`index` of the documents. Raises ValueError unless it has one entry per document."""
        if index is not None and len(several("index", index)) != self.n_documents:
            said = f"the index has {counted(len(index), 'rows')}"
            raise ValueError(f"{said}, but the corpus has {counted(self.n_documents, 'documents')}")
        self.index = index
        if index is not None and self._documents is not None:
            self._documents = self._documents.set_axis(index)

    def document_blocks(self) -> Iterator[pd.DataFrame]:
        """Iterate over :attr:`documents` in blocks of 100,000 rows, without keeping the table in memory."""
        is_here = self._documents is not None or self._origin is not None or self.n_documents <= _TABLE_ROWS
        if is_here or self._table is None:
            yield self.documents
        else:
            yield from self._table.blocks(self.n_documents, _TABLE_ROWS)

    def missing(self, name: str) -> np.ndarray:
        """Return a (J,) bool mask of the documents without a value (or any coordinate) of the context ``name``."""
        context = self.contexts[name]
        if sp.issparse(context):
            return np.diff(context.indptr) == 0
        return np.isnan(context) if context.ndim == 1 else np.isnan(context).all(axis=1)

    @property
    def digest(self) -> str:
        """SHA-256 of the content and contexts. Names have a digest of their own (:attr:`names_digest`)."""
        if self._digest is None:
            arrays = {
                "content.indptr": self.content.indptr.astype(np.int64, copy=False),
                "content.indices": self.content.indices.astype(np.int32, copy=False),
                "content.data": self.content.data,
                "shape": np.array(self.content.shape, dtype=np.int64),
            }
            for name, context in self.contexts.items():
                if sp.issparse(context):
                    arrays[f"context.{name}.indptr"] = context.indptr.astype(np.int64, copy=False)
                    arrays[f"context.{name}.indices"] = context.indices.astype(np.int32, copy=False)
                    arrays[f"context.{name}.data"] = context.data
                    arrays[f"context.{name}.shape"] = np.array(context.shape, dtype=np.int64)
                else:
                    arrays[f"context.{name}"] = context
            if self.observations is not None:
                arrays[f"observations of {self.content_kind}"] = self.observations
            self._digest = storage.digest_arrays(arrays)
        return self._digest

    @property
    def names_digest(self) -> str:
        """SHA-256 of the words, of the column names of the contexts, and of the units."""
        units = {name: list(unit) for name, unit in self.units.items()}
        return storage.digest_value([self._vocabulary, self.context_names, units])

    def __repr__(self) -> str:
        content = f"{counted(self.n_words, 'words')}, {counted(self.n_tokens, 'tokens')}"
        if self.is_of_observations:
            of = counted(self.n_words, CONTENT_KINDS[self.content_kind])
            content = f"{counted(self.n_tokens, 'observations')} of {of}"
        documents = counted(self.n_documents, "documents")
        return f"Corpus({documents}, {content}, contexts: {self._contexts_in_words()})"

    def _contexts_in_words(self) -> str:
        return ", ".join(f"{name} ({KINDS[kind]})" for name, kind in self.context_kinds.items()) or "none"

    def _repr_html_(self) -> str:
        """In a notebook: its sizes, its contexts, and the first documents."""
        from mc2core.base.pages import facts

        columns, tokens = CONTENT_KINDS.get(self.content_kind, "words"), "tokens"
        if self.is_of_observations:
            tokens = "observations"
        rows = {"documents": f"{self.n_documents:,}", columns: f"{self.n_words:,}", tokens: f"{self.n_tokens:,}"}
        rows["contexts"] = self._contexts_in_words()
        rows["labels"] = "none" if self.labels is None else "one or more of each document"
        known, contexts = self.documents.head(_SHOWN_DOCUMENTS), self._contexts_shown()
        tables = [contexts.to_html(border=0, index=False)] if len(contexts) else []
        tables += [known.to_html(max_cols=8, border=0)] if known.shape[1] else []
        return facts("Corpus", rows, "".join(tables))

    def _contexts_shown(self) -> pd.DataFrame:
        """A row for each context: its kind, how many documents have it, and its values: a range, or the commonest."""
        import pandas as pd

        rows = []
        for name, kind in self.context_kinds.items():
            table = self.contexts[name]
            if sp.issparse(table):
                counts = np.asarray(table.sum(axis=0)).ravel()
                names = self.context_names.get(name) or [f"{name} {i + 1}" for i in range(len(counts))]
                common = [names[one] for one in np.argsort(-counts, kind="stable")[:_SHOWN_VALUES]]
                n, values = int((np.diff(table.indptr) > 0).sum()), f"{len(names):,}: {', '.join(common)}, ..."
            elif kind == "vector":
                n, values = int((~np.isnan(table).any(axis=1)).sum()), f"{table.shape[1]:,} dimensions"
            else:
                offset, scale = self.units.get(name, (0.0, 1.0))
                seen = np.asarray(table)[~np.isnan(table)] * scale + offset
                n, values = len(seen), f"{seen.min():.6g} to {seen.max():.6g}" if len(seen) else ""
            rows.append((name, KINDS[kind], n, values))
        return pd.DataFrame(rows, columns=["context", "kind", "documents", "values"])

    # -- parts of it ---------------------------------------------------------------------------------------
    def subset(self, rows: Any) -> Corpus:
        """Return a corpus of selected documents, given as indices (the order is kept) or as a boolean mask."""
        rows = np.asarray(rows)
        if rows.dtype == bool:
            if rows.shape != (self.n_documents,):
                documents = counted(self.n_documents, "documents")
                raise ValueError(f"the mask has shape {rows.shape}, but the corpus has {documents}")
            rows = np.flatnonzero(rows)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            raise ValueError("documents are chosen by a list of whole numbers or by a boolean mask")
        if rows.size and not (rows.min() >= 0 and rows.max() < self.n_documents):
            wrong = rows[(rows < 0) | (rows >= self.n_documents)][0]
            raise ValueError(f"document {wrong} is outside 0..{self.n_documents - 1}")
        rows = rows.astype(np.int64)
        # what was checked once is not checked again: a mini-batch of 500 documents takes about a millisecond
        part = copy.copy(self)
        part.content = take_rows(self.content, rows)
        if self.observations is not None:
            part.observations = np.asarray(self.observations[part.content.indices])
            part.content = ones(np.diff(part.content.indptr))
        part.contexts = {name: _take(context, rows) for name, context in self.contexts.items()}
        part.labels = None if self.labels is None else _take(self.labels, rows)
        part.imported = self.imported and {name: self.imported[name] for name in self.imported if name not in _OF_WHOLE}
        part._documents, part._digest, part._origin = None, None, (self, rows)
        part.index = None if self.index is None else self.index[rows]
        return part

    def with_documents(self, content: sp.csr_matrix, contexts: Mapping[str, Any]) -> Corpus:
        """Return a corpus of other documents with the columns of this corpus, without checking the documents.

        ``content`` is a (J, V) int32 CSR matrix; ``contexts`` must contain every context of this corpus, in the same
        form.
        """
        other = copy.copy(self)
        other.content, other.contexts = content, dict(contexts)
        other.labels, other.label_names, other._documents, other._digest, other._origin = None, None, None, None, None
        other._table = None
        other.index = None
        return other

    def with_contexts(self, contexts: Mapping[str, Any]) -> Corpus:
        """Return the same documents with other contexts.

        Contexts of this corpus that are passed again keep their column names and units. Their data are shared, not
        copied.
        """
        changed = copy.copy(self)
        changed.contexts = {
            name: context if context is self.contexts.get(name) else check_context(name, context, self.n_documents)
            for name, context in mapping("contexts", contexts).items()
        }
        changed.context_names = {
            name: names
            for name, names in self.context_names.items()
            if sp.issparse(changed.contexts.get(name)) and changed.contexts[name].shape[1] == len(names)
        }
        changed.units = {name: unit for name, unit in self.units.items() if name in contexts}
        changed._digest = None
        return changed

    def with_embeddings(self, vectors: Any, like: Any = None) -> Corpus:
        """Return the same documents with sentence embeddings as the context ``embedding``.

        The vectors are scaled to length 1 and reduced to at most 20 principal components, each with variance 1. The
        corpus and its fits store this reduction in ``imported``. ``MC2()`` uses the context by default. Its strength
        then depends on the lengths of the documents.

        Parameters
        ----------
        vectors : (J, D) matrix of numbers
            One row per document. A row of NaN or of zeros is a missing vector. A memory-mapped matrix is not copied
            whole.
        like : Corpus or Posterior, optional
            Corpus or fit whose stored reduction is applied to the vectors. By default, a new reduction is computed.

        Raises
        ------
        ValueError
            If the number of rows or columns is wrong, if a vector has infinite or missing numbers (the message names
            the document), if all vectors have the same direction, if ``like`` has no embeddings, or if the corpus has
            another context of this name.
        """
        from mc2core.corpus import embeddings

        array = embeddings.check_vectors(vectors, self.n_documents)
        if like is None:
            projection = embeddings.Projection.of(array)
        elif (known := embeddings.projection_of(like.imported)) is None:
            raise ValueError("embeddings are given, but the corpus or model of like= has none")
        else:
            projection = known
        if projection.name in self.contexts and embeddings.KEY not in (self.imported or {}):
            raise ValueError(f"context {projection.name!r} is given twice: embeddings have this name; rename the other")
        changed = self.with_contexts(self.contexts | {projection.name: projection.apply(array)})
        changed.units.pop(projection.name, None)
        imported = self.imported or {"form": "", "settings": {}}
        changed.imported = imported | {embeddings.KEY: projection.stored()}
        return changed

    def standardised(self, name: str, like: Corpus | None = None) -> Corpus:
        """Return the corpus with a numeric context scaled to mean 0 and standard deviation 1.

        Each coordinate of a vector is scaled separately. If ``like`` is given, its mean and standard deviation are
        used; this is needed for test documents. :func:`mc2core.fit` standardises contexts automatically.
        """
        values = self.contexts.get(name)
        if values is None or sp.issparse(values):
            raise ValueError(f"context {name!r} is not a numeric context of the corpus")
        if name in self.units:
            raise ValueError(f"context {name!r} is standardised already")
        if like is None:
            with np.errstate(over="ignore", invalid="ignore"):
                mean, sd = _unit_of(values)
            if not np.isfinite([mean, sd]).all():
                raise ValueError(f"context {name!r} has values too large to standardise: give it in another unit")
        else:
            if name not in like.units:
                raise ValueError(f"context {name!r} of the reference corpus is not standardised")
            mean, sd = like.units[name]
            if values.shape[1:] != np.shape(mean):
                raise ValueError(f"context {name!r} has vectors of another length than the reference corpus")
        changed = copy.copy(self)
        changed.contexts = self.contexts | {name: (values - np.asarray(mean)) / np.asarray(sd)}
        changed.units = self.units | {name: (mean, sd)}
        changed._digest = None
        return changed

    def split(self, test_size: float = 0.1, seed: int = 0) -> tuple[Corpus, Corpus]:
        """Split documents at random into (train, test), each in the order of the corpus.

        The test part has round(J * test_size) documents, but each part has at least one document.
        """
        if not 0 < finite("test_size", test_size) < 1:
            raise ValueError(f"test_size is {test_size}; it must lie between 0 and 1")
        if self.n_documents < 2:
            raise ValueError("a corpus of one document cannot be split")
        n_test = min(max(round(self.n_documents * test_size), 1), self.n_documents - 1)
        from mc2core.compute import streams

        order = streams.generator(seed, "split").permutation(self.n_documents)
        return self.subset(np.sort(order[n_test:])), self.subset(np.sort(order[:n_test]))

    def batches(self, size: int, seed: int, epoch: int, first: int = 0) -> Iterator[np.ndarray]:
        """Yield the indices of all documents in random order, in arrays of ``size`` (the last may be smaller).

        The first ``first`` arrays are skipped, so that an interrupted pass can be resumed.
        """
        size = whole("size", size)
        from mc2core.compute import streams

        order = streams.generator(seed, "batches", epoch).permutation(self.n_documents)
        for start in range(first * size, self.n_documents, size):
            yield np.sort(order[start : start + size])

    # -- disk ----------------------------------------------------------------------------------------------
    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the corpus in ``folder`` (arrays as .npy, tables as text). A corpus that is already there is replaced.

        Raises ValueError if the folder contains other files than a corpus, or if names of contexts differ only in case.
        """
        alike: dict[str, str] = {}
        for name in self.contexts:
            other = alike.setdefault(unicodedata.normalize("NFKC", name).casefold(), name)
            if other != name:
                raise ValueError(
                    f"contexts {other!r} and {name!r} differ only in case, which some file systems ignore; "
                    "rename one of them"
                )
        meta: dict[str, Any] = {
            "format": FORMAT,
            "shape": list(self.content.shape),
            "n_tokens": self.n_tokens,
            "digest": self.digest,
            "contexts": {
                name: list(context.shape) if sp.issparse(context) else self.vector_lengths.get(name)
                for name, context in self.contexts.items()
            },
            "context_names": sorted(self.context_names),
            "units": {name: list(unit) for name, unit in self.units.items()},
            "labels": None if self.labels is None else (list(self.labels.shape) if sp.issparse(self.labels) else "one"),
        }
        if self.imported is not None:
            meta["imported"] = self.imported
        if self.index is not None:
            meta["index"] = str(self.index.dtype) if _is_plain(self.index) else "object"
            meta["index_name"] = None if self.index.name is None else str(self.index.name)
        if self.observations is not None:
            meta["observations"] = {"kind": self.content_kind, "length": self.n_words}
        documents = self.documents
        meta["documents"] = {str(name): str(dtype) for name, dtype in documents.dtypes.items()}
        vocabulary, label_names = self.vocabulary if self.has_vocabulary else None, self.label_names
        with storage.replacing_folder(folder, CORPUS_FILES) as new:
            save_context(new, "content", self.content)
            if self.observations is not None:
                storage.write_array(new / "observations.npy", self.observations)
            for name, context in self.contexts.items():
                save_context(new, f"context.{name}", context)
            for name, names in self.context_names.items():
                write_names(new / f"context.{name}.names.txt", names)
            if self.labels is not None:
                save_context(new, "labels", self.labels)
            if label_names is not None:
                write_names(new / "label_names.txt", label_names)
            if vocabulary is not None:
                write_names(new / "vocabulary.txt", vocabulary)
            if len(documents.columns):
                # quoted, or a carriage return in a title would end the row
                documents.to_csv(new / "documents.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
            if self.index is not None:
                labels_of_rows = self.index if _is_plain(self.index) else self.index.map(str)
                labels_of_rows.to_frame(name="index").to_csv(
                    new / "index.csv", index=False, quoting=csv.QUOTE_NONNUMERIC
                )
            write_meta(new, meta)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, verify: bool = False) -> Corpus:
        """Open a saved corpus. Its arrays and its table of documents stay on disk (memory-mapped).

        If the folder is later replaced or extended, the opened corpus does not change. Sizes, columns and the sum of
        counts are checked. If ``verify`` is True, the digest of each file is checked too. Raises ValueError if data are
        missing, changed or out of range.
        """
        folder = Path(folder)
        for _ in range(_LOADS):
            meta = read_meta(folder)
            try:
                corpus = cls._open(folder, meta, verify)
            except (OSError, ValueError):
                if _is_in_place(folder, meta):
                    raise
            else:
                if _is_in_place(folder, meta):
                    return corpus
        raise ValueError(f"{folder} was replaced by another process each time it was read; load it again later")

    @classmethod
    def _open(cls, folder: Path, meta: Mapping[str, Any], verify: bool) -> Corpus:
        """The corpus in ``folder`` that corpus.json describes as ``meta``."""
        if verify:
            check_files(folder, meta)
        rows, columns = meta["shape"]
        corpus = cls.__new__(cls)
        corpus._digest, corpus.imported = meta["digest"], meta.get("imported")
        corpus._documents, corpus._origin = None, None
        corpus._table = _Table.mapped(folder / "documents.csv", meta["documents"]) if meta["documents"] else None
        corpus.content = load_context(folder, "content", rows, [rows, columns])
        corpus.observations, corpus.content_kind = None, "words"
        if (described := meta.get("observations")) is not None:
            corpus.observations, corpus.content_kind = load_observations(folder, corpus.content, described)
        words = folder / "vocabulary.txt"
        has_words = words.name in meta["files"] if "files" in meta else words.exists()
        corpus._vocabulary = read_names(words, corpus.n_words) if has_words else None
        corpus.contexts = {
            name: load_context(folder, f"context.{name}", rows, shape) for name, shape in meta["contexts"].items()
        }
        for name in meta["context_names"]:
            if not isinstance(meta["contexts"].get(name), list):
                raise ValueError(f"{folder}/corpus.json names the columns of {name!r}, which is not a count context")
        corpus.context_names = {
            name: read_names(folder / f"context.{name}.names.txt", corpus.contexts[name].shape[1])
            for name in meta["context_names"]
        }
        corpus.index = read_index(folder, rows, meta["index"], meta.get("index_name")) if "index" in meta else None
        corpus.labels = None if meta["labels"] is None else load_labels(folder, rows, meta["labels"])
        corpus.label_names = read_label_names(folder, corpus.labels)
        corpus.units = {name: check_unit(unit, corpus.vector_lengths.get(name)) for name, unit in meta["units"].items()}
        check_meta(folder, meta, corpus.n_tokens)
        if verify:
            corpus._digest = None
            if corpus.digest != meta["digest"]:
                raise ValueError(f"{folder} was changed after it was saved: its digest differs")
        return corpus


def own_index(documents: pd.DataFrame | None, content: Any) -> Any:
    """Return the index of ``documents`` or, without this table, of ``content``; None if it only counts from 0."""
    if documents is None:
        return content.index if hasattr(content, "iloc") else None
    index: Any = documents.index
    return None if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1) else index


def _unit_of(values: np.ndarray) -> Unit:
    """Mean and sd of (J,) ``values``, or of each coordinate of (J, D)."""
    if values.ndim == 1:
        return _spread(values)
    mean, sd = zip(*map(_spread, values.T), strict=True)
    return mean, sd


def _spread(values: np.ndarray) -> tuple[float, float]:
    """Mean and sd of the observed of (J,) ``values``; 0 if there is none, and 1 where they do not differ."""
    observed = values[~np.isnan(values)]
    if observed.size == 0:
        return 0.0, 1.0
    if observed.min() == observed.max():  # a mean that is rounded would leave an sd of 1e-17
        return float(observed[0]), 1.0
    sd = float(observed.std())
    return float(observed.mean()), sd if sd > 0 else 1.0


# -- arrays on disk ----------------------------------------------------------------------------------------------------
def _save_sparse(folder: Path, name: str, matrix: sp.csr_matrix) -> None:
    storage.write_array(folder / f"{name}.indptr.npy", matrix.indptr.astype(np.int64, copy=False))
    storage.write_array(folder / f"{name}.indices.npy", matrix.indices.astype(np.int32, copy=False))
    storage.write_array(folder / f"{name}.data.npy", matrix.data.astype(np.int32, copy=False))


def save_context(folder: Path, name: str, context: Context) -> None:
    """Write a context into ``folder``: numbers or vectors as NAME.npy, counts as three arrays of CSR."""
    if sp.issparse(context):
        _save_sparse(folder, name, context)
    else:
        storage.write_array(folder / f"{name}.npy", context)


def _map_array(path: Path, dtype: Any, *shape: int) -> np.ndarray:
    array = storage.map_array(path)
    if array.shape != shape or array.dtype != dtype:
        needed = " x ".join(map(str, shape))
        raise ValueError(f"{path} holds {array.shape} {array.dtype}; {needed} values of {np.dtype(dtype)} are needed")
    return array


def _load_sparse(folder: Path, name: str, shape: tuple[int, int]) -> sp.csr_matrix:
    indptr = np.array(_map_array(folder / f"{name}.indptr.npy", np.int64, shape[0] + 1))
    if indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"{folder / name}.indptr.npy does not rise from 0")
    indices = _map_array(folder / f"{name}.indices.npy", np.int32, int(indptr[-1]))
    data = _map_array(folder / f"{name}.data.npy", np.int32, int(indptr[-1]))
    check_entries(f"{folder / name}", indptr, indices, data, shape[1])
    matrix = csr_of(indptr, indices, data, shape[1])
    matrix.has_canonical_format = True
    return matrix


def check_entries(name: str, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_columns: int) -> None:
    """Raise ValueError unless the column indices of each row increase strictly within 0..n_columns-1 and counts are 1
    or more.

    All entries are read once; 60 million entries take 0.4 s if they are in the page cache.
    """
    for first in range(0, len(indices), _CHUNK):
        # one more, for the step to the next chunk
        columns = np.asarray(indices[first : first + _CHUNK + 1])
        counts = np.asarray(data[first : first + _CHUNK])
        lowest, highest = int(columns.min()), int(columns.max())
        if lowest < 0 or highest >= n_columns:
            at = int(np.flatnonzero((columns < 0) | (columns >= n_columns))[0])
            row = _row(indptr, first + at)
            raise ValueError(
                f"{name}.indices.npy has the column {columns[at]} in row {row}; it must lie in 0..{n_columns - 1}"
            )
        if counts.min() < 1:
            at = int(np.flatnonzero(counts < 1)[0])
            raise ValueError(
                f"{name}.data.npy has the count {counts[at]} in row {_row(indptr, first + at)}; it must be at least 1"
            )
        falls = np.flatnonzero(columns[1:] <= columns[:-1]) + first + 1
        starts = np.searchsorted(indptr, falls)
        within = falls[indptr[starts] != falls]
        if len(within):
            raise ValueError(f"{name}.indices.npy has columns that do not rise in row {_row(indptr, within[0])}")


def _row(indptr: np.ndarray, entry: int) -> int:
    return int(np.searchsorted(indptr, entry, side="right")) - 1


def load_context(folder: Path, name: str, rows: int, shape: Any) -> Context:
    """Open a context, memory-mapped and checked.

    ``shape`` is the shape of counts, the length of vectors, or None for numbers.
    """
    is_vector = isinstance(shape, int) and not isinstance(shape, bool) and 0 < shape <= _LARGEST
    if shape is not None and not is_vector:
        if not isinstance(shape, list) or len(shape) != 2 or shape[0] != rows or not isinstance(shape[1], int):
            raise ValueError(f"{folder}/corpus.json gives {name} the shape {shape}, but there are {rows} documents")
        return _load_sparse(folder, name, (rows, shape[1]))
    values = _map_array(folder / f"{name}.npy", np.float64, *((rows, shape) if is_vector else (rows,)))
    if np.isinf(values).any():
        row = int(np.nonzero(np.isinf(values))[0][0])
        raise ValueError(f"{folder / name}.npy is infinite at document {row}; NaN stands for a missing value")
    return values


def load_observations(folder: Path, content: sp.csr_matrix, described: Any) -> tuple[np.ndarray, str]:
    """Return the (N, D) float64 observations, memory-mapped, and their kind, which ``described`` states.

    Raises ValueError if a value is not of that kind, or if ``content`` does not have one column per observation.
    """
    if not isinstance(described, dict) or described.keys() != {"kind", "length"}:
        raise ValueError(f"{folder}/{_META}: observations must have the keys kind and length; found {described!r}")
    n, kind, length = content.shape[1], choice("kind", described["kind"], CONTENT_KINDS), described["length"]
    values = load_context(folder, "observations", n, length)
    if np.ndim(values) != 2 or np.isnan(values).any():
        raise ValueError(f"{folder}/observations.npy holds NaN, or {_META} gives its rows the length {length}")
    if content.nnz != n or (content.indices != np.arange(n)).any() or content.data.max(initial=1) > 1:
        raise ValueError(f"{folder}: the content does not count each of {n} observations once, document by document")
    check_kind_of_values(values, kind)
    return values, kind


def load_labels(folder: Path, rows: int, shape: Any) -> Context:
    """Open the labels. ``shape`` is the shape of a membership matrix, or "one" if each document has a single label."""
    if shape != "one":
        return load_context(folder, "labels", rows, shape)
    labels = _map_array(folder / "labels.npy", np.int64, rows)
    if rows and labels.min() < 0:
        raise ValueError(f"{folder}/labels.npy holds {labels.min()}; a label is a whole number of at least 0")
    return labels


def read_label_names(folder: Path, labels: Context) -> list[str] | None:
    """Return the names of the labels; None if they have no names."""
    path = folder / "label_names.txt"
    if labels is None or not path.exists():
        return None
    if sp.issparse(labels):
        return read_names(path, labels.shape[1])
    names, last = read_names(path, None), int(labels.max(initial=-1))
    if last >= len(names):
        raise ValueError(f"{path} has {counted(len(names), 'lines')}, but labels go up to {last}")
    return names


def write_names(path: Path, names: Sequence[str]) -> None:
    """Write names as UTF-8 text, one per line."""
    path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def read_names(path: Path, length: int | None) -> list[str]:
    """Read a file of :func:`write_names`. Raises ValueError if it is missing or damaged, or lacks ``length`` lines."""
    try:
        names = path.read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error
    if length is not None and len(names) != length:
        raise ValueError(f"{path} has {counted(len(names), 'lines')}; needed: {length:,}")
    return names


class _Table(NamedTuple):
    """The table of documents of a saved corpus: the bytes of its file, and the types of its columns."""

    path: Path
    data: np.ndarray
    dtypes: Mapping[str, str]

    @classmethod
    def mapped(cls, path: Path, dtypes: Mapping[str, str]) -> _Table:
        """Map the file: it stays readable if the folder is replaced. Raises ValueError if it is missing or empty."""
        try:
            return cls(path, np.memmap(path, np.uint8, "r"), dtypes)
        except FileNotFoundError:
            raise ValueError(f"{path} is missing") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error

    def blocks(self, rows: int, together: int) -> Iterator[pd.DataFrame]:
        """Yield blocks of ``together`` rows with the types that they were saved with.

        Raises ValueError if the file is damaged or does not have ``rows`` rows.
        """
        import pandas as pd

        found = 0
        text = {name: str for name, dtype in self.dtypes.items() if dtype in ("object", "str", "string")}
        try:
            with pd.read_csv(
                io.BufferedReader(_Bytes(self.data)),
                dtype=text,
                keep_default_na=False,
                na_values={name: [""] for name in self.dtypes if name not in text},
                chunksize=together,
            ) as blocks:
                for block in blocks:
                    found += len(block)
                    yield block
        except (ValueError, pd.errors.ParserError) as error:
            raise ValueError(f"{self.path} is damaged: {error}") from error
        if found != rows:
            here, needed = counted(found, "rows"), counted(rows, "documents")
            raise ValueError(f"{self.path} has {here}, but the corpus has {needed}")


def _is_plain(index: Any) -> bool:
    """Whether an index can be read back with its type from text; others are stored as text."""
    kind = getattr(index.dtype, "kind", "O")
    dtype = str(index.dtype)
    is_date = dtype.startswith("datetime64[") and "," not in dtype  # without a time zone
    return index.nlevels == 1 and (kind in "iuf" or is_date or dtype in ("str", "string"))


def read_index(folder: Path, rows: int, dtype: Any, name: Any) -> Any:
    """Return the index of the documents. Raises ValueError if it is damaged or does not have ``rows`` entries."""
    import pandas as pd

    path, is_date = folder / "index.csv", str(dtype).startswith("datetime64")
    try:
        column = pd.read_csv(path, dtype=str if is_date or dtype == "object" else dtype, keep_default_na=False)["index"]
        index = pd.Index(pd.to_datetime(column).astype(dtype) if is_date else column).rename(name)
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is missing or damaged: {error}") from error
    if len(index) != rows:
        raise ValueError(f"{path} has {counted(len(index), 'rows')}, but the corpus has {counted(rows, 'documents')}")
    return index


class _Bytes(io.RawIOBase):
    """A file of bytes in an array, without a copy."""

    def __init__(self, data: np.ndarray) -> None:
        self._data, self._at = data.data, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._data[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def _taken(blocks: Iterable[pd.DataFrame], rows: np.ndarray) -> pd.DataFrame:
    """The rows of a table, in that order, of which ``blocks`` hold some after others."""
    import pandas as pd

    order, parts, first = np.argsort(rows, kind="stable"), [], 0
    ascending = rows[order]
    for block in blocks:
        last = first + len(block)
        low, high = np.searchsorted(ascending, [first, last])
        parts.append(block.iloc[ascending[low:high] - first])
        first = last
    return pd.concat(parts).iloc[np.argsort(order)].reset_index(drop=True)


# -- corpus.json -------------------------------------------------------------------------------------------------------
def write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    """Write corpus.json with ``meta``, the SHA-256 of each file in the folder, and a checksum of both."""
    files = {file.name: storage.digest_file(file) for file in sorted(folder.iterdir()) if file.is_file()}
    signed = {**meta, "files": files}
    storage.write_json(folder / _META, signed | {"checksum": storage.digest_value(signed)})


def read_meta(folder: Path) -> dict[str, Any]:
    """Read corpus.json. Raises ValueError if a field is missing or has the wrong type.

    "files" and "checksum" are absent from corpora that were saved before these fields existed.
    """
    if not (folder / _META).is_file():
        raise ValueError(f"{folder} holds no corpus: {_no_corpus(folder)}")
    meta = storage.read_json(folder / _META)
    try:
        storage.check_format(meta.get("format") if isinstance(meta, dict) else None, FORMAT)
    except ValueError as error:
        raise ValueError(f"{folder}/{_META} cannot be read: {error}") from None
    try:
        rows, columns = meta["shape"]
        if not all(isinstance(size, int) and 0 <= size <= _LARGEST for size in (rows, columns)):
            raise ValueError(f"the shape is {meta['shape']}")
        for name in (*meta["contexts"], *meta["context_names"]):
            check_context_name(name)
        for name, unit in meta["units"].items():
            shape = meta["contexts"][name]
            check_unit(unit, shape if isinstance(shape, int) else None)
        for name, text in {"digest": meta["digest"], **meta["documents"], **meta.get("files", {})}.items():
            if not isinstance(text, str):
                raise ValueError(f"{name!r} is {text!r}")
        if strange := [name for name in meta.get("files", {}) if not re.fullmatch(CORPUS_FILES, name)]:
            raise ValueError(f"{strange[0]!r} is not a file of a corpus")
        if not (meta["labels"] is None or meta["labels"] == "one" or isinstance(meta["labels"], list)):
            raise ValueError(f"the labels are {meta['labels']!r}")
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{folder}/{_META} lacks a field or holds a wrong one: {error}") from error
    return meta


def _is_in_place(folder: Path, meta: Mapping[str, Any]) -> bool:
    """Whether corpus.json is still the one that was read."""
    try:
        return bool(storage.read_json(folder / _META) == meta)
    except (OSError, ValueError):
        return False


def _no_corpus(folder: Path) -> str:
    """What it is instead."""
    if folder.is_file():
        return "it is a file; mc2 import makes the folder of a corpus of documents"
    is_fit = (folder / "posterior.npz").is_file()
    return f"{_META} is missing" + ("; it is the folder of a fit" if is_fit else "")


def check_meta(folder: Path, meta: Mapping[str, Any], n_tokens: int) -> None:
    """Raise ValueError if corpus.json was changed, or if the counts do not have the sum that it states."""
    told = meta.get("n_tokens", n_tokens)
    if told != n_tokens:
        tokens = counted(n_tokens, "tokens")
        raise ValueError(f"{folder} was changed after it was saved: it has {tokens}, but {_META} says {told}")
    signed = {name: value for name, value in meta.items() if name != "checksum"}
    is_signed = "checksum" in meta or "files" in meta
    if is_signed and meta.get("checksum") != storage.digest_value(signed):
        raise ValueError(f"{folder}/{_META} was changed after it was saved: its checksum differs")


def check_files(folder: Path, meta: Mapping[str, Any]) -> None:
    """Raise ValueError if a file was changed after it was saved."""
    for name, digest in meta.get("files", {}).items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{path} is missing")
        if storage.digest_file(path) != digest:
            raise ValueError(f"{path} was changed after it was saved: its digest differs")
