"""What SVI knows between mini-batches where documents have proportions of their own.

As under direct assignment (:mod:`mc2core.inference.svi.direct.state`), with tables of documents for tokens:
q(tau_k) = Dir(v eps_1 + t_k1, ..., v eps_M + t_kM, v eps_rest), and a point estimate of omega where it is learnt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mc2core.base.checks import LEAST_PRIOR as LEAST_OMEGA
from mc2core.base.checks import MOST_PRIOR as MOST_OMEGA
from mc2core.base.described import Stored
from mc2core.inference.svi.direct.state import DirectExpectations, DirectGlobals
from mc2core.inference.svi.direct.topic_prior import density_of_log
from mc2core.inference.svi.document_level.rising import LEAST_PRIOR


@dataclass(kw_only=True)
class OwnExpectations(DirectExpectations):
    """With ``prior`` (K, M), omega exp(E ln tau), and ``omega`` itself."""

    prior: np.ndarray
    omega: float


@dataclass(kw_only=True)
class OwnGlobals(DirectGlobals):
    """With what documents of their own add; ``n_km`` are t_km, expected tables of the cluster's documents.

    Attributes
    ----------
    document_concentration : float
        omega.
    log_remainder : float
        Expectation of sum_j digamma(omega + N_j) - digamma(omega), as mini-batches told it.
    omega_prior : pair of float or None
        (shape, rate) of omega's Gamma prior; None where omega is fixed.
    local_cluster : (J, A) int32
        Full batches only (else A is 0): candidate clusters of each document, -1 where it has fewer.
    local_counts : (J, A, M) float64
        Expected tokens of the document in each topic under each of them.
    """

    described: ClassVar[dict[str, Stored]] = {
        **DirectGlobals.described,
        "local_cluster": Stored("i", "J A", least=-1, below="K"),
        "local_counts": Stored("f", "J A M", least=0),
    }
    described_numbers: ClassVar[dict[str, Stored]] = {
        "document_concentration": Stored("f", "", least=LEAST_OMEGA, most=MOST_OMEGA),
        "log_remainder": Stored("f", "", least=0),
        **DirectGlobals.described_numbers,
    }

    log_remainder: float = 0.0
    omega_prior: tuple[float, float] | None
    local_cluster: np.ndarray
    local_counts: np.ndarray

    def expectations(self, columns: np.ndarray | None = None) -> OwnExpectations:
        direct = super().expectations(columns)
        return OwnExpectations(**vars(direct), prior=self.document_prior(), omega=self.document_concentration)

    def keep(self, clusters: np.ndarray, topics: np.ndarray) -> None:
        number = np.full(len(self.n_km), -1, np.int32)
        number[clusters] = np.arange(len(clusters), dtype=np.int32)
        self.local_cluster = np.where(self.local_cluster >= 0, number[self.local_cluster], np.int32(-1))
        self.local_counts = np.ascontiguousarray(self.local_counts[:, :, topics])
        super().keep(clusters, topics)

    def document_prior(self) -> np.ndarray:
        """(K, M): omega exp(E ln tau)."""
        return np.maximum(self.document_concentration * np.exp(self.expected_log_tau()), LEAST_PRIOR)

    def omega_penalty(self) -> float:
        """The density of ln omega relative to its mode where omega is learnt: at most 0, nats."""
        return 0.0 if self.omega_prior is None else density_of_log(self.document_concentration, self.omega_prior)

    def own_divergence(self) -> float:
        return super().own_divergence() - self.omega_penalty()
