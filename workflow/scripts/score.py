"""Score the fits of one run, and write one file per seed with all numbers for the tables."""

from pathlib import Path

from mc2core.base.logs import job
from mc2papers.fits import score_runs

with job(snakemake.log[0], snakemake.threads):
    score_runs(Path(snakemake.output[0]).parents[2], snakemake.params.runs)
