"""Measure the times of FastEx on simulated articles, by number of clusters and bits."""

from mc2core.base import storage
from mc2core.base.logs import job
from mc2papers.nips2012.times import time_documents

with job(snakemake.log[0]):
    params = snakemake.params
    times = time_documents(params.settings, **params.grid, n_seeds=params.n_seeds)
    with storage.replacing(snakemake.output[0]) as stream:
        times.to_csv(stream, index=False)
