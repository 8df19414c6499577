"""Write the reproduction report of a run, with its verdicts, tables and figures."""

from pathlib import Path

import pandas as pd

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.inference.running.summary import sentence_of_all
from mc2papers.report.jobs import read_jobs
from mc2papers.report.reproduction_report import write_reproduction_report


def found(paths, path):
    """Return the actual path of a file, which may begin with the prefix of a module."""
    return next(one for one in paths if one == path or one.endswith(f"/{path}"))


def found_by_run(paths):
    """Return a sentence per run on the inferred numbers of its fits, and on changes of these numbers at the end."""
    about = {}
    for path in dict.fromkeys(paths):
        about.setdefault(Path(path).parts[-3], []).append(storage.read_json(path).get("inferred", {}))
    return {run: sentence_of_all(several) for run, several in about.items()}


with job(snakemake.log[0]):
    of_runs = found_by_run([*snakemake.input.fits, *snakemake.input.own])
    entries = [
        entry
        | {
            "files": {kind: found(snakemake.input, path) for kind, path in entry["files"].items()},
            "runs": ["; ".join(filter(None, (said, of_runs.get(run)))) for run, said in entry["runs"].items()],
        }
        for entry in snakemake.params.entries
    ]
    own = {
        f"{run}: clusters, topics and documents": (f"{found(snakemake.input, folder)}/index.html", of_runs[run])
        for run, folder in snakemake.params.own.items()
    }
    claims = pd.read_csv(snakemake.input.claims)
    ran = read_jobs(".snakemake/metadata", Path(snakemake.log[0]).parent)
    write_reproduction_report(snakemake.output[0], entries, claims, snakemake.params.about, own, ran)
