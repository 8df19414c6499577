"""A sample as a mixture: topics without words of their own are one with what is uniform; no likelihood changes."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.posterior_samples import (
    COUNTS,
    V,
    clusters_of,
    draw_sample,
    enumerate_cluster,
    enumerate_document,
    tokens_of,
    topics_of,
)

from mc2core.posterior.mixture import SampleMixture


@pytest.mark.parametrize("times", [0, 2], ids=["a topic without words", "a topic of all words alike"])
def test_topics_that_are_even_over_words_are_one_with_the_rest(times):
    sample = replace(draw_sample(7), topic_words=sp.csr_matrix([[3, 0, 1, 0, 2], [times] * V]))
    joined = SampleMixture(sample)
    psi = joined.words(np.arange(V)).T
    assert psi.shape == (2, V)
    alpha = sample.table_concentration * np.append(sample.topic_weights, 1 - sample.topic_weights.sum())
    _, tau = clusters_of(sample)
    for row in COUNTS:
        tokens = tokens_of(row)
        expected = enumerate_document(tokens, alpha, topics_of(sample))
        assert enumerate_document(tokens, joined.alpha, psi) == pytest.approx(expected, rel=1e-12)
        for k, proportions in enumerate(tau):
            expected = enumerate_cluster(tokens, proportions, topics_of(sample))
            assert enumerate_cluster(tokens, joined.tau[k], psi) == pytest.approx(expected, rel=1e-12)
