"""Each harness of ``tests/reliability`` for a few seconds, as a user starts it.

``docs/development/reliability.md`` says how for an hour.
"""

import os
import signal
import subprocess
import sys
import time

import pytest
from helpers.workflow_calls import ROOT
from reliability.children import Outcome, outcomes
from reliability.report import Report

sys.path.insert(0, str(ROOT / "tests/fuzz"))
import harness


def start(*arguments):
    command = [sys.executable, "-m", "tests.reliability", *arguments]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_readers_hold_for_some_seconds():
    done = start("--minutes", "0.08", "--seed", "1", "--only", "readers")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| what | tried | held | failed |" in done.stdout
    assert "| mutated inputs of readers |" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_cases"),
    [("random_settings", 10), ("killed_fits", 3), pytest.param("interrupted", 4, marks=pytest.mark.slow)],
)
def test_the_first_cases_hold(name, n_cases):
    """So many, and not some seconds of them: the same on every machine."""
    done = start("--seed", "1", "--only", name, "--case", *map(str, range(n_cases)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": held") == n_cases


def test_crash_hang_and_failure_are_reported_and_the_next_runs():
    def try_one(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 3:
            time.sleep(60)
        return Outcome("wrong" if number == 2 else "")

    found = []
    for number, outcome in outcomes(try_one, 60.0, silence=2.0):
        found.append((number, outcome.wrong))
        if number == 4:
            break
    assert found == [(0, ""), (1, "it crashed (exit code -9)"), (2, "wrong"), (3, "no end in 2 s"), (4, "")]


def test_a_reader_that_fails_is_found(tmp_path):
    def read(folder, target):
        content = (folder / "x").read_bytes()
        if content != b"abc" * 20:
            raise (ValueError("one line") if b"abc" in content else KeyError("abc"))

    parser = harness.Parser(read, [{"x": b"abc" * 20}])
    result = harness.fuzz("x", parser, 20.0, 0, tmp_path)
    assert result.cases > result.refused > 0
    assert "KeyError: 'abc'" in result.failures[0]
    assert b"abc" not in (tmp_path / f"case {result.failures[0].split('case ')[1].split(':')[0]}/x").read_bytes()


def test_report_counts():
    report = Report("cases", tried=3, failures=["one"])
    report.count("refused")
    report.count("refused")
    assert (report.held, report.counts) == (2, {"refused": 2})
