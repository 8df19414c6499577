"""Random small corpora for the harnesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mc2core import Corpus


def draw_corpus(draw: np.random.Generator, most_documents: int, most_words: int, extreme: bool = False) -> Corpus:
    """Counts with empty documents and words that never occur, and any of the contexts year, hits and tag.

    year : numbers, many of them missing at times. hits : whole numbers. tag : bags, empty ones among them.
    extreme : sizes of 1, huge counts and numbers, contexts that are missing everywhere.
    """
    n_documents = 1 if extreme and draw.random() < 0.2 else int(draw.integers(2, most_documents + 1))
    n_words = 1 if extreme and draw.random() < 0.2 else int(draw.integers(2, most_words + 1))
    content = draw.poisson(10 ** draw.uniform(-1.0, 0.5), (n_documents, n_words))
    content[draw.random(n_documents) < 0.1] = 0
    if extreme and draw.random() < 0.2:
        content[draw.integers(n_documents), draw.integers(n_words)] = 10 ** draw.integers(2, 5)
    if not content.any():
        content[0, 0] = 1
    contexts: dict[str, Any] = {}
    names: dict[str, list[str]] = {}
    missing = draw.random(n_documents) < (1.0 if extreme and draw.random() < 0.2 else draw.random())
    if draw.random() < 0.5:
        size = 10 ** draw.uniform(-300, 300) if extreme and draw.random() < 0.3 else 1.0
        contexts["year"] = np.where(missing, np.nan, size * draw.normal(size=n_documents))
    if draw.random() < 0.3:
        contexts["hits"] = np.where(missing, np.nan, draw.poisson(3.0, n_documents).astype(float))
    if draw.random() < 0.5:
        tags = draw.poisson(0.7, (n_documents, int(draw.integers(1, 6))))
        tags[missing] = 0
        contexts["tag"], names["tag"] = sp.csr_matrix(tags), [f"tag{a}" for a in range(tags.shape[1])]
    return Corpus(content, [f"word{v}" for v in range(n_words)], contexts=contexts, context_names=names)
