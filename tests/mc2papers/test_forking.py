"""Jobs forked from one process: scripts that hand themselves over, as those of the workflow do."""

import json
import os
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from helpers.workflow_calls import ROOT

from mc2papers import forking, handing_over, warm_kernels

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jobs are forked on Linux alone")
SCRIPT = """
import sys
{before}
from mc2papers.handing_over import hand_over
hand_over()
import os, signal, time
{after}
"""


@pytest.fixture(scope="module")
def server():
    """Its socket; ends with the tests of this module."""
    forking.start()
    path = os.environ.pop(forking.VARIABLE)
    yield path
    forking._server.stdin.close()
    assert forking._server.wait(60) == 0
    assert not os.path.exists(os.path.dirname(path))


def started(server, folder, after, before="", by=(), text=SCRIPT, **more):
    script = folder / "job.py"
    script.write_text(text.format(before=before, after=after))
    environment, outputs = {**os.environ, forking.VARIABLE: server, **more}, subprocess.PIPE
    command = [*by, sys.executable, script]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=outputs, stderr=outputs, text=True)


def ended(process):
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def test_a_script_runs_in_a_fork_that_has_loaded_what_it_needs(server, tmp_path):
    after = (
        "print('numba' in sys.modules, os.getcwd(), os.environ['MINE'], __name__, sys.argv == [__file__], flush=True)\n"
        "os.write(2, b'to stderr'); sys.exit(3)"
    )
    code, output, errors = ended(started(server, tmp_path, after, MINE="é 1"))
    assert (code, output) == (3, f"True {tmp_path} é 1 __main__ True\n")
    assert errors == "to stderr"


def test_an_error_comes_with_its_traceback(server, tmp_path):
    code, _, errors = ended(started(server, tmp_path, "def fails(): raise KeyError('here')\nfails()"))
    assert code == 1
    assert errors.endswith("KeyError: 'here'\n")
    assert "job.py" in errors


def test_jobs_run_beside_each_other(server, tmp_path):
    both = []
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        after = f"open('../{name}.txt', 'w')\nwhile not os.path.exists('../{other}.txt'): time.sleep(0.05)"
        both.append(started(server, tmp_path / name, after))
    assert [ended(one)[0] for one in both] == [0, 0]


# in short steps: a signal that comes just before a sleep is looked at after it
WAITS = (
    "signal.signal(signal.SIGTERM, lambda *_: (open('told', 'w'), sys.exit(7)))\nprint(os.getpid(), flush=True)\n"
    "for _ in range(2000): time.sleep(0.05)"
)


def test_sigterm_of_the_script_reaches_the_fork_which_says_how_it_ends(server, tmp_path):
    process = started(server, tmp_path, WAITS)
    assert int(process.stdout.readline()) != process.pid
    process.terminate()
    assert ended(process)[0] == 7
    assert (tmp_path / "told").exists()


def test_a_script_that_is_killed_ends_the_fork(server, tmp_path):
    process = started(server, tmp_path, WAITS)
    process.stdout.readline()
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while not (tmp_path / "told").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "told").exists()


@pytest.mark.parametrize("sent", [b"", b"       100{"], ids=["nothing", "a part"])
def test_a_script_that_is_killed_while_it_hands_itself_over_leaves_nothing(server, sent):
    children = f"/proc/{forking._server.pid}/task/{forking._server.pid}/children"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server)
        if sent:
            socket.send_fds(connection, [sent], [1, 2])
        until = time.monotonic() + 60
        while not Path(children).read_text() and time.monotonic() < until:
            time.sleep(0.01)
        assert Path(children).read_text()
    while Path(children).read_text() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(children).read_text()


def test_a_fork_that_a_signal_ends_ends_the_script_so(server, tmp_path):
    code, _, _ = ended(started(server, tmp_path, "os.kill(os.getpid(), signal.SIGKILL)"))
    assert code == -signal.SIGKILL


class TestPrefix:
    """What the workflow has before the command of each script."""

    BY = shlex.split(handing_over.prefix().replace("{{", "{").replace("}}", "}"))

    def test_a_script_is_handed_over_before_anything_of_it_is_run(self, server, tmp_path):
        before = "with open('begun', 'a') as file: print(sys.argv[0], file=file)"
        code, output, _ = ended(
            started(server, tmp_path, "print('numba' in sys.modules); sys.exit(3)", before, self.BY)
        )
        assert (code, output) == (3, "True\n")
        assert (tmp_path / "begun").read_text() == f"{tmp_path / 'job.py'}\n"

    def test_sigterm_reaches_the_fork(self, server, tmp_path):
        process = started(server, tmp_path, WAITS, by=self.BY)
        process.stdout.readline()
        process.terminate()
        assert ended(process)[0] == 7

    def test_a_script_that_hands_nothing_over_runs_where_it_is(self, server, tmp_path):
        text = "import os, sys\nprint(os.getpid(), 'numba' in sys.modules, os.environ['MC2_FORKING'])"
        process = started(server, tmp_path, "", by=self.BY, text=text)
        assert ended(process)[:2] == (0, f"{process.pid} False {server}\n")

    def test_without_a_server_a_script_runs_where_it_is(self, tmp_path):
        after = "print(os.getpid(), 'numba' in sys.modules)"
        process = started(str(tmp_path / "none"), tmp_path, after, by=self.BY)
        assert ended(process)[:2] == (0, f"{process.pid} False\n")

    def test_a_path_with_braces_is_kept(self, monkeypatch):
        monkeypatch.setattr(handing_over.sys, "executable", "/a {b}/python")
        assert handing_over.prefix().format().startswith("'/a {b}/python' -I -S ")


class TestCallThere:
    """What the process itself is to call, for the forks after it."""

    def test_later_forks_have_what_was_loaded(self, server, tmp_path, monkeypatch):
        asks = "print('wsgiref.headers' in sys.modules, flush=True)"
        assert ended(started(server, tmp_path, asks))[:2] == (0, "False\n")
        monkeypatch.setenv(forking.VARIABLE, server)
        forking.call_there("importlib:import_module", "wsgiref.headers")
        assert ended(started(server, tmp_path, asks))[:2] == (0, "True\n")

    def test_an_error_is_no_end(self, server, tmp_path, monkeypatch):
        monkeypatch.setenv(forking.VARIABLE, server)
        for function in ("nothing_of_the_kind:f", "sys:exit", "no function"):
            forking.call_there(function)
        assert ended(started(server, tmp_path, "print('numba' in sys.modules)"))[:2] == (0, "True\n")

    def test_without_a_server_nothing_is_called(self, tmp_path, monkeypatch):
        monkeypatch.delenv(forking.VARIABLE, raising=False)
        forking.call_there("sys:exit")
        monkeypatch.setenv(forking.VARIABLE, str(tmp_path / "none"))
        forking.call_there("sys:exit")


def test_scripts_that_load_the_library_hand_themselves_over():
    """But for those of sources, which wait for files, and those that begin with the process or start others."""
    aside = {"warm_kernels", "epochs", "baselines_on_spark", "report_html", "dump_ranges", "first_writers"}
    aside |= {"fetch", "fetch_year", "list_baseline", "parse_citations", "parse_dump", "unpack_features"}
    for script in (ROOT / "workflow/scripts").glob("*.py"):
        statements = script.read_text().split("\n\n")[1:]
        begins = statements[:2] == [
            "from mc2papers.handing_over import hand_over",
            "hand_over()  # before anything is loaded that takes its time",
        ]
        assert begins == (script.stem not in aside), script.name


def test_what_compiles_kernels_has_them_loaded_for_later_jobs(tmp_path, monkeypatch):
    compiled, called = [], []
    monkeypatch.setattr(warm_kernels, "warm_kernels", lambda *given: compiled.append(given))
    monkeypatch.setattr(forking, "call_there", lambda *given: called.append(given))
    params = SimpleNamespace(
        sheet=ROOT / "config/experiments.tsv", schema=ROOT / "workflow/schemas/experiments.schema.yaml"
    )
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    job = SimpleNamespace(log=[tmp_path / "log"], config=config, wildcards=SimpleNamespace(engine="svi"), params=params)
    runpy.run_path(str(ROOT / "workflow/scripts/warm_kernels.py"), {"snakemake": job})
    (given,) = compiled
    assert given[0] == "svi"
    assert called == [("mc2papers.warm_kernels:warm_kernels", *given)]
    assert json.loads(json.dumps(given)) == list(given)


def test_without_a_server_a_script_runs_where_it_is(tmp_path):
    process = started(str(tmp_path / "none"), tmp_path, "print(os.getpid(), 'numba' in sys.modules)")
    code, output, _ = ended(process)
    assert (code, output.split()) == (0, [str(process.pid), "False"])
