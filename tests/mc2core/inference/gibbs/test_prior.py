"""The prior that the sampler has where words and contexts say nothing, against the nested DP's moments.

With one word in the vocabulary the posterior is the prior. For A1 = A2 = {one topic}, summed over topics, ICML14 A.1.3
asks with which probability two words have the same topic. Right is, for words of one document,
``(1 + v q) / (1 + v)`` with ``q = 1 / (1 + eta)``: the two share a table, or the topics of two tables are the same.
As printed, with 1 / (v (v + 1)) and equal weights, it is no probability (docs/model.md, section 7).
"""

import numpy as np
import pytest
from helpers.fits import gibbs, without_log_joint

from mc2core import Corpus

ALPHA, V, ETA = 1.2, 0.8, 0.5
SWEEPS, BATCHES = 8000, 40


@pytest.mark.parametrize("kernel", ["collapsed", "blocked"])
def test_probability_of_one_cluster_and_of_one_topic(kernel):
    corpus = Corpus(np.array([[2], [2]]))
    engine = gibbs(
        group_concentration=ALPHA,
        table_concentration=V,
        topic_concentration=ETA,
        kernel=kernel,
    )
    state = without_log_joint(engine.init(corpus, 0))
    seen = np.empty((SWEEPS, 3))
    for iteration in range(SWEEPS):
        engine.step(corpus, state, 0, iteration + 1)
        topic = state.topic
        seen[iteration] = state.cluster[0] == state.cluster[1], topic[0] == topic[1], topic[1] == topic[2]
    q = 1 / (1 + ETA)
    in_one_cluster = (1 + V * q) / (1 + V)
    expected = np.array([1 / (1 + ALPHA), in_one_cluster, (in_one_cluster + ALPHA * q) / (1 + ALPHA)])
    means = seen.reshape(BATCHES, -1, 3).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    assert np.abs(means.mean(axis=0) - expected).max() < 6 * error.max()
    assert (np.abs(means.mean(axis=0) - expected) < 6 * error).all()
    assert error.max() < 0.02
    printed = (1 + q) / (V * (V + 1))
    assert printed > 1
