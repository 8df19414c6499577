"""What a checkpoint was made by, beside what is asked for."""

from mc2core.inference.running.checkpoint import first_difference


def test_what_only_one_of_both_has_is_a_difference():
    run = {"seed": 1, "engine": {"name": "gibbs", "threads": 2}}
    with_more = run | {"snapshots": [0.5]}
    assert first_difference(with_more, run) == "snapshots was [0.5], now None"
    assert first_difference(run, with_more) == "snapshots was None, now [0.5]"
    assert first_difference(run | {"engine": {"name": "gibbs"}}, run) == "engine.threads was None, now 2"
    assert first_difference(run, run | {"engine": {"name": "gibbs"}}) == "engine.threads was 2, now None"
    assert first_difference(run, dict(reversed(run.items()))) is None
