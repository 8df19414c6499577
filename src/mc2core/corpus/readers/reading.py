"""Read documents of users from files of any supported format, with the settings of the user or an earlier import."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc2core.base.checks import whole
from mc2core.base.faults import place_text

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2core.corpus.alignment import HasSchema, Schema
    from mc2core.corpus.building.counts import Dropped
    from mc2core.corpus.building.rows import BadRows
    from mc2core.corpus.readers import bibliography

logger = logging.getLogger(__name__)

_DOCWORD = re.compile(r".*\.txt(\.gz)?")
_COLUMNS = (
    *("text", "bag", "counts", "contexts", "tokeniser", "stop_words", "min_letters", "max_ngram"),
    *("separators", "date_format", "missing", "word_counts", "labels", "id", "keep"),
)
#: settings for each form of input
_SETTINGS = {
    "a table": (*_COLUMNS, "vocabulary", "min_df", "max_df", "max_features", "rare", "skip_bad"),
    "a table of observations": (
        *("document", "observations", "kind", "contexts", "separators"),
        *("date_format", "missing", "labels", "keep", "rare", "skip_bad"),
    ),
    "UCI bag-of-words": ("vocabulary",),
}
#: key of the counts of a bibliography in ``imported``
BIBLIOGRAPHY = "bibliography"
#: settings of all forms of input
LAYOUT = tuple(dict.fromkeys([*(setting for settings in _SETTINGS.values() for setting in settings), "embeddings"]))


def read_own(
    path: Path,
    settings: Mapping[str, Any],
    like: HasSchema | None = None,
    bad: BadRows | None = None,
    new_columns: int | None = None,
    reads_unused: bool = True,
) -> tuple[Corpus, list[Dropped]]:
    """Read a file, or a folder of text files; the name of the file determines its format.

    Parameters
    ----------
    path : Path
        File, or folder of text files.
    settings : mapping
        Settings in LAYOUT. None and empty values count as not given. The forms of values are:

        - ``contexts``: list of "[NAME=]COLUMN:KIND", or "NAME=FILE.npy:vector" for a matrix with one row per document;
        - ``tokeniser``: "unicode" or "a-z"; ``stop_words``: a language, a file of words, or "none";
        - ``separators``: list of "[COLUMN=]SIGN"; ``rare``: list of "NAME=N" or "NAME=N:pool";
        - ``missing``: further codes of missing values (a list, or a text with commas), or "none" to ignore the codes of
          pandas;
        - ``word_counts``: "raw", "presence" or "log"; ``skip_bad``: largest number of bad rows that are left out;
        - ``document``, ``observations`` and ``kind``: a column, a list of columns, and "numbers" (default), "counts" or
          "binary", for a table with one observation per row (:mod:`mc2core.corpus.readers.observations`);
        - ``embeddings``: .npy file for :meth:`mc2core.Corpus.with_embeddings`, or a function that computes the matrix
          for the corpus.
    like : Corpus or Posterior, optional
        Corpus or model whose words and contexts (values, kinds and units) are used. If it was imported from a file of
        the same form, columns default to the columns of that file; otherwise, columns must be given. A context given as
        "[NAME=]COLUMN" keeps its kind. If the file lacks a default column (context, labels, id or kept column), this
        column is left out with a note, and the context is missing in every document.
    bad : BadRows, optional
        Collector of the bad rows of a table.
    new_columns : int, optional
        Smallest number of documents with a new word or value for which a column is added. By default, words and values
        that ``like`` lacks are left out.
    reads_unused : bool, optional
        Whether to read contexts that were imported with a model's documents but that the model does not use.

    Returns
    -------
    corpus : Corpus
        Documents in the order of the file; ``imported`` has the settings.
    dropped : list of Dropped
        The parts that were left out, with reasons, including unknown words and values.

    Raises
    ------
    ValueError
        If a setting does not apply to the form or is determined by ``like``, if the file is damaged, or if the
        documents have no word of ``like``.
    """
    from mc2core.base import records, storage
    from mc2core.corpus import Corpus, alignment
    from mc2core.corpus.building.columns import CONTENT_KINDS
    from mc2core.corpus.building.rows import BadRows
    from mc2core.corpus.building.settings import OBSERVATIONS, TABLE, UCI, codes_of, complete, stored
    from mc2core.corpus.readers import bibliography

    options = {setting: value for setting, value in settings.items() if value not in (None, "", [])}
    contents = [options[kind] for kind in CONTENT_KINDS if kind in options]
    is_table = "document" in options or any(content != bibliography.TEXT for content in contents)
    works = None if is_table or bibliography.format_of(path) is None else bibliography.read(path)
    name = "" if path.is_dir() or works else path.name.lower()
    form = UCI if _DOCWORD.fullmatch(name) else TABLE
    if form == TABLE and works is None:
        records.form_of(path)  # its ValueError, before one about columns of a file that cannot be read at all
    contexts, files = _split_files(options.pop("contexts", ()))
    options |= {"contexts": contexts} if contexts else {}
    embedded = options.pop("embeddings", None)
    if form == TABLE and ("observations" in options or "document" in options):
        form = OBSERVATIONS
    for setting in options:
        if setting not in _SETTINGS[form]:
            raise ValueError(f"{setting!r} cannot be used with {path}, which is read as {form}")
    if "missing" in options:
        options["missing"] = codes_of(options["missing"])
    if "stop_words" in options:
        options["stop_words"] = _stop_words(options["stop_words"])
    schema = None if like is None else alignment.schema_of(like)
    if schema is not None and not reads_unused:
        schema = replace(schema, unused={})
    if works is not None:
        options = _of_works(works, schema, contexts) | options
    if form == OBSERVATIONS and schema is not None:
        raise ValueError(f"{schema.what} has words, but these data are observations; import them without it")
    used, optional = (options, set[str]()) if schema is None else alignment.align(schema, form, options)
    if form == TABLE and not any(kind in used for kind in CONTENT_KINDS):
        if not path.is_dir():
            raise ValueError(_without_words(path))
        used = {"text": "text"} | used
    if form == TABLE:
        used = complete(used)
    bad = BadRows() if bad is None else bad
    bad.allowed, bad.can_allow = whole("skip_bad", options.get("skip_bad", 0), least=0), True
    corpus, dropped = _read(path, form, used, optional, bad, None if schema is None else schema.words, works)
    if schema is None and corpus.content.nnz == 0 and not (corpus.contexts or files):
        raise ValueError(f"{path}: no document has a word, and there is no context")
    corpus = _with_vectors(corpus, files)
    corpus.imported = stored(form, used) | ({} if works is None else {BIBLIOGRAPHY: works.counts})
    if embedded is not None:
        vectors = embedded(corpus) if callable(embedded) else storage.map_array(Path(embedded))
        if bad.number and len(vectors) == corpus.n_documents + bad.number:
            rows = ", ".join(dict.fromkeys(place_text(one.place) for one in bad.first))
            why = f"the embeddings also have rows for the bad rows of {path}, which the import leaves out; "
            raise ValueError(f"{why}remove from the embeddings the rows that belong to: {rows}")
        corpus = corpus.with_embeddings(vectors, like)
    if schema is None:
        return corpus, dropped
    gone = alignment.missing_columns(corpus, used, optional)
    if new_columns is not None:
        schema, _ = alignment.extended(schema, corpus, new_columns)
    corpus, unknown = alignment.reindex_to_schema(Corpus, corpus, schema)
    return corpus, [*dropped, *unknown, *gone]


def _without_words(path: Path) -> str:
    """Return a message for a file without a default column of words."""
    from mc2core.base import records
    from mc2core.base.faults import Fault

    columns = [one for one in records.columns_of(path) if one]
    if not columns:
        lines = records.json_lines(path) if records.form_of(path) in (".jsonl", ".ndjson") else ()
        fault = next((f", line {n} {row.message}" for n, row in lines if isinstance(row, Fault)), "")
        return f"{path}{fault or ' has no documents'}"
    return (
        f"{path} is not a bibliography that is read without options; give one column of words by --text, --bag or "
        f"--counts (text, bag or counts in a configuration and in Python; columns: {', '.join(columns)[:200]!r})"
    )


def read_bibliography(path: Path, settings: Mapping[str, Any], like: HasSchema | None = None) -> Corpus:
    """Read a bibliography by :func:`read_own`, and log the records that were left out or merged."""
    from mc2core.corpus.readers import bibliography

    if path.is_file() and bibliography.format_of(path) is None:
        raise ValueError(f"{path} is not a bibliography; {bibliography.FORMATS}")
    corpus, dropped = read_own(path, settings, like)
    notes = bibliography.messages((corpus.imported or {})[BIBLIOGRAPHY])
    logger.warning("%s: %s", path, "; ".join([*notes, *map(str, dropped)]))
    return corpus


def _of_works(works: bibliography.Works, schema: Schema | None, contexts: Sequence[str]) -> dict[str, Any]:
    """Return the default settings of a bibliography, given ``contexts`` that replace the default contexts.

    With a ``schema``, only contexts of the schema are used.
    """
    from mc2core.corpus.building.settings import TABLE, parse_contexts

    settings = works.settings()
    if schema is None and contexts:
        used = parse_contexts(contexts)
        rare = [one for one in settings.pop("rare", ()) if one.partition("=")[0] in used]
        return settings | ({"rare": rare} if rare else {})
    if schema is None:
        return settings
    if schema.form == TABLE and schema.settings.get("text") == settings["text"]:
        return {}
    available = schema.columns.keys() | schema.unused.keys()
    contexts = [text for name, text in zip(parse_contexts(settings["contexts"]), settings["contexts"], strict=True)
                if name in available]  # fmt: skip
    return {name: settings[name] for name in ("text", "id", "keep")} | {"contexts": contexts}


def _split_files(contexts: Sequence[str]) -> tuple[list[str], dict[str, Path]]:
    """Return the contexts that are columns, and the files of vector contexts by name. Raises ValueError if the form of
    a vector context is invalid."""
    files: dict[str, Path] = {}
    columns = []
    for text in contexts:
        source, _, kind = text.rpartition(":")
        if kind != "vector":
            columns.append(text)
            continue
        name, _, path = source.partition("=")
        if not path.lower().endswith(".npy"):
            raise ValueError(f"context {text!r} is a vector: it must have the form NAME=FILE.npy:vector")
        if name in files:
            raise ValueError(f"context {name!r} is given twice")
        files[name] = Path(path)
    return columns, files


def _with_vectors(corpus: Corpus, files: Mapping[str, Path]) -> Corpus:
    """Return the corpus with the matrices in ``files`` as vector contexts. Raises ValueError if a matrix does not match
    the documents."""
    from mc2core.base import storage

    vectors = {}
    for name, path in files.items():
        if name in corpus.contexts:
            raise ValueError(f"context {name!r} is given twice")
        matrix = storage.map_array(path)
        if matrix.ndim != 2 or matrix.dtype.kind not in "iuf" or len(matrix) != corpus.n_documents:
            rows = f"a matrix of numbers with {corpus.n_documents} rows, one for each document, is needed"
            raise ValueError(f"context {name!r}: {path} holds {matrix.shape} {matrix.dtype}; {rows}")
        vectors[name] = matrix.astype("float64")
    return corpus.with_contexts(corpus.contexts | vectors) if vectors else corpus


def _read(
    path: Path,
    form: str,
    settings: Mapping[str, Any],
    optional: set[str],
    bad: BadRows,
    followed: Sequence[str] | None,
    works: bibliography.Works | None,
) -> tuple[Corpus, list[Dropped]]:
    """Read a file without alignment. ``optional`` columns may be absent. ``followed`` are the words of the corpus if no
    document has a word."""
    from mc2core.corpus.building.settings import OBSERVATIONS, UCI, layout_of, rule_of
    from mc2core.corpus.readers import observations, table, uci

    if form == UCI:
        return uci.read(path, settings.get("vocabulary")), []
    if form == OBSERVATIONS:
        return observations.read(path, settings, bad)
    vocabulary = table.read_vocabulary(settings["vocabulary"]) if "vocabulary" in settings else None
    return table.read_table(path, layout_of(settings, optional), vocabulary, rule_of(settings), bad, followed, works)


def is_file_of_words(stop_words: Any) -> bool:
    """Return whether stop words are given as a file rather than a language or "none"."""
    return isinstance(stop_words, str) and bool(Path(stop_words).suffix or os.sep in stop_words)


def _stop_words(source: str) -> str | list[str]:
    """Return the words of a file of stop words; a language or "none" is returned unchanged."""
    from mc2core.corpus.readers import table

    return table.read_vocabulary(source) if is_file_of_words(source) else source


def notes_of(corpus: Corpus) -> list[str]:
    """Return notes for a datasheet on how words were extracted."""
    from mc2core.corpus.building.tokens import has_pairs
    from mc2core.corpus.embeddings import projection_of
    from mc2core.corpus.readers.bibliography import messages

    settings, of_works = ((corpus.imported or {}).get(key, {}) for key in ("settings", BIBLIOGRAPHY))
    notes = messages(of_works) if of_works else []
    if "text" in settings:
        rule = {
            "unicode": "letters, marks and digits of any script, in lower case; apostrophes inside words are kept",
            "a-z": "letters a-z, in lower case; accents are removed",
        }[settings["tokeniser"]]
        stop_words = settings.get("stop_words", "english")
        left_out = "a list of your own" if isinstance(stop_words, list) else stop_words
        notes.append(f"words are sequences of {rule}; stop words: {left_out}")
    if "text" in settings and settings["tokeniser"] == "unicode" and has_pairs(corpus.vocabulary):
        notes.append(
            "scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are counted as overlapping pairs of "
            "characters, not as words"
        )
    if settings.get("word_counts", "raw") != "raw":
        times = {"presence": "once", "log": "1 + floor(log2 n) times, where n is its count in the document"}
        notes.append(f"each word of a document is counted {times[settings['word_counts']]}")
    if (projection := projection_of(corpus.imported)) is not None:
        notes.append(
            f"embeddings of {projection.length} numbers were reduced to {projection.basis.shape[1]} principal "
            f"components, which have {projection.explained:.0%} of the variance of their directions: context "
            f"{projection.name}"
        )
    return notes
