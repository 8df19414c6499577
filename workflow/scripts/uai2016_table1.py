"""Write the seconds of SVI on one core and on several beside the paper's."""

from pathlib import Path

import pandas as pd

from mc2core.base.logs import job
from mc2core.experiments.report import tables
from mc2core.experiments.uai2016 import table1


def main(snakemake):
    with job(snakemake.log[0]):
        rows = pd.concat([pd.read_csv(path) for path in snakemake.input.speed])
        table, claims = table1.speed_table(rows, pd.read_csv(snakemake.input.paper))
        tables.write_table(
            Path(snakemake.output.csv).with_suffix(""),
            table,
            table1.format_speed_table(table),
            "UAI 2016, table 1: seconds of SVI-MC2 on one core and on several",
            table1.SPEED_NOTES,
            claims,
        )
        claims.write_claims(snakemake.output.claims, claims)


main(snakemake)  # noqa: F821  (given by the workflow)
