"""Starting state of a chain with a document level: the best of several short burn-ins (docs/model.md, section 2).

If topics start at random, several copies of each true topic remain even after hundreds of sweeps. A small omega at the
start would remove the clusters of short documents. To avoid both, words are clustered by the documents in which they
occur, and a token starts in the topic of its word. Documents start in clusters found by k-means on their words or, if
the model has embeddings, on the embeddings (docs/notes/embeddings.md). During the burn-in, the clusters are fixed.
After it, duplicate topics are merged, artefacts are removed (:mod:`mc2core.inference.gibbs.consolidate`), and all
variables are updated.

The best starting numbers of topics and clusters are not known in advance. Therefore, three starts are made on nine
tenths of the documents: 20 clusters with few topics, 20 clusters with many topics, and 100 clusters with many topics.
The other tenth is held out. By default, the chain continues from the first start. Many topics are used if they predict
the held-out documents better by one standard error. A hundred clusters are used if they predict better by three
standard errors and 1 % (:mod:`mc2core.inference.gibbs.holdout`, docs/notes/starts.md). The joint density cannot select
the start, because it decreases by thousands of nats even if more topics predict better. A corpus of fewer than a
hundred documents has no held-out documents and only one start, with few topics.

If the number of clusters is fixed and all are in use, no cluster can be split. Two classes in one k-means cluster would
therefore stay together. Such a start has twice as many clusters, which are merged as in a hierarchy
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

#: number of sweeps of a start in which the clusters of documents are fixed
BURN_IN = 20
#: number of sweeps after the burn-in, in which all variables are updated, if several starts are compared
COMPARED = 20
# sweeps of a start after which topics are consolidated, except for few long documents (:func:`_topics_by_words`)
_CONSOLIDATING = (20, 25, 30, 35, 40)
# default number of clusters of a start
_CLUSTERS = 20
# factor of the larger number of starting clusters, and smallest mean number of documents per cluster for it
_MORE_CLUSTERS, _DOCUMENTS_FOR_CLUSTER = 5, 10
# starting clusters per final cluster if the number of clusters is fixed
_FOR_ONE = 2
# lead that more clusters need: a share of the held-out score, and standard errors of the difference
_LEAD, _LEAD_ERRORS = 0.01, 3.0
# lead that more topics need, in standard errors of the difference
_TOPIC_ERRORS = 1.0
# all chains hold out the same documents, because documents affect the choice more than seeds (docs/notes/starts.md)
_HOLDOUT_SEED = 0
# assumed growth of the number of topics by splits, for the memory of a merge of clusters
_GROWTH = 16
#: largest number of tokens for which several starts are tried; above it, they would take longer than the chain
_MAX_TRIED = 1_000_000
# words per starting topic, and mean tokens of a document per starting topic
_WORDS_FOR_TOPIC, _TOKENS_FOR_TOPIC = 25, 10
# ratio of many topics to the number of topics derived from the tokens
_MORE_TOPICS = 4


class Start(NamedTuple):
    """Numbers of clusters and topics of a start."""

    n_clusters: int | None  # None if each document is its own cluster
    n_topics: int


def topics_to_try(corpus: Corpus) -> list[int]:
    """Return the default numbers of starting topics, ascending: "few", and "many" if it is larger.

    "Few" is the cube root of the number of tokens, such as 126 for two million tokens; "many" is four times as large.
    For few long documents, both are at least one topic per 25 words, but not above one topic per ten tokens of an
    average document. The clusters of such corpora differ in fine topics. With fewer topics, documents leave even the
    right clusters (docs/notes/labelled.md).
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
    """Return the numbers of starting clusters to try, ascending; a single number if ``start_clusters`` is set.

    With embeddings, the only number is the larger one, because clusters of embeddings often merge but seldom split.
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

    The first number of clusters is combined with all numbers of topics, the others only with the largest. If the model
    fixes the number of clusters, there are three starts with twice that number. The number is not doubled if a merge of
    the clusters, with so many topics and ``dimension`` context columns, would be too large.
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
    """Return the embeddings by which documents are clustered, (J, d), or None if the model has no embeddings."""
    used = [name for name, family in model.cluster_contexts.items() if family.strength > 0.0]
    return directions_of(corpus, used, corpus.imported) if model.has_clusters else None


def start_topics(
    model: TopicModel, corpus: Corpus, n_topics: int, rng: np.random.Generator
) -> tuple[Corpus, np.ndarray]:
    """Return the corpus by which documents are clustered, and the starting topic of each token, (n_tokens,) int32.

    A token starts in the topic of its word. Topics of observations are found by k-means; documents are then clustered
    by the topics of their observations.
    """
    if model.content is not None:
        from mc2core.inference.gibbs.observations import Observations
        from mc2core.inference.observed import quantised

        topic = Observations.from_corpus(corpus, model.content).start(n_topics, rng)
        return quantised(corpus, topic), topic
    words = cluster_words(corpus, n_topics, rng)
    return corpus, np.repeat(words[corpus.content.indices], corpus.content.data).astype(np.int32)


def start_chain(
    model: TopicModel, corpus: Corpus, topics: Sequence[int], clusters: Sequence[int], kernel: str, seed: int,
    pool: Executor | None, sharded: Callable[[Corpus], ShardedCorpus | None], directions: np.ndarray | None = None
) -> DocumentLevelState:  # fmt: skip
    """Return the starting state of the chain: the best of several starts.

    Starts are compared on held-out documents; if none are held out, there is one start. ``topics`` and ``clusters`` are
    the numbers to try. ``sharded`` distributes a corpus to Spark executors, or returns None without Spark.
    ``directions`` is the result of :func:`start_directions`.
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
    # with few threads, each thread runs a start; with many threads, the threads share the blocks of each sweep
    has_few = pool is not None and n_threads(pool) <= len(starts) and shards is None
    of_starts, of_sweeps = (pool, None) if has_few else (None, pool)

    def attempt(number: int, _: int) -> DocumentLevelState:
        rng, (n_clusters, n_topics) = streams.generator(seed, "start", number), starts[number]
        seen, topic = begun[n_topics]
        assignments = start_assignments(seen, contexts, n_clusters, n_topics, rng, topic, directions)
        state = DocumentLevelState.from_assignments(model, drawn, contexts, assignments)
        state.repeats = Repeats.first(known.content) if has_repeats else None
        if (fixed := model.n_clusters) and assignments.n_clusters > fixed:
            group = model.start_of("group") / fixed * assignments.n_clusters  # keeps alpha / N
            state.concentrations = replace(state.concentrations, group=group, most_clusters=assignments.n_clusters)
        # iterations before the chain have numbers below 1; starts and held-out documents never share a number
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
    """Return the index of the start to use, given the (n,) log scores of the held-out documents for each start.

    ``starts`` ascend in clusters and topics. More topics are used if their score is better by one standard error of the
    difference (Breiman et al. 1984). More clusters are used if their score is better by three standard errors and by
    1 % of the score. Among equal starts, the one with the best score is used.
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
    """Run the burn-in with fixed clusters and omega, then ``trying`` sweeps of all variables, up to sweep ``last``.

    If there are more clusters than the fixed number, a merge of clusters replaces the sweep halfway through the
    ``trying`` sweeps.
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
    """Merge clusters to the fixed number and set tau of every cluster to epsilon, its starting value."""
    from mc2core.posterior.descent import merge_clusters

    model = state.model
    posterior = posterior_of(model, corpus, [state.sample()], {})
    state.assignments.cluster[:] = merge_clusters(posterior, corpus, int(model.most_clusters))
    state.assignments.count()
    state.start_proportions()
    group, most = model.start_of("group"), model.most_clusters
    state.concentrations = replace(state.concentrations, group=group, most_clusters=most)
