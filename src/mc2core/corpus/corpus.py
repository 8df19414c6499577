"""The corpus: the only form in which engines and scores accept data."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mc2core.base import storage
from mc2core.base.checks import counted, finite, mapping, several, whole
from mc2core.corpus import files
from mc2core.corpus.checks import (
    CONTENT_KINDS,
    KINDS,
    Unit,
    check_context,
    check_distinct,
    check_documents,
    check_labels,
    check_names,
    check_observations,
    check_unit,
    columns_of,
    count_labels,
    kind_of,
    ones,
    own_index,
    placeholders,
    unit_of,
    whole_counts,
)
from mc2core.corpus.row_blocks import take, take_rows

# pandas, numba and the modules that read texts are imported on use, because they take long to load
if TYPE_CHECKING:
    import pandas as pd


class _English:
    """The default of ``stop_words``, which can be distinguished from "english" given by the user."""

    def __repr__(self) -> str:
        return "'english'"


ENGLISH = _English()
_ROWS = 1 << 14  # number of documents per temporary array
_TABLE_ROWS = 100_000  # number of rows of the table of documents that are read together
_OF_WHOLE = "digest", "appended"  # entries of ``imported`` that identify the files of all documents
_SHOWN_VALUES = 3  # number of values of a context that a notebook shows
_SHOWN_DOCUMENTS = 5  # number of documents that a notebook shows


class Corpus:
    """Collection of documents, as counts of words, with their contexts.

    A corpus is usually built by :meth:`from_texts`, :meth:`from_dataframe` or ``mc2 import``. The constructor takes
    counts.

    Parameters
    ----------
    content : (J, V) sparse or dense matrix, or DataFrame, of whole, non-negative counts
        Counts of V words in J documents. A document may be empty.
    vocabulary : V different strings, optional
        The words. By default, the column names of a DataFrame are used.
    contexts : mapping, optional
        Contexts by name. Numbers are a (J,) float array (NaN if missing). Counts are a (J, A) matrix, either sparse or
        dense with an integer dtype (an empty row if missing). Vectors are a (J, D) dense float array (NaN for a missing
        coordinate).
    labels : (J,) ints or (J, L) sparse membership, optional
        True classes, for scores only.
    documents : pandas DataFrame of J rows, optional
        Titles, ids and other columns for tables and reports.
    context_names : ``{name: A strings}``, optional
        Names of the A values of each context of counts, such as authors.
    label_names : strings, optional
        Names of the classes.
    units : ``{name: (mean, sd)}``, optional
        Original mean and standard deviation of each context that was scaled by :meth:`standardised`. The original value
        is the stored value * sd + mean. For vectors, both are tuples of D floats.

    Attributes
    ----------
    imported : dict or None
        Settings of the import, so that later documents can be read in the same way.
    index : pandas Index or None
        Index of the DataFrame or Series from which the documents were read. Tables of documents use the same index.
    observations : (N, D) float64 or None
        Observations in the order of the documents, if the corpus was built by :meth:`from_observations`; otherwise
        None. With observations, ``content`` is a (J, N) matrix with one column per observation.
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
        tables, columns, scales = (
            {} if one is None else mapping(name, one)
            for name, one in (("contexts", contexts), ("context_names", context_names), ("units", units))
        )
        self.contexts = {name: check_context(name, context, n_documents) for name, context in tables.items()}
        words = columns_of(content) if vocabulary is None else vocabulary
        self._vocabulary = check_distinct(check_names(words, "vocabulary", n_words), "vocabulary")
        self.context_names: dict[str, list[str]] = {}
        for name, names in columns.items():
            table = self.contexts.get(name)
            if table is None or not sp.issparse(table):
                raise ValueError(f"context_names names {name!r}, which is not a count context of the corpus")
            self.context_names[name] = check_names(names, f"context_names[{name!r}]", table.shape[1]) or []
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
        self._table: files.DocumentTable | None = None
        self._digest: str | None = None
        self._origin: tuple[Corpus, np.ndarray] | None = None  # the larger corpus, and the rows of this part

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
            Index of the document of each observation, from 0. A document may have no observations.
        contexts, labels, documents
            As in :class:`Corpus`.
        kind : {"numbers", "counts", "binary"}, default "numbers"
            Kind of the values; "binary" means zeros and ones.
        names : D strings, optional
            Names of the columns of ``values``, which are stored as ``vocabulary``.
        n_documents : int, optional
            Number of documents; by default, one more than the largest index in ``document``.
        context_names, label_names, units
            As in :class:`Corpus`.

        Raises
        ------
        ValueError
            If an observation is not finite, is not of the given kind, or has no document. The message names the first
            such observation.

        Examples
        --------
        >>> import mc2core
        >>> scores, school = [[35.0, 40.0], [50.0, 55.0], [36.0, 41.0]], [0, 0, 1]
        >>> mc2core.Corpus.from_observations(scores, school, names=["maths", "reading"])
        Corpus(2 documents, 3 observations of 2 numbers, contexts: none)
        """
        table, of = check_observations(values, document, n_documents, kind)
        order = np.argsort(of, kind="stable")
        corpus = cls(
            ones(np.bincount(of, minlength=n_documents or 0)), None, contexts, labels, documents,
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
        texts : sequence of J strings
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
            Fit or corpus whose vocabulary, contexts and units are used. Unknown words and values are left out with a
            warning. The options below then default to the values of the earlier import.
        tokenise : function (text) -> words, optional
            Function that replaces the built-in tokeniser.
        stop_words : language, list of words or None, default "english"
            Words to leave out; None keeps all words.
        min_letters : int, optional
            Smallest number of letters in a word (default 2).
        max_ngram : int, optional
            Largest number of consecutive words that are also counted as one word (default 1: single words only).
        vocabulary : strings, optional
            The words to count, in column order.
        min_df, max_df, max_features : optional
            Limits on the vocabulary. A word is kept if it occurs in at least ``min_df`` documents (default 1) and in at
            most the share ``max_df`` of all documents. Among these words, the ``max_features`` most frequent are kept.
        word_counts : {"raw", "presence", "log"}, optional
            Count that is stored for a word that occurs n times in a document: n ("raw", the default), 1 ("presence") or
            1 + floor(log2 n) ("log").
        missing : codes, optional
            Further texts and numbers that stand for a missing value, such as ``["unknown", -99]``. The default codes
            are those of pandas (NA, N/A, NaN, null, None, ...); include "none" to ignore the default codes. A text,
            number, date or single name is missing if it equals a code. Words within a text are not compared with codes.

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
        settings = frames.settings_of(tokenise, stop_words, options)
        return frames.from_texts(cls, texts, contexts, labels, documents, embeddings, like, tokenise, settings)

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
            Column whose cells are words, lists of words or dicts of counts, in place of ``text``.
        contexts : list of columns, or ``{name: column}``, optional
            Columns of numbers, dates, names or lists of names. Strings are read as names; convert dates by
            ``pd.to_datetime``.
        labels, id : str, optional
            Column of the true classes, and column of unique document ids.
        keep : list of columns, optional
            Further columns for tables and reports.
        separator : str, optional
            Separator of the names in a cell, such as ";". By default, a cell contains one name.
        embeddings : (J, D) matrix, optional
            Sentence embeddings of the documents (:meth:`with_embeddings`).
        like, tokenise, stop_words, min_letters, max_ngram, vocabulary, min_df, max_df, max_features, word_counts, \
        missing
            As in :meth:`from_texts`. With ``like``, the columns of the earlier data frame or import are the defaults.

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
        settings = frames.settings_of(tokenise, stop_words, options)
        return frames.from_dataframe(
            cls, frame, settings, text=text, bag=bag, contexts=contexts, labels=labels, id=id, keep=keep,
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

        Each record is a document, whose text is the title and the abstract. Contexts are year, author, journal,
        keyword, mesh and reference, if the file contains them. ``documents`` has the id (DOI, else PMID) and the title.
        Authors have the form "Surname, I.". Duplicates are left out: records with the same DOI or PMID, and records
        with the same title, year and first author. A warning reports the records that were left out or merged.

        Parameters
        ----------
        path : path
            RIS (.ris), BibTeX (.bib), PubMed (.xml, .nbib, .txt), Web of Science (.txt), OpenAlex (.jsonl), or CSV with
            a title, authors and an abstract, as exported by Scopus (.csv). The file may be compressed (.gz).
        like, stop_words, min_letters, max_ngram, min_df, max_df, max_features, word_counts
            As in :meth:`from_texts`.
        rare : list of "CONTEXT=N" or "CONTEXT=N:pool", optional
            Rules for rare values: values of a context in fewer than N documents are left out, or counted as one value
            (pool). By default, N is 2 for authors, keywords and references.

        Raises
        ------
        ValueError
            If the file is not a bibliography, is damaged or truncated (the message has the file and line), or if
            arguments contradict ``like``.

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

        # imported by name, so that fits of the workflow do not depend on the modules that read files
        reading = importlib.import_module("mc2core.corpus.readers.reading")
        options = {
            "min_letters": min_letters, "max_ngram": max_ngram, "min_df": min_df, "max_df": max_df,
            "max_features": max_features, "word_counts": word_counts, "rare": rare,
        }  # fmt: skip
        return reading.read_bibliography(Path(path), frames.settings_of(None, stop_words, options), like)

    @classmethod
    def concatenate(cls, corpora: Iterable[Corpus]) -> Corpus:
        """Concatenate the documents of several corpora in memory.

        Columns are matched by name. The result has the words, context values and labels of all corpora, in order of
        first occurrence. If a corpus lacks a context or a column of ``documents``, the values are missing in its
        documents. A standardised context has the units of the first corpus that contains this context. ``imported`` is
        taken from the first corpus.

        Raises
        ------
        ValueError
            If no corpus is given, if columns have no names, or if contexts, vectors or labels differ in kind between
            corpora.
        """
        from mc2core.corpus.concatenation import concatenate

        return concatenate(cls, corpora)

    # -- contents ------------------------------------------------------------------------------------------
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
        """Number of words V or, for observations, number of coordinates D."""
        return self.content.shape[1] if self.observations is None else self.observations.shape[1]

    @property
    def n_tokens(self) -> int:
        """Number of tokens: the sum of all counts."""
        return int(self.content.data.sum(dtype=np.int64))

    @property
    def document_lengths(self) -> np.ndarray:
        """Number of tokens of each document, (J,) int64."""
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
        """The V words, or the names of the D columns of observations; ``w0``, ``w1``, ... if there are no names."""
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
                self._documents = files.taken(self._origin[0].document_blocks(), self._origin[1])
            elif self._table is not None:
                (self._documents,) = self._table.blocks(self.n_documents, self.n_documents + 1)
            else:
                import pandas as pd

                self._documents = pd.DataFrame(index=pd.RangeIndex(self.n_documents))
            self.set_index(self.index)
        return self._documents

    def set_index(self, index: Any) -> None:
        """Set the :attr:`index` of the documents. Raises ValueError unless ``index`` has one entry per document."""
        if index is not None and len(several("index", index)) != self.n_documents:
            size = f"the index has {counted(len(index), 'rows')}"
            raise ValueError(f"{size}, but the corpus has {counted(self.n_documents, 'documents')}")
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
        """Return whether each document lacks a value (all coordinates of a vector) of the context ``name``, (J,)
        bool."""
        context = self.contexts[name]
        return np.diff(context.indptr) == 0 if sp.issparse(context) else np.isnan(np.atleast_2d(context.T)).all(axis=0)

    @property
    def digest(self) -> str:
        """SHA-256 of the content and contexts. Names have a separate digest (:attr:`names_digest`)."""
        if self._digest is None:
            arrays: dict[str, Any] = {}
            for name, part in {
                "content": self.content,
                **{f"context.{n}": c for n, c in self.contexts.items()},
            }.items():
                if sp.issparse(part):
                    arrays[f"{name}.indptr"] = part.indptr.astype(np.int64, copy=False)
                    arrays[f"{name}.indices"] = part.indices.astype(np.int32, copy=False)
                    arrays[f"{name}.data"] = part.data
                    arrays[f"{name}.shape"] = np.array(part.shape, dtype=np.int64)
                else:
                    arrays[name] = part
            arrays["shape"] = arrays.pop("content.shape")
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
        words, tokens = counted(self.n_words, CONTENT_KINDS.get(self.content_kind, "words")), self.n_tokens
        observations = f"{counted(tokens, 'observations')} of {words}"
        content = observations if self.is_of_observations else f"{words}, {counted(tokens, 'tokens')}"
        documents = counted(self.n_documents, "documents")
        return f"Corpus({documents}, {content}, contexts: {self._describe_contexts()})"

    def _describe_contexts(self) -> str:
        return ", ".join(f"{name} ({KINDS[kind]})" for name, kind in self.context_kinds.items()) or "none"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: numbers of documents and words, contexts, and the first documents."""
        from mc2core.base.pages import facts

        columns = CONTENT_KINDS.get(self.content_kind, "words")
        tokens = "observations" if self.is_of_observations else "tokens"
        rows = {"documents": f"{self.n_documents:,}", columns: f"{self.n_words:,}", tokens: f"{self.n_tokens:,}"}
        labels = "none" if self.labels is None else "one or more of each document"
        rows |= {"contexts": self._describe_contexts(), "labels": labels}
        documents, contexts = self.documents.head(_SHOWN_DOCUMENTS), self._summarise_contexts()
        tables = [contexts.to_html(border=0, index=False)] if len(contexts) else []
        tables += [documents.to_html(max_cols=8, border=0)] if documents.shape[1] else []
        return facts("Corpus", rows, "".join(tables))

    def _summarise_contexts(self) -> pd.DataFrame:
        """Return a table with the kind, the number of documents and the range or commonest values of each context."""
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
                observed = np.asarray(table)[~np.isnan(table)] * scale + offset
                n, values = len(observed), f"{observed.min():.6g} to {observed.max():.6g}" if len(observed) else ""
            rows.append((name, KINDS[kind], n, values))
        return pd.DataFrame(rows, columns=["context", "kind", "documents", "values"])

    # -- subsets and changed copies ------------------------------------------------------------------------
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
        # a copy is not checked again, so that a mini-batch of 500 documents takes about a millisecond
        part = copy.copy(self)
        part.content = take_rows(self.content, rows)
        if self.observations is not None:
            part.observations = np.asarray(self.observations[part.content.indices])
            part.content = ones(np.diff(part.content.indptr))
        part.contexts = {name: take(context, rows) for name, context in self.contexts.items()}
        part.labels = None if self.labels is None else take(self.labels, rows)
        part.imported = self.imported and {name: self.imported[name] for name in self.imported if name not in _OF_WHOLE}
        part._documents, part._digest, part._origin = None, None, (self, rows)
        part.index = None if self.index is None else self.index[rows]
        return part

    def with_documents(self, content: sp.csr_matrix, contexts: Mapping[str, Any]) -> Corpus:
        """Return a corpus of other documents with the words and contexts of this corpus. The documents are not checked.

        ``content`` is a (J, V) int32 CSR matrix. ``contexts`` must contain every context of this corpus, in the same
        form.
        """
        corpus = copy.copy(self)
        corpus.content, corpus.contexts = content, dict(contexts)
        blank = "labels", "label_names", "index", "_documents", "_digest", "_origin", "_table"
        vars(corpus).update(dict.fromkeys(blank))
        return corpus

    def with_contexts(self, contexts: Mapping[str, Any]) -> Corpus:
        """Return the same documents with other contexts.

        Contexts of this corpus that are passed again keep their names of values and their units. Their data are shared,
        not copied.
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
        corpus and its fits store this reduction in ``imported``. ``MC2()`` uses the context by default, with a strength
        that depends on the lengths of the documents.

        Parameters
        ----------
        vectors : (J, D) matrix of numbers
            One row per document. A row of NaN or of zeros is a missing vector. A memory-mapped matrix is read in
            blocks.
        like : Corpus or Posterior, optional
            Corpus or fit whose stored reduction is applied to the vectors. By default, a new reduction is computed.

        Raises
        ------
        ValueError
            If the number of rows or columns is wrong, if a vector has infinite or missing numbers (the message names
            the document), if all vectors have the same direction, if ``like`` has no embeddings, or if the corpus has
            another context with the name ``embedding``.
        """
        from mc2core.corpus.embeddings import KEY, Projection, check_vectors, projection_of

        array = check_vectors(vectors, self.n_documents)
        projection = Projection.from_vectors(array) if like is None else projection_of(like.imported)
        if projection is None:
            raise ValueError("embeddings are given, but the corpus or model of like= has none")
        if projection.name in self.contexts and KEY not in (self.imported or {}):
            raise ValueError(f"context {projection.name!r} is given twice: embeddings have this name; rename the other")
        changed = self.with_contexts(self.contexts | {projection.name: projection.apply(array)})
        changed.units.pop(projection.name, None)
        imported = self.imported or {"form": "", "settings": {}}
        changed.imported = imported | {KEY: projection.stored()}
        return changed

    def standardised(self, name: str, like: Corpus | None = None) -> Corpus:
        """Return the corpus with a numeric context scaled to mean 0 and standard deviation 1.

        Each coordinate of a vector is scaled separately. Test documents need the mean and standard deviation of the
        training corpus, which is given as ``like``. :func:`mc2core.fit` standardises contexts automatically.
        """
        values = self.contexts.get(name)
        if values is None or sp.issparse(values):
            raise ValueError(f"context {name!r} is not a numeric context of the corpus")
        if name in self.units:
            raise ValueError(f"context {name!r} is standardised already")
        if like is None:
            with np.errstate(over="ignore", invalid="ignore"):
                mean, sd = unit_of(values)
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
        """Yield the indices of all documents in random order, in arrays of ``size`` indices (the last may be smaller).

        The order depends on ``seed`` and ``epoch``. To resume an epoch, ``first`` arrays are skipped.
        """
        size = whole("size", size)
        from mc2core.compute import streams

        order = streams.generator(seed, "batches", epoch).permutation(self.n_documents)
        for start in range(first * size, self.n_documents, size):
            yield np.sort(order[start : start + size])

    # -- disk ----------------------------------------------------------------------------------------------
    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the corpus in ``folder`` (arrays as .npy, tables as text), and replace a corpus in this folder.

        Raises ValueError if the folder contains other files than a corpus, or if names of contexts differ only in case.
        """
        files.save(folder, self)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, verify: bool = False) -> Corpus:
        """Open a saved corpus. Its arrays and its table of documents stay on disk (memory-mapped).

        If the folder is later replaced or extended, the opened corpus does not change. Shapes, column indices and the
        sum of counts are checked. If ``verify`` is True, the digest of each file is also checked. Raises ValueError if
        data are missing, changed or out of range.
        """
        corpus = cls.__new__(cls)
        vars(corpus).update(files.load(folder, verify))
        if verify:
            stored, corpus._digest = corpus._digest, None
            if corpus.digest != stored:
                raise ValueError(f"{folder} was changed after it was saved: its digest differs")
        return corpus
