"""Convert one file of citations to a shard of the citations that the configuration selects."""

from mc2core.base.logs import job
from mc2papers.datasets.dumps.pubmed import PNAS, Selection, parse_citations

with job(snakemake.log[0]):
    journals = PNAS if snakemake.wildcards.citations == "pnas" else ()
    parse_citations(
        snakemake.input[0],
        snakemake.output[0],
        Selection(**snakemake.params.selection, issn=journals),
        allow_truncated=snakemake.params.allow_truncated,
    )
