"""Warnings about a fit: chains that disagree, and texts that are short or contain markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mc2core.base.checks import counted
from mc2core.corpus import Corpus
from mc2core.corpus.embeddings import projection_of
from mc2core.posterior import Posterior

#: times the clusters of another chain; one that has so few, and a lower joint, is taken as stuck
APART = 3
#: standard deviations of the log joint over samples by which it is lower
_LOWER = 5.0
#: tokens per document below which a mixture is worth a try
_SHORT = 10
#: of the commonest words; so many of them that are markup are worth a word
_COMMONEST, _MARKUP = 200, 3
_WORDS_OF_MARKUP = frozenset(
    {"amp", "br", "class", "div", "font", "gt", "href", "html", "http", "https", "img", "lt", "nbsp"}
    | {"php", "quot", "span", "src", "td", "tr", "www"}
)
#: adjusted Rand index between chains below which they are said to differ
MIN_AGREEMENT = 0.7


def stuck_chains(traces: Sequence[Sequence[Mapping[str, float]]]) -> list[int]:
    """Return the chains with APART times fewer clusters than another chain whose log joint is far higher, from 0.

    ``traces`` are the rows of each chain; clusters and log joint are taken from their later half. The list is empty if
    engines report no ``log_joint``.
    """
    if len(traces) < 2 or not all(len(trace) > 3 and {"log_joint", "clusters"} <= trace[-1].keys() for trace in traces):
        return []
    later = [trace[len(trace) // 2 :] for trace in traces]
    joint = [np.array([row["log_joint"] for row in rows]) for rows in later]
    clusters = [float(np.median([row["clusters"] for row in rows])) for rows in later]
    spread = max(float(values.std()) for values in joint)
    best = int(np.argmax([values.mean() for values in joint]))
    return [
        number
        for number, values in enumerate(joint)
        if clusters[best] >= APART * clusters[number] and values.mean() < joint[best].mean() - _LOWER * spread
    ]


def advice(posterior: Posterior, corpus: Corpus) -> list[str]:
    """Return sentences on the reasons why the clusters of a fit are less certain than they look, if any.

    ``corpus`` is the fitted corpus or other documents. Chains are compared at the recommended number of clusters if the
    posterior has a hierarchy, otherwise by all their clusters.
    """
    return [*_of_chains(posterior), *_of_texts(posterior, corpus)]


def _of_chains(posterior: Posterior) -> list[str]:
    between, said = posterior.between_chains(), []
    if "ari" not in between:
        return []
    for number in posterior.provenance.get("stuck", []):
        said.append(
            f"chain {number + 1} is stuck at {counted(between['clusters'][number], 'clusters')}, though another chain "
            "explains the documents far better: the clusters shown are those of the other"
        )
    kept, ari, of_what = posterior.hierarchy, between["ari"], "they "
    if kept is not None and not np.isnan(kept.agreement[kept.recommended - 1]):
        ari, of_what = float(kept.agreement[kept.recommended - 1]), f"the recommended {kept.recommended} of each "
    if not said and ari < MIN_AGREEMENT:
        numbers = " and ".join(map(str, between["clusters"]))
        said.append(
            f"different starts found {numbers} clusters, and {of_what}agree only in part (adjusted Rand index "
            f"{ari:.2f}; 1 if identical): take single clusters with care, look at fewer clusters, or run more "
            "iterations or chains"
        )
    return said


def _of_texts(posterior: Posterior, corpus: Corpus) -> list[str]:
    if corpus.is_of_observations or not corpus.n_tokens:
        return []
    said, length = [], corpus.n_tokens / corpus.n_documents
    projection = projection_of(posterior.imported)
    has_embeddings = projection is not None and projection.name in posterior.families
    if length < _SHORT and not has_embeddings and posterior.provenance.get("model", {}).get("name") != "mixture":
        said.append(
            f"texts of {length:.0f} words tell little of their topics: compare a mixture, whose clusters have words of "
            "their own (--model mixture)"
        )
    documents = np.bincount(corpus.content.indices, minlength=corpus.n_words)
    common = {posterior.vocabulary[word] for word in np.argsort(-documents, kind="stable")[:_COMMONEST]}
    if len(found := sorted(common & _WORDS_OF_MARKUP)) >= _MARKUP:
        said.append(f"markup in the texts (words such as {', '.join(found[:3])}): clean them before the import")
    return said
