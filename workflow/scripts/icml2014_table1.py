"""Write held-out perplexity beside the paper's figures."""

from pathlib import Path

import pandas as pd

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.experiments.icml2014 import table1
from mc2core.experiments.report import tables


def main(snakemake):
    with job(snakemake.log[0]):
        scores = [storage.read_json(path) for path in snakemake.input.scores]
        paper, estimators = pd.read_csv(snakemake.input.paper), snakemake.params.estimators
        table, claims = table1.perplexity_table(scores, paper, estimators)
        tables.write_table(
            Path(snakemake.output.csv).with_suffix(""),
            table,
            table1.format_perplexity_table(table, estimators),
            "ICML 2014, table 1: held-out perplexity (lower is better)",
            table1.PERPLEXITY_NOTES,
            claims,
        )
        claims.write_claims(snakemake.output.claims, claims)


main(snakemake)  # noqa: F821  (given by the workflow)
