"""Write microseconds a document beside the paper's."""

from pathlib import Path

import pandas as pd

from mc2core.base.logs import job
from mc2core.experiments.nips2012 import table1
from mc2core.experiments.report import tables


def main(snakemake):
    with job(snakemake.log[0]):
        table, claims = table1.speed_table(pd.read_csv(snakemake.input.times), pd.read_csv(snakemake.input.paper))
        title = "NIPS 2012, table 1: microseconds a document (simulated articles)"
        stem = Path(snakemake.output.csv).with_suffix("")
        tables.write_table(stem, table, table1.format_speed_table(table), title, table1.NOTES, claims)
        claims.write_claims(snakemake.output.claims, claims)


main(snakemake)  # noqa: F821  (given by the workflow)
