"""Unpack the visual words from NUS-WIDE's archive of features."""

from mc2core.base.logs import job
from mc2papers.datasets.formats.rar import unpack

with job(snakemake.log[0]):
    unpack(snakemake.input[0], snakemake.output)
