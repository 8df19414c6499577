"""Fetch the citations of PNAS in one year, from the local data folder or from E-utilities."""

from pathlib import Path

from mc2core.base.logs import job
from mc2papers.datasets.download.eutilities import fetch_year
from mc2papers.datasets.download.fetch import SourceFile, fetch

with job(snakemake.log[0]):
    target = Path(snakemake.output[0])
    data_folder = snakemake.config["data_folder"]
    if data_folder and (Path(data_folder) / "pubmed" / target.name).is_file():
        fetch(SourceFile("pubmed", target.name, f"pubmed/{target.name}", ()), target, data_folder=data_folder)
    else:
        fetch_year(target, int(snakemake.wildcards.year))
