"""How a script of a job hands itself over to the process that jobs are forked from (:mod:`mc2papers.forking`).

A script does so in its first line. Snakemake puts one before it that loads what takes longer than many jobs. So the
workflow has this file run scripts, by a Python that loads next to nothing: ``python -I -S handing_over.py python X``
hands over a script X that would do so itself, and runs another one as it was. It imports the standard library alone.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

#: names the socket
VARIABLE = "MC2_FORKING"
HEADER = 10  # bytes that hold the length of what follows
_CALL = b"\nhand_over()"


def hand_over(script: str | None = None) -> None:
    """Have a script, that which runs, run in a fork, and exit as that does; return where nothing takes it.

    Without a name in the environment, as on the nodes of a cluster, nothing does.
    """
    path = os.environ.pop(VARIABLE, None)
    if path is None:
        return
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        return
    # Ctrl-C reaches the fork by itself, as part of the group
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: connection.send(b"t"))
    asked = {"script": script or sys.argv[0], "folder": os.getcwd(), "environment": dict(os.environ)}
    request = json.dumps(asked).encode()
    socket.send_fds(connection, [b"%*d" % (HEADER, len(request))], [1, 2])
    connection.sendall(request)
    answer = connection.recv(HEADER)
    if not answer:
        raise SystemExit("Error: the process that jobs are forked from was ended")
    code = os.waitstatus_to_exitcode(int(answer))
    if code < 0:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    # nothing is left to be done here, and nothing was begun
    os._exit(code)


def prefix() -> str:
    """What is put before the command that runs a script, as Snakemake's ``shell.prefix`` takes it."""
    from shlex import join

    return join([sys.executable, "-I", "-S", __file__]).replace("{", "{{").replace("}", "}}") + " "


def main(command: list[str]) -> None:
    """Hand over the script that ends the command, if it would do so itself; else become the command."""
    with open(command[-1], "rb") as script:
        is_handed_over = _CALL in script.read()
    if is_handed_over:
        hand_over(command[-1])
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
