"""Global step of SVI-MC2: natural-gradient updates of q(global variables) (UAI16, eq. 2-5, mended)."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from mc2core.engines.svi import local, sticks
from mc2core.engines.svi.state import (
    GROUP,
    TABLE,
    TOPIC,
    Concentrations,
    ConcentrationSettings,
    Expectations,
    Globals,
    stick_arrays,
)


def _blend(old: np.ndarray, new: np.ndarray, rate: float) -> None:
    """old = (1 - rate) old + rate new, in place; exactly ``new`` at rate 1."""
    old *= 1.0 - rate
    old += rate * new


def step_tables(
    state: Globals,
    expected: Expectations,
    concentrations: Concentrations,
    statistics: local.DocumentStatistics,
    n_kt: np.ndarray,
    table_log_likelihood: np.ndarray,
    scale: float,
    rate: float,
) -> None:
    """Natural-gradient step for q(beta), q(tau_k), q(c_kt), q(phi_k), in place (UAI16, eq. 2-5).

    ``n_kt`` (K, T) and ``table_log_likelihood`` (K, T, M) are those of :func:`.statistics.table_statistics`;
    ``scale`` = J / B. The target of q(c_kt) is UAI16's a_ktm (eq. 5): E ln eps_m + sum_w N_kt(w) E ln psi_mw.
    """
    _blend(state.group_sticks, sticks.stick_posterior(scale * statistics.n_k, concentrations.mean[GROUP]), rate)
    _blend(state.table_sticks, sticks.stick_posterior(scale * n_kt, concentrations.mean[TABLE]), rate)
    _blend(state.table_topic, expected.log_topic + scale * table_log_likelihood, rate)
    _blend(state.natural, state.contexts.prior + scale * statistics.contexts, rate)


def step_topics(
    state: Globals,
    table_topic: np.ndarray,
    concentrations: Concentrations,
    words: np.ndarray,
    counts: np.ndarray,
    scale: float,
    rate: float,
    pool: Executor | None = None,
) -> None:
    """Natural-gradient step for q(psi_m) and q(epsilon), in place, given (K, T, M) mu.

    ``counts`` (U, M) are those of :func:`.statistics.topic_statistics` at ``words`` (U,). The tables' topics are
    globals themselves, so q(epsilon) is not scaled by J / B: UAI16's eq. 4 prints the sum without the 1/J that would
    undo the scale. Finite differences settle it (tests/engines/svi/test_engine.py).
    """
    state.blend_topic_words(words, counts, scale, rate, pool)
    target = sticks.stick_posterior(table_topic.sum(axis=(0, 1)), concentrations.mean[TOPIC])
    _blend(state.topic_sticks, target, rate)


def step_concentrations(state: Globals, settings: ConcentrationSettings) -> None:
    """q(alpha), q(v), q(eta) given the sticks behind them, in place: exact, since they depend on globals only."""
    for i, one in enumerate(stick_arrays(state)):
        state.concentration_rates[i] = settings.rate[i] - np.sum(sticks.expected_logs(one)[1])
