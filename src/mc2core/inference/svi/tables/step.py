"""Global step with tables: natural-gradient updates of q(global variables) (UAI16, eq. 2-5, mended)."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from mc2core.inference.svi import local, sticks
from mc2core.inference.svi.state import GROUP, TABLE, TOPIC, Concentrations, blend
from mc2core.inference.svi.tables.state import TableExpectations, TableGlobals


def step_tables(
    state: TableGlobals,
    expected: TableExpectations,
    concentrations: Concentrations,
    statistics: local.DocumentStatistics,
    columns: np.ndarray,
    n_kt: np.ndarray,
    table_log_likelihood: np.ndarray,
    scale: float,
    rate: float,
) -> None:
    """Natural-gradient step for q(beta), q(tau_k), q(c_kt), q(phi_k), in place (UAI16, eq. 2-5).

    ``columns`` are those of the statistics of contexts, ``n_kt`` (K, T) and ``table_log_likelihood`` (K, T, M) those
    of :func:`.statistics.table_statistics`; ``scale`` = J / B. The target of q(c_kt) is UAI16's a_ktm (eq. 5): E ln
    eps_m + sum_w N_kt(w) E ln psi_mw.
    """
    blend(state.group_sticks, sticks.stick_posterior(scale * statistics.n_k, concentrations.mean[GROUP]), rate)
    blend(state.table_sticks, sticks.stick_posterior(scale * n_kt, concentrations.mean[TABLE]), rate)
    blend(state.table_topic, expected.log_topic + scale * table_log_likelihood, rate)
    state.blend_contexts(columns, statistics.contexts, scale, rate)


def step_topics(
    state: TableGlobals,
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
    undo the scale. Finite differences settle it (tests/mc2core/inference/svi/test_engine.py).
    """
    state.blend_topic_words(words, counts, scale, rate, pool)
    target = sticks.stick_posterior(table_topic.sum(axis=(0, 1)), concentrations.mean[TOPIC])
    blend(state.topic_sticks, target, rate)
