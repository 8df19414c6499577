"""A standalone cluster of Spark on this machine, whose workers are processes of their own, unlike local-cluster's."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

_SECONDS = 120.0
_SET_PARENT_DEATH_SIGNAL = 1  # of prctl, on Linux


class Standalone:
    """A master and workers 1 and 2, of one core and 700 MB each; all that it starts is ended with it.

    Worker i has the address 127.0.0.i, so that Spark takes each for a host of its own. Logs and the workers' files are
    below ``folder``.
    """

    def __init__(self, folder):
        import pyspark

        self.folder = folder
        self.program = Path(pyspark.__file__).parent / "bin/spark-class"
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(self.program.parents[1]),
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        self.processes = {}
        self.port = 0

    @property
    def master(self):
        """For ``spark.master``."""
        return f"spark://127.0.0.1:{self.port}"

    @property
    def workers(self):
        """Processes of the workers that run."""
        return [one for name, one in self.processes.items() if name != "master" and one.poll() is None]

    def __enter__(self):
        self.port = _free_port()
        try:
            self._start("master", "127.0.0.1", "master.Master", "--port", str(self.port))
            self._wait_for("master", "I have been elected leader", 1)
            self.add_worker(1)
            self.add_worker(2)
            self._wait_for("master", "Registering worker", 2)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, error, trace):
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def add_worker(self, i):
        """Start worker ``i``."""
        place = self.folder / f"worker{i}"
        (place / "local").mkdir(parents=True, exist_ok=True)
        options = "--cores", "1", "--memory", "700m", "--work-dir", str(place / "work"), self.master
        self._start(f"worker{i}", f"127.0.0.{i}", "worker.Worker", *options, SPARK_LOCAL_DIRS=str(place / "local"))

    def kill_worker(self, i):
        """``kill -9`` of worker ``i``."""
        self.processes[f"worker{i}"].kill()
        self.processes[f"worker{i}"].wait()

    def _start(self, name, host, kind, *options, **environment):
        command = [str(self.program), f"org.apache.spark.deploy.{kind}", "--host", host, "--webui-port", "0", *options]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                env=self.environment | {"SPARK_LOCAL_IP": host} | environment,
            )

    def _wait_for(self, name, text, count):
        log, end = self.folder / f"{name}.log", time.monotonic() + _SECONDS
        while log.read_text(errors="replace").count(text) < count:
            if time.monotonic() > end or self.processes[name].poll() is not None:
                last = " ".join(log.read_text(errors="replace").split("\n")[-3:])
                raise RuntimeError(f"the standalone cluster did not start within {_SECONDS:.0f} s: {last.strip()}")
            time.sleep(0.1)


def _end_with_parent():
    """In a new process: to be killed when the one that started it ends, however that ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
