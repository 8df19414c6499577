"""What SVI-MC2 with direct assignment knows between mini-batches.

q(tau_k) = Dir(v eps_1 + n_k1, ..., v eps_M + n_kM, v eps_rest) with point estimates of epsilon and v; tokens never go
to the rest. Clusters and topics that are not in use are part of the rest: K and M are what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import digamma

from mc2core.base.described import Stored
from mc2core.inference.svi import sticks
from mc2core.inference.svi.direct.topic_prior import density_of_log
from mc2core.inference.svi.direct.weights import Objective, Weights
from mc2core.inference.svi.state import Expectations, Globals


@dataclass(kw_only=True)
class DirectExpectations(Expectations):
    """With E ln tau: ``log_tau`` (K, M)."""

    log_tau: np.ndarray


@dataclass(kw_only=True)
class DirectGlobals(Globals):
    """With the parameters of direct assignment.

    Attributes
    ----------
    group_sticks : (2, K) float64
        q(beta); the last weight, behind the last stick, is that of all clusters not in use.
    n_km : (K, M) float64, >= 0
        Expected tokens of topic m in cluster k.
    topic_weights : (M,) float64, > 0
        epsilon.
    rest : float
        eps_rest: 1 less their sum.
    table_concentration : float
        v.
    eta : float
        Of topics; fixed.
    v_prior : pair of float or None
        (shape, rate) of v's Gamma prior; None where v is fixed.
    s_prior : pair of float or None
        The same of s, ``topic_prior``.
    """

    described: ClassVar[dict[str, Stored]] = {
        "group_sticks": Stored("f", "2 K", above=0),
        "n_km": Stored("f", "K M", least=0),
        "topic_weights": Stored("f", "M", above=0, most=1),
        "concentration_rates": Stored("f", "1", above=0),
        **Globals.described,
    }
    described_numbers: ClassVar[dict[str, Stored]] = {
        "rest": Stored("f", "", above=0, most=1),
        "table_concentration": Stored("f", "", above=0),
        "topic_prior": Stored("f", "", above=0),
        **Globals.described_numbers,
    }

    n_km: np.ndarray
    topic_weights: np.ndarray
    rest: float
    table_concentration: float
    eta: float
    v_prior: tuple[float, float] | None
    s_prior: tuple[float, float] | None

    @property
    def n_k(self) -> np.ndarray:
        """(K,) float64: expected documents of each cluster."""
        return self.group_sticks[0] - 1.0

    @property
    def weights(self) -> Weights:
        """epsilon and v."""
        return Weights(self.topic_weights, self.rest, self.table_concentration)

    @weights.setter
    def weights(self, new: Weights) -> None:
        self.topic_weights, self.rest, self.table_concentration = new

    @property
    def objective(self) -> Objective:
        """What epsilon and v raise."""
        return Objective(self.n_km, self.eta, self.v_prior)

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        return (self.group_sticks,)

    def expectations(self, columns: np.ndarray | None = None) -> DirectExpectations:
        return DirectExpectations(
            log_group=sticks.expected_log_weights(self.group_sticks)[:-1],
            log_tau=self.expected_log_tau(),
            **self.shared_expectations(columns),
        )

    def expected_log_tau(self) -> np.ndarray:
        """(K, M): E ln tau_km."""
        v = self.table_concentration
        total = digamma(v + self.n_km.sum(axis=1, keepdims=True))
        return digamma(v * self.topic_weights + self.n_km) - total

    def keep(self, clusters: np.ndarray, topics: np.ndarray) -> None:
        """Leave out all clusters but these, in this order, and topics, whose weights go to the rest, in place.

        The sticks of clusters stay.
        """
        number = np.full(len(self.n_km), -1, np.int32)
        number[clusters] = np.arange(len(clusters), dtype=np.int32)
        self.cluster = np.where(self.cluster >= 0, number[self.cluster], np.int32(-1))
        self.context_counts = np.ascontiguousarray(self.context_counts[:, clusters])
        self.context_totals = self.context_totals[:, clusters]
        self.n_km = self.n_km[np.ix_(clusters, topics)]
        if len(topics) < len(self.n_m):
            left = self.topic_weights[topics]
            self.rest += float(self.topic_weights.sum() - left.sum())
            self.topic_weights = left
            self.topic_words = np.ascontiguousarray(self.topic_words[:, topics])
            self.n_m = self.n_m[topics]

    def own_divergence(self) -> float:
        """sum_k KL(q(tau_k) || Dir(v eps)), less what eta and the priors of v and s add to the bound."""
        f, penalty, _ = self.objective.terms(self.weights)
        if self.s_prior is not None:
            penalty += density_of_log(self.topic_prior, self.s_prior)
        used = self.n_km > 0
        return float(np.sum(self.n_km[used] * self.expected_log_tau()[used])) - f - penalty
