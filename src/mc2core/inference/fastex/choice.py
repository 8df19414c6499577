"""What ``proposal="auto"`` stands for: a rule that reads the corpus and the settings, never a clock or a machine."""

from __future__ import annotations

import numpy as np

from mc2core.corpus import Corpus
from mc2core.inference.fastex.exact import table_bytes
from mc2core.inference.fastex.neighbours import Visits, bytes_needed, is_read

#: all clusters are scored while the tables for that take no more than this, and up to so many clusters:
MAX_EXACT_BYTES = 2**31
MAX_EXACT_CLUSTERS = 2000
#: neighbours are read while all that they need takes no more than this
MAX_NEIGHBOUR_BYTES = 2**34


def choose_proposal(corpus: Corpus, n_clusters: int, is_multinomial: bool, visits: Visits) -> str:
    """ "exact", "neighbours" or "hash" (see :class:`mc2core.inference.fastex.engine.FastEx`)."""
    is_small = table_bytes(corpus, n_clusters) <= MAX_EXACT_BYTES
    if is_small and n_clusters <= MAX_EXACT_CLUSTERS:
        return "exact"
    if is_multinomial and has_rare_words(corpus, visits.list_budget):
        needed = bytes_needed(corpus, n_clusters, visits)
        if needed.pop("graph") + max(needed.values()) <= MAX_NEIGHBOUR_BYTES:
            return "neighbours"
    return "exact" if is_small else "hash"


def has_rare_words(corpus: Corpus, list_budget: int) -> bool:
    """Whether half of the documents or more have a word whose list is read, and fits into ``list_budget`` entries."""
    content = corpus.content
    frequency = np.bincount(content.indices, minlength=corpus.n_words)
    is_whole = is_read(frequency, corpus.n_documents) & (frequency <= list_budget)
    is_rare = np.concatenate([[0], np.cumsum(is_whole[content.indices])])
    return bool(2 * np.count_nonzero(np.diff(is_rare[content.indptr])) >= corpus.n_documents)
