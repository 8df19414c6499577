"""Convert a Wikipedia dump, or a part of a multistream dump, to a shard."""

from mc2core.base import storage
from mc2core.base.logs import job
from mc2papers.datasets.dumps.wikipedia import parse_pages

with job(snakemake.log[0]):
    ranges = storage.read_json(snakemake.input.ranges) if snakemake.input.ranges else [(0, None)]
    start, stop = ranges[int(snakemake.wildcards.part)]
    parse_pages(
        snakemake.input.dump,
        snakemake.output[0],
        allow_truncated=snakemake.params.allow_truncated,
        start=start,
        stop=stop,
    )
