"""What long work tells of itself: lines in a pipe or a log, one that is rewritten on a terminal or in a notebook."""

import fcntl
import itertools
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios
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
        self.display = progress._Display(lambda line: self.told.append((self.now, line)))
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
    assert clock.told == [(seconds, f"map of documents: [00:{seconds:.0f}]") for seconds in (10, 20, 30, 40)]


def test_short_pieces_of_work_do_not_add_up_to_silence(clock):
    for number in range(60):
        with progress.work(f"piece {number}"):
            clock.sleep(1)
    assert clock.longest_silence() <= 11
    assert len(clock.told) == 6


def test_a_signal_that_waits_for_the_work_is_told_at_once(clock, monkeypatch):
    monkeypatch.setattr(progress.stopping, "is_asked", lambda: clock.now > 1)
    with progress.work("gibbs"):
        clock.sleep(1.9)
    assert clock.told == [(1.5, "stopping after the current step; a second Ctrl-C stops at once")]


def test_a_line_says_what_is_done_how_far_and_for_how_long(clock):
    with progress.work("gibbs", 60, "iterations", 10) as told:
        clock.now += 30.0
        assert progress.line([told]) == "gibbs: 10/60 iterations [00:30<?]"
        told.advance(20, {"clusters": 12.0, "log_joint": -1234567.8})
        assert progress.line([told]) == "gibbs: 30/60 iterations [00:30<00:45], clusters 12, log_joint -1.23457e+06"
    with progress.work("a.zip", 4_000_000, "B") as told:
        told.advance(1_000_000)
        clock.now += 1000.0
        assert progress.line([told]) == "a.zip: 1.00M/4.00MB [16:40<50:00]"
    with progress.work("reading documents", unit="documents") as told:
        told.advance(1200)
        clock.now += 9000
        assert progress.line([told]) == "reading documents: 1200 documents [2:30:00]"


def test_a_line_names_the_work_it_is_part_of(clock):
    with progress.work("start"), progress.work("topics settle", 20, "sweeps"):
        clock.sleep(11)
    assert clock.told == [(10, "start: topics settle: 0/20 sweeps [00:10<?]")]


def test_who_asks_decides_what_is_shown(quick, monkeypatch, caplog, capsys):
    def act():
        with progress.work("work"):
            time.sleep(0.5)

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
    assert "INFO job: gibbs: 0/60 iterations" in (tmp_path / "a.log").read_text()


def test_no_thread_is_left():
    before = threading.active_count()
    with progress.showing(True):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


ON_A_TERMINAL = """
import logging, time
from mc2core.base import progress
progress.LINE_SECONDS = 0.2
class Messages(logging.Handler):
    def emit(self, record):
        progress.to_stderr(self.format(record))
logging.basicConfig(handlers=[Messages()], format="%(message)s")
with progress.showing():
    with progress.work("map of documents"):
        time.sleep(0.5)
    with progress.work("gibbs", 5, "iterations") as told:
        for n in range(5):
            time.sleep(0.1)
            told.advance(1, {"clusters": 7})
            if n == 3:
                logging.warning("a message")
    with progress.work("too short"):
        pass
print("the end")
"""


def on_a_terminal(columns, script):
    """What the process writes to a terminal, and the lines that are to be seen on it in the end."""
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([sys.executable, "-c", script], stdout=terminal, stderr=terminal) as run:
        os.close(terminal)
        said = b""
        try:
            while part := os.read(reader, 4096):
                said += part
        except OSError:  # the other end is closed
            pass
    os.close(reader)
    assert run.returncode == 0
    seen = []
    for line in said.decode().split("\r\n"):
        shown = ""
        for text in line.split("\r"):  # goes over what was there
            assert len(text) < columns
            shown = text + shown[len(text) :]
        seen.append(shown.rstrip())
    return said.decode(), seen


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_terminal_shows_one_line_that_is_gone_in_the_end(columns):
    said, seen = on_a_terminal(columns, ON_A_TERMINAL)
    assert "map of documents: [00:00]" in said
    bar = r"  60%\|█+ +\| " if columns >= 70 else " "
    assert re.search(rf"gibbs:{bar}3/5 iterations \[00:00<00:00\], clusters 7", said)
    assert "too short" not in said
    assert seen == ["a message", "the end", ""]


def works(clock, *several):
    made = []
    for what, done, total, unit in several:
        made.append(progress.Work(what, total, unit, 0))
        made[-1].done = done
    clock.now += 80.0
    return made


BAR = "gibbs:  20%|██        | 12/60 iterations [01:20<05:20]"


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (40, "gibbs: 12/60 iterations [01:20<05:20]"),
        (60, "gibbs: 12/60 iterations [01:20<05:20], births, clusters 269"),
        (80, f"{BAR}, births, clusters 269"),
        (100, f"{BAR}, births, clusters 269, topics 321"),
        (200, f"{BAR}, births, clusters 269, topics 321, elbo -4.71218e+06"),
    ],
)
def test_a_line_of_a_terminal_has_what_fits(clock, columns, line):
    several = works(clock, ("gibbs", 12, 60, "iterations"), ("births", 3, 8, "moves"))
    several[0].numbers = {"clusters": 269.0, "topics": 321.0, "elbo": -4712180.0}
    assert progress.line(several, columns) == line


def test_a_bar_is_of_the_first_work_with_pieces(clock):
    several = works(clock, ("fit", 0, None, ""), ("samples", 5, 20, "samples"), ("documents", 7, 9, "documents"))
    shown = "fit: samples:  25%|██▌       | 5/20 samples [01:20<04:00], documents"
    assert progress.line(several, 100) == shown
    one = works(clock, ("compiling kernels (once), number 6 (fill_weights)", 0, None, ""))
    assert progress.line(one, 100) == "compiling kernels (once), number 6 (fill_weights): [01:20]"
    assert progress.line(one, 30) == "compiling kernels (once), numb"


def test_chains_side_by_side_are_shown_as_one(clock):
    first, second = ("start", 0, None, ""), ("topics settle", 10, 40, "sweeps")
    for order in ((first, second, first, second), (first, first, second, second), (first, second, first)):
        line = progress.line(works(clock, *order, ("compiling", 0, None, "")))
        assert line == "start: topics settle: 10/40 sweeps [01:20<04:00], compiling"


def test_a_notebook_shows_the_line_of_a_terminal(quick, monkeypatch, capsys):
    """IPython is not installed here."""
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    with progress.showing(), progress.work("gibbs", 4, "iterations") as told:
        told.advance(3)
        time.sleep(0.5)
    said = capsys.readouterr().err
    assert "\rgibbs:  75%|███████▌  | 3/4 iterations [00:00<00:00]" in said
    assert said.endswith(" \r")
    assert "\n" not in said
