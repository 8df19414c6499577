"""The small configuration on a real Slurm with each cluster profile: a node is lost, a job outgrows its memory, and the
tables are those of a local run, seconds aside. Each profile makes the targets of ``TARGETS``.

    CI=true python tests/cluster/profiles.py --reference results

on a machine that may be changed: Slurm is installed where it is missing (see ``slurm.py``). Without ``--reference`` the
configuration is run locally first.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

from helpers.workflow_calls import copy_checkout  # noqa: E402
from reliability.compare import differences  # noqa: E402
from slurm import Cluster, install  # noqa: E402

CONFIGURATION = ["--configfile", "config/test.yaml"]
# as the README has it; statuses are asked for sooner than by default, since these jobs last seconds
ON_CLUSTER = {
    "slurm": [
        *("--profile", "workflow/profiles/slurm", "--default-resources", "mem_mb=2000", "runtime=60"),
        *("--slurm-init-seconds-before-status-checks", "1"),
    ],
    "cluster-generic": ["--profile", "workflow/profiles/cluster-generic", "--seconds-between-status-checks", "2"],
}
# With Slurm's profile, where a job starts Snakemake twice, a few jobs of every rule of fits and scores, Spark
# among them; with the other one a figure of many jobs.
TARGETS = {
    "slurm": [
        *("icml2014_figure2", "nips2012_table1", "uai2016_running_time", "uai2016_table3"),
        *("results/curves/nips.csv", "results/speed/nips-author-svi.csv", "results/sizes/icml2014.csv"),
        *(
            f"results/scores/{run}/0.json"
            for run in ("nips-words", "nips-document-level", "nuswide-kmeans", "aua-words-svi", "aua-lda")
        ),
    ],
    "cluster-generic": ["icml2014_figure2", "uai2016_figure3", "uai2016_table1", "nips2012_table1"],
}
SMALL_MB = 120  # less than any job takes, more than a quarter of it: attempts get 120, 240 and 480 MB
LOSE_AFTER = 12  # steps
TIME_LIMIT = 1800  # seconds of one run


class Failed(RuntimeError):
    """What did not hold."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, help="results of a local run of config/test.yaml")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cluster is stopped
    install()
    with tempfile.TemporaryDirectory(prefix="mc2-profiles-") as scratch:
        reference = arguments.reference or run_locally(Path(scratch) / "local")
        for profile in ON_CLUSTER:
            begun = time.monotonic()
            with Cluster() as cluster:
                print(f"{profile}, jobs: {run_on(cluster, profile, Path(scratch) / profile, reference)}", end="; ")
            print(f"the tables are those of the local run; {time.monotonic() - begun:.0f} s", flush=True)


def run_locally(folder: Path) -> Path:
    copy_checkout(folder)
    subprocess.run([sys.executable, "-m", "snakemake", "--cores", "2", *CONFIGURATION], cwd=folder, check=True)
    return folder / "results"


def run_on(cluster: Cluster, profile: str, folder: Path, reference: Path) -> str:
    """Run the configuration with a profile, take a node away in the middle, compare; what happened to jobs on the
    way."""
    copy_checkout(folder)
    ask_for_too_little(folder / "workflow" / "rules" / "score.smk", "curves")
    log = folder / "run.log"
    with open(log, "w") as stream:
        run = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *TARGETS[profile], *ON_CLUSTER[profile], *CONFIGURATION],
            cwd=folder,
            env=cluster.environment(),
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        try:
            lose_a_node(cluster, run, log)
            code = run.wait(timeout=TIME_LIMIT)
        except BaseException:
            run.kill()
            raise
    if code != 0:
        raise Failed(f"{profile}: Snakemake ends with {code}\n{log.read_text()}")
    ended = {job["JobId"]: job for job in cluster.finished()}
    states = [job["JobState"] for job in ended.values()]
    if "NODE_FAIL" not in states:
        raise Failed(f"{profile}: no job ended with the node that was lost")
    text = log.read_text()
    check_memory(profile, text, ended, cluster.log())
    check_alone(profile, text, ended)
    missing = f" is only in {reference}"  # of targets that this profile does not make
    found = [line for line in differences(reference, folder / "results") if not line.endswith(missing)]
    if found:
        raise Failed(f"{profile}: other results than those of the local run\n" + "\n".join(found))
    return ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))


def ask_for_too_little(rules: Path, rule: str) -> None:
    """Let the first attempt of a rule ask for less memory than it takes."""
    text, changed = re.subn(rf"(?s)(rule {rule}:.*?\*\*takes\()\d+", rf"\g<1>{SMALL_MB}", rules.read_text(), count=1)
    if not changed:
        raise Failed(f"{rules} has no memory of rule {rule} to change")
    rules.write_text(text)


def lose_a_node(cluster: Cluster, run: subprocess.Popen, log: Path) -> None:
    """Take the last node away once some steps are done and it is full: one of two jobs may end just before."""
    node = cluster.nodes[-1]
    end = time.monotonic() + TIME_LIMIT
    while run.poll() is None and time.monotonic() < end:
        done = [int(steps) for steps in re.findall(r"^(\d+) of \d+ steps", log.read_text(), re.M)]
        if done and done[-1] >= LOSE_AFTER and len(cluster.running(node)) == cluster.cpus:
            cluster.lose(node)
            return
        time.sleep(0.5)
    raise Failed(f"{node} was never full\n{log.read_text()}")


def attempts(text: str, what: str) -> list[str]:
    """Slurm's numbers of the attempts at one job, by the message of its rule."""
    job = re.search(rf"^Job (\d+): {what}", text, re.M)
    if job is None:
        raise Failed(f"the log has no job {what!r}")
    return re.findall(rf"^(?:Job|Submitted job) {job[1]} .*?(?:jobid|external jobid) '?(\d+)", text, re.M)


def check_memory(profile: str, text: str, ended: dict[str, dict[str, str]], nodes: str) -> None:
    """The job that outgrew its memory was ended for that, and came back with twice as much until it had enough."""
    numbers = attempts(text, "Scoring the snapshots on nips")
    tried = [ended[number] for number in numbers]
    asked = [int(re.search(r"mem=(\d+)M", job["Tres"])[1]) for job in tried]
    states = [job["JobState"] for job in tried]
    if asked != [SMALL_MB * 2**i for i in range(len(tried))] or states[-1] != "COMPLETED":
        raise Failed(f"{profile}: attempts at the job with too little memory asked for {asked} MB and ended {states}")
    if not re.search(rf"StepId={numbers[0]}\.\w+ exceeded memory limit", nodes):
        raise Failed(f"{profile}: job {numbers[0]} had enough memory in {SMALL_MB} MB")


def check_alone(profile: str, text: str, ended: dict[str, dict[str, str]]) -> None:
    """The timed job was given all processors of its node."""
    (*_, job) = [ended[number] for number in attempts(text, "Timing FastEx, alone on the machine")]
    if int(job["ProcCnt"]) != 2:
        raise Failed(f"{profile}: the timed job was given {job['ProcCnt']} processors of a node with 2")


if __name__ == "__main__":
    main()
