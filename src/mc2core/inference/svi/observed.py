"""Topics that emit observations in SVI. They replace words, which have Dirichlet posteriors.

q(psi_m) is conjugate, with natural parameters eta_m = eta_0 + sum_i gamma_im T(x_i) (:mod:`mc2core.families.base`), so
that the score of an observation is its expected log density,

    E ln p(x | psi_m) = T(x) . E[t(psi_m)] + ln h(x),

and the bound contains -KL(q(psi_m) || prior). For the local steps, each observation is a different word that occurs
once. A state stores (P, M) sums of statistics instead of (V, M) tokens of words, and natural-gradient steps update both
in the same way.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Self

import numpy as np

from mc2core.compute.threads import in_blocks
from mc2core.corpus import Corpus
from mc2core.families import ContentFamily
from mc2core.families.contents import Contents, natural_of_topics
from mc2core.inference.observed import ObservedValues

_BLOCK = 512


@dataclass(frozen=True)
class ObservedTopics:
    """Observations of a corpus, and topics computed from sums of their statistics.

    Attributes
    ----------
    observations : ObservedValues
    log_base : (N,) float64
        ln h(x) in the unit of the corpus.
    prior : (P,) float64
        eta_0.
    """

    observations: ObservedValues
    log_base: np.ndarray
    prior: np.ndarray

    @classmethod
    def of(cls, corpus: Corpus, family: ContentFamily) -> Self:
        """Raise ValueError for an observation that the family does not take."""
        observations = ObservedValues.of(corpus, family)
        base = family.log_base_in(observations.values, observations.scale)
        return cls(observations, base, family.prior(family.n_parameters(observations.values.shape[1])))

    @property
    def family(self) -> ContentFamily:
        """Family of the observations that topics emit."""
        return self.observations.family

    def natural(self, sums: np.ndarray) -> np.ndarray:
        """Return (M, P) natural parameters of (P, M) sums of statistics."""
        return self.prior + sums.T

    def contents(self, sums: np.ndarray) -> Contents:
        """Return the current parameters of the topics."""
        one = self.observations
        return Contents(one.family, one.centre, one.scale, self.natural(sums))

    def sizes(self, sums: np.ndarray) -> np.ndarray:
        """Return (M,) expected numbers of observations of each topic."""
        return np.maximum(self.family.parts(self.natural(sums), self.observations.scale)[0], 0.0)

    def expected(self, sums: np.ndarray) -> np.ndarray:
        """Return (P, M) expected parameters E[t(psi_m)]."""
        return np.ascontiguousarray(self.family.expected_parameters(self.natural(sums)).T)

    def scores(self, expected: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return (n, M) expected log densities of the observations ``numbers`` (n,), in nats, in the unit of the
        corpus."""
        return self._statistics(numbers) @ expected + self.log_base[numbers, None]

    def likeliest(self, sums: np.ndarray) -> np.ndarray:
        """Return (N,) int32: the topic under which each observation has the largest expected density."""
        expected, n = self.expected(sums), len(self.log_base)

        def work(first: int, last: int) -> np.ndarray:
            return self.scores(expected, np.arange(first, last)).argmax(axis=1)

        return np.concatenate(in_blocks(None, work, n, _BLOCK)).astype(np.int32)

    def sums(self, numbers: np.ndarray, shares: np.ndarray, pool: Executor | None = None) -> np.ndarray:
        """Return (P, M) sums of statistics of the observations ``numbers`` (n,), weighted by the (n, M) shares of
        topics."""

        def work(first: int, last: int) -> np.ndarray:
            return self._statistics(numbers[first:last]).T @ shares[first:last]

        total = sum(in_blocks(pool, work, len(numbers), _BLOCK), start=np.zeros((len(self.prior), shares.shape[1])))
        # statistics that are the same number have the same sum, to the last bit
        return total[self.family.first_alike(self.observations.values.shape[1])]

    def sums_of(self, numbers: np.ndarray, topic: np.ndarray, n_topics: int) -> np.ndarray:
        """Return the same sums for observations that are each in one topic, (n,) ints."""
        one = self.observations
        natural = natural_of_topics(one.family, one.values[numbers], topic, n_topics, one.scale)
        return np.ascontiguousarray((natural - self.prior).T)

    def divergence(self, sums: np.ndarray) -> float:
        """Return sum_m KL(q(psi_m) || prior) in nats."""
        return float(self.family.kl(self.natural(sums)).sum())

    def gains(self, sums: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Return (n,) gains of marginal likelihood in nats if each of the (n, 2) pairs of topics is merged."""
        natural, (one, other) = self.natural(sums), pairs.T
        alone = self.family.log_marginal(natural)
        return self.family.log_marginal(natural[one] + natural[other] - self.prior) - alone[one] - alone[other]

    def _statistics(self, numbers: np.ndarray) -> np.ndarray:
        return self.family.rows(self.observations.values[numbers], self.observations.scale)
