"""Fetch one source file of datasets.tsv to results/sources."""

from mc2core.base.logs import job
from mc2papers.datasets.download.fetch import fetch, read_catalogue

with job(snakemake.log[0]):
    wanted = snakemake.wildcards.dataset, snakemake.wildcards.file
    sources = {(one.dataset, one.name): one for one in read_catalogue(snakemake.params.catalogue)}
    # the local data folder is not a parameter, because a file with the right checksum is the same from any source
    fetch(sources[wanted], snakemake.output[0], data_folder=snakemake.config["data_folder"] or None)
