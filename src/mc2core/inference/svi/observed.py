"""Topics that emit observations instead of words, in SVI.

q(psi_m) is conjugate, with natural parameters eta_m = eta_0 + sum_i gamma_im T(x_i) (:mod:`mc2core.families.base`). The
score of an observation x under topic m is its expected log density,

    E ln p(x | psi_m) = T(x) . E[t(psi_m)] + ln h(x),

and the bound contains -KL(q(psi_m) || prior). The local steps treat each observation as a different word that occurs
once. A state stores the sums of statistics, (P, M), instead of the tokens of words, (V, M). Natural-gradient steps
update both in the same way.
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
    """Observations of a corpus, with methods that compute the posteriors of topics from sums of statistics.

    Attributes
    ----------
    observations : ObservedValues
    log_base : (N,) float64
        ln h(x) of each observation, in the unit of the corpus.
    prior : (P,) float64
        Natural parameters eta_0 of the prior of each topic.
    """

    observations: ObservedValues
    log_base: np.ndarray
    prior: np.ndarray

    @classmethod
    def from_corpus(cls, corpus: Corpus, family: ContentFamily) -> Self:
        """Return the observations of ``corpus``. Raises ValueError if the family cannot emit an observation."""
        observations = ObservedValues.from_corpus(corpus, family)
        base = family.log_base_in(observations.values, observations.scale)
        return cls(observations, base, family.prior(family.n_parameters(observations.values.shape[1])))

    @property
    def family(self) -> ContentFamily:
        """Family of the observations that topics emit."""
        return self.observations.family

    def natural(self, sums: np.ndarray) -> np.ndarray:
        """Return the natural parameters of q(psi_m), (M, P), given sums of statistics, (P, M)."""
        return self.prior + sums.T

    def contents(self, sums: np.ndarray) -> Contents:
        """Return the posteriors of the topics, given sums of statistics, (P, M)."""
        one = self.observations
        return Contents(one.family, one.centre, one.scale, self.natural(sums))

    def sizes(self, sums: np.ndarray) -> np.ndarray:
        """Return the expected number of observations per topic, (M,)."""
        return np.maximum(self.family.parts(self.natural(sums), self.observations.scale)[0], 0.0)

    def expected(self, sums: np.ndarray) -> np.ndarray:
        """Return the expected parameters E[t(psi_m)], (P, M)."""
        return np.ascontiguousarray(self.family.expected_parameters(self.natural(sums)).T)

    def scores(self, expected: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the expected log density of each observation in ``numbers`` (n,) under each topic, (n, M).

        Log densities are in nats and refer to the unit of the corpus.
        """
        return self._statistics(numbers) @ expected + self.log_base[numbers, None]

    def likeliest(self, sums: np.ndarray) -> np.ndarray:
        """Return the topic with the largest expected log density for each observation, (N,) int32."""
        expected, n = self.expected(sums), len(self.log_base)

        def work(first: int, last: int) -> np.ndarray:
            return self.scores(expected, np.arange(first, last)).argmax(axis=1)

        return np.concatenate(in_blocks(None, work, n, _BLOCK)).astype(np.int32)

    def sums(self, numbers: np.ndarray, shares: np.ndarray, pool: Executor | None = None) -> np.ndarray:
        """Return the sums of statistics of the observations ``numbers`` (n,), (P, M), weighted by ``shares`` (n, M)."""

        def work(first: int, last: int) -> np.ndarray:
            return self._statistics(numbers[first:last]).T @ shares[first:last]

        total = sum(in_blocks(pool, work, len(numbers), _BLOCK), start=np.zeros((len(self.prior), shares.shape[1])))
        # equal statistics must have equal sums, to the last bit
        return total[self.family.first_alike(self.observations.values.shape[1])]

    def sums_of(self, numbers: np.ndarray, topic: np.ndarray, n_topics: int) -> np.ndarray:
        """Return the sums of statistics (P, M) of observations that each belong to one topic, ``topic`` (n,)."""
        one = self.observations
        natural = natural_of_topics(one.family, one.values[numbers], topic, n_topics, one.scale)
        return np.ascontiguousarray((natural - self.prior).T)

    def divergence(self, sums: np.ndarray) -> float:
        """Return the sum over topics of KL(q(psi_m) || prior), in nats."""
        return float(self.family.kl(self.natural(sums)).sum())

    def gains(self, sums: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Return the gain of log marginal likelihood by merging each pair of topics, (n,); ``pairs`` is (n, 2)."""
        natural, (one, other) = self.natural(sums), pairs.T
        alone = self.family.log_marginal(natural)
        return self.family.log_marginal(natural[one] + natural[other] - self.prior) - alone[one] - alone[other]

    def _statistics(self, numbers: np.ndarray) -> np.ndarray:
        return self.family.rows(self.observations.values[numbers], self.observations.scale)
