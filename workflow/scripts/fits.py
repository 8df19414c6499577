"""Fit runs of the experiments table with all given seeds, and score them if estimators are given."""

from pathlib import Path

from mc2core.base.logs import job
from mc2papers.fits import fit_runs

with job(snakemake.log[0], snakemake.threads):
    # taken from results/fits/<run>/<seed>/<file>, because the prefix of a module may come before results
    results = Path(snakemake.output[0]).parents[3]
    fit_runs(
        results,
        snakemake.params.runs,
        checkpoint_every=snakemake.params.checkpoint_every,
        threads=snakemake.threads,
    )
