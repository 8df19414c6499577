"""Fingerprints by which it is seen that a document came before: of its id. Documents without ids have none.

Two documents may have the same words: neither these nor contexts say that they are the same.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mc2core.corpus import Corpus


def fingerprints_of(corpus: Corpus) -> np.ndarray | None:
    """(J,) int64, one number for each document, the same for the same id; None if the documents have no ids.

    The id is in the column of ``documents`` that the import called so, or else in the column ``id``. Two others have
    the same fingerprint with probability 2^-64.
    """
    column = (corpus.imported or {}).get("settings", {}).get("id", "id")
    fingerprints = []
    for block in corpus.document_blocks():
        if column not in block:
            return None
        digests = (hashlib.blake2b(f"id {one}".encode(), digest_size=8).digest() for one in block[column].astype(str))
        fingerprints.append(np.frombuffer(b"".join(digests), np.int64))
    return np.concatenate(fingerprints)
