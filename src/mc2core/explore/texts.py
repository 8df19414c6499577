"""Texts of documents for the HTML report."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mc2core.base import storage
from mc2core.base.checks import counted
from mc2core.base.records import rows_or_faults
from mc2core.corpus import Corpus
from mc2core.corpus.alignment import files_of
from mc2core.corpus.building.cells import is_null
from mc2core.corpus.readers import bibliography

LONGEST = 20_000
"""Largest number of characters of a text in an HTML report; longer texts are truncated."""
MAX_INSIDE = 5_000_000
"""Largest total number of characters of texts in an HTML report; more characters are stored in separate scripts."""
PER_SCRIPT = 500_000
"""Approximate number of characters of the texts in one script."""

MIN_PHRASE_SHARE, MIN_TIMES = 1 / 2, 5
"""Smallest share, and smallest number, of a word's occurrences in a phrase at which the phrase replaces the word."""


def texts_of(corpus: Corpus, texts: str | os.PathLike[str] | Sequence[str]) -> list[str]:
    """Return the text of each document.

    ``texts`` is the name of a column of ``corpus.documents`` (``mc2 import --keep``), the imported file, or a list of
    texts.

    If ``texts`` is a file, its text column is read again. If the corpus has ids, rows are matched to documents by id.
    Without ids, rows are matched by order, and the file must not have changed since the import. Raises ValueError if
    ``texts`` is neither a column nor a file, or if the documents differ.
    """
    if not isinstance(texts, str | os.PathLike):
        cells = ["" if is_null(one) else str(one) for one in texts]
    elif str(texts) in corpus.documents:
        column = corpus.documents[str(texts)]
        return column.astype(object).where(column.notna(), "").astype(str).tolist()
    elif Path(texts).exists():
        return _of_file(corpus, Path(texts))
    else:
        columns = ", ".join(map(str, corpus.documents.columns)) or "none"
        raise ValueError(f"texts: {texts} is neither a file nor a kept column ({columns}); mc2 import --keep keeps one")
    if len(cells) != corpus.n_documents:
        raise ValueError(
            f"texts are given for {counted(len(cells), 'documents')}, but the corpus has {corpus.n_documents:,}"
        )
    return cells


def _of_file(corpus: Corpus, path: Path) -> list[str]:
    settings: dict[str, Any] = (corpus.imported or {}).get("settings", {})
    column, key = settings.get("text", "text"), settings.get("id")
    by_id = key is not None and key in corpus.documents
    columns = [column, str(key)] if by_id else [column]
    is_bibliography = column == bibliography.TEXT and bibliography.format_of(path) is not None
    lines = bibliography.read(path).cells(path, columns) if is_bibliography else rows_or_faults(path, columns)
    rows = [row for _, row in lines if isinstance(row, list)]
    if by_id:
        text_of = {" ".join(str(row[1]).split()): str(row[0] or "") for row in rows}
        keys = corpus.documents[key].astype(str)
        if missing := [one for one in keys if one not in text_of]:
            raise ValueError(f"{path} has no document with the id {missing[0]!r}, which the corpus has")
        return [text_of[one] for one in keys]
    if (imported := files_of(corpus.imported)) and storage.digest_path(path) not in imported:
        raise ValueError(
            f"{path} is not the file that was imported, or was changed since; import it again, with --id, or keep the "
            f"texts with --keep {column}"
        )
    if len(rows) != corpus.n_documents:
        raise ValueError(
            f"{path} has {counted(len(rows), 'documents')}, the corpus {corpus.n_documents:,}; import them with --id, "
            f"or keep the texts with --keep {column}"
        )
    return [str(row[0] or "") for row in rows]


def phrases_of(texts: Sequence[str], vocabulary: Sequence[str]) -> dict[str, str]:
    """Return frequent phrases of two words of the vocabulary, by word: for example "climate change" for "climate".

    A word has a phrase if the commonest pair with a neighbouring word occurs at least MIN_TIMES times. The pair must
    also contain at least the share MIN_PHRASE_SHARE of the word's occurrences.
    """
    terms, counts, pairs = frozenset(vocabulary), Counter[str](), Counter[tuple[str, str]]()
    for text in texts:
        words = re.findall(r"\w+", text.lower())
        counts.update(words)
        pairs.update(pair for pair in itertools.pairwise(words) if pair[0] in terms and pair[1] in terms)
    phrases: dict[str, str] = {}
    for pair, n in sorted(pairs.items(), key=lambda one: (-one[1], one[0])):
        if n >= MIN_TIMES and pair[0] != pair[1]:
            for word in pair:
                if n >= MIN_PHRASE_SHARE * counts[word]:
                    phrases.setdefault(word, " ".join(pair))
    return phrases


def in_scripts(
    texts: Sequence[str], documents: np.ndarray, cluster: np.ndarray, in_one: bool = False
) -> list[np.ndarray]:
    """Distribute documents over script files of the HTML report, and return the rows of the documents in each file.

    The documents of a cluster are consecutive. The texts of a file have about PER_SCRIPT characters. There is only one
    file if ``in_one`` is True, or if all texts have at most MAX_INSIDE characters.
    """
    order = documents[np.argsort(cluster[documents], kind="stable")]
    ends = np.cumsum([min(len(texts[one]), LONGEST) for one in order])
    if len(order) == 0 or in_one or ends[-1] <= MAX_INSIDE:
        return [order]
    script = (ends - 1) // PER_SCRIPT
    return np.split(order, np.flatnonzero(np.diff(script)) + 1)


def shortened(text: str) -> str:
    """Return the first LONGEST characters of a text, with an ellipsis if the text is longer."""
    clean = text.encode("utf-8", "replace").decode("utf-8")  # unpaired surrogates cannot be written
    return clean if len(clean) <= LONGEST else clean[:LONGEST] + " …"
