"""Draw VI over time, and judge what the paper says of it."""

from pathlib import Path

from mc2core import convergence, storage
from mc2core.datasets import describe
from mc2core.figures import convergence as picture
from mc2core.figures import style
from mc2core.logs import job
from mc2core.tables import write_claims


def main(snakemake):
    with job(snakemake.log[0]):
        (corpus,) = snakemake.input.corpora
        curves = convergence.read_curves(snakemake.input.traces, [corpus], snakemake.params.runs)
        figure = picture.draw(curves, describe(storage.read_json(Path(corpus) / "source.json")))
        style.write_figure(figure, curves, Path(snakemake.output[0]).with_suffix(""))
        write_claims(snakemake.output.claims, convergence.figure_claims(curves))


main(snakemake)  # noqa: F821  (given by the workflow)
