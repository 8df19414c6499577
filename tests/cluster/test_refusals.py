"""The cluster of the tests changes a machine only where that was allowed, and never another cluster's."""

import json
import os
import sys

import psutil
import pytest
from helpers.workflow_calls import ROOT

sys.path.append(str(ROOT / "tests" / "cluster"))
import slurm


@pytest.fixture
def link(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "LINK", tmp_path / "etc" / "slurm.conf")
    slurm.LINK.parent.mkdir()
    return slurm.LINK


def test_nothing_is_installed_or_started_unless_ci_says_so(link, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(slurm.shutil, "which", lambda program: None)
    monkeypatch.setattr(slurm.subprocess, "run", lambda *_, **__: pytest.fail("a command was run"))
    monkeypatch.setattr(slurm.psutil, "Popen", lambda *_, **__: pytest.fail("a daemon was started"))
    for change in (slurm.install, slurm.Cluster().__enter__):
        with pytest.raises(slurm.ClusterError, match="change this machine: set CI=true where that is wanted"):
            change()
    assert not list(link.parent.iterdir())


def test_configuration_of_another_cluster_is_left_alone(link, tmp_path):
    link.write_text("ClusterName=theirs\n")
    with pytest.raises(slurm.ClusterError, match="is the configuration of another cluster"):
        slurm._end_earlier_cluster()
    link.unlink()
    (tmp_path / "site").mkdir()
    link.symlink_to(tmp_path / "site" / "slurm.conf")
    with pytest.raises(slurm.ClusterError, match="is the configuration of another cluster"):
        slurm._end_earlier_cluster()
    assert link.is_symlink()


def test_what_a_killed_run_left_is_ended_and_a_live_one_is_not(link, tmp_path):
    folder = tmp_path / "mc2-slurm-1"
    folder.mkdir()
    link.symlink_to(folder / "slurm.conf")
    command = [sys.executable, "-c", "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)"]
    daemon = psutil.Popen(command)
    while not (below := daemon.children()):
        pass
    ours, another = psutil.Process(), {"daemons": [[daemon.pid, daemon.create_time()]]}
    (folder / "processes.json").write_text(json.dumps(another | {"pid": os.getpid(), "started": ours.create_time()}))
    with pytest.raises(slurm.ClusterError, match=f"process {os.getpid()} runs such a cluster in"):
        slurm._end_earlier_cluster()
    assert daemon.poll() is None
    # the number was given out again since
    (folder / "processes.json").write_text(json.dumps(another | {"pid": os.getpid(), "started": 1.0}))
    slurm._end_earlier_cluster()
    assert daemon.poll() is not None
    assert not slurm._is_running(below[0])
    assert not link.is_symlink()
    assert not folder.exists()
