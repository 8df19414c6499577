"""The prior by which chains are judged (helpers.gibbs_enumeration), against the nested DP's moments.

With one word in the vocabulary the posterior is the prior. For A1 = A2 = {one topic}, summed over topics, ICML14 A.1.3
asks with which probability two words have the same topic. Right is, for words of one document,
``(1 + v q) / (1 + v)`` with ``q = 1 / (1 + eta)``: the two share a table, or the topics of two tables are the same.
As printed, with 1 / (v (v + 1)) and equal weights, it is no probability (docs/papers/slips.md). That the chains of
all kernels have the enumerated law is held by test_exact.
"""

import numpy as np
import pytest
from helpers.gibbs_enumeration import posterior

ALPHA, V, ETA = 1.2, 0.8, 0.5


def test_probability_of_one_cluster_and_of_one_topic():
    law = posterior([[0, 0], [0, 0]], 1, ALPHA, V, ETA, 1.0)
    seen = np.array([[z[0] == z[1], topic[0] == topic[1], topic[1] == topic[2]] for z, topic in law])
    q = 1 / (1 + ETA)
    in_one_cluster = (1 + V * q) / (1 + V)
    expected = 1 / (1 + ALPHA), in_one_cluster, (in_one_cluster + ALPHA * q) / (1 + ALPHA)
    assert np.array(list(law.values())) @ seen == pytest.approx(expected, rel=1e-12)
    printed = (1 + q) / (V * (V + 1))
    assert printed > 1
