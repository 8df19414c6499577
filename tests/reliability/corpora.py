"""Random small corpora for the harnesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus


def draw_corpus(rng: np.random.Generator, most_documents: int, most_words: int, extreme: bool = False) -> Corpus:
    """Counts with empty documents and words that never occur, and any of the contexts year, hits and tag.

    year : numbers, many of them missing at times. hits : whole numbers. tag : bags, empty ones among them.
    extreme : sizes of 1, huge counts and numbers, contexts that are missing everywhere.
    """
    n_documents = 1 if extreme and rng.random() < 0.2 else int(rng.integers(2, most_documents + 1))
    n_words = 1 if extreme and rng.random() < 0.2 else int(rng.integers(2, most_words + 1))
    content = rng.poisson(10 ** rng.uniform(-1.0, 0.5), (n_documents, n_words))
    content[rng.random(n_documents) < 0.1] = 0
    if extreme and rng.random() < 0.2:
        content[rng.integers(n_documents), rng.integers(n_words)] = 10 ** rng.integers(2, 5)
    if not content.any():
        content[0, 0] = 1
    contexts: dict[str, Any] = {}
    names: dict[str, list[str]] = {}
    missing = rng.random(n_documents) < (1.0 if extreme and rng.random() < 0.2 else rng.random())
    if rng.random() < 0.5:
        size = 10 ** rng.uniform(-300, 300) if extreme and rng.random() < 0.3 else 1.0
        contexts["year"] = np.where(missing, np.nan, size * rng.normal(size=n_documents))
    if rng.random() < 0.3:
        contexts["hits"] = np.where(missing, np.nan, rng.poisson(3.0, n_documents).astype(float))
    if rng.random() < 0.5:
        tags = rng.poisson(0.7, (n_documents, int(rng.integers(1, 6))))
        tags[missing] = 0
        contexts["tag"], names["tag"] = sp.csr_matrix(tags), [f"tag{a}" for a in range(tags.shape[1])]
    return Corpus(content, [f"word{v}" for v in range(n_words)], contexts=contexts, context_names=names)
