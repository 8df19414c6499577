"""Initial states of SVI-MC2: from k-means, from a short Gibbs run, or at random.

Every initialisation provides three arrays of expected counts: tokens per word and topic, tokens per cluster and table,
and documents per cluster. The posteriors are computed from these counts as if they were the statistics of the whole
corpus. With direct assignment, the tokens at a table are counted for its topic. With a document level, token counts are
converted to the expected numbers of tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.corpus import Corpus, take_rows
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.engine import Gibbs
from mc2core.inference.observed import quantised
from mc2core.inference.seeding import cluster_documents, cluster_rows, join_nearest, members, unit_rows
from mc2core.inference.svi.concentrations import ConcentrationPriors
from mc2core.inference.svi.empirical_bayes import STEPS_AT_START
from mc2core.inference.svi.globals import Globals
from mc2core.inference.svi.observed import ObservedTopics
from mc2core.inference.svi.proportions import DocumentLevel, TableProportions, TopicProportions
from mc2core.inference.svi.rising import tables_of_lengths
from mc2core.inference.svi.settings import RunSettings
from mc2core.inference.svi.sticks import ClusterWeights, expected_log_weights, stick_posterior
from mc2core.models import MC2, WORDS

# largest number of documents from which the initial state is computed
_SAMPLE = 10_000
_GIBBS_SWEEPS = 20
# number of topics per cluster in the initial state without tables
_NEAREST_TOPICS = 20
# tokens at a table with the topic of another cluster, relative to a table with a topic of the same cluster
_OTHER_SHARE = 0.05
# natural parameter of the topic of a table, in nats: large enough for a hard table, which is fastest
_TABLE_CONTRAST = 50.0


@dataclass
class StartAssignments:
    """Clusters of the n sampled documents, and counts of their tokens by topic and table.

    cluster : (n,) int, cluster of each document; -1 if it is not assigned
    topic_words : (V, M) float64, number of tokens per word and topic; for observations (P, M), see :class:`.Globals`
    table_topic : (K, T) int, topic of each table
    n_kt : (K, T) float64, number of tokens at each table
    """

    cluster: np.ndarray
    topic_words: np.ndarray
    table_topic: np.ndarray
    n_kt: np.ndarray


def start(
    model: MC2,
    settings: RunSettings,
    initialisation: str,
    corpus: Corpus,
    contexts: StackedContexts,
    seed: int,
    threads: int,
) -> Globals:
    """Return the initial state of a run on ``corpus``.

    The state is computed from at most 10,000 random documents. Their counts are scaled to the size of the corpus.
    """
    rng = streams.generator(seed, "svi.init")
    chosen = np.arange(corpus.n_documents)
    if corpus.n_documents > _SAMPLE:
        chosen = np.sort(rng.choice(corpus.n_documents, size=_SAMPLE, replace=False))
    seen, some = corpus.subset(chosen), contexts.take(chosen)
    observed = None if model.content is None else ObservedTopics.from_corpus(corpus, model.content)
    if observed is not None:
        numbers = take_rows(corpus.content, chosen).indices
        where = assign_observations(seen, some, model, observed, numbers, settings, initialisation, rng, seed, threads)
        assignments = assignments_of(seen, *where, settings, (observed, numbers))
    elif initialisation == "random":
        assignments = assign_at_random(seen, settings, rng)
    elif initialisation == "gibbs":
        assignments = assignments_of(seen, *assign_by_gibbs(seen, model, settings, seed, threads), settings)
    else:
        assignments = assign_by_seeds(seen, some, settings, rng)
    n_clusters = settings.n_clusters
    scale = corpus.n_documents / len(assignments.cluster)
    n_k = np.bincount(assignments.cluster[assignments.cluster >= 0], minlength=n_clusters).astype(np.float64)
    order = np.argsort(-n_k, kind="stable")  # the stick-breaking prior favours the first clusters
    assigned = assignments.cluster >= 0
    has_cluster = np.flatnonzero(assigned)
    sums = members(assignments.cluster[has_cluster], n_clusters)[order] @ some.take(has_cluster).statistics
    context_counts = np.ascontiguousarray(scale * sums.toarray().T)
    cluster = np.full(corpus.n_documents, -1, np.int32)
    cluster[chosen[assigned]] = np.argsort(order)[assignments.cluster[assigned]]
    law = ClusterWeights(model.n_clusters, is_truncated=settings.n_tables is not None)
    group_weights = law.posterior(scale * n_k[order], model.start_of("group"))
    proportions: TopicProportions | TableProportions
    if settings.n_tables is None:
        proportions, topic_words = _over_topics(assignments, order, scale, model), scale * assignments.topic_words
    else:
        proportions, topic_words = _over_tables(assignments, order, scale, model)
    priors = ConcentrationPriors.from_model(model, proportions.n_concentrations)
    state = Globals(
        model=model,
        settings=settings,
        group_weights=group_weights,
        topic_words=topic_words,
        n_m=topic_words.sum(axis=0),
        context_counts=context_counts,
        context_totals=contexts.sums_by_context(context_counts),
        concentration_rates=priors.starting_rates((law.sticks(group_weights), *proportions.stick_arrays())),
        topic_word_prior=model.start_of(WORDS),
        cluster=cluster,
        proportions=proportions,
        documents=DocumentLevel.from_model(model, settings, corpus.n_documents) if model.document_level else None,
        contexts=contexts,
        observed=observed,
    )
    if settings.n_tables is None:
        state.n_m = state.topic_sizes()
        state.prune(None, is_full=True)
        state.tau.step_weights(STEPS_AT_START)
    if model.document_level:
        _spread_documents(state, corpus)
    return state


def _over_topics(assignments: StartAssignments, order: np.ndarray, scale: float, model: MC2) -> TopicProportions:
    """Return the initial proportions over topics, with the clusters in ``order``."""
    n_topics = assignments.topic_words.shape[1]
    n_km = np.zeros((len(order), n_topics))
    np.add.at(n_km, (np.arange(len(n_km))[:, None], assignments.table_topic), assignments.n_kt)
    even = 1.0 / (n_topics + 1)
    return TopicProportions(
        n_km=scale * n_km[order],
        topic_weights=np.full(n_topics, even),
        remaining=even,
        table_concentration=model.start_of("table"),
        **TopicProportions.fixed(model),
    )


def _over_tables(
    assignments: StartAssignments, order: np.ndarray, scale: float, model: MC2
) -> tuple[TableProportions, np.ndarray]:
    """Return the initial proportions over tables, and the words of topics, with the clusters in ``order``.

    Tables and topics are sorted by size, because the stick-breaking prior favours the first ones.
    """
    n_topics = assignments.topic_words.shape[1]
    tables = np.argsort(-assignments.n_kt[order], axis=1, kind="stable")
    n_kt = np.take_along_axis(assignments.n_kt[order], tables, axis=1)
    topics = np.argsort(-assignments.topic_words.sum(axis=0), kind="stable")
    table_topic = np.argsort(topics)[np.take_along_axis(assignments.table_topic[order], tables, axis=1)]
    topic_sticks = stick_posterior(np.bincount(table_topic.ravel(), minlength=n_topics), model.start_of("topic"))
    scores = np.tile(expected_log_weights(topic_sticks), (*table_topic.shape, 1))
    np.put_along_axis(scores, table_topic[:, :, None], _TABLE_CONTRAST, axis=2)
    table_sticks = stick_posterior(scale * n_kt, model.start_of("table"))
    proportions = TableProportions(topic_sticks=topic_sticks, table_sticks=table_sticks, table_topic=scores)
    return proportions, np.ascontiguousarray(scale * assignments.topic_words[:, topics])


def _spread_documents(state: Globals, corpus: Corpus) -> None:
    """Convert token counts to expected tables, and assign unsampled documents to the nearest cluster, in place."""
    own, n_k = state.tau, state.n_k
    # the expected tables of a document depend on its length and are divided among the topics of its cluster
    tables = tables_of_lengths(corpus.document_lengths, state.document_concentration).mean() * n_k
    tokens = own.n_km.sum(axis=1)
    own.n_km *= np.divide(tables, tokens, where=tokens > 0, out=np.zeros_like(tables))[:, None]
    own.step_weights(STEPS_AT_START)
    # otherwise, documents outside of the sample would move freely in the first epoch, and most would move to a few
    # clusters
    content = corpus.content
    if state.observed is not None and (state.cluster < 0).any():
        content = quantised(corpus, state.observed.likeliest(state.topic_sums)).content
    state.cluster = join_nearest(content, state.cluster, state.n_clusters)


def assign_observations(
    seen: Corpus,
    some: StackedContexts,
    model: MC2,
    observed: ObservedTopics,
    numbers: np.ndarray,
    settings: RunSettings,
    initialisation: str,
    rng: np.random.Generator,
    seed: int,
    threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the clusters of the documents ``seen``, (n,), and the topics of their observations ``numbers``.

    With "seeded", observations are assigned to topics by k-means, then documents to clusters by k-means of the topics.
    With "gibbs" or "random", clusters and topics are drawn by Gibbs sampling or uniformly.
    """
    if initialisation == "gibbs":
        return assign_by_gibbs(seen, model, settings, seed, threads)
    if initialisation == "random":
        cluster = rng.integers(settings.n_clusters, size=seen.n_documents)
        return cluster, rng.integers(settings.n_topics, size=len(numbers))
    some_values = replace(observed.observations, values=observed.observations.values[numbers])
    topic = some_values.start(settings.n_topics, rng)
    return cluster_documents(quantised(seen, topic), some, settings.n_clusters, rng), topic


def tables_at_start(settings: RunSettings) -> int:
    """Return the initial number of topics per cluster, for all initialisations except Gibbs sampling."""
    return settings.n_tables or min(_NEAREST_TOPICS, settings.n_topics)


def assign_by_gibbs(
    seen: Corpus, model: MC2, settings: RunSettings, seed: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the clusters of documents and the topics of tokens after 20 sweeps of Gibbs sampling."""
    shared = MC2(
        document_level=False,
        n_clusters=model.n_clusters,
        contexts=model.contexts,
        content=model.content,
        topic_word_prior=model.start_of(WORDS),
        group_concentration=model.group_concentration,
        table_concentration=model.table_concentration,
        topic_concentration=model.topic_concentration,
        concentration_priors={role: model.prior_of(role) for role in model.roles},
    )
    sampler = Gibbs(start_clusters=settings.n_clusters, start_topics=settings.n_topics, threads=threads)
    state = sampler.init(shared, seen, seed)
    with work("Gibbs sampling", _GIBBS_SWEEPS, "sweeps") as told:
        for iteration in range(1, _GIBBS_SWEEPS + 1):
            sampler.step(seen, state, seed, iteration)
            told.advance()
    return state.cluster, state.topic


def assignments_of(
    seen: Corpus,
    cluster: np.ndarray,
    topic: np.ndarray,
    settings: RunSettings,
    observed: tuple[ObservedTopics, np.ndarray] | None = None,
) -> StartAssignments:
    """Return the starting assignments for clusters (n,) of documents and topics (n_tokens,) of tokens in CSR order.

    The largest clusters, topics and tables are kept, as far as the truncations allow. With tables, the last topic is a
    common topic with a table in every cluster. A token is moved to the common topic if its topic has no table in its
    cluster. Otherwise, a third of the tokens would have words with low probability at all tables of their cluster.

    ``observed`` contains all observations and the indices of the sampled ones, (n_tokens,), if topics emit
    observations.
    """
    n_clusters, n_topics = settings.n_clusters, settings.n_topics
    n_tables = settings.n_tables or n_topics
    cluster = _largest(cluster, n_clusters)
    topic = _largest(topic, n_topics)
    token_cluster = np.repeat(cluster, seen.document_lengths)
    table_topic = _largest_topics(token_cluster, topic, n_clusters, n_tables, n_topics)
    if settings.n_tables is None:
        topic = np.where(topic >= 0, topic, n_topics - 1)
    elif n_tables > 1 and n_topics > 1:
        common = n_topics - 1
        table_topic[:, n_tables - 1] = common
        # index -1, an unassigned token, selects the last row or column
        is_served = np.zeros((n_clusters + 1, n_topics + 1), bool)
        np.put_along_axis(is_served[:-1], table_topic, True, axis=1)
        topic = np.where(is_served[token_cluster, topic], topic, common)
    known = topic >= 0
    if observed is None:
        word = np.repeat(seen.content.indices, seen.content.data)
        topic_words = np.bincount(word[known] * n_topics + topic[known], minlength=seen.n_words * n_topics)
        topic_words = topic_words.reshape(seen.n_words, -1).astype(np.float64)
    else:
        topic_words = observed[0].sums_of(observed[1][known], topic[known], n_topics)
    known &= token_cluster >= 0
    n_km = np.bincount(token_cluster[known] * n_topics + topic[known], minlength=n_clusters * n_topics)
    n_kt = np.take_along_axis(n_km.reshape(n_clusters, n_topics), table_topic, axis=1).astype(np.float64)
    # if several tables of a cluster have the same topic, only the first of these tables gets the tokens
    for k in range(n_clusters):
        n_kt[k, np.setdiff1d(np.arange(n_tables), np.unique(table_topic[k], return_index=True)[1])] = 0.0
    return StartAssignments(cluster, topic_words, table_topic, n_kt)


def _largest_topics(
    token_cluster: np.ndarray, topic: np.ndarray, n_clusters: int, n_tables: int, n_topics: int
) -> np.ndarray:
    """Return the T topics with most tokens in each cluster, (K, T) int; if T > M, the topics are repeated."""
    known = (topic >= 0) & (token_cluster >= 0)
    n_km = np.bincount(token_cluster[known] * n_topics + topic[known], minlength=n_clusters * n_topics)
    order = np.argsort(-n_km.reshape(n_clusters, n_topics), axis=1, kind="stable")
    return order[:, np.arange(n_tables) % n_topics]


def _largest(labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Renumber labels by size, largest first; all but the ``n_labels`` largest become -1."""
    order = np.argsort(-np.bincount(labels), kind="stable")
    number = np.argsort(order)
    number[number >= n_labels] = -1
    return number[labels]


def assign_at_random(seen: Corpus, settings: RunSettings, rng: np.random.Generator) -> StartAssignments:
    """Draw the clusters and the topics of tables uniformly; word counts of topics are frequencies times Gamma noise."""
    n_topics, shape = settings.n_topics, (settings.n_clusters, tables_at_start(settings))
    words = np.asarray(seen.content.sum(axis=0), dtype=np.float64).ravel()
    return StartAssignments(
        cluster=rng.integers(settings.n_clusters, size=seen.n_documents),
        topic_words=words[:, None] * rng.standard_gamma(1.0, (seen.n_words, n_topics)) / n_topics,
        table_topic=rng.integers(n_topics, size=shape),
        n_kt=np.full(shape, seen.n_tokens / np.prod(shape)),
    )


def assign_by_seeds(
    seen: Corpus, some: StackedContexts, settings: RunSettings, rng: np.random.Generator
) -> StartAssignments:
    """Assign documents to clusters by k-means, and define one common topic and several own topics per cluster.

    The documents of each cluster are divided into groups by k-means. The words of each group form an own topic of the
    cluster. Half of each count is moved to the common topic. The first tables of a cluster serve its own topics and the
    common topic. The other tables serve the topics nearest to the words of the cluster. If there are only as many
    topics as clusters, each cluster has one own topic, and there is no common topic.
    """
    n_clusters, n_tables, n_topics = settings.n_clusters, tables_at_start(settings), settings.n_topics
    cluster = cluster_documents(seen, some, n_clusters, rng)
    content = sp.csr_matrix(seen.content, dtype=np.float64)
    cluster_words = np.asarray((members(cluster, n_clusters) @ content).todense())
    topic_words = np.zeros((seen.n_words, n_topics))
    owner = np.full(n_topics, -1)
    has_common = n_topics != np.count_nonzero(np.bincount(cluster))
    n_owned = n_topics - 1 if has_common else n_topics
    if has_common:
        topic_words[:, -1] = cluster_words.sum(axis=0) / (1 if n_topics == 1 else 2)
    n_each = max(n_owned // n_clusters, 1)
    m = 0
    for k in np.argsort(-np.bincount(cluster, minlength=n_clusters), kind="stable"):
        rows = np.flatnonzero(cluster == k)
        if len(rows) and m < n_owned:
            n_groups = min(n_each, n_owned - m)
            words_of_groups = [cluster_words[k]]
            if n_groups > 1:
                group = cluster_rows(unit_rows(take_rows(content, rows)), n_groups, rng)
                words_of_groups = [
                    np.asarray(content[rows[group == one]].sum(axis=0)).ravel() for one in np.unique(group)
                ]
            for words in words_of_groups:
                topic_words[:, m] = words * (0.5 if has_common else 1.0)
                owner[m] = k
                m += 1
    near = _root(cluster_words) @ _root(topic_words.T).T
    first = (owner == np.arange(n_clusters)[:, None]) | (has_common & (np.arange(n_topics) == n_topics - 1))
    table_topic = np.argsort(-(near + 2.0 * first), axis=1, kind="stable")[:, np.arange(n_tables) % n_topics]
    share = np.where(np.take_along_axis(first, table_topic, axis=1), 1.0, _OTHER_SHARE)
    n_kt = cluster_words.sum(axis=1, keepdims=True) * share / share.sum(axis=1, keepdims=True)
    return StartAssignments(cluster, topic_words, table_topic, n_kt)


def _root(counts: np.ndarray) -> np.ndarray:
    """Return the square roots of the relative frequencies in each row; rows of zeros remain zero."""
    return np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300))
