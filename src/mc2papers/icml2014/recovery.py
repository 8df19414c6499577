"""Measure how well a fit recovers the topics from which simulated data were drawn."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

#: a true topic counts as found if the L1 distance of its match is less (the noise of the data alone is about 0.1)
FOUND_WITHIN = 0.25


def match_topics(truth: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Match true topics one to one with found topics such that the sum of L1 distances is minimal.

    Parameters
    ----------
    truth : (M, V), found : (M', V) float64, rows sum to 1

    Returns
    -------
    match : (M,) int64, the found topic of each true topic; -1 if there is none, because fewer topics were found
    distance : (M,) float64 in 0..2; 2 if there is no match
    """
    cost = np.abs(truth[:, None, :] - found[None, :, :]).sum(axis=2)
    rows, columns = linear_sum_assignment(cost)
    match, distance = np.full(len(truth), -1), np.full(len(truth), 2.0)
    match[rows], distance[rows] = columns, cost[rows, columns]
    return match, distance
