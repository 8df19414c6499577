"""What jobs ask for: threads fixed by the configuration, memory that grows with the attempt, a machine to oneself."""

import itertools
import os
import subprocess

import pytest
from helpers.workflow_calls import ROOT, snakemake

THREADS = """
include: "Snakefile"
for one in workflow.rules:
    print(f"{one.name} takes {one.resources['_cores'].value} threads", file=sys.stderr)
"""
JOBS = """
configfile: "config/config.yaml"
include: "workflow/rules/common.smk"
rule all:
    input: "timed", expand("other-{i}", i=range(4))
rule other:
    output: "other-{i}"
    resources: **takes(10)
    shell: "date +%s.%N > times-{wildcards.i}; sleep 1; date +%s.%N >> times-{wildcards.i}; touch {output}"
rule timed:
    output: "timed"
    resources: **takes(10, alone=True)
    retries: 2
    shell:
        "echo {resources.mem_mb} >> memory; date +%s.%N >> times-alone; sleep 1; date +%s.%N >> times-alone; "
        "[ $(wc -l < memory) = 3 ] && touch {output}"
"""


def threads_of_rules(output):
    return sorted(line for line in output.splitlines() if line.endswith(" threads") and " takes " in line)


@pytest.mark.workflow
@pytest.mark.slow
def test_threads_do_not_depend_on_how_snakemake_is_called(checkout):
    """A job of a cluster is Snakemake called anew with all cores of its node: it has to ask for what it was given."""
    (checkout / "threads.smk").write_text(THREADS)
    found = []
    for called in (["--cores", "7"], ["--cores", "all", "--mode", "subprocess", "--force"]):
        code, output = snakemake(checkout, "-n", "--snakefile", "threads.smk", *called, "--", "icml2014_figure1")
        assert code == 0, output
        found.append(threads_of_rules(output))
    assert len(found[0]) > 30
    assert "nips2012_times takes 1 threads" in found[0]
    assert found[0] == found[1]


@pytest.mark.workflow
@pytest.mark.slow
def test_timed_job_runs_alone_and_attempts_ask_for_more_memory(checkout):
    (checkout / "jobs.smk").write_text(JOBS)
    code, output = snakemake(checkout, "--snakefile", "jobs.smk", "--cores", "8", "--", "all")
    assert code == 0, output
    assert (checkout / "memory").read_text().split() == ["10", "20", "40"]
    others = [tuple(map(float, (checkout / f"times-{i}").read_text().split())) for i in range(4)]
    times = list(map(float, (checkout / "times-alone").read_text().split()))
    for begun, ended in zip(times[::2], times[1::2], strict=True):
        assert all(last <= begun or first >= ended for first, last in others)
    # jobs that are not timed run side by side
    assert any(one[0] < other[1] and other[0] < one[1] for one, other in itertools.combinations(others, 2))


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ("JobId=7 JobName=fit JobState=COMPLETED Reason=None", "success"),
        ("JobId=7 JobName=fit JobState=PENDING Reason=Priority", "running"),
        ("JobId=7 JobName=fit JobState=NODE_FAIL Reason=NodeDown", "failed"),
        ("JobId=7 JobName=fit JobState=OUT_OF_MEMORY Reason=OutOfMemory", "failed"),
        ("slurm_load_jobs error: Invalid job id specified", "failed"),
        # or the job would be started a second time beside itself
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", "running"),
    ],
)
def test_status_of_a_job_in_the_words_of_snakemake(tmp_path, answer, word):
    program = tmp_path / "scontrol"
    program.write_text(f"#!/bin/sh\necho '{answer}' >&{2 if 'error' in answer else 1}\n")
    program.chmod(0o755)
    status = ROOT / "workflow/profiles/cluster-generic/status.sh"
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run([status, "7"], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{word}\n"
