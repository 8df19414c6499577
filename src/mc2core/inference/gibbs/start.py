"""The starting state of a chain with a document level: the best of some short burn-ins (docs/model.md, section 2).

If topics start at random, several copies of each true topic remain even after hundreds of sweeps. And a small omega
would remove the clusters of short documents. Therefore, words are clustered by their documents, and a token begins in
the topic of its word. Documents begin in clusters found by k-means of their words or, if they have embeddings, of these
(docs/notes/embeddings.md). The clusters are fixed in the burn-in. Then duplicate topics are merged and artefacts
removed (:mod:`mc2core.inference.gibbs.consolidate`), and everything moves.

The best numbers of topics and of clusters to start with are not known in advance. Therefore, three starts are made on
nine tenths of the documents: with 20 clusters and few topics, with 20 and many topics, and with 100 and many topics.
The other tenth is held out. The chain continues from the first start, unless many topics predict the held-out tenth
better by one standard error, or 100 clusters by three standard errors and 1 % (:mod:`mc2core.inference.gibbs.holdout`,
docs/notes/starts.md). The joint density of a state cannot select the start, because it falls by thousands of nats even
if more topics predict better. For fewer than a hundred documents, none are held out, and there is one start, with few
topics.

If the number of clusters is fixed and all are in use, no cluster can be split, so two classes in one cluster of k-means
would stay together. Therefore such a start has twice as many clusters, which are merged as in a hierarchy
(:mod:`mc2core.posterior.descent`) halfway through the last sweeps (docs/notes/labelled.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.compute.threads import in_blocks, n_threads
from mc2core.corpus import Corpus
from mc2core.corpus.embeddings import directions_of
from mc2core.corpus.matching import as_stored
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import posterior_of
from mc2core.inference.gibbs.assignments import start_assignments
from mc2core.inference.gibbs.consolidate import consolidate_topics
from mc2core.inference.gibbs.repeats import Repeats, distinct
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.inference.seeding import cluster_words
from mc2core.models import TopicModel

if TYPE_CHECKING:
    from mc2core.inference.shards import ShardedCorpus

#: sweeps of a start in which documents stay in their clusters ...
BURN_IN = 20
#: ... and of sweeps after it, in which everything moves, if several starts are compared
COMPARED = 20
# sweeps of a start after which topics are merged and removed, except the fine ones of few long documents
_CONSOLIDATING = (20, 25, 30, 35, 40)
# default number of clusters of a start ...
_CLUSTERS = 20
# ... and the factor for another start, up to one cluster for so many documents; every start with embeddings has this
# number
_MORE_CLUSTERS, _DOCUMENTS_FOR_CLUSTER = 5, 10
# clusters of a start for each, if their number is fixed
_FOR_ONE = 2
# share of the held-out score, and standard errors of the difference, by which more clusters have to lead ...
_LEAD, _LEAD_ERRORS = 0.01, 3.0
# ... and standard errors by which more topics have to
_TOPIC_ERRORS = 1.0
# all chains hold out the same documents, because these affect the choice more than the seeds of the starts do
# (docs/notes/starts.md)
_HOLDOUT_SEED = 0
# topics to make room for, for each at the start: splits make more
_GROWTH = 16
#: with more tokens, only one start is tried, because several would take longer than the chain
_MAX_TRIED = 1_000_000
# words, and tokens of a document, for each topic at the start
_WORDS_FOR_TOPIC, _TOKENS_FOR_TOPIC = 25, 10
# topics of a start with many, for each by the tokens
_MORE_TOPICS = 4


class Start(NamedTuple):
    """Numbers of clusters and topics of a start."""

    n_clusters: int | None  # None: each document is a cluster
    n_topics: int


def topics_to_try(corpus: Corpus) -> list[int]:
    """Return the default numbers of starting topics, ascending: few, and many if these are more.

    Few are the cube root of the tokens, such as 128 for two million, and many are four times as many. Few documents
    that are long have at least one topic per 25 words, but at most one per ten tokens of a document. Their clusters
    differ in fine topics; with fewer topics, documents leave even the right clusters (docs/notes/labelled.md).
    """
    by_tokens = _topics_by_tokens(corpus)
    few = max(by_tokens, _topics_by_words(corpus))
    return sorted({few, max(few, _MORE_TOPICS * by_tokens)})


def _topics_by_tokens(corpus: Corpus) -> int:
    return max(1, round(corpus.n_tokens ** (1 / 3)))


def _topics_by_words(corpus: Corpus) -> int:
    n_words = int(np.count_nonzero(np.bincount(corpus.content.indices)))
    return min(n_words // _WORDS_FOR_TOPIC, corpus.n_tokens // (_TOKENS_FOR_TOPIC * corpus.n_documents))


def clusters_to_try(corpus: Corpus, start_clusters: int | None, has_embeddings: bool) -> list[int]:
    """Return the numbers of starting clusters, ascending: one if ``start_clusters`` is set.

    With embeddings, it is five times as many, because such clusters merge, but seldom split.
    """
    few = start_clusters or _CLUSTERS
    many = max(few, min(_MORE_CLUSTERS * few, corpus.n_documents // _DOCUMENTS_FOR_CLUSTER))
    if has_embeddings:
        return [many]
    return sorted({few} if start_clusters else {few, many})


def starts_to_try(
    model: TopicModel, corpus: Corpus, clusters: Sequence[int], topics: Sequence[int], dimension: int
) -> list[Start]:
    """Return the starts, given the numbers of clusters and of topics to try, ascending.

    The first number of clusters is tried with all numbers of topics, others with the most topics. If the model fixes
    the number of clusters, there are three starts with twice that number, if so many clusters with so many topics and
    ``dimension`` columns of contexts can be merged.
    """
    if not model.has_clusters:
        return [Start(None, topics[-1])]
    n_documents = corpus.n_documents
    if corpus.n_tokens > _MAX_TRIED:
        return [Start(min(model.n_clusters or clusters[0], n_documents), topics[-1])]
    if fixed := model.n_clusters:
        from mc2core.posterior.descent import are_too_many

        columns = _GROWTH * topics[-1] + dimension
        most, more = min(fixed, n_documents), min(_FOR_ONE * fixed, n_documents)
        number = most if are_too_many(more, columns) else more
        return [Start(number, n_topics) for n_topics in (topics[0], topics[-1], topics[-1])]
    starts = [Start(min(clusters[0], n_documents), n_topics) for n_topics in topics]
    return starts + [Start(min(n_clusters, n_documents), topics[-1]) for n_clusters in clusters[1:]]


def start_directions(model: TopicModel, corpus: Corpus) -> np.ndarray | None:
    """Return the embeddings by which documents are clustered, (J, d), or None without embeddings in the model."""
    used = [name for name, family in model.cluster_contexts.items() if family.strength > 0.0]
    return directions_of(corpus, used, corpus.imported) if model.has_clusters else None


def start_topics(
    model: TopicModel, corpus: Corpus, n_topics: int, rng: np.random.Generator
) -> tuple[Corpus, np.ndarray]:
    """Return the corpus for clustering documents, and the topic of each token by its word, (n_tokens,) int32.

    Topics of observations are found by k-means, and documents are clustered by their topics.
    """
    if model.content is not None:
        from mc2core.inference.gibbs.observations import Observations
        from mc2core.inference.observed import quantised

        topic = Observations.of(corpus, model.content).start(n_topics, rng)
        return quantised(corpus, topic), topic
    words = cluster_words(corpus, n_topics, rng)
    return corpus, np.repeat(words[corpus.content.indices], corpus.content.data).astype(np.int32)


def start_chain(
    model: TopicModel, corpus: Corpus, topics: Sequence[int], clusters: Sequence[int], kernel: str, seed: int,
    pool: Executor | None, sharded: Callable[[Corpus], ShardedCorpus | None], directions: np.ndarray | None = None
) -> DocumentLevelState:  # fmt: skip
    """Return the state with which the chain begins: the best of several starts.

    Starts are compared on held-out documents; if none are held out, there is one start. ``sharded`` returns a corpus on
    Spark's executors, if needed. ``topics``, ``clusters`` are the numbers to try, and ``directions`` the result of
    :func:`start_directions`.
    """
    from mc2core.inference.gibbs.holdout import draw_holdout, log_weights

    known, contexts = corpus, StackedContexts(corpus, model.cluster_contexts)
    starts = starts_to_try(model, corpus, clusters, topics, contexts.dimension)
    kept = draw_holdout(corpus, _HOLDOUT_SEED) if len(starts) > 1 else np.zeros(0, np.int64)
    if len(kept):
        before = np.setdiff1d(np.arange(corpus.n_documents), kept)
        known = as_stored(corpus.subset(before), corpus)
        contexts = StackedContexts(known, model.cluster_contexts)
        directions = None if directions is None else directions[before]
    else:
        starts = starts[:1]
    trying = COMPARED if model.has_clusters and corpus.n_tokens <= _MAX_TRIED else 0
    shards = sharded(known)
    has_repeats = model.may_repeat and kernel != "parallel"
    drawn = distinct(known) if has_repeats else known
    begun = {
        n_topics: start_topics(model, drawn, n_topics, streams.generator(seed, "start topics"))
        for n_topics in {one.n_topics for one in starts}
    }
    # few threads have a start each, many share the blocks of its sweeps
    has_few = pool is not None and n_threads(pool) <= len(starts) and shards is None
    of_starts, of_sweeps = (pool, None) if has_few else (None, pool)

    def attempt(number: int, _: int) -> DocumentLevelState:
        rng, (n_clusters, n_topics) = streams.generator(seed, "start", number), starts[number]
        seen, topic = begun[n_topics]
        assignments = start_assignments(seen, contexts, n_clusters, n_topics, rng, topic, directions)
        state = DocumentLevelState.of(model, drawn, contexts, assignments)
        state.repeats = Repeats.first(known.content) if has_repeats else None
        if (fixed := model.n_clusters) and assignments.n_clusters > fixed:
            group = model.start_of("group") / fixed * assignments.n_clusters  # the same alpha / N
            state.concentrations = replace(state.concentrations, group=group, most_clusters=assignments.n_clusters)
        # numbers of iterations before the first of the chain: each attempt has its own, and so have held-out documents
        last = (number + 1 - len(starts)) * (BURN_IN + trying + 1) - (len(kept) > 0)
        _burn_in(state, known, kernel, seed, last, of_sweeps, shards, n_clusters, trying)
        return state

    states = in_blocks(of_starts, attempt, len(starts), 1)
    if not len(kept):
        return states[0]
    from mc2core.inference.gibbs.continued import with_documents

    new = corpus.subset(kept)
    of_new = StackedContexts(new, model.cluster_contexts) if model.cluster_contexts else None
    weights = [log_weights(one.sample(), new, of_new, seed) for one in states]
    best = best_start([logsumexp(one, axis=1) for one in weights], starts)
    return with_documents(states[best], model, corpus, before, softmax(weights[best], axis=1), seed, pool)


def best_start(scores: Sequence[np.ndarray], starts: Sequence[Start]) -> int:
    """Return the number of the start to use, given the log scores of the held-out documents in each, (n,) float64.

    ``starts`` ascend in clusters and topics. More topics are used if they are better by one standard error of the
    difference (Breiman et al. 1984), more clusters if they are better by three and by 1 % of the score, and of equal
    starts the best one.
    """
    total, used = [one.sum() for one in scores], 0
    for start in dict.fromkeys(starts):
        best = max((i for i, one in enumerate(starts) if one == start), key=total.__getitem__)
        share, errors = (0.0, _TOPIC_ERRORS) if start.n_clusters == starts[used].n_clusters else (_LEAD, _LEAD_ERRORS)
        gain = scores[best] - scores[used]
        least = max(share * abs(total[used]), errors * gain.std() * math.sqrt(len(gain)))
        if start == starts[used] or gain.sum() > least:
            used = best
    return used


def _burn_in(
    state: DocumentLevelState, corpus: Corpus, kernel: str, seed: int, last: int, pool: Executor | None,
    sharded: ShardedCorpus | None, n_clusters: int | None, trying: int
) -> None:  # fmt: skip
    """Run the burn-in with fixed clusters and omega, then ``trying`` sweeps in which everything moves, up to sweep
    ``last``.

    If there are more clusters than the fixed number, they are merged halfway through the ``trying`` sweeps, in place of
    one sweep.
    """
    first = last - BURN_IN - trying
    merging = last - trying // 2 if state.concentrations.most_clusters != state.model.most_clusters else None
    is_consolidated = state.observations is None and _topics_by_words(corpus) <= _topics_by_tokens(corpus)
    state.move_all_but_tokens(seed, first, pool, is_burn_in=True)
    title = "topics settle" + (f" from {n_clusters} cluster{'s' if n_clusters > 1 else ''}" if n_clusters else "")
    with work(title, BURN_IN + trying, "sweeps") as progress:
        for iteration in range(first + 1, last + 1):
            if iteration == merging:
                _merge_clusters(state, corpus)
            else:
                state.move_tokens(corpus, kernel, seed, iteration, pool, sharded)
                if is_consolidated and iteration - first in _CONSOLIDATING:
                    _consolidate_topics(state, seed, iteration)
            is_burn_in = iteration <= first + BURN_IN or iteration == merging
            state.move_all_but_tokens(seed, iteration, pool, is_burn_in=is_burn_in)
            progress.advance()


def _consolidate_topics(state: DocumentLevelState, seed: int, iteration: int) -> None:
    given = state.omega, state.concentrations, state.topic_word_prior, seed, iteration
    state.proportions = consolidate_topics(state.assignments, state.content, state.proportions, *given)


def _merge_clusters(state: DocumentLevelState, corpus: Corpus) -> None:
    """Merge clusters to the fixed number; then every cluster is at epsilon, from which its tau is drawn."""
    from mc2core.posterior.descent import merge_clusters

    model = state.model
    posterior = posterior_of(model, corpus, [state.sample()], {})
    state.assignments.cluster[:] = merge_clusters(posterior, corpus, int(model.most_clusters))
    state.assignments.count()
    state.start_proportions()
    group, most = model.start_of("group"), model.most_clusters
    state.concentrations = replace(state.concentrations, group=group, most_clusters=most)
