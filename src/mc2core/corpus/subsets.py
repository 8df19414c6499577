"""Parts of a corpus: a fixed half of its documents, documents without contexts, words and contexts alone."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.compute import streams
from mc2core.corpus.corpus import Corpus

#: halves of a labelled corpus: defaults are chosen on the first half, and figures are reported on the second
HALVES = ("validation", "report")


def half(corpus: Corpus, which: str) -> Corpus:
    """Return one half of the documents, "validation" or "report", in order, with all words and names of the corpus.

    Documents are ranked by the SHA-256 of their ids (column ``id`` of ``documents``, as UTF-8). The first J // 2
    documents are "validation", and the other documents "report". The halves therefore depend neither on a seed nor on
    the order of documents.

    Raises ValueError if ``which`` is another name, or if the corpus has no column ``id`` or fewer than two documents.
    """
    if which not in HALVES:
        raise ValueError(f"half is {which!r}; it must be one of {', '.join(HALVES)}")
    if "id" not in corpus.documents:
        raise ValueError("documents needs a column 'id', by which a corpus is halved")
    if corpus.n_documents < 2:
        raise ValueError("a corpus of one document has no halves")
    digests = [hashlib.sha256(str(one).encode()).digest() for one in corpus.documents["id"]]
    ranked = sorted(range(corpus.n_documents), key=lambda document: digests[document])
    middle = corpus.n_documents // 2
    return corpus.subset(np.sort(ranked[:middle] if which == HALVES[0] else ranked[middle:]))


def without_contexts(corpus: Corpus, share: float, seed: int) -> Corpus:
    """Return the corpus with all contexts missing in round(share * J) random documents (ICML14, table 3).

    Documents are drawn with ``seed``. The documents of a smaller share are also among the documents of a larger share.
    Missing numbers and vectors become NaN, and missing counts become empty rows. With share 1, contexts exist but are
    missing in all documents, so an engine learns nothing from them.

    Raises ValueError if the share is not between 0 and 1, or if the seed is negative.
    """
    check_share(share)
    order = streams.generator(seed, "missing contexts").permutation(corpus.n_documents)
    has_value = np.ones(corpus.n_documents, dtype=bool)
    has_value[order[: round(share * corpus.n_documents)]] = False
    if has_value.all():
        return corpus
    return corpus.with_contexts(
        {
            name: _empty_rows(context, has_value) if sp.issparse(context) else np.where(has_value, context.T, np.nan).T
            for name, context in corpus.contexts.items()
        }
    )


def has_known_id(before: Corpus, new: Corpus) -> np.ndarray:
    """Return whether each document of ``new`` has the id of a document of ``before``, (J,) bool.

    Ids are in the id column of the import of ``before``. All values are False if either corpus lacks this column.
    """
    column = (before.imported or {}).get("settings", {}).get("id")
    if column not in before.documents or column not in new.documents:
        return np.zeros(new.n_documents, dtype=bool)
    ids = set(before.documents[column].astype(str))
    return np.array([one in ids for one in new.documents[column].astype(str)], dtype=bool)


def bare(corpus: Corpus) -> Corpus:
    """Return the corpus with words and contexts alone, without names, labels and the table of documents."""
    part = copy.copy(corpus)
    part.labels, part.label_names, part.context_names = None, None, {}
    part._vocabulary, part._table, part._origin = None, None, None
    part._documents = pd.DataFrame(index=pd.RangeIndex(part.n_documents))
    return part


def check_share(share: Any) -> None:
    """Raise ValueError unless ``share`` is a number from 0 to 1."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
        raise ValueError(f"share of documents without contexts (missing) is {share!r}; it must lie between 0 and 1")


def _empty_rows(counts: sp.csr_matrix, has_value: np.ndarray) -> sp.csr_matrix:
    data = np.where(np.repeat(has_value, np.diff(counts.indptr)), counts.data, 0)
    return sp.csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)
