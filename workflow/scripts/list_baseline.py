"""List the files of PubMed's current baseline."""

from mc2core.base.logs import job
from mc2papers.datasets.download.listing import list_baseline

with job(snakemake.log[0]):
    list_baseline(snakemake.output[0], data_folder=snakemake.config["data_folder"] or None)
