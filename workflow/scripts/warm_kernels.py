"""Compile, on a tiny corpus, every kernel that fits and scores of the plan use."""

from mc2core.logs import job
from mc2core.runs import warm_kernels


def main(snakemake):
    with job(snakemake.log[0]):
        warm_kernels(snakemake.params.engines, snakemake.params.contexts, snakemake.params.estimators)


main(snakemake)  # noqa: F821  (given by the workflow)
