"""Draw VI over time, and judge what the paper says of it."""

from pathlib import Path

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.experiments.nips2012 import convergence, figure1
from mc2core.experiments.nips2012 import convergence_figure as picture
from mc2core.experiments.report import style
from mc2core.experiments.report.claims import write_claims
from mc2core.sources.catalogue import describe


def main(snakemake):
    with job(snakemake.log[0]):
        (corpus,) = snakemake.input.corpora
        curves = convergence.read_curves(snakemake.input.traces, [corpus], snakemake.params.runs)
        figure = picture.draw(curves, describe(storage.read_json(Path(corpus) / "source.json")))
        style.write_figure(figure, curves, Path(snakemake.output[0]).with_suffix(""))
        write_claims(snakemake.output.claims, figure1.figure_claims(curves))


main(snakemake)  # noqa: F821  (given by the workflow)
