"""Fit corpora whose contexts tell a known part of the classes, with and without them."""

from mc2core.base import storage
from mc2core.base.logs import job
from mc2papers.icml2014.context_strength_fits import gains_of_contexts


def main(snakemake):
    with job(snakemake.log[0], snakemake.threads):
        params = snakemake.params
        rows = gains_of_contexts(params.runs, **params.study, threads=snakemake.threads)
        with storage.replacing(snakemake.output[0]) as stream:
            rows.to_csv(stream, index=False)


main(snakemake)  # noqa: F821  (given by the workflow)
