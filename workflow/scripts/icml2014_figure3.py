"""Draw one cluster: its authors, papers and topics."""

from pathlib import Path

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2core.experiments.icml2014 import cluster
from mc2core.experiments.report import style
from mc2core.model import Model
from mc2core.sources.catalogue import describe


def main(snakemake):
    with job(snakemake.log[0]):
        folder = Path(snakemake.input.corpus)
        corpus, model = Corpus.load(folder / "train"), Model.load(snakemake.input.models[0])
        table = cluster.describe(corpus, model, **snakemake.params.sizes)
        figure = cluster.draw(table, describe(storage.read_json(folder / "source.json")))
        style.write_figure(figure, table, Path(snakemake.output[0]).with_suffix(""))


main(snakemake)  # noqa: F821  (given by the workflow)
