"""Signals: noted in work that must not be broken off, acting at once elsewhere and the second time."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from mc2core.base import logs, stopping


def send(number=signal.SIGINT):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_first_signal_is_noted_until_work_looks_for_it(number, error):
    done = []

    @stopping.defer()
    def act():
        send(number)
        done.append("what was begun")
        stopping.check()
        done.append("more")

    with pytest.raises(error) as stopped:
        act()
    assert done == ["what was begun"]
    if number == signal.SIGTERM:
        assert stopped.value.code == 143
    with stopping.defer():
        stopping.check()  # the signal was of the block before


@pytest.mark.parametrize(("kind", "expected"), [(stopping.defer, ["all"]), (stopping.install, [])])
def test_a_signal_acts_at_the_end_of_deferred_work_or_at_once(kind, expected):
    done = []

    @kind()
    def act():
        send(signal.SIGTERM)
        done.append("all")

    with pytest.raises(SystemExit):
        act()
    assert done == expected


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_log_of_a_stopped_job_says_interrupted_and_no_more(number, code, tmp_path):
    with pytest.raises(SystemExit) as stopped, logs.job(tmp_path / "log"):
        send(number)
    assert stopped.value.code == code
    said = (tmp_path / "log").read_text()
    assert said.splitlines()[-1].endswith("root WARNING interrupted")
    assert "Traceback" not in said
    assert "failed" not in said


def test_a_second_signal_acts_at_once():
    done = []

    def act():
        with stopping.flush() as seen:
            send()
            done.append(list(seen))
            stopping.check()  # what is kept is not stopped by a first one
            send()
            done.append("more")

    with pytest.raises(KeyboardInterrupt):
        act()
    assert done == [[signal.SIGINT]]


def test_an_error_that_a_signal_surfaces_as_is_a_stop():
    @stopping.install()
    def act():
        try:
            send()
        except KeyboardInterrupt as error:
            raise SystemError("a kernel returned a result with an exception set") from error

    with pytest.raises(KeyboardInterrupt) as stopped:
        act()
    assert isinstance(stopped.value.__cause__, SystemError)
    with pytest.raises(ValueError, match="of the work itself"), stopping.install():
        raise ValueError("of the work itself")


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stopping.defer(), stopping.flush():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_leave_signals_to_the_main_one():
    done = []

    def work():
        with stopping.defer(), stopping.flush() as seen:
            stopping.check()
            done.append(list(seen))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [[]]


IN_EXEC = """
import os, signal, sys
from mc2core.base import stopping
try:
    with stopping.install():
        exec("os.kill(os.getpid(), signal.SIGINT); sum(range(10**6))")
except KeyboardInterrupt as error:
    print(type(error).__name__)
    sys.exit(130)
"""
IN_A_FINALISER = """
import os, signal, sys, time
from mc2core.base import stopping

class Thing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(10**6))

try:
    with stopping.install():
        thing = Thing()
        del thing
        time.sleep(60)
except KeyboardInterrupt as error:
    print(type(error).__name__)
    sys.exit(130)
"""


@pytest.mark.parametrize("script", [IN_EXEC, IN_A_FINALISER], ids=["exec", "finaliser"])
def test_a_signal_where_python_loses_it_or_does_not_forget_it(script, tmp_path):
    (tmp_path / "stop_here.py").write_text(script)
    command = [sys.executable, "-m", "stop_here"]  # as python -m mc2core
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "KeyboardInterrupt\n", "")


COMPILE = """
import os, signal, sys
from numba.core import event
import numpy as np
from mc2core.base import stopping
from mc2core.compute.kernels import kernel

@kernel
def add(x):
    return x + 1.0

class Send(event.Listener):
    passes = 0
    def on_start(self, event):
        Send.passes += 1
        if Send.passes == 5:
            os.kill(os.getpid(), signal.SIGINT)
    def on_end(self, event):
        pass

event.register("numba:run_pass", Send())
try:
    with stopping.defer():
        add(np.ones(3))
except KeyboardInterrupt:
    print("stopped in pass", Send.passes, add.signatures)
"""


def test_the_compiler_is_stopped_between_two_of_its_passes(tmp_path):
    (tmp_path / "script.py").write_text(COMPILE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("stopped in pass "), done.stderr
    assert int(done.stdout.split()[3]) <= 7
    assert done.stdout.endswith("[]\n")
