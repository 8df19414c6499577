"""Fixtures that several files of tests use."""

import os

import pytest
from helpers import needs
from helpers.commands import exit_code, mc2
from helpers.workflow_calls import copy_checkout

# Spark's programs live for seconds: optimising them for longer takes half of their CPU time
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture
def told(monkeypatch):
    """(what, done, total) of long work, each time that it moves on."""
    from mc2core.base import progress

    advance, seen = progress.Work.advance, []

    def record(one, *arguments):
        try:
            advance(one, *arguments)
        finally:
            if progress._shown is not progress._silent:
                seen.append((one.what, round(one.done, 6), one.total))

    monkeypatch.setattr(progress.Work, "advance", record)
    monkeypatch.setattr(progress, "_shown", progress._Display(lambda _: None))
    return seen


@pytest.fixture
def output_of(capsys):
    """The function that runs a command of mc2, which must succeed, and returns its output."""

    def run(command):
        capsys.readouterr()
        mc2(command)
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys):
    """The function that checks that a command of mc2 ends with 2 and an error with this text."""

    def check(command, message):
        capsys.readouterr()
        assert exit_code(command) == 2, command
        assert message in capsys.readouterr().err

    return check


@pytest.fixture
def short_starts(monkeypatch):
    """A few sweeps for each start of a chain with a document level, for tests of something else: of a small fit these
    starts, three of forty sweeps, take most of the time.
    """
    from mc2core.inference.gibbs import start

    monkeypatch.setattr(start, "BURN_IN", 2)
    monkeypatch.setattr(start, "COMPARED", 2)


@pytest.fixture
def checkout(tmp_path):
    """A folder with all that a checkout needs to run the workflow."""
    copy_checkout(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def opened():
    """The function that opens a page in a browser, one for a file of tests (:mod:`helpers.browser`)."""
    from helpers import browser

    with browser.running() as opened:
        yield opened


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before any fixture: what the README's test command does not install is there for the tests that need it alone."""
    needed = needs.names_of(item)
    needs.show_only(needed)
    for name in sorted(needed):
        if lack := needs.MISSING[name]():
            pytest.skip(lack)


def pytest_collection_modifyitems(items):
    """Files that run Snakemake first, then those with other slow tests, of the whole before those of parts: the last of
    them would leave a worker alone.
    """
    ranks = {}
    for item in items:
        rank = 0 if "workflow" in item.keywords else 1 if "slow" in item.keywords else 2
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: (ranks[item.path], len(item.path.parts)))
