"""Compile, on a tiny corpus, every kernel that fits and scores of the plan use, and load it for the jobs after."""

from mc2core.base.logs import job
from mc2core.compute.spark import missing
from mc2papers import plan
from mc2papers.forking import call_there
from mc2papers.warm_kernels import warm_kernels


def main(snakemake):
    with job(snakemake.log[0]):
        config, engine = snakemake.config, snakemake.wildcards.engine
        chosen = plan.choose_datasets(config)
        runs = plan.read_experiments(snakemake.params.sheet, plan.read_yaml(snakemake.params.schema), config, chosen)
        runs, _ = plan.leave_out_spark(runs, config, missing())
        given = engine, plan.variants(runs, engine), config["contexts"], config["estimators"]
        warm_kernels(*given)
        call_there("mc2papers.warm_kernels:warm_kernels", *given)


main(snakemake)  # noqa: F821  (given by the workflow)
