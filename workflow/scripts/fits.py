"""Fit runs of the experiments table with their seeds, and score them if asked to."""

from pathlib import Path

from mc2core.base.logs import job
from mc2papers.fits import fit_runs


def main(snakemake):
    with job(snakemake.log[0], snakemake.threads):
        # from results/fits/<run>/<seed>/<file>: a module may have put a folder before it
        results = Path(snakemake.output[0]).parents[3]
        fit_runs(
            results,
            snakemake.params.runs,
            checkpoint_every=snakemake.params.checkpoint_every,
            threads=snakemake.threads,
        )


main(snakemake)  # noqa: F821  (given by the workflow)
