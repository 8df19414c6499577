"""The harnesses of files, each for a few seconds; ``python -m tests.reliability`` runs them for an hour."""

import pytest
from reliability import damaged_files, full_disk, two_runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harness", "seconds", "least"), [(damaged_files, 5, 20), (full_disk, 5, 10), (two_runs, 5, 1)]
)
def test_files_hold_for_some_seconds(harness, seconds, least, tmp_path):
    report = harness.run(seconds, 0, tmp_path)
    assert not report.failures, "\n".join(report.failures)
    assert report.tried >= least
