"""Jobs of a local run, forked from one process that has loaded what they need: that takes longer than most jobs.

The workflow starts that process (:func:`start`) and names its socket in the environment. A script of a job that finds
the name there hands itself over (:mod:`mc2papers.handing_over`): it is run in a fork, with the environment, folder and
outputs that it had, and ends with the exit code of that. What that process is asked to call (:func:`call_there`), such
as what loads kernels, is loaded in all later forks.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from mc2papers.handing_over import HEADER, VARIABLE

#: what most jobs need
_MODULES = (
    "snakemake.script",
    "mc2core.inference.running.files",
    "mc2core.posterior.scores",
    "mc2papers.baselines.files",
    "mc2papers.targets",
    "mc2papers.uai2016.curves",
)
#: what some need, loaded while there is nothing to fork
_MORE = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "mc2core.inference.gibbs.engine",
    "mc2core.inference.svi.engine",
    "mc2core.inference.fastex.engine",
    "mc2papers.datasets.catalogue",
    "mc2papers.report.tables",
    "mc2papers.report.style",
    "sklearn.cluster",
    "sklearn.decomposition",
    "sklearn.manifold",
)
#: of the socket for what the process itself is to call, in the folder of the other
_CALLS = "calls"
_server: subprocess.Popen[bytes] | None = None


def start() -> None:
    """Start the process that forks, if none is named yet; it ends with this one. Only on Linux: elsewhere forks are not
    safe."""
    global _server
    if sys.platform == "linux" and VARIABLE not in os.environ:
        os.environ[VARIABLE], _server = serve()


def serve() -> tuple[str, subprocess.Popen[bytes]]:
    """(path of its socket, process) of a new one that forks; it ends when its standard input is closed."""
    folder = tempfile.mkdtemp(prefix="mc2-")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as calls:
        numbers = []
        for one, name in ((listener, "socket"), (calls, _CALLS)):
            one.bind(f"{folder}/{name}")
            one.listen(1024)
            numbers.append(one.fileno())
        command = [sys.executable, "-m", "mc2papers.forking", *map(str, numbers), folder]
        # the end of its standard input tells it that who started it has ended, however that did
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=numbers)
    return f"{folder}/socket", process


def call_there(function: str, *arguments: Any) -> None:
    """Have the process that jobs are forked from call a function, and wait for it; nothing where there is none.

    It forks no job meanwhile, and its result is lost, as are errors: later forks have what was loaded for it.

    Parameters
    ----------
    function : "module:name"
    arguments : as JSON holds them
    """
    if VARIABLE not in os.environ:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(Path(os.environ[VARIABLE]).with_name(_CALLS)))
        connection.sendall(json.dumps([function, *arguments]).encode())
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)


def _called(connection: socket.socket) -> None:
    """Do what :func:`call_there` asks for. What is logged of it is of no job."""
    logging.disable()
    with suppress(BaseException), connection.makefile() as stream:  # signals raise in it, too
        function, *arguments = json.load(stream)
        module, _, name = function.partition(":")
        getattr(importlib.import_module(module), name)(*arguments)
    logging.disable(logging.NOTSET)


def _serve(listener: socket.socket, calls: socket.socket) -> dict[str, Any] | None:
    """Fork for each script that is handed over: in a fork, returns what to run; here, None at the end of stdin."""
    more = list(_MORE)
    while True:
        ready, _, _ = select.select([listener, calls, sys.stdin], [], [], 0 if more else None)
        if sys.stdin in ready:
            return None
        if calls in ready:
            connection, _ = calls.accept()
            with connection:
                _called(connection)
        elif listener in ready:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    calls.close()
                    return _watched(connection)
        else:
            importlib.import_module(more.pop(0))


def _watched(connection: socket.socket) -> dict[str, Any]:
    """Fork once more: returns what to run in the fork. This process passes signals on, and how the fork ended back."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    header, outputs, _, _ = socket.recv_fds(connection, HEADER, 2)
    request = b""
    while len(request) < int(header or 1):
        part = connection.recv(1 << 16)
        if not part:  # the script was killed while it handed itself over
            os._exit(1)
        request += part
    child = os.fork()
    if child == 0:
        connection.close()
        for number, output in enumerate((os.open(os.devnull, os.O_RDONLY), *outputs)):
            os.dup2(output, number)
        asked: dict[str, Any] = json.loads(request)
        return asked

    of_child = os.pidfd_open(child)

    def listen() -> None:
        connection.recv(1)  # a byte for SIGTERM, none where the script has ended
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(of_child, signal.SIGTERM)

    threading.Thread(target=listen, daemon=True).start()
    _, status = os.waitpid(child, 0)
    connection.send(b"%d" % status)
    os._exit(0)


def main() -> None:
    """Load what jobs need, and fork."""
    *numbers, folder = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks leave no zombies
    for name in _MODULES:
        importlib.import_module(name)
    asked = _serve(*(socket.socket(fileno=int(number)) for number in numbers))
    if asked is None:
        shutil.rmtree(folder)
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    script = asked["script"]
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv[:], sys.path[0] = [script], str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
