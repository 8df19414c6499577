"""The starting state of a chain with a document level: the best of some short burn-ins (docs/model.md, section 2).

Random starting topics end as many copies of each true topic, which hundreds of sweeps do not merge, and a small omega
would remove the clusters of short documents. So words are clustered by their documents, and a token begins in the topic
of its word. Documents begin in clusters found by k-means of their words or, if they have embeddings, of these
(docs/notes/embeddings.md). The clusters are fixed in the burn-in. Then duplicate topics are merged and artefacts
removed (:mod:`mc2core.inference.gibbs.consolidate`), and everything moves. The best number of clusters for k-means is
not known in advance. Several numbers are tried, one of them 1, on all but a tenth of the documents. The chain continues
from the largest number, unless another one predicts the tenth better by 1 % and by three standard errors
(:mod:`mc2core.inference.gibbs.holdout`, docs/notes/starts.md). For fewer than a hundred documents, none are held out,
and the state with the highest posterior density is used. Differences between topics alone exceed the effect of clusters
on this density, so a state with one cluster, or with fewer than a fixed number, must be better by more than that.

If the number of clusters is fixed and all are in use, none can be split, so two classes that k-means puts together
would stay together. Therefore such a start has twice as many clusters, which are merged as in a hierarchy
(:mod:`mc2core.posterior.hierarchy`) halfway through the last sweeps (docs/notes/labelled.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, logsumexp, softmax

from mc2core.base.progress import work
from mc2core.compute import streams
from mc2core.compute.special import MIN_POSITIVE
from mc2core.compute.threads import in_blocks, n_threads
from mc2core.corpus import Corpus
from mc2core.corpus.embeddings import directions_of
from mc2core.corpus.matching import as_stored
from mc2core.families.stacked import StackedContexts
from mc2core.inference.base import posterior_of
from mc2core.inference.gibbs.assignments import count_topics, start_assignments
from mc2core.inference.gibbs.cluster_moves import ClusterConstants, weigh_clusters
from mc2core.inference.gibbs.consolidate import consolidate_topics
from mc2core.inference.gibbs.documents import contexts_of
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.inference.gibbs.weights import log_openings
from mc2core.inference.seeding import cluster_words
from mc2core.models import TopicModel

if TYPE_CHECKING:
    from mc2core.inference.shards import ShardedCorpus

#: sweeps of a start in which documents stay in their clusters ...
BURN_IN = 20
#: ... and those after them, in which all move, where several are compared
COMPARED = 20
# of a log density: by as much two starts of a corpus differ for their topics alone (a standard deviation)
_NOISE = 0.003
# sweeps of a start after which topics are joined and dissolved, but for the fine ones of few long documents
_CONSOLIDATING = (20, 25, 30, 35, 40)
# clusters of a start for each that is told
_FOR_ONE = 2
# share of the held-out score, and standard errors of the difference, by which a start with fewer clusters has to lead
_LEAD, _LEAD_ERRORS = 0.01, 3.0
# clusters of a start for each that is set, if documents have embeddings, and the documents for each of these
_WITH_EMBEDDINGS, _DOCUMENTS_FOR_CLUSTER = 5, 10
# topics to make room for, for each at the start: splits make more
_GROWTH = 16
#: tokens beyond which one start is all that is tried: sweeps of several would take longer than the chain
_MAX_TRIED = 1_000_000
# words, and tokens of a document, for each topic at the start
_WORDS_FOR_TOPIC, _TOKENS_FOR_TOPIC = 25, 10


def topics_by_rule(corpus: Corpus) -> int:
    """Return the default number of starting topics: the cube root of the tokens, such as 128 for two million.

    For few long documents, it is one per 25 words, but at most one per ten tokens of a document. Their clusters differ
    in fine topics; with fewer topics, documents leave even the right clusters (docs/notes/labelled.md).
    """
    return max(_topics_by_tokens(corpus), _topics_by_words(corpus))


def _topics_by_tokens(corpus: Corpus) -> int:
    return max(1, round(corpus.n_tokens ** (1 / 3)))


def _topics_by_words(corpus: Corpus) -> int:
    n_words = int(np.count_nonzero(np.bincount(corpus.content.indices)))
    return min(n_words // _WORDS_FOR_TOPIC, corpus.n_tokens // (_TOKENS_FOR_TOPIC * corpus.n_documents))


def numbers_to_try(model: TopicModel, corpus: Corpus, start_clusters: int, columns: int) -> list[int | None]:
    """Return the number of clusters of each start.

    They are ``start_clusters``, its square root and 1. If the model fixes the number, they are three times twice that
    number, if so many clusters with ``columns`` can be merged.

    None means that each document is a cluster.
    """
    if not model.has_clusters:
        return [None]
    most = min(model.n_clusters or start_clusters, corpus.n_documents)
    if corpus.n_tokens > _MAX_TRIED:
        return [most]
    if model.n_clusters:
        from mc2core.posterior.hierarchy import are_too_many

        more = min(_FOR_ONE * most, corpus.n_documents)
        return [most if are_too_many(more, columns) else more] * 3
    return [*sorted({1, round(math.sqrt(most)), most})]


def start_directions(model: TopicModel, corpus: Corpus) -> np.ndarray | None:
    """Return the embeddings by which documents are clustered, (J, d), or None without embeddings in the model."""
    used = [name for name, family in model.cluster_contexts.items() if family.strength > 0.0]
    return directions_of(corpus, used, corpus.imported) if model.has_clusters else None


def more_clusters(start_clusters: int, corpus: Corpus) -> int:
    """Return the number of clusters of a start from embeddings: such clusters merge, but seldom split."""
    return max(start_clusters, min(_WITH_EMBEDDINGS * start_clusters, corpus.n_documents // _DOCUMENTS_FOR_CLUSTER))


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
    model: TopicModel, corpus: Corpus, n_topics: int, start_clusters: int, kernel: str, seed: int,
    pool: Executor | None, sharded: Callable[[Corpus], ShardedCorpus | None], directions: np.ndarray | None = None
) -> DocumentLevelState:  # fmt: skip
    """Return the state with which the chain begins: the best of several starts.

    They are compared on held-out documents or, without these, by their density. ``sharded`` returns a corpus on Spark's
    executors, if needed. ``directions`` are those of :func:`start_directions`.
    """
    from mc2core.inference.gibbs.holdout import draw_holdout, log_weights

    known, contexts = corpus, StackedContexts(corpus, model.cluster_contexts)
    numbers = numbers_to_try(model, corpus, start_clusters, _GROWTH * n_topics + contexts.dimension)
    trying = COMPARED if len(numbers) > 1 else 0
    if len(kept := draw_holdout(corpus, seed) if trying else ()):
        before = np.setdiff1d(np.arange(corpus.n_documents), kept)
        known = as_stored(corpus.subset(before), corpus)
        contexts = StackedContexts(known, model.cluster_contexts)
        directions = None if directions is None else directions[before]
    shards = sharded(known)
    seen, topic = start_topics(model, known, n_topics, streams.generator(seed, "start topics"))
    # few threads have a start each, many share the blocks of its sweeps
    has_few = pool is not None and n_threads(pool) <= len(numbers) and shards is None
    of_starts, of_sweeps = (pool, None) if has_few else (None, pool)

    def attempt(number: int, _: int) -> DocumentLevelState:
        rng = streams.generator(seed, "start", number)
        assignments = start_assignments(seen, contexts, numbers[number], n_topics, rng, topic, directions)
        state = DocumentLevelState.of(model, known, contexts, assignments)
        if (told := model.n_clusters) and assignments.n_clusters > told:
            group = model.start_of("group") / told * assignments.n_clusters  # alpha / N as it is told
            state.concentrations = replace(state.concentrations, group=group, most_clusters=assignments.n_clusters)
        # iterations before the first of the chain, of each attempt its own, and before that of documents kept back
        last = (number + 1 - len(numbers)) * (BURN_IN + trying + 1) - (len(kept) > 0)
        _burn_in(state, known, kernel, seed, last, of_sweeps, shards, numbers[number], trying)
        return state

    states = in_blocks(of_starts, attempt, len(numbers), 1)
    if not trying:
        return states[0]
    if not len(kept):
        densities, n_clusters = zip(*((log_density(one), one.assignments.n_clusters) for one in states), strict=True)
        return states[likeliest(densities, n_clusters, min(model.n_clusters or 2, corpus.n_documents))]
    from mc2core.inference.gibbs.continued import with_documents

    new = corpus.subset(kept)
    of_new = StackedContexts(new, model.cluster_contexts) if model.cluster_contexts else None
    weights = [log_weights(one.sample(), new, of_new, seed) for one in states]
    best = best_start([logsumexp(one, axis=1) for one in weights], numbers)
    return with_documents(states[best], model, corpus, before, softmax(weights[best], axis=1), seed, pool)


def best_start(scores: Sequence[np.ndarray], n_clusters: Sequence[int | None]) -> int:
    """Return the start to use, given the log scores of the held-out documents in each, (n,) float64.

    It is the start with most clusters, unless the best one is better by 1 % of the score and by three standard errors
    of the difference. A chain reduces too many clusters by merges, but seldom splits too few. Among equal numbers, the
    best is used.
    """
    best = int(np.argmax([one.sum() for one in scores]))
    largest = int(np.argmax([number or 0 for number in n_clusters]))
    gain = scores[best] - scores[largest]
    least = max(_LEAD * abs(scores[largest].sum()), _LEAD_ERRORS * gain.std() * math.sqrt(len(gain)))
    return best if len(set(n_clusters)) == 1 or gain.sum() > least else largest


def likeliest(densities: Sequence[float], n_clusters: Sequence[int], least: int) -> int:
    """Return the start with the highest log density; one with fewer than ``least`` clusters must be clearly better.

    ``least`` is the fixed number of clusters, or 2.
    """
    order = np.argsort(densities)[::-1]
    within = [i for i in order if densities[order[0]] - densities[i] <= _NOISE * abs(densities[order[0]])]
    return int(next((i for i in within if n_clusters[i] >= least), order[0]))


def _burn_in(
    state: DocumentLevelState, corpus: Corpus, kernel: str, seed: int, last: int, pool: Executor | None,
    sharded: ShardedCorpus | None, n_clusters: int | None, trying: int
) -> None:  # fmt: skip
    """Sweeps of the burn-in, which hold clusters and omega, then ``trying`` in which all move, to no. ``last``.

    Where there are more clusters than are told, they are joined in place of the sweep halfway through the latter.
    """
    first = last - BURN_IN - trying
    merging = last - trying // 2 if state.concentrations.most_clusters != state.model.most_clusters else None
    is_consolidated = state.observations is None and _topics_by_words(corpus) <= _topics_by_tokens(corpus)
    state.move_all_but_tokens(seed, first, pool, is_burn_in=True)
    told = "topics settle" + (f" from {n_clusters} cluster{'s' if n_clusters > 1 else ''}" if n_clusters else "")
    with work(told, BURN_IN + trying, "sweeps") as progress:
        for iteration in range(first + 1, last + 1):
            if iteration == merging:
                _merge_clusters(state, corpus)
            else:
                state.move_tokens(corpus, kernel, seed, iteration, pool, sharded)
                if is_consolidated and iteration - first in _CONSOLIDATING:
                    _consolidate_topics(state, corpus, seed, iteration)
            is_burn_in = iteration <= first + BURN_IN or iteration == merging
            state.move_all_but_tokens(seed, iteration, pool, is_burn_in=is_burn_in)
            progress.advance()


def _consolidate_topics(state: DocumentLevelState, corpus: Corpus, seed: int, iteration: int) -> None:
    given = state.omega, state.concentrations, state.topic_word_prior, seed, iteration
    state.proportions = consolidate_topics(state.assignments, corpus, state.proportions, *given)


def _merge_clusters(state: DocumentLevelState, corpus: Corpus) -> None:
    """Join clusters to as many as are told; then every cluster is at epsilon, from which its tau is drawn."""
    from mc2core.posterior.hierarchy import merge_clusters

    model = state.model
    posterior = posterior_of(model, corpus, [state.sample()], {})
    state.assignments.cluster[:] = merge_clusters(posterior, corpus, int(model.most_clusters))
    state.assignments.count()
    state.start_proportions()
    group, most = model.start_of("group"), model.most_clusters
    state.concentrations = replace(state.concentrations, group=group, most_clusters=most)


def log_density(state: DocumentLevelState) -> float:
    """Return ln p(w, x, l, z, epsilon, concentrations) of a state, with theta, tau and psi summed out, up to a
    constant.

    Given tau, the density would favour many clusters.
    """
    return log_clustering(state) + sum(state.log_content())


def log_clustering(state: DocumentLevelState) -> float:
    """Return ln p(z, x, epsilon, concentrations, l) with theta and tau summed out, up to terms of l alone.

    tau is summed out by the estimate of :mod:`mc2core.inference.gibbs.cluster_moves`, within a few nats
    a cluster.
    """
    assignments, concentrations, omega = state.assignments, state.concentrations, state.omega
    counts = count_topics(assignments)
    n_documents, lengths = len(assignments.cluster), np.diff(assignments.document_start)
    alpha, v, eta, law = concentrations.group, concentrations.table, concentrations.topic, concentrations.partition
    topics = v * np.append(assignments.topic_weights, assignments.remaining)
    constants = ClusterConstants(law, v, omega, np.maximum(topics, MIN_POSITIVE), 0.0, 0.0)
    tau = np.maximum(state.proportions, MIN_POSITIVE)
    _, at_estimate = weigh_clusters(assignments.cluster, tau, counts, constants, contexts_of(state.contexts), None)
    result = sum(at_estimate.tolist())
    result += log_openings(law, assignments.n_clusters)
    result += gammaln(alpha) - gammaln(alpha + n_documents) + (gammaln(omega) - gammaln(omega + lengths)).sum()
    result += len(assignments.topic_weights) * math.log(eta) - np.log(assignments.topic_weights).sum()
    result += (eta - 1.0) * math.log(max(assignments.remaining, MIN_POSITIVE))
    for role, value in {"group": alpha, "table": v, "topic": eta, "document": omega}.items():
        if (prior := state.priors.get(role)) is not None:
            result += (prior.shape - 1.0) * math.log(value) - prior.rate * value
    return float(result)
