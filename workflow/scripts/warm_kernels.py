"""Compile, on a tiny corpus, every kernel that fits and scores of the plan use."""

from mc2core.logs import job
from mc2core.runs import warm_kernels


def main(snakemake):
    with job(snakemake.log[0]):
        plan, engine = snakemake.config, snakemake.wildcards.engine
        warm_kernels({engine: plan["engines"][engine]}, plan["contexts"], plan["estimators"])


main(snakemake)  # noqa: F821  (given by the workflow)
