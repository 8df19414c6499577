"""How well a fit found the topics that simulated data were drawn from."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

#: a true topic counts as found if its match is nearer than this in L1 (the noise of the data alone is about 0.1)
FOUND_WITHIN = 0.25


def match_topics(truth: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Match true topics one to one with found ones so that the sum of L1 distances is least.

    Parameters
    ----------
    truth : (M, V), found : (M', V) float64, rows sum to 1

    Returns
    -------
    match : (M,) int64, the found topic of each true one; -1 if there were fewer found than true topics
    distance : (M,) float64 in 0..2; 2 where there is no match
    """
    cost = np.abs(truth[:, None, :] - found[None, :, :]).sum(axis=2)
    rows, columns = linear_sum_assignment(cost)
    match, distance = np.full(len(truth), -1), np.full(len(truth), 2.0)
    match[rows], distance[rows] = columns, cost[rows, columns]
    return match, distance
