"""Read NIPS 0-12 (1987-1999) from ``nips-corpus-20111211.zip``, Heinrich's text form of Roweis' counts.

The content is the words of the papers. Contexts are ``author`` (1 for each author of a paper), ``title`` (counts of the
words of the title, :func:`mc2core.corpus.building.letters.words_of`) and ``year`` (of the conference, 1987 + volume).
Labels are the sections of the proceedings.
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
from mc2core.corpus.building.letters import words_of
from mc2papers.datasets.formats import archives, ldac
from mc2papers.datasets.words import count_words

FIRST_YEAR = 1987
_MEMBERS = (
    "nips.corpus", "nips.vocab", "nips.authors", "nips.authors.key", "nips.docs", "nips.docnames", "nips.vols",
    "nips.labels", "nips.labels.key",
)  # fmt: skip
_NAME = re.compile(r"nips([0-9]{2})/\S+")
_VOCABULARY_LINE = re.compile(r"(\S+) = ([0-9]{1,9}) = ([0-9]{1,9}) ([0-9]{1,9}) ?")
_IDS_LINE = re.compile(r"(?:[0-9]{1,9}(?: [0-9]{1,9})*)? ?")


def read(path: str | os.PathLike[str]) -> Corpus:
    """Read the archive. Line i of a member is document i, word i or author i, and ids start at 0.

    Raises ValueError if the file is missing, damaged, inconsistent or has another layout.
    """
    path = Path(path)
    members = archives.read_members(path, _MEMBERS)
    lines = {name: _lines(content) for name, content in members.items()}
    for name in ("nips.vocab", "nips.authors.key", "nips.labels.key"):
        _drop_blank_end(lines[name])
    vocabulary, totals, spread = _vocabulary(path, lines["nips.vocab"])
    content = ldac.read_counts(members["nips.corpus"], len(vocabulary), f"{path}: nips.corpus", "nips.vocab")
    n_documents = content.shape[0]
    for name in ("nips.authors", "nips.docs", "nips.docnames", "nips.vols", "nips.labels"):
        _drop_blank_end(lines[name], n_documents)
        if (n := len(lines[name])) != n_documents:
            raise ValueError(f"{path}: {name} has {n} lines, but nips.corpus has {n_documents} documents")
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
    titles = [" ".join(title.split()) for title in lines["nips.docs"]]
    title_counts, title_words = count_words(words_of(title) for title in titles)
    return Corpus(
        content,
        vocabulary,
        contexts={"author": _membership(papers, len(names)), "title": title_counts, "year": years},
        labels=np.array([label[0] for label in labels]),
        documents=pd.DataFrame({"title": titles, "name": document_names, "year": years.astype(np.int64)}),
        context_names={"author": names, "title": title_words},
        label_names=label_names,
    )


def _membership(rows: Sequence[np.ndarray], n_columns: int) -> sp.csr_matrix:
    """Return a (len(rows), n_columns) int32 matrix with 1 at the columns that each row lists, even if listed twice."""
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


def _lines(content: bytes) -> list[str]:
    """Return the lines of a latin-1 member, which end with CRLF or LF."""
    lines = content.decode("latin-1").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _drop_blank_end(lines: list[str], least: int = 0) -> None:
    """Drop blank lines at the end, in place, but keep ``least`` lines, because a paper may lack authors."""
    while len(lines) > least and not lines[-1].strip():
        lines.pop()


def _vocabulary(path: Path, lines: Sequence[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return words, and the numbers of tokens and documents per word, from lines ``word = id = tokens documents``."""
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
        raise ValueError(f"{path}: {member}, line {i + 1} is {line[:60]!r}; numbers separated by spaces are needed")
    ids = np.array(line.split(), dtype=np.int64)
    if len(ids) and ids.max() >= n:
        raise ValueError(f"{path}: {member}, line {i + 1} has the number {ids.max()}, but {n - 1} is the highest")
    return ids
