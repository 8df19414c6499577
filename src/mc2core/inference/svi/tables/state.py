"""What SVI-MC2 with tables knows between mini-batches.

UAI16: q(epsilon) and q(tau_k) are truncated sticks, q(c_kt) categorical. K, T, M are truncations: clusters, tables in
each, topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mc2core.base.described import Stored
from mc2core.compute.kernels import kernel
from mc2core.compute.special import exp, log
from mc2core.inference.svi import sticks
from mc2core.inference.svi.state import Expectations, Globals


@kernel(error_model="numpy")
def fill_shares(scores, log_shares, shares):
    """Rows of ``scores`` (rows, M) normalised: ln and value of exp(score) over its row's sum."""
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
    """(ln mu, mu), both (K, T, M), of natural parameters of q(c): log_softmax and softmax of the last axis."""
    log_shares, shares = np.empty((2, *scores.shape))
    rows = -1, scores.shape[-1]
    fill_shares(scores.reshape(rows), log_shares.reshape(rows), shares.reshape(rows))
    return log_shares, shares


@dataclass(kw_only=True)
class TableExpectations(Expectations):
    """With those of tables.

    log_table (K, T), log_topic (M,) : E ln tau, E ln epsilon
    log_table_topic, table_topic (K, T, M) : ln mu_ktm and mu_ktm
    """

    log_table: np.ndarray
    log_topic: np.ndarray
    log_table_topic: np.ndarray
    table_topic: np.ndarray


@dataclass(kw_only=True)
class TableGlobals(Globals):
    """With the parameters of tables.

    Attributes
    ----------
    group_sticks (2, K - 1), topic_sticks (2, M - 1), table_sticks (2, K, T - 1) : float64
        q(beta), q(epsilon), q(tau_k): see :mod:`mc2core.inference.svi.sticks`.
    table_topic : (K, T, M) float64
        Natural parameters of q(c_kt), up to a constant in each row.
    """

    described: ClassVar[dict[str, Stored]] = {
        "group_sticks": Stored("f", "2 K-1", above=0),
        "topic_sticks": Stored("f", "2 M-1", above=0),
        "table_sticks": Stored("f", "2 K T-1", above=0),
        "table_topic": Stored("f", "K T M"),
        "concentration_rates": Stored("f", "3", above=0),
        **Globals.described,
    }

    topic_sticks: np.ndarray
    table_sticks: np.ndarray
    table_topic: np.ndarray

    def stick_arrays(self) -> tuple[np.ndarray, ...]:
        return self.group_sticks, self.table_sticks, self.topic_sticks

    def expectations(self, columns: np.ndarray | None = None) -> TableExpectations:
        log_table_topic, table_topic = topic_shares(self.table_topic)
        return TableExpectations(
            log_group=sticks.expected_log_weights(self.group_sticks),
            log_table=sticks.expected_log_weights(self.table_sticks),
            log_topic=sticks.expected_log_weights(self.topic_sticks),
            log_table_topic=log_table_topic,
            table_topic=table_topic,
            **self.shared_expectations(columns),
        )

    def own_divergence(self) -> float:
        log_share, share = topic_shares(self.table_topic)
        log_topic = sticks.expected_log_weights(self.topic_sticks)
        return float(np.sum(share * (log_share - log_topic)))
