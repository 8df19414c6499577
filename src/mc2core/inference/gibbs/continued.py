"""Extension of a state by documents that the start held out.

The cluster of a new document is drawn from its predictive distribution given the document's words and contexts. The
topics of its tokens are then drawn given the cluster. Finally, all global parameters are drawn once given all
documents.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TypeVar

import numpy as np

from mc2core.compute import streams
from mc2core.corpus import Corpus
from mc2core.families.contents import relative_densities
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.assignments import Assignments, document_start
from mc2core.inference.gibbs.repeats import Repeats, with_draws
from mc2core.inference.gibbs.state import DocumentLevelState, GibbsState, SharedState
from mc2core.models import TopicModel
from mc2core.posterior import Sample

S = TypeVar("S", bound=GibbsState)


def with_documents(
    old: S, model: TopicModel, corpus: Corpus, before: np.ndarray, shares: np.ndarray | None, seed: int,
    pool: Executor | None
) -> S:  # fmt: skip
    """Extend the state ``old``, of the documents ``before`` (ascending indices) of ``corpus``, to all documents.

    ``shares`` (B, K) contains the probabilities of the clusters for the B other documents; it is None if each document
    is a cluster. Raises ValueError if new documents have words but ``old`` has no topics.
    """
    added = np.setdiff1d(np.arange(corpus.n_documents), before)
    repeats = old.repeats if isinstance(old, DocumentLevelState) else None
    drawn = corpus if repeats is None else with_draws(corpus, before, old.content)
    new, rng = drawn.subset(added), streams.generator(seed, "added")
    if new.n_tokens and not old.assignments.n_topics:
        raise ValueError("the fitted documents have no words, so the fit has no topics for the words of new documents")
    sample, cluster = old.sample(), np.empty(corpus.n_documents, np.int32)
    cluster[before] = old.assignments.cluster
    if shares is not None:
        cluster[added] = _draw(shares, rng)
        proportions = np.asarray(sample.topic_given_cluster)
    else:
        cluster[added] = added
        proportions = np.tile(sample.topic_weights / sample.topic_weights.sum(), (corpus.n_documents, 1))
    is_new = np.repeat(np.isin(np.arange(corpus.n_documents), added), drawn.document_lengths)
    topic = np.empty(drawn.n_tokens, np.int32)
    topic[~is_new] = old.assignments.topic
    topic[is_new] = _topics(new, proportions[cluster[added]], sample, rng)
    weights, remaining = old.assignments.topic_weights, old.assignments.remaining
    assignments = Assignments(cluster, topic, document_start(drawn), weights, remaining)
    assignments.count()
    state = type(old).from_assignments(model, drawn, StackedContexts(corpus, model.cluster_contexts), assignments)
    state.concentrations, state.topic_word_prior = old.concentrations, old.topic_word_prior
    if isinstance(state, DocumentLevelState):
        tau = np.column_stack(
            [(1.0 - sample.new_topic_weight)[:, None] * sample.topic_given_cluster, sample.new_topic_weight]
        )
        state.omega, state.proportions[: len(tau)] = old.omega, tau
        if repeats is not None:
            size = np.empty(drawn.n_tokens, np.int32)
            size[~is_new], size[is_new] = repeats.size, corpus.subset(added).content.data
            state.repeats = Repeats(corpus.content, size, repeats.concentration)
        state.move_all_but_tokens(seed, 0, pool)
    elif isinstance(state, SharedState):
        state.draw_weights(seed, 0)
    return state


def _draw(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one column per row of (n, K) weights, with probability proportional to the weight."""
    total = np.cumsum(weights, axis=1)
    return (total <= rng.random(len(total))[:, None] * total[:, -1:]).sum(axis=1)


def _topics(corpus: Corpus, proportions: np.ndarray, sample: Sample, rng: np.random.Generator) -> np.ndarray:
    """Draw the topics of all tokens, (n_tokens,) in CSR order, given (J, M) topic proportions and a sample's topics."""
    content, contents, observations = corpus.content, sample.contents, corpus.observations
    words = np.zeros((0, 0)) if contents else np.ascontiguousarray(sample.word_given_topic.T)
    parts = [np.zeros(0, np.int64)]
    for j in range(corpus.n_documents):
        cells = slice(content.indptr[j], content.indptr[j + 1])
        if contents is None or observations is None:
            likely = words[content.indices[cells]]
        else:
            likely, _ = relative_densities(contents.log_densities(observations[content.indices[cells]])[:, :-1])
        parts.append(_draw(np.repeat(proportions[j] * likely, content.data[cells], axis=0), rng))
    return np.concatenate(parts)
