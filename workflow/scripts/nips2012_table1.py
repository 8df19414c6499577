"""Write microseconds a document beside the paper's."""

from pathlib import Path

import pandas as pd

from mc2core import speed, tables
from mc2core.logs import job


def main(snakemake):
    with job(snakemake.log[0]):
        table, claims = speed.speed_table(pd.read_csv(snakemake.input.times), pd.read_csv(snakemake.input.paper))
        title = "NIPS 2012, table 1: microseconds a document (simulated articles)"
        stem = Path(snakemake.output.csv).with_suffix("")
        tables.write_table(stem, table, speed.format_speed_table(table), title, speed.NOTES, claims)
        tables.write_claims(snakemake.output.claims, claims)


main(snakemake)  # noqa: F821  (given by the workflow)
