"""Compute the held-out perplexity of all snapshots of the fits on one dataset."""

from pathlib import Path

import pandas as pd

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2papers.datasets.catalogue import describe
from mc2papers.uai2016.curves import perplexity_curve

with job(snakemake.log[0], snakemake.threads):
    folder = Path(snakemake.input.corpus)
    about, test = storage.read_json(folder / "source.json"), Corpus.load(folder / "test")
    curves = [
        perplexity_curve(Posterior.load(path), Posterior.load(fit), test, snakemake.params.estimator).assign(
            run=Path(path).parts[-3]
        )
        for path, fit in zip(snakemake.input.snapshots, snakemake.input.fits, strict=True)
    ]
    rows = pd.concat(curves).assign(dataset=about["title"], source=describe(about))
    with storage.replacing(snakemake.output[0]) as stream:
        rows.to_csv(stream, index=False)
