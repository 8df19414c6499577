"""Find the writer of the first revision of each article in a history dump."""

from mc2core.base.logs import job
from mc2papers.datasets.dumps.wikipedia import parse_first_writers

with job(snakemake.log[0]):
    parse_first_writers(snakemake.input[0], snakemake.output[0], allow_truncated=snakemake.params.allow_truncated)
