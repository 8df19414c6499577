"""Split and merge moves of topics that emit observations, at the document level.

The moves use the sequential allocation of :mod:`mc2core.inference.gibbs.topic_moves`. That module describes the state,
the division of epsilon and tau between two components, and the acceptance ratios. Predictive densities and marginal
likelihoods of observations replace the terms for words. The partner of a merge is drawn uniformly or, with probability
1/2, with weights exp(min(D, 0)). D is the gain of the log marginal likelihood by the merge, in nats per observation of
the smaller topic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mc2core.compute import streams
from mc2core.compute.kernels import kernel
from mc2core.compute.special import MIN_POSITIVE
from mc2core.families.contents import MIN_LOG, content_tables, natural_of_topics
from mc2core.inference.gibbs import topic_moves
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.observations import Observations
from mc2core.inference.gibbs.tokens import TopicConstants
from mc2core.inference.gibbs.topic_components import (
    SplitComponents,
    Tokens,
    allocate_sequentially,
    draw_shares,
    estimate_components,
    gather,
    list_tokens,
)
from mc2core.inference.gibbs.topic_moves import MAX_ALLOCATED, draw_token, index_among, log_ratio_of, new_components
from mc2core.inference.gibbs.weights import Concentrations

_partner_share = topic_moves.partner_share.py_func  # the Python function also accepts arrays


@kernel
def _uniform(stream):
    return streams.uniform(stream)


@kernel
def _allocate_sequentially(stream, n, fixed, first_topic, least, eps, tokens, constants, parts, observed):
    return allocate_sequentially(stream, n, fixed, first_topic, least, eps, tokens, constants, parts, observed)


@dataclass
class ObservedMoves:
    """Split and merge proposals that change the topics of a chain in place.

    Attributes
    ----------
    observations : Observations
        Observations of the corpus.
    tokens : Tokens
        Topics of the observations; the words are all 0 and not used.
    parts : SplitComponents
        Work arrays of the two components.
    constants : TopicConstants
    eps : (slots,) float64
        Weight of each topic.
    tau : (slots, K) float64
        Proportion of each topic in each cluster.
    natural : (slots, P) float64
        Posterior natural parameters of each topic; empty slots have the parameters of the prior.
    """

    observations: Observations
    tokens: Tokens
    parts: SplitComponents
    constants: TopicConstants
    eps: np.ndarray
    tau: np.ndarray
    natural: np.ndarray

    def propose(self, stream: np.ndarray, n_slots: int) -> tuple[int, int]:
        """Make one proposal; return the numbers of accepted splits and merges, (1, 0), (0, 1) or (0, 0).

        Component 1 of a split becomes the topic in slot ``n_slots``.
        """
        i, n_topics = draw_token(stream, n_slots, self.tokens)
        if _uniform(stream) < 0.5:
            return int(self._split(stream, i, n_topics, n_slots)), 0
        return 0, int(n_topics > 1 and self._merge(stream, i, n_topics, n_slots))

    def _allocate_sequentially(
        self, stream: np.ndarray, n: int, fixed: int, first_topic: int, least: float, eps: float
    ) -> float:
        one = self.observations
        tables = content_tables(one.family, self.natural[:0], 2, one.scale, one.log_gammas)
        given = self.tokens, self.constants, self.parts, (one.values, tables)
        return _allocate_sequentially(stream, n, fixed, first_topic, least, eps, *given)[0]

    def _log_ratio(self, eps: float, natural: np.ndarray) -> float:
        """Return the log ratio of the densities of split and merge, for components with natural parameters (2, P)."""
        marginal, both = self.observations.family.log_marginal, natural.sum(axis=0) - self._prior
        return log_ratio_of(float(marginal(natural).sum() - marginal(both)), eps, self.constants, self.parts)

    @property
    def _prior(self) -> np.ndarray:
        return self.natural[-1]  # the last slot is always empty

    def _of_components(self, n: int) -> np.ndarray:
        """Return the natural parameters of the two components, (2, P), and store their sizes in ``parts.size``."""
        one, component = self.observations, self.parts.component[:n].astype(np.int32)
        self.parts.size[:] = np.bincount(component, minlength=2)
        return natural_of_topics(one.family, one.values[self.parts.members[:n]], component, 2, one.scale)

    def _weights(self, natural: np.ndarray, size: float, others: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the unnormalised (n,) weights of ``others`` (n, P) as partners of a topic in a merge.

        ``sizes`` (n,) are the numbers of observations of the others. A topic without observations has weight 0.
        """
        marginal = self.observations.family.log_marginal
        gains = marginal(natural + others - self._prior) - marginal(natural) - marginal(others)
        return np.where(sizes > 0, np.exp(np.clip(gains / np.maximum(np.minimum(size, sizes), 1), MIN_LOG, 0.0)), 0.0)

    def _others(self, m: int, natural: np.ndarray, size: float, n_slots: int) -> np.ndarray:
        """Return (n_slots,) weights of merging topic m with each other topic; the weight of m is 0."""
        weights = self._weights(natural, size, self.natural[:n_slots], self.tokens.size[:n_slots])
        weights[m] = 0.0
        return weights

    def _split(self, stream: np.ndarray, i: int, n_topics: int, new: int) -> bool:
        tokens, parts, m = self.tokens, self.parts, int(self.tokens.topic[i])
        if tokens.size[m] > MAX_ALLOCATED:
            return False
        n, eps = gather(m, m, tokens, parts), float(self.eps[m])
        parts.tau[:] = self.tau[m]
        log_q = self._allocate_sequentially(stream, n, index_among(n, i, parts.members), -1, -np.inf, eps)
        natural = self._of_components(n)
        if parts.size[1] == 0:
            return False
        estimate_components(n, eps, tokens, self.constants, parts)
        draw_shares(stream, eps, self.constants, parts)
        log_ratio = self._log_ratio(eps, natural) - log_q
        log_ratio += math.log(n / parts.size[0] * n_topics / (n_topics + 1.0))
        # probability of the reverse merge
        weight = float(self._weights(natural[0], parts.size[0], natural[1:], parts.size[1:])[0])
        total = weight + float(self._others(m, natural[0], parts.size[0], new).sum())
        if not math.log(_uniform(stream)) < log_ratio + math.log(_partner_share(weight, n_topics, total)):
            return False
        tokens.topic[parts.members[:n][parts.component[:n] == 1]] = new
        self.eps[[m, new]] = eps * np.exp(parts.eps_log_share)
        self.tau[[m, new]] = np.maximum(parts.tau * np.exp(parts.log_share), MIN_POSITIVE)
        self.natural[[m, new]] = natural
        list_tokens(tokens)
        return True

    def _merge(self, stream: np.ndarray, i: int, n_topics: int, n_slots: int) -> bool:
        tokens, parts, a = self.tokens, self.parts, int(self.tokens.topic[i])
        weights = self._others(a, self.natural[a], tokens.size[a], n_slots)
        is_other = tokens.size[:n_slots] > 0
        is_other[a] = False
        share = np.where(is_other, _partner_share(weights, n_topics - 1, weights.sum()), 0.0)
        sums = np.cumsum(share)
        b = int(np.searchsorted(sums, _uniform(stream) * sums[-1], side="right"))
        if tokens.size[a] + tokens.size[b] > MAX_ALLOCATED:
            return False
        n, eps = gather(a, b, tokens, parts), float(self.eps[a] + self.eps[b])
        parts.component[:n] = tokens.topic[parts.members[:n]] == b
        both = np.maximum(self.tau[[a, b]], MIN_POSITIVE)
        parts.tau[:] = both.sum(axis=0)
        parts.eps_log_share[:], parts.log_share[:] = (
            np.log(self.eps[[a, b]] / eps),
            np.log(both / parts.tau),
        )
        natural = self._of_components(n)
        estimate_components(n, eps, tokens, self.constants, parts)
        log_ratio = -self._log_ratio(eps, natural) - math.log(share[b])
        log_ratio -= math.log(n / parts.size[0] * (n_topics - 1.0) / n_topics)
        log_u = math.log(_uniform(stream))
        if not log_u < log_ratio:  # the probability of the components can only lower the ratio
            return False
        fixed = index_among(n, i, parts.members)
        if not log_u < log_ratio + self._allocate_sequentially(stream, n, fixed, a, log_u - log_ratio, eps):
            return False
        tokens.topic[parts.members[:n]] = a
        self.eps[a], self.eps[b] = eps, 0.0
        self.tau[a], self.tau[b] = self.tau[a] + self.tau[b], 0.0
        self.natural[a], self.natural[b] = natural.sum(axis=0) - self._prior, self._prior
        list_tokens(tokens)
        return True


def split_and_merge_observed_topics(
    assignments: Assignments,
    observations: Observations,
    tau: np.ndarray,
    omega: float,
    concentrations: Concentrations,
    key: np.uint64,
    n_proposals: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Split and merge topics of observations, in place; parameters are as in :func:`.split_and_merge_topics`.

    Returns tau of the topics in use, (K, M + 1), and the numbers of accepted splits and merges, (2,).
    """
    lengths, n_clusters, n_tokens = np.diff(assignments.document_start), len(tau), len(assignments.topic)
    constants = TopicConstants(float(omega), float(concentrations.table), float(concentrations.topic), 0.0, 0.0)
    n_topics, made, stream = assignments.n_topics, np.zeros(2, np.int64), np.zeros(2, np.uint64)
    if n_tokens == 0:
        return tau, made
    slots = n_topics + n_proposals + 1  # one slot remains free
    eps, by_topic = np.zeros(slots), np.zeros((slots, n_clusters))
    eps[:n_topics], by_topic[:n_topics] = assignments.topic_weights, tau[:, :-1].T
    prior = observations.family.prior(observations.family.n_parameters(observations.values.shape[1]))
    natural = np.tile(prior, (slots, 1))
    natural[:n_topics] = observations.natural(assignments)
    tokens = Tokens(
        np.repeat(np.arange(len(lengths), dtype=np.int32), lengths), np.zeros(n_tokens, np.int32), assignments.topic,
        assignments.cluster, np.empty(2 * n_tokens, np.int32), *np.zeros((2, slots), np.int64),
    )  # fmt: skip
    list_tokens(tokens)
    parts = new_components(n_tokens, len(lengths), 1, n_clusters, 0)
    moves = ObservedMoves(observations, tokens, parts, constants, eps, by_topic, natural)
    for proposal in range(n_proposals):
        streams.seek(stream, key, proposal)
        made += moves.propose(stream, n_topics + int(made[0]))
    n_slots = n_topics + int(made[0])
    used = tokens.size[:n_slots] > 0
    assignments.topic_weights = eps[:n_slots]
    assignments.count()
    assignments.compact()
    return np.column_stack([by_topic[:n_slots][used].T, tau[:, -1]]), made
