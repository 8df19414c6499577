"""What jobs ask for: threads fixed by the plan, memory that grows with the attempt, a machine to oneself."""

import itertools

import pytest
from workflow_calls import snakemake

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
def test_threads_do_not_depend_on_how_snakemake_is_called(checkout):
    """A job of a cluster is Snakemake called anew with all cores of its node: it has to ask for what it was given."""
    (checkout / "threads.smk").write_text(THREADS)
    found = []
    for called in (["--cores", "1"], ["--cores", "7"], ["--cores", "all", "--mode", "subprocess", "--force"]):
        code, output = snakemake(checkout, "-n", "--snakefile", "threads.smk", *called, "--", "icml2014_figure1")
        assert code == 0, output
        found.append(threads_of_rules(output))
    assert len(found[0]) > 30
    assert "nips2012_times takes 1 threads" in found[0]
    assert found[0] == found[1] == found[2]


@pytest.mark.workflow
def test_timed_job_runs_alone_and_each_attempt_asks_for_twice_the_memory(checkout):
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
