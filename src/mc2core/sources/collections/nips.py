"""NIPS 0-12 (1987-1999): Roweis' MATLAB file, Heinrich's text re-encoding of it with section labels, scanned text.

The first two formats give the same corpus: words of the papers as content; contexts ``author`` (1 for each author of a
paper), ``title`` (counts of the title's words, :func:`mc2core.sources.text.words.words_of`) and ``year`` (of the
conference: 1987 + volume). Section labels of the proceedings are in the text form only. The
scanned text gives other words and the year only: :mod:`mc2core.sources.collections.nips_raw` says why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.corpus import Corpus
from mc2core.corpus.building.counts import Dropped
from mc2core.sources.collections import nips_raw
from mc2core.sources.formats import archives, ldac, matlab
from mc2core.sources.text import words as text

FIRST_YEAR = 1987
_TEXT_MEMBERS = (
    "nips.corpus",
    "nips.vocab",
    "nips.authors",
    "nips.authors.key",
    "nips.docs",
    "nips.docnames",
    "nips.vols",
    "nips.labels",
    "nips.labels.key",
)
_MAT_VARIABLES = ("counts", "wl", "ptitles", "anames", "apapers", "docnames")
_NAME = re.compile(r"nips([0-9]{2})/\S+")
_VOCABULARY_LINE = re.compile(r"(\S+) = ([0-9]{1,9}) = ([0-9]{1,9}) ([0-9]{1,9}) ?")
_IDS_LINE = re.compile(r"(?:[0-9]{1,9}(?: [0-9]{1,9})*)? ?")


def read(path: str | os.PathLike[str]) -> Corpus:
    """The corpus alone of :func:`read_with_losses`."""
    return read_with_losses(path)[0]


def read_with_losses(path: str | os.PathLike[str]) -> tuple[Corpus, list[Dropped]]:
    """Read ``nips12raw_str602.mat``, ``nips12raw_str602.tgz`` or ``nips-corpus-20111211.zip``, told by first bytes.

    Also returns what was left out and why: the words of scanned text that are in too few papers.

    ValueError, one sentence: the file is missing, damaged, of another layout, or contradicts itself.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    with path.open("rb") as stream:
        magic = stream.read(2)
    if magic == b"\x1f\x8b":
        return read_raw(path)
    return (read_zip if magic == b"PK" else read_mat)(path), []


def read_zip(path: str | os.PathLike[str]) -> Corpus:
    """Read the text form: line i of each member is document i, word i or author i, and ids start at 0."""
    path = Path(path)
    members = archives.read_members(path, _TEXT_MEMBERS)
    lines = {name: _lines(content) for name, content in members.items()}
    for name in ("nips.vocab", "nips.authors.key", "nips.labels.key"):
        _drop_blank_end(lines[name])
    vocabulary, totals, spread = _vocabulary(path, lines["nips.vocab"])
    content = ldac.read_counts(members["nips.corpus"], len(vocabulary), f"{path}: nips.corpus", "nips.vocab")
    n_documents = content.shape[0]
    for name in ("nips.authors", "nips.docs", "nips.docnames", "nips.vols", "nips.labels"):
        _drop_blank_end(lines[name], n_documents)
        if len(lines[name]) != n_documents:
            raise ValueError(
                f"{path}: {name} has {len(lines[name])} lines, but nips.corpus has {n_documents} documents"
            )
    _same_totals(path, vocabulary, totals, np.asarray(content.sum(axis=0)).ravel(), "tokens")
    _same_totals(path, vocabulary, spread, np.bincount(content.indices, minlength=len(vocabulary)), "documents")
    names = [name.strip() for name in lines["nips.authors.key"]]
    papers = [_ids(path, "nips.authors", i, line, len(names)) for i, line in enumerate(lines["nips.authors"])]
    document_names = [name.strip() for name in lines["nips.docnames"]]
    years = _years(path, document_names)
    for i, line in enumerate(lines["nips.vols"]):
        if line.strip() != str(int(years[i]) - FIRST_YEAR):
            raise ValueError(
                f"{path}: nips.vols, line {i + 1} says volume {line.strip()[:20]!r}, "
                f"but the document is {document_names[i]}"
            )
    label_names = [name.strip() for name in lines["nips.labels.key"]]
    labels = [_ids(path, "nips.labels", i, line, len(label_names)) for i, line in enumerate(lines["nips.labels"])]
    for i, label in enumerate(labels):
        if len(label) != 1:
            raise ValueError(f"{path}: nips.labels, line {i + 1} holds {len(label)} numbers; one is needed")
    return _corpus(
        content,
        vocabulary,
        titles=lines["nips.docs"],
        names=document_names,
        years=years,
        authors=_membership(papers, len(names)),
        author_names=names,
        labels=np.array([label[0] for label in labels]),
        label_names=label_names,
    )


def read_mat(path: str | os.PathLike[str]) -> Corpus:
    """Read the MATLAB form: ``counts`` is words x documents, ``apapers`` lists documents from 1 per author.

    Row or column orientation of the small variables differs between copies, so each is ravelled. Version 5
    files, compressed or not; ``wc``, ``plengths`` and ``panum`` are not needed and not read.
    """
    path = Path(path)
    variables = matlab.read_matlab(path, _MAT_VARIABLES)
    counts = variables["counts"]
    if isinstance(counts, str | list) or counts.ndim != 2:
        raise ValueError(f"{path}: counts must be a matrix of words x documents")
    vocabulary, titles, author_names, names = (
        _strings(path, name, variables[name]) for name in ("wl", "ptitles", "anames", "docnames")
    )
    n_words, n_documents = counts.shape
    for variable, length, expected in (
        ("wl", len(vocabulary), n_words),
        ("ptitles", len(titles), n_documents),
        ("docnames", len(names), n_documents),
    ):
        if length != expected:
            raise ValueError(
                f"{path}: {variable} has {length} entries, but counts is {n_words} words x {n_documents} documents"
            )
    papers = _cells(path, "apapers", variables["apapers"])
    if len(papers) != len(author_names):
        raise ValueError(f"{path}: apapers has {len(papers)} entries, but anames has {len(author_names)} authors")
    documents = [_papers_of(path, i, cell, len(names)) for i, cell in enumerate(papers)]
    return _corpus(
        sp.csr_matrix(counts.T),
        vocabulary,
        titles=titles,
        names=names,
        years=_years(path, names),
        authors=_membership(documents, len(names)).T.tocsr(),
        author_names=author_names,
    )


def read_raw(path: str | os.PathLike[str]) -> tuple[Corpus, list[Dropped]]:
    """Read the scanned text; the words are of our own rule, and ``year`` is the only context."""
    path = Path(path)
    papers = nips_raw.read_counts(path)
    years = _years(path, papers.names)
    corpus = Corpus(
        papers.counts,
        papers.words,
        contexts={"year": years},
        documents=pd.DataFrame({"name": papers.names, "year": years.astype(np.int64)}),
    )
    return corpus, papers.dropped


def _corpus(
    content: sp.csr_matrix,
    vocabulary: Sequence[str],
    titles: Sequence[str],
    names: Sequence[str],
    years: np.ndarray,
    authors: sp.csr_matrix,
    author_names: Sequence[str],
    labels: np.ndarray | None = None,
    label_names: Sequence[str] | None = None,
) -> Corpus:
    titles = [" ".join(title.split()) for title in titles]
    title_counts, title_words = text.count_words(text.words_of(title) for title in titles)
    return Corpus(
        content,
        vocabulary,
        contexts={"author": authors, "title": title_counts, "year": years},
        labels=labels,
        documents=pd.DataFrame({"title": titles, "name": names, "year": years.astype(np.int64)}),
        context_names={"author": author_names, "title": title_words},
        label_names=label_names,
    )


def _membership(rows: Sequence[np.ndarray], n_columns: int) -> sp.csr_matrix:
    """(len(rows), n_columns) int32, 1 at the columns each row lists; a column listed twice still counts 1."""
    rows = [np.unique(row) for row in rows]
    indptr = np.cumsum([0, *map(len, rows)])
    columns = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
    return sp.csr_matrix((np.ones(len(columns), dtype=np.int32), columns, indptr), shape=(len(rows), n_columns))


def _years(path: Path, names: Sequence[str]) -> np.ndarray:
    matches = [_NAME.fullmatch(name) for name in names]
    for i, (name, match) in enumerate(zip(names, matches, strict=True)):
        if match is None:
            raise ValueError(f"{path}: docnames, document {i + 1} is {name[:60]!r}, not of the form nipsNN/NNNN.txt")
    return np.array([FIRST_YEAR + int(match[1]) for match in matches if match], dtype=np.float64)


# -- the text form -------------------------------------------------------------------------------------------
def _lines(content: bytes) -> list[str]:
    """Lines of a latin-1 member, ended by CRLF or LF."""
    lines = content.decode("latin-1").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _drop_blank_end(lines: list[str], least: int = 0) -> None:
    """Drop blank lines from the end, in place, but keep ``least`` lines: a paper may lack authors."""
    while len(lines) > least and not lines[-1].strip():
        lines.pop()


def _vocabulary(path: Path, lines: Sequence[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Words, and how many tokens and documents the file says each has: ``word = id = tokens documents``."""
    words, numbers = [], np.empty((len(lines), 2), dtype=np.int64)
    for i, line in enumerate(lines):
        match = _VOCABULARY_LINE.fullmatch(line)
        if match is None or int(match[2]) != i:
            raise ValueError(f"{path}: nips.vocab, line {i + 1} is {line[:60]!r}, not 'word = {i} = tokens documents'")
        words.append(match[1])
        numbers[i] = int(match[3]), int(match[4])
    if len(set(words)) != len(words):
        twice = next(word for i, word in enumerate(words) if word in words[:i])
        raise ValueError(f"{path}: nips.vocab has the word {twice!r} twice")
    return words, numbers[:, 0], numbers[:, 1]


def _same_totals(path: Path, words: Sequence[str], announced: np.ndarray, found: np.ndarray, what: str) -> None:
    wrong = np.flatnonzero(announced != found)
    if len(wrong):
        word = wrong[0]
        raise ValueError(
            f"{path}: nips.vocab gives {words[word]!r} {announced[word]} {what}, but nips.corpus has {found[word]}"
        )


def _ids(path: Path, member: str, i: int, line: str, n: int) -> np.ndarray:
    if not _IDS_LINE.fullmatch(line):
        raise ValueError(f"{path}: {member}, line {i + 1} is {line[:60]!r}, not numbers with spaces between")
    ids = np.array(line.split(), dtype=np.int64)
    if len(ids) and ids.max() >= n:
        raise ValueError(f"{path}: {member}, line {i + 1} has the number {ids.max()}, but {n - 1} is the highest")
    return ids


# -- the MATLAB form -----------------------------------------------------------------------------------------
def _cells(path: Path, name: str, value: matlab.Value) -> list:
    if not isinstance(value, list):
        raise ValueError(f"{path}: {name} must be a cell array")
    return value


def _strings(path: Path, name: str, value: matlab.Value) -> list[str]:
    cells = _cells(path, name, value)
    for i, cell in enumerate(cells):
        if not isinstance(cell, str) and np.size(cell):
            raise ValueError(f"{path}: {name}, entry {i + 1} is not text")
    # an empty text may be stored as an empty array of numbers
    return [cell.strip() if isinstance(cell, str) else "" for cell in cells]


def _papers_of(path: Path, author: int, cell: object, n_documents: int) -> np.ndarray:
    numbers = np.ravel(cell) if isinstance(cell, np.ndarray) else np.array([str(cell)])
    if len(numbers) == 0:
        return np.empty(0, dtype=np.int64)
    if numbers.dtype.kind not in "iuf" or not ((numbers >= 1) & (numbers <= n_documents)).all():
        raise ValueError(
            f"{path}: apapers, entry {author + 1} must hold document numbers from 1 to {n_documents}, "
            f"not {str(numbers.tolist())[:60]}"
        )
    if (numbers != np.floor(numbers)).any():
        raise ValueError(f"{path}: apapers, entry {author + 1} holds a fraction; document numbers are whole")
    return numbers.astype(np.int64) - 1
