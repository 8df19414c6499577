"""Time FastEx on simulated articles, by number of clusters and bits."""

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.experiments.nips2012.times import time_documents


def main(snakemake):
    with job(snakemake.log[0]):
        times = time_documents(snakemake.params.settings, **snakemake.params.grid)
        with storage.replacing(snakemake.output[0]) as stream:
            times.to_csv(stream, index=False)


main(snakemake)  # noqa: F821  (given by the workflow)
