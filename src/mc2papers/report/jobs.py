"""Draw a Gantt chart of the jobs of a workflow run, from the records of Snakemake."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mc2core.base.checks import counted
from mc2papers.report.palette import CLUSTERS

#: kinds of jobs by the folder of their logs; jobs of all other folders make tables and figures
KINDS = {
    "compilation": ("warm_kernels",),
    "data": ("fetch", "shards", "corpora"),
    "fits": ("fits", "snapshots", "sizes", "speed", "batches", "epochs", "times"),
    "scores": ("scores", "curves"),
}
SHOWN = "tables, figures, pages"
_COLOUR = dict(zip((*KINDS, SHOWN), CLUSTERS, strict=False))
_IDLE = 60.0  # after so many seconds without a job, the next job belongs to another run
_WIDTH, _LANE, _AXIS = 1200, 24, 22  # of the chart, in pixels
_LETTER = 6.2  # pixels that a letter takes
_STEPS = (5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)


class Job(NamedTuple):
    """A finished job, with the path of its log as name, and with its times in seconds since 1970."""

    name: str
    start: float
    end: float

    @property
    def kind(self) -> str:
        folder = self.name.partition("/")[0]
        return next((kind for kind, folders in KINDS.items() if folder in folders), SHOWN)

    @property
    def seconds(self) -> float:
        return self.end - self.start


def read_jobs(records: str | os.PathLike[str], logs: str | os.PathLike[str]) -> list[Job]:
    """Return the jobs with a log below ``logs``, in the order of their starts, from Snakemake's folder ``records``.

    There is one record per output file. A job lasts from the first start to the last end in the records of its files.
    The list is empty if Snakemake stores no records (``--drop-metadata``).
    """
    times: dict[str, tuple[float, float]] = {}
    for path in Path(records).rglob("*"):
        if not path.is_file():
            continue
        record = json.loads(path.read_text(encoding="utf-8"))
        log = Path(next(iter(record["log"] or ()), ""))
        if log.is_relative_to(logs) and log.is_file():
            name = str(log.relative_to(logs).with_suffix(""))
            start, end = times.get(name, (record["starttime"], record["endtime"]))
            times[name] = min(start, record["starttime"]), max(end, record["endtime"])
    return sorted((Job(name, *span) for name, span in times.items()), key=lambda job: (job.start, job.name))


def chart(jobs: Sequence[Job]) -> str:
    """Return the HTML of the chart, and a table of the kinds of jobs.

    Each job is a bar; jobs that ran at the same time are in different lanes. Times of a minute or more without jobs,
    for example between two runs, are omitted. ``jobs`` are in the order of their starts.
    """
    if not jobs:
        return ""
    lanes, cuts, shifts, gone, last = [], [], [], 0.0, jobs[0].start
    free: list[float] = []  # when each lane's last job ended
    for job in jobs:
        if job.start - last > _IDLE:
            cuts.append(last - gone)
            gone += job.start - last
        last = max(last, job.end)
        shifts.append(gone)
        lane = next((i for i, end in enumerate(free) if end <= job.start), len(free))
        free[lane : lane + 1] = [job.end]
        lanes.append(lane)
    first, total = jobs[0].start, last - gone - jobs[0].start
    scale, height = _WIDTH / max(total, 1e-9), len(free) * _LANE
    bars = [
        _bar(job, (job.start - shift - first) * scale, lane * _LANE, job.seconds * scale)
        for job, lane, shift in zip(jobs, lanes, shifts, strict=True)
    ]
    marks = [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" stroke="currentColor" stroke-dasharray="4"/>'
        for x in ((cut - first) * scale for cut in cuts)
    ]
    summary = f"{counted(len(jobs), 'jobs')} took {_format(sum(job.seconds for job in jobs))} in total, "
    summary += f"{_format(total)} of elapsed time, with at most {len(free)} at once"
    return (
        f"<p>{summary}. Later jobs are not included"
        f"{'; dashed lines mark pauses between runs' if cuts else ''}.</p>"
        f'<div class="scroll"><svg role="img" aria-label="{summary}" viewBox="0 0 {_WIDTH} {height + _AXIS}" '
        f'width="{_WIDTH}" height="{height + _AXIS}" font-size="11">{"".join(bars)}{"".join(marks)}'
        f"{_axis(total, scale, height)}</svg></div>{_table(jobs)}"
    )


def _bar(job: Job, x: float, y: float, width: float) -> str:
    letters = int((width - 6) / _LETTER)
    # whole names only; the shorter one lacks the kind, which is the bar's colour
    text = next((one for one in (job.name, job.name.partition("/")[2]) if 0 < len(one) <= letters), "")
    label = f'<text x="{x + 3:.1f}" y="{y + 15}" fill="#fff">{html.escape(text)}</text>' if text else ""
    return (
        f'<g><title>{html.escape(job.name)}: {job.seconds:.1f} s</title><rect x="{x:.1f}" y="{y + 1}" '
        f'width="{max(width - 0.5, 0.5):.1f}" height="{_LANE - 2}" fill="{_COLOUR[job.kind]}"/>{label}</g>'
    )


def _axis(total: float, scale: float, height: float) -> str:
    """Return the axis below the lanes, with about 12 labels at most."""
    step = next((step for step in _STEPS if total / step <= 12), _STEPS[-1])
    return "".join(
        f'<text x="{second * scale:.1f}" y="{height + 15}" fill="currentColor">{_format(second)}</text>'
        for second in range(0, int(total * 0.97) + 1, step)
    )


def _table(jobs: Sequence[Job]) -> str:
    rows = []
    for kind, colour in _COLOUR.items():
        group = [job for job in jobs if job.kind == kind]
        if group:
            longest = max(group, key=lambda job: job.seconds)
            rows.append(
                f'<tr><td><svg width="12" height="12"><rect width="12" height="12" fill="{colour}"/></svg> {kind}</td>'
                f"<td>{len(group)}</td><td>{_format(sum(job.seconds for job in group))}</td>"
                f"<td>{html.escape(longest.name)}, {_format(longest.seconds)}</td></tr>"
            )
    head = "<thead><tr><th>kind</th><th>jobs</th><th>time of jobs</th><th>longest</th></tr></thead>"
    return f'<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _format(seconds: float) -> str:
    """Return a time as text, such as "0.4 s", "46 s", "6:37" or "2:06:37"."""
    if seconds < 60:
        return f"{seconds:.1f} s" if 0 < seconds < 9.95 else f"{seconds:.0f} s"
    minutes, remainder = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes}:{remainder:02}"
