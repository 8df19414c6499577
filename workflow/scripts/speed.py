"""Measure the times of the fits of some runs on one core and on several cores, one fit after the other."""

import logging
from pathlib import Path

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2papers.uai2016.curves import seconds_by_threads
from mc2papers.uai2016.methods import method_of

with job(snakemake.log[0], snakemake.threads):
    for (run, about_run), output in zip(snakemake.params.runs.items(), snakemake.output, strict=True):
        logging.info("%s", run)
        # taken from results/speed/<file>, because the prefix of a module may come before results
        folder, one = Path(output).parents[1] / "corpora" / about_run["dataset"], about_run["fit"]
        about = storage.read_json(folder / "source.json")
        rows = seconds_by_threads(
            Corpus.load(folder / "train"),
            one,
            threads=sorted({1, snakemake.threads}),
            seeds=range(snakemake.params.n_seeds),
        ).assign(
            dataset=about["title"],
            source=about["source"],
            method=method_of(one["engine"], one["settings"]),
            documents=about["train_documents"],
            iterations=one["iterations"],
        )
        with storage.replacing(output) as stream:
            rows.to_csv(stream, index=False)
