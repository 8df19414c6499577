"""Draw NMI over the size of the data, and judge where context helps most."""

from pathlib import Path

import pandas as pd

from mc2core.base.logs import job
from mc2core.experiments.icml2014 import sizes
from mc2core.experiments.report import style
from mc2core.experiments.report.claims import claim, write_claims


def main(snakemake):
    with job(snakemake.log[0]):
        points = sizes.summarise(pd.concat([pd.read_csv(path) for path in snakemake.input]))
        style.write_figure(sizes.draw(points), points, Path(snakemake.output[0]).with_suffix(""))
        judged = [claim("icml2014_figure7", "letters", *verdict) for verdict in sizes.claim(points)]
        write_claims(snakemake.output.claims, judged)


main(snakemake)  # noqa: F821  (given by the workflow)
