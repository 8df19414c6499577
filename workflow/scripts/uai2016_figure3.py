"""Draw perplexity over the seconds of the fits, and judge how soon SVI is where Gibbs ends."""

from pathlib import Path

import pandas as pd

from mc2core.base.logs import job
from mc2core.experiments.report import style
from mc2core.experiments.report.claims import claim, write_claims
from mc2core.experiments.uai2016 import curves_figure


def main(snakemake):
    with job(snakemake.log[0]):
        rows = pd.concat([pd.read_csv(path) for path in snakemake.input]).fillna({"source": ""})
        points = curves_figure.summarise(rows)
        style.write_figure(curves_figure.draw(points), points, Path(snakemake.output[0]).with_suffix(""))
        judged = [
            claim("uai2016_figure3", dataset, *verdict)
            for dataset in dict.fromkeys(points["dataset"])
            for verdict in curves_figure.claims(points, dataset)
        ]
        write_claims(snakemake.output.claims, judged)


main(snakemake)  # noqa: F821  (given by the workflow)
