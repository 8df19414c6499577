"""Fingerprints of document ids, which show whether a document was used before.

Words and contexts are not used, because two different documents may have the same words and contexts.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mc2core.corpus import Corpus


def fingerprints_of(corpus: Corpus) -> np.ndarray | None:
    """Return the fingerprint of each document's id, (J,) int64; None if the documents have no ids.

    Ids are in the id column of the import, or else in the column ``id`` of ``documents``. Equal ids have equal
    fingerprints. Two different ids have the same fingerprint with probability 2^-64.
    """
    column = (corpus.imported or {}).get("settings", {}).get("id", "id")
    fingerprints = []
    for block in corpus.document_blocks():
        if column not in block:
            return None
        digests = (hashlib.blake2b(f"id {one}".encode(), digest_size=8).digest() for one in block[column].astype(str))
        fingerprints.append(np.frombuffer(b"".join(digests), np.int64))
    return np.concatenate(fingerprints)
