"""What the Gibbs engine refuses: settings that do not go together, and what memory would not hold."""

from __future__ import annotations

from collections.abc import Mapping

from mc2core.base import memory
from mc2core.corpus import Corpus
from mc2core.families import Family, NormalGamma
from mc2core.inference.gibbs.document_level.state import TOPIC_PROPOSALS

_MOST_TOKENS = 2**31 - 1


def check_token_contexts(
    kernel: str, one_cluster_per_document: bool, document_concentration: float | str, contexts: Mapping[str, Family]
) -> None:
    """ValueError for settings of Gibbs that do not go with ``token_contexts``."""
    if not one_cluster_per_document:
        raise ValueError(
            "token_contexts is true, but one_cluster_per_document false; topics with contexts in clusters of "
            "several documents are no model of the papers: set both, or contexts alone"
        )
    if document_concentration != "inf":
        raise ValueError(f"document_concentration is {document_concentration!r}; with token_contexts it must be 'inf'")
    if kernel != "collapsed":
        raise ValueError(f"kernel is {kernel!r}; with token_contexts it must be 'collapsed'")
    families = list(contexts.values())
    if len(families) != 1 or not isinstance(families[0], NormalGamma):
        found = ", ".join(f"{name!r} ({family.name})" for name, family in contexts.items()) or "none"
        raise ValueError(
            f"token_contexts takes exactly one context, of the family normal_gamma, but contexts holds {found}"
        )


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
