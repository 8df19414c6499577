"""Draw one plate diagram."""

from pathlib import Path

from mc2core.figures import diagrams, style
from mc2core.logs import job


def main(snakemake):
    with job(snakemake.log[0]):
        figure, edges = diagrams.draw(snakemake.params.name)
        style.write_figure(figure, edges, Path(snakemake.output[0]).with_suffix(""))


main(snakemake)  # noqa: F821  (given by the workflow)
