"""Parts of a state of SVI: proportions of clusters over topics or over tables, and the document level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma as array_digamma

from mc2core.base.storage import Stored
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp, log
from mc2core.inference.svi.concentrations import TABLE, Concentrations, gamma_prior, log_density_of_log
from mc2core.inference.svi.empirical_bayes import Objective, TopicWeights
from mc2core.inference.svi.settings import RunSettings
from mc2core.inference.svi.sticks import expected_log_weights, expected_weights, stick_counts, stick_posterior
from mc2core.models import DOCUMENT, MC2

#: lower limit of a_km, so that its logarithm and digamma are finite
MIN_DOCUMENT_PRIOR = 1e-100
#: largest number of candidate clusters per document
CANDIDATES = 4


@dataclass(kw_only=True)
class TopicProportions:
    """q(tau_k) = Dir(v eps_1 + n_k1, ..., v eps_M + n_kM, v eps_rest), with point estimates of epsilon and v.

    n_km : (K, M) float64, expected number of tokens (with a document level: tables) of each topic in each cluster
    topic_weights : (M,) float64, epsilon
    remaining : float, eps_rest, that is, 1 minus the sum of epsilon
    table_concentration : float, v
    """

    described: ClassVar[dict[str, Stored]] = {
        "n_km": Stored("f", "K M"),
        "topic_weights": Stored("f", "M"),
        "remaining": Stored("f", ""),
        "table_concentration": Stored("f", ""),
    }
    #: number of concentrations with sticks (only alpha)
    n_concentrations: ClassVar[int] = 1

    n_km: np.ndarray
    topic_weights: np.ndarray
    remaining: float
    table_concentration: float
    eta: float
    v_prior: tuple[float, float] | None

    @classmethod
    def fixed(cls, model: MC2) -> dict[str, Any]:
        """Return the fields that are set by the model and never change: eta and the prior of v."""
        return {"eta": model.start_of("topic"), "v_prior": gamma_prior(model, "table")}

    @classmethod
    def sizes(cls, model: MC2, settings: RunSettings, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
        """Return K for a finite mixture. Otherwise return {}, because pruning reduces K and M below the truncations."""
        shape, most = np.shape(arrays.get("n_km", ())), (settings.n_clusters, settings.n_topics)
        if len(shape) == 2 and not (0 < shape[0] <= most[0] and 0 < shape[1] <= most[1]):
            raise ValueError(f"'n_km' has the shape {shape}; it must be from (1, 1) to {most}")
        return {} if model.n_clusters is None else {"K": model.n_clusters}

    @property
    def weights(self) -> TopicWeights:
        """Point estimates of epsilon and v."""
        return TopicWeights(self.topic_weights, self.remaining, self.table_concentration)

    @weights.setter
    def weights(self, new: TopicWeights) -> None:
        self.topic_weights, self.remaining, self.table_concentration = new

    @property
    def objective(self) -> Objective:
        """Objective that the point estimates of epsilon and v maximise."""
        return Objective(self.n_km, self.eta, self.v_prior)

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        """Return the stick parameters that depend on v and eta: none, because tau and epsilon have no sticks."""
        return ()

    def expected_log_tau(self) -> np.ndarray:
        """Return E ln tau_km, (K, M)."""
        v = self.table_concentration
        total = array_digamma(v + self.n_km.sum(axis=1, keepdims=True))
        return np.asarray(array_digamma(v * self.topic_weights + self.n_km) - total)

    def step_weights(self, n_steps: int) -> None:
        """Update epsilon and v in place by ``n_steps`` steps."""
        self.weights = self.objective.improved(self.weights, n_steps)

    def divergence(self, penalty: float = 0.0) -> float:
        """Return sum_k KL(q(tau_k) || Dir(v eps)) minus the penalty of epsilon and v and minus ``penalty``, in nats."""
        f, own, _ = self.objective.terms(self.weights)
        used = self.n_km > 0
        return float(np.sum(self.n_km[used] * self.expected_log_tau()[used])) - f - (own + penalty)

    def scale_counts(self, factor: float, concentrations: Concentrations) -> None:
        """Multiply the counts by ``factor``, in place."""
        self.n_km *= factor

    def select(self, topics: np.ndarray) -> None:
        """Remove all topics except ``topics``, in place, and add their weights to the remaining weight."""
        left = self.topic_weights[topics]
        self.remaining += float(self.topic_weights.sum() - left.sum())
        self.n_km, self.topic_weights = np.ascontiguousarray(self.n_km[:, topics]), left

    def expected(
        self, clusters: np.ndarray, topics: np.ndarray, concentrations: Concentrations
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return E[tau] of these clusters and topics (K', M'), epsilon of these topics (M',), and v."""
        v, n_km = self.table_concentration, self.n_km[clusters]
        known = (v * self.topic_weights + n_km) / (v + n_km.sum(axis=1, keepdims=True))
        return known[:, topics], self.topic_weights[topics], v


@kernel
def fill_shares(scores, log_shares, shares):
    """Normalise the rows of ``scores`` (rows, M): write log softmax and softmax."""
    for i in range(scores.shape[0]):
        highest = -np.inf
        for m in range(scores.shape[1]):
            highest = max(highest, scores[i, m])
        for m in range(scores.shape[1]):
            shares[i, m] = exp(scores[i, m] - highest)
        total = 0.0
        for m in range(scores.shape[1]):
            total += shares[i, m]
        log_total = highest + log(total)
        for m in range(scores.shape[1]):
            shares[i, m] /= total
            log_shares[i, m] = scores[i, m] - log_total


def topic_shares(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ln mu and mu, both (K, T, M): log softmax and softmax of the natural parameters of q(c), ``scores``."""
    log_shares, shares = np.empty((2, *scores.shape))
    rows = -1, scores.shape[-1]
    fill_shares(scores.reshape(rows), log_shares.reshape(rows), shares.reshape(rows))
    return log_shares, shares


@dataclass(kw_only=True)
class TableProportions:
    """Posteriors of the proportions with tables: stick-breaking q(epsilon) and q(tau_k), and categorical q(c_kt).

    Attributes
    ----------
    topic_sticks : (2, M - 1) float64
        Stick parameters of q(epsilon).
    table_sticks : (2, K, T - 1) float64
        Stick parameters of q(tau_k).
    table_topic : (K, T, M) float64
        Natural parameters of q(c_kt), up to a constant per table.
    """

    described: ClassVar[dict[str, Stored]] = {
        "topic_sticks": Stored("f", "2 M-1"),
        "table_sticks": Stored("f", "2 K T-1"),
        "table_topic": Stored("f", "K T M"),
    }
    #: number of concentrations with sticks (alpha, v and eta)
    n_concentrations: ClassVar[int] = 3

    topic_sticks: np.ndarray
    table_sticks: np.ndarray
    table_topic: np.ndarray

    @classmethod
    def fixed(cls, model: MC2) -> dict[str, Any]:
        """Return the fields that are set by the model and never change: none."""
        return {}

    @classmethod
    def sizes(cls, model: MC2, settings: RunSettings, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
        """Return the truncations K, T and M."""
        return {"K": settings.n_clusters, "T": settings.n_tables or 0, "M": settings.n_topics}

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        """Return the stick parameters that depend on v and on eta."""
        return self.table_sticks, self.topic_sticks

    def divergence(self, penalty: float = 0.0) -> float:
        """Return the divergence of all q(c_kt) from their prior, without the sticks, minus ``penalty``, in nats."""
        log_share, share = topic_shares(self.table_topic)
        return float(np.sum(share * (log_share - expected_log_weights(self.topic_sticks)))) - penalty

    def scale_counts(self, factor: float, concentrations: Concentrations) -> None:
        """Multiply the counts of documents by ``factor``, in place.

        The sticks of topics do not change, because they count tables instead of documents. The term E ln epsilon of
        each q(c_kt) does not change either.
        """
        v = concentrations.mean[TABLE]
        self.table_sticks = stick_posterior(factor * stick_counts(self.table_sticks, v), v)
        log_topic = expected_log_weights(self.topic_sticks)
        self.table_topic = log_topic + factor * (self.table_topic - log_topic)

    def expected(
        self, clusters: np.ndarray, topics: np.ndarray, concentrations: Concentrations
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return E[tau] of these clusters and topics (K', M'), E[epsilon] of these topics (M',), and E[v]."""
        tables = expected_weights(self.table_sticks)[clusters]
        _, share = topic_shares(self.table_topic)
        known = np.einsum("kt,ktm->km", tables, share[clusters][:, :, topics])
        return known, expected_weights(self.topic_sticks)[topics], float(concentrations.mean[TABLE])


@dataclass(kw_only=True)
class DocumentLevel:
    """Parameters of the document level.

    document_concentration : float, omega
    omega_information : float, sum over documents of the squared derivative of their bound with respect to ln omega,
        averaged over mini-batches; 0 before the first mini-batch
    local_cluster : (J, A) int32, candidate clusters of each document, or -1; A is 0 with mini-batches
    local_counts : (J, A, M) float64, expected number of tokens of each topic under each candidate
    omega_prior : (shape, rate) of the Gamma prior of omega; None if omega is fixed
    """

    described: ClassVar[dict[str, Stored]] = {
        "local_cluster": Stored("i", "J A", below="K"),
        "local_counts": Stored("f", "J A M"),
        "document_concentration": Stored("f", ""),
        "omega_information": Stored("f", ""),
    }

    document_concentration: float
    omega_information: float = 0.0
    local_cluster: np.ndarray
    local_counts: np.ndarray
    omega_prior: tuple[float, float] | None

    @classmethod
    def from_model(cls, model: MC2, settings: RunSettings, n_documents: int) -> DocumentLevel:
        """Return the initial parameters of the document level."""
        n_candidates = min(CANDIDATES, settings.n_clusters) if settings.batch_size is None else 0
        return cls(
            document_concentration=model.start_of(DOCUMENT),
            local_cluster=np.full((n_documents, n_candidates), -1, np.int32),
            local_counts=np.zeros((n_documents, n_candidates, settings.n_topics)),
            **cls.fixed(model),
        )

    @classmethod
    def fixed(cls, model: MC2) -> dict[str, Any]:
        """Return the fields that are set by the model and never change: the prior of omega."""
        return {"omega_prior": gamma_prior(model, DOCUMENT)}

    def prior(self, proportions: TopicProportions) -> np.ndarray:
        """Return the Dirichlet parameters a = omega exp(E ln tau) of documents in each cluster, (K, M)."""
        return np.maximum(self.document_concentration * np.exp(proportions.expected_log_tau()), MIN_DOCUMENT_PRIOR)

    def penalty(self) -> float:
        """Return the log prior density of ln omega relative to its mode, in nats, at most 0; 0 if omega is fixed."""
        return log_density_of_log(self.document_concentration, self.omega_prior)

    def forget(self, n_documents: int, n_topics: int) -> None:
        """Remove the stored local posteriors and set the number of documents to ``n_documents``, in place."""
        self.local_cluster = np.empty((n_documents, 0), np.int32)
        self.local_counts = np.empty((n_documents, 0, n_topics))
