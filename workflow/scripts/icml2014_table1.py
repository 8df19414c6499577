"""Write held-out perplexity beside the paper's figures."""

from pathlib import Path

import pandas as pd

from mc2core import storage, tables
from mc2core.logs import job


def main(snakemake):
    with job(snakemake.log[0]):
        scores = [storage.read_json(path) for path in snakemake.input.scores]
        paper, estimators = pd.read_csv(snakemake.input.paper), snakemake.params.estimators
        table, claims = tables.perplexity_table(scores, paper, estimators)
        tables.write_table(
            Path(snakemake.output.csv).with_suffix(""),
            table,
            tables.format_perplexity_table(table, estimators),
            "ICML 2014, table 1: held-out perplexity (lower is better)",
            tables.PERPLEXITY_NOTES,
            claims,
        )
        tables.write_claims(snakemake.output.claims, claims)


main(snakemake)  # noqa: F821  (given by the workflow)
