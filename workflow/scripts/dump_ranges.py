"""Divide a multistream dump into byte ranges of whole streams."""

from mc2core.base import storage
from mc2core.base.logs import job
from mc2papers.datasets.dumps.wikipedia import multistream_ranges

with job(snakemake.log[0]):
    parts = int(snakemake.wildcards.parts)
    ranges = multistream_ranges(snakemake.input.index, snakemake.input.dump, parts)
    if len(ranges) < parts:
        raise ValueError(
            f"{snakemake.input.dump} can be cut into {len(ranges)} parts at most, but corpora, wikipedia, parts "
            f"is {parts}"
        )
    storage.write_json(snakemake.output[0], ranges)
