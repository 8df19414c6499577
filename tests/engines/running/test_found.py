"""Whether a run still moves, on traces that were made up."""

import numpy as np
import pytest

from mc2core.engines.running.found import found, sentence, sentence_of_all


def trace(clusters, topics):
    return [{"clusters": one, "topics": other} for one, other in zip(clusters, topics, strict=True)]


def test_a_climbing_run_is_told_from_a_steady_one():
    about = found(trace(range(10, 100), [20, 21] * 45))
    assert (about["clusters"], about["topics"], about["over"], about["moving"]) == (99, 21, 30, ["clusters"])
    assert about["trend"]["clusters"] == pytest.approx(29)
    assert (
        sentence(about) == "found 99 clusters and 21 topics; over the last 30 iterations of this one run "
        "clusters still move (+29.0) and topics show no trend"
    )
    about = found(trace([*range(60), *[60] * 30], [20] * 90))
    assert about["moving"] == []
    no_trend = "no trend in clusters or topics over the last 30 iterations of this one run"
    assert sentence(about) == f"found 60 clusters and 20 topics; {no_trend}"
    about = found(trace([60] * 90, range(200, 20, -2)))
    assert sentence(about).endswith("this one run clusters show no trend and topics still move (-58.0)")


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
    no_trend = "no trend in clusters over the last 6 iterations of this one run"
    assert sentence(found([{"clusters": 3.0}] * 20)) == f"found 3 clusters; {no_trend}"


def test_clusters_that_were_given_are_not_found():
    about = found(trace(range(100, 190), [20] * 90), ["topics"])
    assert (about.get("clusters"), about["moving"]) == (None, [])
    assert sentence(about) == "found 20 topics; no trend in topics over the last 30 iterations of this one run"


def test_the_fits_of_a_run_are_said_together():
    steady, climbing = found(trace([12] * 30, [20] * 30)), found(trace(range(10, 40), [22] * 30))
    assert sentence_of_all([climbing]) == sentence(climbing)
    assert sentence_of_all([{}, {}]) == sentence_of_all([]) == ""
    assert (
        sentence_of_all([steady, climbing, steady]) == "found 12 to 39 clusters and 20 to 22 topics in 3 fits; "
        "clusters still move in 1 of them and topics still move in none of them"
    )
    of_two = "found 12 clusters and 20 topics in 2 fits, "
    assert sentence_of_all([steady, steady]) == f"{of_two}no trend in clusters or topics at the end of any"
    assert sentence_of_all([found(trace([3] * 5, [4] * 5))] * 2).endswith("too short to tell whether they still move")
