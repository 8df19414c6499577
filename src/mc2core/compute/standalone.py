"""A standalone cluster of Spark on this machine, from pyspark alone: a master, and workers of one core each; and what
Spark needs at all."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from mc2core.base import extras

_SECONDS = 120.0
_SET_PARENT_DEATH_SIGNAL = 1  # of prctl, on Linux


class SparkFailed(OSError):
    """Spark could not do its part; one sentence says why."""


def missing() -> str | None:
    """A sentence on what is missing to run Spark here and how to get it, or None."""
    if lack := extras.lacking("pyspark", extra="spark", purpose="Spark"):
        return lack
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and (Path(home) / "bin/java").is_file())):
        return "Spark needs Java 17, which is not on the PATH or in JAVA_HOME; Debian: openjdk-17-jre-headless"
    return None


class Standalone:
    """Used as a context manager: all that it starts is ended with it.

    Parameters
    ----------
    folder : for logs and the workers' folders
    n_workers : int; worker i (from 1) has the address 127.0.0.i, so that Spark takes each for a host of its own
    memory : of each worker, as Spark writes it
    environment : of the workers, in addition to this process'
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        n_workers: int = 2,
        memory: str = "2g",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if lack := missing():
            raise SparkFailed(lack)
        import pyspark

        self.folder, self.memory, self.n_workers = Path(folder).absolute(), memory, n_workers
        self.program = Path(pyspark.__file__).parent / "bin/spark-class"
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(self.program.parents[1]),
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            **(environment or {}),
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port = 0

    @property
    def master(self) -> str:
        """For ``spark.master``."""
        return f"spark://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.port = _free_port()
        try:
            self._start("master", "127.0.0.1", "master.Master", "--port", str(self.port))
            self._wait_for("master", "I have been elected leader", 1)
            for i in range(1, self.n_workers + 1):
                self.add_worker(i)
            self._wait_for("master", "Registering worker", self.n_workers)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def add_worker(self, i: int, environment: Mapping[str, str] | None = None) -> None:
        """Start worker ``i``."""
        place = self.folder / f"worker{i}"
        (place / "local").mkdir(parents=True, exist_ok=True)
        more = {"SPARK_LOCAL_DIRS": str(place / "local"), **(environment or {})}
        limits = "--cores", "1", "--memory", self.memory, "--work-dir", str(place / "work")
        self._start(f"worker{i}", f"127.0.0.{i}", "worker.Worker", *limits, self.master, environment=more)

    def kill_worker(self, i: int) -> None:
        """``kill -9`` of worker ``i``."""
        self.processes[f"worker{i}"].kill()
        self.processes[f"worker{i}"].wait()

    def _start(self, name: str, host: str, kind: str, *more: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(self.program), f"org.apache.spark.deploy.{kind}", "--host", host, "--webui-port", "0", *more]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                env=self.environment | {"SPARK_LOCAL_IP": host} | dict(environment or {}),
            )

    def _wait_for(self, name: str, text: str, count: int) -> None:
        log, end = self.folder / f"{name}.log", time.monotonic() + _SECONDS
        while log.read_text(errors="replace").count(text) < count:
            if time.monotonic() > end or self.processes[name].poll() is not None:
                last = " ".join(log.read_text(errors="replace").split("\n")[-3:])
                raise SparkFailed(f"the standalone cluster did not start within {_SECONDS:.0f} s: {last.strip()}")
            time.sleep(0.1)


def asked_for(master: str) -> int | None:
    """The number of workers in ``standalone[N]``, or None for another master."""
    found = re.fullmatch(r"standalone\[([1-9][0-9]?)\]", master)
    return int(found[1]) if found else None


def _end_with_parent() -> None:
    """In a new process: to be killed when the one that started it ends, however that ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
