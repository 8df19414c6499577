"""Write the page of the run: verdicts, tables and figures."""

import pandas as pd

from mc2core.base.logs import job
from mc2core.experiments.report.face import write_face


def main(snakemake):
    with job(snakemake.log[0]):
        entries = [
            entry | {"files": {kind: found(snakemake.input, path) for kind, path in entry["files"].items()}}
            for entry in snakemake.params.entries
        ]
        own = {title: f"{found(snakemake.input, folder)}/index.html" for title, folder in snakemake.params.own.items()}
        claims = pd.read_csv(snakemake.input.claims)
        write_face(snakemake.output[0], entries, claims, snakemake.params.about, own)


def found(paths, path):
    """Where a file lies that a rule names: a module may have put a folder before it."""
    return next(one for one in paths if one == path or one.endswith(f"/{path}"))


main(snakemake)  # noqa: F821  (given by the workflow)
