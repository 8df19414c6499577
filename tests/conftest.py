"""Fixtures that several files of tests use."""

import os

import pytest
from workflow_calls import copy_checkout

# Spark's programs live for seconds: optimising them for longer takes half of their CPU time
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture
def checkout(tmp_path):
    """A folder with all that a checkout needs to run the workflow."""
    copy_checkout(tmp_path)
    return tmp_path


def pytest_collection_modifyitems(items):
    """Tests that run Snakemake first: one of them takes minutes, and would be left to one worker at the end."""
    items.sort(key=lambda item: "workflow" not in item.keywords)
