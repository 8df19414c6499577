"""Write the claims of all targets with their verdicts to one table."""

from pathlib import Path

import pandas as pd

from mc2core.base.logs import job
from mc2papers.report.claims import COLUMNS, RULE
from mc2papers.report.tables import write_table

with job(snakemake.log[0]):
    none = pd.DataFrame(columns=["target", *COLUMNS])
    claims = pd.concat([none, *(pd.read_csv(path) for path in snakemake.input)])
    title = "What our numbers say of the papers' claims"
    write_table(Path(snakemake.output.csv).with_suffix(""), claims, claims, title, [RULE])
