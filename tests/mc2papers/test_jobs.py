"""What the time of a run went into: records of a workflow that Snakemake ran, and their chart."""

import json
import re
import subprocess
import sys

import pytest

from mc2papers.report.jobs import Job, chart, read_jobs

SNAKEFILE = """
rule all:
    input: "results/b.txt"
rule a:
    output: "results/a.txt", "results/a2.txt"
    log: "results/logs/fits/a/0.log"
    shell: "sleep 0.3; touch {output} {log}"
rule b:
    input: "results/a.txt"
    output: "results/b.txt"
    log: "results/logs/scores/b.log"
    shell: "touch {output} {log}"
rule other:
    output: "results/other.txt"
    log: "elsewhere/other.log"
    shell: "touch {output} {log}"
"""


def test_records_of_snakemake_are_read(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--workflow-profile", "none", "all"]
    done = subprocess.run([*command, "results/other.txt"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # logs are named as in the workflow, from its folder
    script = (
        "import json; from mc2papers.report.jobs import read_jobs; "
        "print(json.dumps(read_jobs('.snakemake/metadata', 'results/logs')))"
    )
    found = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    jobs = [Job(*one) for one in json.loads(found.stdout)]
    assert [job.name for job in jobs] == ["fits/a/0", "scores/b"]
    assert [job.kind for job in jobs] == ["fits", "scores"]
    assert 0.3 <= jobs[0].seconds < 5
    assert jobs[0].end <= jobs[1].start
    assert read_jobs(tmp_path / "none", "results/logs") == []


def test_chart_has_a_bar_per_job_in_as_many_lanes_as_ran_at_once():
    jobs = [
        Job("warm_kernels/gibbs", 0, 40),
        Job("fits/<a>", 0, 10),
        Job("scores/a", 10, 20),
        Job("uai2016/table", 40, 50),
        Job("fits/later", 1050, 1100),
    ]
    page = chart(jobs)
    assert "5 jobs took 2:00 in total, 1:40 of elapsed time, with at most 2 at once." in page
    assert "dashed lines mark pauses between runs" in page
    bars = re.findall(r'<title>([^<]*)</title><rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"', page)
    assert [title for title, *_ in bars] == [
        "warm_kernels/gibbs: 40.0 s", "fits/&lt;a&gt;: 10.0 s", "scores/a: 10.0 s", "uai2016/table: 10.0 s",
        "fits/later: 50.0 s",
    ]  # fmt: skip
    # 12 pixels a second: the second run follows the first, which ended after 50 seconds
    assert [float(x) for _, x, *_ in bars] == [0, 0, 120, 480, 600]
    assert [float(width) for *_, width in bars] == pytest.approx([480, 120, 120, 120, 600], abs=1)
    assert [int(y) for _, _, y, _ in bars] == [1, 25, 25, 1, 1]
    assert re.findall(r"<line x1=.([\d.]+)", page) == ["600.0"]
    rows = re.findall(r"</svg> ([^<]*)</td><td>(\d+)</td><td>([^<]*)</td><td>([^<]*)</td>", page)
    assert rows == [
        ("compilation", "1", "40 s", "warm_kernels/gibbs, 40 s"),
        ("fits", "2", "1:00", "fits/later, 50 s"),
        ("scores", "1", "10 s", "scores/a, 10 s"),
        ("tables, figures, pages", "1", "10 s", "uai2016/table, 10 s"),
    ]


def test_bars_have_whole_names_or_none():
    page = chart(
        [Job("fits/nips-document-level/0", 0, 80), Job("scores/nips", 80, 93), Job("scores/nips-title", 93, 97)]
    )
    assert re.findall(r'fill="#fff">([^<]*)<', page) == ["fits/nips-document-level/0", "scores/nips"]
    narrow = chart([Job("fits/long", 0, 90), Job("scores/nips", 90, 95), Job("scores/nips-title", 95, 100)])
    assert re.findall(r'fill="#fff">([^<]*)<', narrow) == ["fits/long", "nips"]


def test_one_run_is_not_cut_and_none_has_no_chart():
    assert "dashed" not in chart([Job("fits/a", 5.0, 7.0), Job("fits/b", 60.0, 61.5)])
    assert chart([]) == ""
