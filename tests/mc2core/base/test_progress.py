"""What long work tells of itself: lines in a pipe or a log, bars on a terminal or in a notebook."""

import io
import itertools
import logging
import os
import pty
import re
import subprocess
import sys
import threading
import time
import types

import pytest

from mc2core.base import logs, progress


@pytest.fixture
def quick(monkeypatch):
    """Lines every 0.2 seconds of the real clock."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.2)


class Clock:
    """A display of lines, and time that passes only here."""

    def __init__(self, monkeypatch):
        self.now, self.told = 0.0, []
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)
        self.display = progress._Lines(lambda line: self.told.append((self.now, line)))
        monkeypatch.setattr(progress, "_shown", self.display)

    def sleep(self, seconds):
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + progress.LINE_SECONDS / 20)
            self.display.tick()

    def longest_silence(self):
        moments = [0.0, *(moment for moment, _ in self.told), self.now]
        return max(after - before for before, after in itertools.pairwise(moments))


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_work_that_tells_nothing_itself_has_lines_at_intervals(clock):
    with progress.work("map of documents"):
        clock.sleep(45)
    assert clock.told == [(seconds, f"map of documents: {seconds:.0f} s") for seconds in (2, 12, 22, 32, 42)]


def test_short_pieces_of_work_do_not_add_up_to_silence(clock):
    for number in range(60):
        with progress.work(f"piece {number}"):
            clock.sleep(1)
    assert clock.longest_silence() <= 11
    assert len(clock.told) == 6


def test_work_that_is_new_is_told_soon(clock):
    with progress.work("start"):
        clock.sleep(3)
    with progress.work("gibbs", 60, "iterations"):
        clock.sleep(3)
    assert [(moment, line.split(":")[0]) for moment, line in clock.told] == [(2, "start"), (5, "gibbs")]


def test_a_signal_that_waits_for_the_work_is_told_at_once(clock, monkeypatch):
    monkeypatch.setattr(progress.stopping, "is_asked", lambda: clock.now > 1)
    with progress.work("gibbs"):
        clock.sleep(1.9)
    assert clock.told == [(1.5, "stopping after what is done now; a second Ctrl-C stops at once")]


def test_a_line_says_what_is_done_how_far_it_is_and_how_long_it_takes(clock):
    with progress.work("gibbs", 60, "iterations", 10) as told:
        clock.now += 30.0
        assert told.line() == "gibbs: 10 of 60 iterations in 30 s"
        told.advance(20, {"clusters": 12.0, "log_joint": -1234567.8})
        assert told.line() == "gibbs: 30 of 60 iterations in 30 s, about 45 s left; clusters 12, log_joint -1.23457e+06"
    with progress.work("a.zip", 4_000_000, "B") as told:
        told.advance(1_000_000)
        clock.now += 1000.0
        assert told.line() == "a.zip: 1 of 4 MB in 17 min, about 50 min left"
    with progress.work("reading documents", unit="documents") as told:
        told.advance(1200)
        clock.now += 9000
        assert told.line() == "reading documents: 1,200 documents in 2.5 h"


def test_a_line_names_the_work_it_is_part_of(clock):
    with progress.work("start"), progress.work("topics settle", 20, "sweeps"):
        clock.sleep(3)
    assert clock.told == [(2, "start: topics settle: 0 of 20 sweeps in 2 s")]


def test_who_asks_decides_what_is_shown(quick, monkeypatch, caplog, capsys):
    def act():
        with progress.work("work"):
            time.sleep(1)

    caplog.set_level(logging.INFO, logger="mc2core")
    with progress.showing():  # no terminal: into the log
        act()
    assert "work: " in caplog.text
    assert capsys.readouterr().err == ""
    with progress.showing(True):
        act()
    assert "work: " in capsys.readouterr().err
    caplog.clear()
    told = []
    with progress.showing(write=told.append):
        with progress.showing(False), progress.showing():
            act()
        assert told == []
        with progress.showing():  # as the caller
            act()
    assert told
    act()  # nobody asked
    assert caplog.text == ""
    assert capsys.readouterr().err == ""


def test_a_job_tells_in_its_log(quick, tmp_path):
    with logs.job(tmp_path / "a.log"), progress.work("gibbs", 60, "iterations"):
        time.sleep(1)
    assert "INFO job: gibbs: 0 of 60 iterations" in (tmp_path / "a.log").read_text()


def test_no_thread_is_left():
    before = threading.active_count()
    with progress.showing(True):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


ON_A_TERMINAL = """
import time
from mc2core.base import progress
progress.LINE_SECONDS = 0.2
with progress.showing():
    with progress.work("map of documents"):
        time.sleep(0.5)
    with progress.work("gibbs", 5, "iterations") as told:
        for n in range(5):
            time.sleep(0.1)
            told.advance(1, {"clusters": 7})
    with progress.work("too short"):
        pass
"""


def test_a_terminal_shows_bars():
    reader, terminal = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", ON_A_TERMINAL], stderr=terminal) as run:
        os.close(terminal)
        said = b""
        try:
            while part := os.read(reader, 4096):
                said += part
        except OSError:  # the other end is closed
            pass
    os.close(reader)
    shown = said.decode()
    assert run.returncode == 0
    assert "map of documents [00:00]" in shown
    assert re.search(r"gibbs: 100%.* 5/5 \[00:00<00:00,.* iterations/s, clusters=7\]", shown)
    assert "too short" not in shown


def test_a_notebook_shows_widgets(quick, monkeypatch):
    """IPython and ipywidgets are not installed here: what tqdm asks of them is."""

    class Widget:
        def __init__(self, *_, children=(), **values):
            self.children, self.layout, self.style = children, types.SimpleNamespace(), types.SimpleNamespace()
            self.style.bar_color = self.bar_style = None
            self.__dict__.update(values)

        def close(self):
            pass

    shown = []
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(config={"IPKernelApp": {}})
    display = types.ModuleType("IPython.display")
    display.display = shown.append
    widgets = types.ModuleType("ipywidgets")
    widgets.HTML, widgets.FloatProgress, widgets.HBox = Widget, Widget, Widget
    for name, module in {"IPython": ipython, "IPython.display": display, "ipywidgets": widgets}.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("tqdm.notebook", "tqdm.autonotebook"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    progress._bar_class.cache_clear()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    try:
        with progress.showing(), progress.work("gibbs", 4, "iterations") as told:
            told.advance(4)
    finally:
        progress._bar_class.cache_clear()
        for name in ("tqdm.notebook", "tqdm.autonotebook"):
            sys.modules.pop(name, None)
    (container,) = shown
    assert container.children[0].value.startswith("gibbs")
    assert container.children[1].value == 4
