"""Whether a run still moves, on traces that were made up."""

import numpy as np
import pytest

from mc2core.engines.running.found import found, sentence


def trace(clusters, topics):
    return [{"clusters": one, "topics": other} for one, other in zip(clusters, topics, strict=True)]


def test_a_climbing_run_is_told_from_a_steady_one():
    about = found(trace(range(10, 100), [20, 21] * 45))
    assert (about["clusters"], about["topics"], about["over"], about["moving"]) == (99, 21, 30, ["clusters"])
    assert about["trend"]["clusters"] == pytest.approx(29)
    assert (
        sentence(about)
        == "found 99 clusters and 21 topics, but they still move (clusters +29 over the last 30 iterations)"
    )
    about = found(trace([*range(60), *[60] * 30], [20] * 90))
    assert about["moving"] == []
    assert sentence(about) == "found 60 clusters and 20 topics, steady over the last 30 iterations"


def test_noise_is_no_movement():
    """1,000 runs of 120 iterations around 100 with a standard deviation of 2: none may be said to move.

    The change over 40 has a standard deviation of about 2 * sqrt(12 / 40) = 1.1; 5 are 4.5 of them (7 in a million).
    """
    draw = np.random.default_rng(0)
    assert not any(found(trace(draw.normal(100, 2, 120), [5] * 120))["moving"] for _ in range(1000))


def test_few_iterations_and_no_clusters_say_nothing():
    assert sentence(found(trace([5] * 8, [6] * 8))).endswith(
        "fewer than 9 iterations do not tell whether they still move"
    )
    assert sentence(found([{"elbo": 1.0}] * 20)) == ""
    assert sentence(found([{"clusters": 3.0}] * 20)) == "found 3 clusters, steady over the last 6 iterations"
