"""What a checkpoint was made by, beside what is asked for."""

from mc2core.inference.running.checkpoint import first_difference


def test_what_only_one_of_both_has_is_a_difference():
    run = {"seed": 1, "engine": {"name": "gibbs", "threads": 2}}
    with_more = run | {"snapshots": [0.5]}
    assert first_difference(with_more, run) == "snapshots is [0.5] there and None here"
    assert first_difference(run, with_more) == "snapshots is None there and [0.5] here"
    assert first_difference(run | {"engine": {"name": "gibbs"}}, run) == "engine.threads is None there and 2 here"
    assert first_difference(run, run | {"engine": {"name": "gibbs"}}) == "engine.threads is 2 there and None here"
    assert first_difference(run, dict(reversed(run.items()))) is None
