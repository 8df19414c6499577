"""Measure the times of epochs or sweeps of one run, on threads of one process and on Spark."""

from pathlib import Path

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2papers.uai2016.epochs import epoch_seconds

with job(snakemake.log[0], snakemake.threads):
    folder, fit, times = Path(snakemake.input.corpus), snakemake.params.fit, snakemake.params.times
    about = storage.read_json(folder / "source.json")
    rows = epoch_seconds(
        Corpus.load(folder / "train"),
        fit,
        batch_sizes=times["batch_sizes"],
        threads=sorted({1, snakemake.threads}),
        masters=[] if snakemake.params.lack else times["masters"],
        n_shards=times["n_shards"],
        properties=snakemake.params.spark,
    ).assign(dataset=about["title"], source=about["source"], documents=about["train_documents"])
    with storage.replacing(snakemake.output[0]) as stream:
        rows.to_csv(stream, index=False)
