"""Compile every kernel that an engine's fits and scores use in this configuration, by fits to a tiny corpus."""

from mc2core.base.logs import job
from mc2core.compute.spark import missing
from mc2papers import configuration
from mc2papers.warm_kernels import warm_kernels

with job(snakemake.log[0]):
    config, engine = snakemake.config, snakemake.wildcards.engine
    chosen = configuration.choose_datasets(config)
    runs = configuration.read_experiments(
        snakemake.params.table, configuration.read_yaml(snakemake.params.schema), config, chosen
    )
    runs, _ = configuration.leave_out_spark(runs, config, missing())
    warm_kernels(engine, configuration.variants(runs, engine), config["contexts"], config["estimators"])
