"""Read counts in the format of LDA-C (Blei): a document is a line ``nterms id:count id:count ...``; ids start at 0."""

from __future__ import annotations

import re

import numpy as np
import scipy.sparse as sp

_LINE = re.compile(rb"([0-9]{1,9})((?: [0-9]{1,9}:[0-9]{1,9})*) ?")


def read_counts(content: bytes, n_words: int, file: str, vocabulary: str) -> sp.csr_matrix:
    """Read the lines of a file; blank lines at the end are ignored.

    Parameters
    ----------
    content : content of the file.
    n_words : size V of the vocabulary.
    file, vocabulary : names of the file and of the vocabulary in messages.

    Returns
    -------
    (J, V) int64 CSR

    Raises
    ------
    ValueError
        If a line has another form, a wrong number of words, a word id of V or more, or a word twice.
    """
    lines = content.rstrip(b"\r\n ").replace(b"\r\n", b"\n").split(b"\n")
    rows: list[np.ndarray] = []
    for i, line in enumerate(lines):
        where = f"{file}, line {i + 1}"
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{where} must be whole numbers in the form 'nterms id:count id:count ...'")
        pairs = np.array(match[2].replace(b":", b" ").split(), dtype=np.int64).reshape(-1, 2)
        if len(pairs) != int(match[1]):
            raise ValueError(f"{where} announces {int(match[1])} words, but lists {len(pairs)}")
        if len(pairs) and pairs[:, 0].max() >= n_words:
            raise ValueError(f"{where} has word {pairs[:, 0].max()}, but {vocabulary} ends at word {n_words - 1}")
        if len(np.unique(pairs[:, 0])) != len(pairs):
            raise ValueError(f"{where} lists a word twice")
        rows.append(pairs)
    indptr = np.cumsum([0, *map(len, rows)])
    flat = np.concatenate(rows)
    return sp.csr_matrix((flat[:, 1], flat[:, 0], indptr), shape=(len(rows), n_words))
