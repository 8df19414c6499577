"""A Slurm cluster of several nodes on this one machine, for tests: as root, on loopback, in a folder of its own.

Debian's Slurm looks for its configuration in /etc/slurm, and a plugin of Snakemake drops the variable that would name
another place: so that file is linked while the cluster is up. Both this and the installation change the machine,
hence they are refused unless the environment says ``CI=true``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

LINK = Path("/etc/slurm/slurm.conf")
NO_SERVICES = Path("/usr/sbin/policy-rc.d")  # Debian's way to say which services an installation may start
PACKAGES = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
PR_SET_CHILD_SUBREAPER = 36
SECONDS_TO_START = 30

CONFIGURATION = """\
ClusterName=mc2
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.txt
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class ClusterError(RuntimeError):
    """The cluster cannot be installed or started, and why."""


def allowed() -> None:
    """Refuse to change a machine that was not set aside for it."""
    if os.environ.get("CI") != "true":
        raise ClusterError(f"installing Slurm and linking {LINK} change this machine: set CI=true where that is wanted")
    if os.geteuid() != 0:
        raise ClusterError("Slurm is installed and started as root")


def install() -> None:
    """Install what is missing of Slurm from Debian's packages; nothing is started by that."""
    missing = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if not missing:
        return
    allowed()
    ours = not NO_SERVICES.exists()
    if ours:
        NO_SERVICES.write_text("#!/bin/sh\nexit 101\n")
        NO_SERVICES.chmod(0o755)
    try:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(
            ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "slurm-wlm-basic-plugins", *missing],
            check=True,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
            stdout=subprocess.DEVNULL,
        )
    finally:
        if ours:
            NO_SERVICES.unlink()


class Cluster:
    """Started on entering a ``with`` block, ended with all its jobs on leaving it.

    Parameters
    ----------
    nodes : names of the nodes
    cpus, memory : processors and MB that each node claims to have, whatever the machine has
    """

    def __init__(self, nodes: tuple[str, ...] = ("n1", "n2"), cpus: int = 2, memory: int = 8000):
        self.nodes, self.cpus, self.memory = nodes, cpus, memory
        self.folder = Path()
        self.daemons: dict[str, psutil.Popen] = {}

    def __enter__(self) -> Cluster:
        allowed()
        _end_earlier_cluster()
        self.folder = Path(tempfile.mkdtemp(prefix="mc2-slurm-"))  # short: a socket's path has at most 107 characters
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def configuration(self) -> Path:
        return self.folder / "slurm.conf"

    def finished(self) -> list[dict[str, str]]:
        """What Slurm wrote of each job that ended: JobId, JobState, NodeList and others."""
        file = self.folder / "jobs.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return [dict(part.split("=", 1) for part in line.split() if "=" in part) for line in lines]

    def log(self) -> str:
        """What the nodes wrote of their jobs."""
        return "".join((self.folder / "log" / f"slurmd.{node}.log").read_text() for node in self.nodes)

    def running(self, node: str) -> list[str]:
        """Numbers of the jobs that run on a node."""
        return self.call("squeue", "--noheader", "--states=R", f"--nodelist={node}", "--format=%i").split()

    def lose(self, node: str) -> None:
        """Take a node away with all that runs on it, as when its power goes."""
        _end(self.daemons.pop(node))
        self.call("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def call(self, *command: str) -> str:
        return subprocess.run(
            command, env=self.environment(), check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def environment(self) -> dict[str, str]:
        return os.environ | {"SLURM_CONF": str(self.configuration)}

    def stop(self) -> None:
        """End daemons and jobs, the last started first; take away the link and the folder."""
        for name in reversed(list(self.daemons)):
            _end(self.daemons.pop(name))
        if LINK.is_symlink() and LINK.readlink() == self.configuration:
            LINK.unlink()
        shutil.rmtree(self.folder)

    def _start(self) -> None:
        for part in ("log", "state", *(f"spool.{node}" for node in self.nodes)):
            (self.folder / part).mkdir()
        controller, *ports = _free_ports(1 + len(self.nodes))
        host = socket.gethostname().split(".")[0]
        size = f"CPUs={self.cpus} RealMemory={self.memory} State=UNKNOWN"
        nodes = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {size}"
            for node, port in zip(self.nodes, ports, strict=True)
        ]
        self.configuration.write_text(
            CONFIGURATION.format(folder=self.folder, host=host, port=controller, nodes="\n".join(nodes))
        )
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        LINK.parent.mkdir(exist_ok=True)
        LINK.symlink_to(self.configuration)

        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        files = {name: self.folder / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
        self._spawn(
            "munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={files['socket']}",
            f"--pid-file={files['pid']}", f"--log-file={files['log']}", f"--seed-file={files['seed']}",
        )  # fmt: skip
        self._wait(lambda: self._works("munge", f"--socket={files['socket']}", "--no-input"))
        self._spawn("slurmctld", "slurmctld", "-D", "-i")
        self._wait(lambda: self._works("scontrol", "ping"))
        for node in self.nodes:
            self._spawn(node, "slurmd", "-D", "-N", node)
        self._wait(lambda: set(self.call("sinfo", "-hN", "-tidle", "-o%N").split()) == set(self.nodes))

    def _spawn(self, name: str, *command: str) -> None:
        with open(self.folder / "log" / f"{name}.out", "w") as log:
            self.daemons[name] = psutil.Popen(
                command,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_adopt_orphans,
            )
        begun = {"pid": os.getpid(), "daemons": [[one.pid, one.create_time()] for one in self.daemons.values()]}
        (self.folder / "processes.json").write_text(json.dumps(begun | {"started": psutil.Process().create_time()}))

    def _works(self, *command: str) -> bool:
        return subprocess.run(command, env=self.environment(), capture_output=True, check=False).returncode == 0

    def _wait(self, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS_TO_START
        while not ready():
            if time.monotonic() > end:
                logs = [f"{log.name}: {log.read_text()[-500:]}" for log in sorted((self.folder / "log").iterdir())]
                raise ClusterError("Slurm does not start\n" + "\n".join(logs))
            time.sleep(0.1)


def _end_earlier_cluster() -> None:
    """End what a run left behind that was killed itself; a cluster of others, or one in use, is left alone."""
    if not (LINK.exists() or LINK.is_symlink()):
        return
    folder = LINK.readlink().parent if LINK.is_symlink() else None
    if folder is None or not folder.name.startswith("mc2-slurm-"):
        raise ClusterError(f"{LINK} is the configuration of another cluster")
    if (folder / "processes.json").exists():
        left = json.loads((folder / "processes.json").read_text())
        if _is_alive(left["pid"], left["started"]):
            raise ClusterError(f"process {left['pid']} runs such a cluster in {folder}")
        for pid, started in reversed(left["daemons"]):
            if _is_alive(pid, started):
                _end(psutil.Process(pid))
    LINK.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int, started: float) -> bool:
    """Whether this is still the process that had this number: numbers are given out again."""
    try:
        return psutil.Process(pid).create_time() == started and _is_running(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _adopt_orphans() -> None:
    """What a job leaves behind becomes a child of its node's daemon, so that it can be found and ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end(daemon: psutil.Process) -> None:
    """Kill a daemon and all below it: it is stopped first, so that it starts no more, and adopts until the last."""
    with contextlib.suppress(psutil.NoSuchProcess):
        daemon.suspend()
        while below := [one for one in daemon.children(recursive=True) if _is_running(one)]:
            for one in below:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            psutil.wait_procs(below, timeout=1)
        daemon.kill()
        daemon.wait(timeout=30)


def _free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
