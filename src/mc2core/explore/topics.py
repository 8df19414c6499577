"""Tables of topics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.explore import numbers as of_numbers
from mc2core.explore.agreement import found_topics
from mc2core.explore.clusters import values_of, with_trends
from mc2core.explore.coherence import coherence
from mc2core.explore.description import Description
from mc2core.explore.documents import flattened
from mc2core.explore.variables import LABEL, variables_of
from mc2core.explore.words import N_SHOWN, Emitted, Top, names_table, of_words, tops_of
from mc2core.posterior import Posterior

MIN_TOPIC_SHARE = 0.01
"""Smallest share of a cluster's tokens at which a topic counts as used by the cluster."""
N_DOCUMENTS = 10
"""Number of typical documents per topic."""
MAX_ON_MAP = 200
"""Largest number of topics on the map of topics."""
_NEIGHBOURS = 8  # perplexity of t-SNE
_BLOCK = 64


def fitted_shares(posterior: Posterior) -> np.ndarray:
    """Return the share of the fitted tokens that the representative assigns to each topic, (M,) float64."""
    if posterior.contents is not None:
        tokens = posterior.contents.n_observations
    else:
        tokens = np.asarray(posterior.representative.topic_words.sum(axis=1), dtype=np.float64).ravel()
    return tokens / tokens.sum()


def describe_topics(posterior: Posterior, n_words: int = 10) -> pd.DataFrame:
    """Return a table of the topics of the representative, the commonest first.

    The columns are topic, share (:func:`fitted_shares`) and words. If topics emit observations, the columns NAME_mean
    and NAME_sd of each coordinate NAME replace words.
    """
    share = fitted_shares(posterior)
    order = np.argsort(-share, kind="stable")
    table: dict[str, Any] = {"topic": order + 1, "share": share[order]}
    if posterior.contents is not None:
        mean, sd = posterior.contents.mean[order], posterior.contents.sd[order]
        for d, name in enumerate(posterior.vocabulary):
            table |= {f"{name}_mean": mean[:, d], f"{name}_sd": sd[:, d]}
    else:
        words = posterior.top_words(n_words)
        table["words"] = [" ".join(words[topic]) for topic in order]
    return pd.DataFrame(table)


def topic_tables(description: Description, seed: int = 0, with_map: bool = True) -> dict[str, pd.DataFrame]:
    """Return the tables of topics by name.

    The names are topics (the commonest first), topic_words (for observations topic_means), topic_clusters,
    topic_documents, topic_names, topic_values and topic_numbers.

    The column ``share`` is the result of :func:`fitted_shares`. ``tokens`` is the expected number of tokens of the
    topic in the described documents. ``seed`` is the seed of :func:`coherence` and of the map. If ``with_map`` is
    True, the columns x and y are positions on the map (:func:`topic_map`).
    """
    tokens = np.asarray(description.document_topics.sum(axis=0)).ravel()
    is_of_words = not description.is_of_observations
    emitted = _of_words(description, tokens, seed) if is_of_words else of_numbers.topics(description)
    called = names_table("topic", description.names, emitted, [""] * len(tokens))
    uses = _uses(description)
    used_by = uses[uses["cluster"] <= description.recommended].groupby("topic").size()
    number = np.arange(1, len(tokens) + 1)
    topics = pd.DataFrame(
        {
            "topic": number,
            "name": called["name"],
            "tokens": tokens,
            "share": fitted_shares(description.posterior),
            "clusters": used_by.reindex(number, fill_value=0).to_numpy(),
            **emitted.columns,
        }
    )
    occurs = found_topics(description)
    if len(occurs):
        topics["found"] = occurs.mean(axis=0)
    if with_map:
        topics[["x", "y"]] = topic_map(description, seed)
    of_contexts = _of_contexts(description)
    for name, part in of_contexts["topic_numbers"].groupby("context", sort=True):
        by_topic = part.set_index("topic")
        for column, shown in (("trend", "trend"), ("trend_low", "low"), ("trend_high", "high")):
            topics[f"{name}_{column}"] = topics["topic"].map(by_topic[shown])
    topics = topics.sort_values("share", ascending=False, kind="stable").reset_index(drop=True)
    return {
        "topics": topics,
        "topic_names": called.iloc[topics["topic"] - 1],
        **emitted.tables,
        "topic_clusters": uses,
        "topic_documents": _find_typical(description),
        **of_contexts,
    }


def names(description: Description) -> pd.DataFrame:
    """Return the names of the topics (:func:`mc2core.explore.words.names_table`)."""
    if description.is_of_observations:
        emitted = of_numbers.topics(description)
    else:
        tokens = np.asarray(description.document_topics.sum(axis=0)).ravel()
        emitted = of_words("topic", _tops(description, tokens), description.corpus.vocabulary)
    return names_table("topic", description.names, emitted, [""] * len(emitted.names))


def _of_words(description: Description, tokens: np.ndarray, seed: int) -> Emitted:
    """Return the words of each topic, and the coherence of the topics."""
    tops, corpus = _tops(description, tokens), description.corpus
    shown = [top.column[np.argsort(top.by_probability)[:N_SHOWN]] for top in tops]
    emitted = of_words("topic", tops, corpus.vocabulary, phrases=description.phrases)
    return emitted._replace(columns={**coherence(corpus.content, shown, seed), **emitted.columns})


def _tops(description: Description, tokens: np.ndarray) -> list[Top]:
    return tops_of(description.posterior.representative.words_of, tokens, description.word_share)


def _uses(description: Description) -> pd.DataFrame:
    """Return a table of the topics that have at least the share MIN_TOPIC_SHARE of a node's tokens."""
    shares = sp.coo_matrix(description.topic_shares[0])
    is_large = shares.data >= MIN_TOPIC_SHARE
    table = pd.DataFrame(
        {
            "topic": shares.col[is_large] + 1,
            "cluster": np.array(description.nodes)[shares.row[is_large]] + 1,
            "share_of_cluster": shares.data[is_large],
        }
    )
    return table.sort_values(["topic", "share_of_cluster"], ascending=[True, False], kind="stable", ignore_index=True)


def _find_typical(description: Description) -> pd.DataFrame:
    """Return a table of documents with large shares of each topic, the largest share first.

    Documents are selected by the tokens of the topic, divided by the document length plus half the mean length.
    Otherwise, short documents would fill the table. The table is empty if clusters are topics, because the typical
    documents of the clusters are then the same.
    """
    rows: list[tuple[int, int, int, float]] = []
    if not description.clusters_are_topics:
        tokens = description.document_topics.tocsc()
        length = np.asarray(tokens.sum(axis=1)).ravel()
        for topic in range(tokens.shape[1]):
            part = slice(tokens.indptr[topic], tokens.indptr[topic + 1])
            document, count = tokens.indices[part], tokens.data[part]
            best = np.lexsort((document, -count / (length[document] + length.mean() / 2)))[:N_DOCUMENTS]
            of_document = count / length[document]
            best = best[np.argsort(-of_document[best], kind="stable")]
            rows += [(topic + 1, i, document[one] + 1, of_document[one]) for i, one in enumerate(best, start=1)]
    return pd.DataFrame(rows, columns=["topic", "rank", "document", "share"])


def _of_contexts(description: Description) -> dict[str, pd.DataFrame]:
    """Return the tables topic_values and topic_numbers, which describe contexts and kept columns in each topic.

    ``tokens`` is the expected number of tokens of the topic in documents with the value. ``share`` is this number
    divided by all tokens of the topic. ``lift`` is ``share`` divided by the share of the value in all tokens. Quartiles
    of numeric variables are weighted by the topic's tokens.
    """
    values: list[tuple[Any, ...]] = []
    numbers: list[tuple[Any, ...]] = []
    tokens = sp.csr_matrix(description.document_topics.T)
    of_topic = np.asarray(tokens.sum(axis=1)).ravel()
    length = np.asarray(tokens.sum(axis=0)).ravel()
    used = np.flatnonzero(of_topic > 0)
    for variable in variables_of(description):
        if variable.is_number:
            observed = np.flatnonzero(~np.isnan(variable.values))
            observed = observed[np.argsort(variable.values[observed], kind="stable")]
            weights, sorted_values = sp.csr_matrix(tokens[:, observed]), variable.values[observed]
            for topic in used:
                cumulative = np.cumsum(weights[[topic]].toarray().ravel())
                if len(observed) and cumulative[-1] > 0:
                    places = np.searchsorted(cumulative, np.array([0.25, 0.5, 0.75]) * cumulative[-1])
                    quarters = sorted_values[np.minimum(places, len(observed) - 1)]
                    numbers.append((topic + 1, variable.name, cumulative[-1], *quarters))
        elif variable.role != LABEL:
            has = sp.csr_matrix(variable.values > 0, dtype=np.float64)
            counts, base = sp.csr_matrix(tokens @ has), np.asarray(length @ has).ravel() / max(length.sum(), 1e-300)
            values += list(values_of(description, "topic", variable, counts, of_topic, base))
    columns = ["topic", "context", "value", "tokens", "share", "lift", "by_share", "by_relevance", "is_notable"]
    spread = ["topic", "context", "tokens", "lower_quarter", "median", "upper_quarter"]
    return {
        "topic_values": pd.DataFrame(values, columns=columns),
        "topic_numbers": with_trends(description, "topic", pd.DataFrame(numbers, columns=spread)),
    }


def topic_map(description: Description, seed: int = 0) -> np.ndarray:
    """Return the position of each topic on a map by t-SNE, (M, 2) float64 in [0, 1].

    Topics with similar words or, for observations, with similar means are close to each other. The features are the
    square roots of word probabilities, or the standardised means (:func:`mc2core.explore.documents.flattened`). The map
    shows the MAX_ON_MAP commonest topics; the positions of other topics are NaN.
    """
    share = fitted_shares(description.posterior)
    positions = np.full((len(share), 2), np.nan)
    if not len(share):  # a fit to contexts only
        return positions
    chosen = np.sort(np.argsort(-share, kind="stable")[:MAX_ON_MAP])
    if description.is_of_observations:
        features = of_numbers.standing(description)[chosen]
    else:
        blocks = (chosen[i : i + _BLOCK] for i in range(0, len(chosen), _BLOCK))
        words_of = description.posterior.representative.words_of
        features = np.vstack([np.sqrt(words_of(block)) for block in blocks])
    positions[chosen] = flattened(features, _NEIGHBOURS, seed)
    return positions
