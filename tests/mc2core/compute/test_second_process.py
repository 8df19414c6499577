"""What a second process compiles is found in the store, and nothing else of it is noticed."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from numba.core import event

from mc2core.compute import second_process
from mc2core.compute.second_process import helped_by

KERNELS = """
from mc2core.compute.kernels import kernel

@kernel
def first(a):
    return a + 1

@kernel
def second(a):
    return a + 2

def compile_second():
    second(1)
"""
CALL = """
import sys, time
from mc2core.compute import second_process
second_process._a_core_is_free = lambda: True
from two_kernels import compile_second, first, second
started = []
begin = second_process._started
second_process._started = lambda code: started.append(begin(code)) or started[-1]
with second_process.helped_by(compile_second):
    first(1)
    for process in started:
        process.wait()
    second(1)
print(len(started), sum(second.stats.cache_hits.values()))
"""


def test_another_process_compiles_only_where_something_has_to_be(tmp_path):
    (tmp_path / "two_kernels.py").write_text(KERNELS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    def call():
        command = [sys.executable, "-c", CALL]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    assert call() == "1 1\n"
    assert call() == "0 1\n"


@pytest.fixture
def compiles(monkeypatch):
    """A function after which the process is there that helps, or None: as if a kernel had been compiled."""

    def begin():
        with event.trigger_event("numba:compile", data={"dispatcher": SimpleNamespace(py_func=wait_for_long)}):
            pass
        return started[-1] if started else None

    started = []
    monkeypatch.setattr(second_process, "_a_core_is_free", lambda: True)
    monkeypatch.setattr(second_process, "_started", lambda code: started.append(wait_for_long()) or started[-1])
    return begin


def wait_for_long():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def test_it_is_one_and_ends_with_the_block(compiles):
    with helped_by(wait_for_long):
        process = compiles()
        assert compiles() is process
        assert process.poll() is None
    assert process.poll() is not None


def test_it_ends_with_the_block_for_an_error(compiles):
    def interrupted():
        with helped_by(wait_for_long):
            seen.append(compiles())
            raise KeyboardInterrupt

    seen = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seen[0].poll() is not None


def test_there_is_none_where_no_core_is_free_or_nothing_is_to_be_done(compiles, monkeypatch):
    with helped_by(None):
        assert compiles() is None
    monkeypatch.setattr(second_process, "_a_core_is_free", lambda: False)
    with helped_by(wait_for_long):
        assert compiles() is None


def test_one_that_cannot_be_started_is_done_without(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert second_process._started("pass") is None


@pytest.mark.parametrize(("cores", "running", "is_free"), [(2, "1", True), (2, "2", False), (1, "1", False)])
def test_a_core_is_free_where_fewer_run_than_there_are(monkeypatch, cores, running, is_free):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(second_process.Path, "read_text", lambda _: f"0.50 0.40 0.30 {running}/321 4711\n")
    monkeypatch.setattr(time, "sleep", lambda _: None)
    assert second_process._a_core_is_free() is is_free


def test_a_system_that_does_not_tell_what_runs_has_no_free_core(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert not second_process._a_core_is_free()
