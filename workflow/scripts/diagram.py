"""Draw one plate diagram."""

from pathlib import Path

from mc2core.base.logs import job
from mc2core.experiments.report import diagrams, style


def main(snakemake):
    with job(snakemake.log[0]):
        figure, edges = diagrams.draw(snakemake.params.name)
        style.write_figure(figure, edges, Path(snakemake.output[0]).with_suffix(""))


main(snakemake)  # noqa: F821  (given by the workflow)
