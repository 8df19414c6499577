"""What the Gibbs engine refuses: settings that do not go together, and what memory would not hold."""

from __future__ import annotations

from mc2core.base import memory
from mc2core.corpus import Corpus
from mc2core.inference.gibbs.document_level.state import TOPIC_PROPOSALS

_MOST_TOKENS = 2**31 - 1


def refuse_too_much(
    corpus: Corpus, n_clusters: int | None, n_topics: int, has_document_level: bool, has_times: bool
) -> None:
    """ValueError where a start has more tokens than are counted, or takes more memory than there is.

    ``n_clusters``: at most, None: as many as documents; ``has_document_level``: a DP at each document;
    ``has_times``: tokens have contexts.
    """
    n_tokens = corpus.n_tokens
    if n_tokens > _MOST_TOKENS:
        raise ValueError(f"the corpus has {n_tokens} tokens; the Gibbs engine takes at most {_MOST_TOKENS}")
    n_clusters = min(n_clusters or corpus.n_documents, corpus.n_documents)
    # tokens' topics, twice; counts of topics in clusters; weights; the corpus word by word
    n_bytes = 8 * n_tokens + 4 * n_clusters * n_topics + 24 * n_topics + 24 * corpus.content.nnz
    if has_times:
        n_bytes += 4 * corpus.n_words * n_topics
    if has_document_level:  # tokens listed by topic; counts of words in topics; tau and its tables
        n_bytes += 25 * n_tokens + 4 * corpus.n_words * (n_topics + TOPIC_PROPOSALS) + 24 * n_clusters * n_topics
    what = f"a Gibbs run of {n_tokens} tokens from {n_clusters} clusters and {n_topics} topics"
    memory.need(n_bytes, what, "start_topics and start_clusters may be lower")
