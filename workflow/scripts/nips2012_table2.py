"""Write final VI and speed-up over the baseline beside the paper's."""

from pathlib import Path

import pandas as pd

from mc2core.base.logs import job
from mc2core.experiments.nips2012 import convergence, table2
from mc2core.experiments.report import tables


def main(snakemake):
    with job(snakemake.log[0]):
        curves = convergence.read_curves(snakemake.input.traces, snakemake.input.corpora, snakemake.params.runs)
        table, claims = table2.speedup_table(curves, pd.read_csv(snakemake.input.paper))
        title = "NIPS 2012, table 2: distance from the truth, and how much sooner than the baseline"
        stem = Path(snakemake.output.csv).with_suffix("")
        tables.write_table(stem, table, table2.format_speedup_table(table), title, table2.NOTES, claims)
        claims.write_claims(snakemake.output.claims, claims)


main(snakemake)  # noqa: F821  (given by the workflow)
