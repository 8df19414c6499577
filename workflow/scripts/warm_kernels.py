"""Compile, on a tiny corpus, every kernel that fits and scores of the plan use."""

from mc2core.base.logs import job
from mc2core.compute.spark import missing
from mc2papers import plan
from mc2papers.warm_kernels import warm_kernels


def main(snakemake):
    with job(snakemake.log[0]):
        config, engine = snakemake.config, snakemake.wildcards.engine
        chosen = plan.choose_datasets(config)
        runs = plan.read_experiments(snakemake.params.sheet, plan.read_yaml(snakemake.params.schema), config, chosen)
        runs, _ = plan.leave_out_spark(runs, config, missing())
        warm_kernels(engine, plan.variants(runs, engine), config["contexts"], config["estimators"])


main(snakemake)  # noqa: F821  (given by the workflow)
