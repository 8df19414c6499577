"""The bag-of-words format of the UCI repository: ``docword.<name>.txt[.gz]`` next to ``vocab.<name>.txt``.

The docword file begins with three lines with one number each: documents, words, entries. Each further line is one
entry: document, word and count, with documents and words numbered from 1. There are no contexts and no labels. If there
are many entries, they are stored in temporary files. Entries are sorted in memory if they are not in the order of
documents.
"""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from mc2core.base import memory
from mc2core.base.checks import counted
from mc2core.base.records import GZIP_RATIO, open_text, refuse_bomb, reporting_damage
from mc2core.corpus import Corpus
from mc2core.corpus.checks import csr_of
from mc2core.corpus.readers.table import read_vocabulary
from mc2core.corpus.row_blocks import Growing, by_rows

_BLOCK, _LONGEST_LINE = 1 << 18, 1000
_MAX_SIZE = 2**31 - 1
#: largest number of documents without a word, so that a wrong header cannot exhaust the memory
MAX_EMPTY = 10_000_000


def read(path: str | os.PathLike[str], vocabulary: str | os.PathLike[str] | None = None) -> Corpus:
    """Read a docword file.

    Parameters
    ----------
    path : path
        The docword file, plain or compressed by gzip.
    vocabulary : path, optional
        The vocab file. By default, this is ``vocab.<name>.txt`` next to ``docword.<name>.txt``.

    Raises
    ------
    ValueError
        If the first lines are not three whole numbers or are too large for the file or the memory, if entries are out
        of range or repeated, if the number of entries or words is wrong, or if the gzip file is damaged.
    OSError
        If there is no space for temporary files; the message names their folder.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    words = read_vocabulary(_vocabulary_beside(path) if vocabulary is None else vocabulary)
    with open_text(path, _is_packed(path)) as stream:
        with reporting_damage(path):
            n_documents, n_words, n_entries = (_size(path, stream, line) for line in (1, 2, 3))
        if n_words != len(words):
            raise ValueError(f"{path} announces {counted(n_words, 'words')}, but the vocabulary has {len(words)}")
        _check_sizes(path, n_documents, n_entries)
        columns = Growing(), Growing(), Growing()
        lengths, n_read, last, is_ordered = np.zeros(n_documents, np.int64), 0, 0, True
        for block in _entries(path, stream):
            n_read += len(block)
            if n_read > n_entries:
                raise ValueError(f"{path} has more than the {counted(n_entries, 'entries')} that line 3 announces")
            _check_entries(path, block, 4 + n_read - len(block), n_documents, n_words)
            for numbers, of_block in zip(columns, block.T, strict=True):
                numbers.extend(of_block)
            if len(block):
                is_ordered &= bool(last <= block[0, 0] and (np.diff(block[:, 0]) >= 0).all())
                last = block[-1, 0]
            present, n_seen = np.unique(block[:, 0], return_counts=True)
            lengths[present - 1] += n_seen
    if n_read != n_entries:
        raise ValueError(f"{path} has {counted(n_read, 'entries')}, but line 3 announces {n_entries:,}")
    documents, indices, counts = (numbers.all() for numbers in columns)
    if not is_ordered:
        memory.need(24 * n_entries, f"putting the entries of {path} in order", "it cannot be read here")
        order = np.argsort(documents, kind="stable")
        indices, counts = indices[order], counts[order]
    n_distinct = 0

    def in_order(rows: sp.csr_matrix) -> sp.csr_matrix:
        nonlocal n_distinct
        rows.indices -= 1
        rows.sum_duplicates()
        n_distinct += rows.nnz
        rows.eliminate_zeros()
        return rows

    content = by_rows(in_order, csr_of(np.append(0, lengths.cumsum()), indices, counts, n_words))
    if n_distinct != n_entries:
        repeated = counted(n_entries - n_distinct, "words")
        raise ValueError(f"{path} gives {repeated} of a document a second time")
    return Corpus(content, words)


def _vocabulary_beside(path: Path) -> Path:
    match = re.fullmatch(r"docword(\..+\.txt)(\.gz)?", path.name, re.IGNORECASE)
    if match is None:
        raise ValueError(
            f"{path} does not begin as an export of PubMed or Web of Science, and is not named docword.<name>.txt or "
            ".txt.gz, so its vocabulary file must be given"
        )
    expected = path.with_name(f"vocab{match[1]}")
    beside = (one for one in path.parent.iterdir() if one.name.lower() == expected.name.lower())
    return expected if expected.is_file() else next(beside, expected)


def _is_packed(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def _size(path: Path, stream: IO[bytes], line: int) -> int:
    text = stream.readline(100).strip()
    if not re.fullmatch(rb"[0-9]{1,10}", text) or int(text) > _MAX_SIZE:
        raise ValueError(f"{path}, line {line} is {text[:40]!r}; one whole number up to {_MAX_SIZE} is needed")
    return int(text)


def _check_sizes(path: Path, n_documents: int, n_entries: int) -> None:
    """Raise ValueError if the first lines announce more documents than entries and MAX_EMPTY allow, or than fit into
    memory."""
    if n_documents > n_entries + MAX_EMPTY:
        raise ValueError(
            f"{path} announces {counted(n_documents, 'documents')} but {counted(n_entries, 'entries')}; "
            f"at most {MAX_EMPTY} documents may be empty"
        )
    # row lengths, and row pointers twice
    memory.need(32 * n_documents, f"the corpus that {path} announces", "it cannot be read here")


def _check_entries(path: Path, block: np.ndarray, line: int, n_documents: int, n_words: int) -> None:
    """Raise ValueError if an entry of ``block`` is out of range. The first entry is in line ``line`` of the file."""
    for column, lowest, highest, quantity in (
        (0, 1, n_documents, "document"),
        (1, 1, n_words, "word"),
        (2, 0, _MAX_SIZE, "count"),
    ):
        bad = np.flatnonzero((block[:, column] < lowest) | (block[:, column] > highest))
        if len(bad):
            raise ValueError(
                f"{path}, line {line + bad[0]} has the {quantity} {block[bad[0], column]}; "
                f"it must lie between {lowest} and {highest}"
            )


def _entries(path: Path, stream: IO[bytes]) -> Iterator[np.ndarray]:
    """Yield blocks of entries (document, word, count), (n, 3) int64; blank lines are skipped."""
    line, text, size = 3, b"", 0

    def lines() -> Iterator[bytes]:
        nonlocal line, text, size
        while text := stream.readline(_LONGEST_LINE):
            line += 1
            size += len(text)
            if text.strip():
                yield text

    entries = lines()
    while True:
        with reporting_damage(path), warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # NumPy 1 reads "0.5" as 0 and warns
            if (first := next(entries, None)) is None:
                return
            rows = itertools.chain([first], entries)
            try:
                block = np.loadtxt(rows, "i8,i8,i8", comments=None, ndmin=1, max_rows=_BLOCK)
            except (ValueError, DeprecationWarning):
                excerpt = text[:60].strip()
                raise ValueError(
                    f"{path}, line {line} is {excerpt!r}; three whole numbers are needed: document, word, count"
                ) from None
        refuse_bomb(path, size, GZIP_RATIO)
        yield block.view(np.int64).reshape(-1, 3)
