"""Conversion of a table with one document per row, or of a folder of text files, to a corpus.

JSON Lines, CSV, TSV, Parquet and Excel files are read in one pass (:mod:`mc2core.base.records`). Only counts are in
memory, with eight bytes per distinct word of a document. :mod:`mc2core.corpus.building.columns` describes the contents
of cells.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mc2core.base.checks import shown
from mc2core.base.records import columns_of, has_decimal_commas, left_out_files, lines_of, rows_or_faults
from mc2core.corpus import Corpus
from mc2core.corpus.building.columns import Layout
from mc2core.corpus.building.counts import Dropped, VocabularyRule
from mc2core.corpus.building.rows import BadRows, corpus_of_rows
from mc2core.corpus.readers.bibliography import Works


def read_table(
    path: str | os.PathLike[str],
    layout: Layout,
    vocabulary: Sequence[str] | None = None,
    rule: VocabularyRule | None = None,
    bad: BadRows | None = None,
    followed: Sequence[str] | None = None,
    works: Works | None = None,
) -> tuple[Corpus, list[Dropped]]:
    """Read a file or a folder of text files, and return the corpus and the parts left out.

    ``works`` has the works of the file if it is a bibliography. The other arguments are those of
    :func:`mc2core.corpus.building.rows.corpus_of_rows`. Raises ValueError with the file, and with the line and column
    of each bad row.
    """
    path = Path(path)
    if layout.optional:
        layout = layout.among(columns_of(path) if works is None else works.columns, str(path))
    if works is not None:
        return corpus_of_rows(
            Corpus, str(path), works.cells(path, layout.columns), layout, vocabulary, rule, bad, followed=followed
        )
    rows = rows_or_faults(path, layout.columns)
    decimal_comma = has_decimal_commas(path)
    corpus, dropped = corpus_of_rows(Corpus, str(path), rows, layout, vocabulary, rule, bad, decimal_comma, followed)
    return corpus, [*(Dropped(*one) for one in left_out_files(path)), *dropped]


def read_vocabulary(path: str | os.PathLike[str]) -> list[str]:
    """Read words from a file with one word per line. Raises ValueError, with the line, for blank or repeated words."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    words: dict[str, int] = {}
    for number, line in lines_of(path):
        word = line.strip()
        if not word:
            raise ValueError(f"{path}, line {number} is blank; each line is one word")
        if word in words:
            raise ValueError(f"{path}, line {number} repeats the word {shown(word)} of line {words[word]}")
        words[word] = number
    if not words:
        raise ValueError(f"{path} has no word")
    return list(words)
