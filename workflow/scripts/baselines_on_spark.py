"""Fit the baselines that Spark runs, all in one process of it."""

from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2papers.baselines.files import fit_baseline


def main(snakemake):
    with job(snakemake.log[0], snakemake.threads):
        files = zip(snakemake.input.corpora, snakemake.output.fits, snakemake.output.provenance, strict=True)
        for fit, (corpus, output, provenance) in zip(snakemake.params.fits, files, strict=True):
            fit_baseline(
                Corpus.load(f"{corpus}/train"),
                engine=fit["engine"],
                settings=fit["settings"],
                contexts=[],
                seed=0,
                output=output,
                provenance=provenance,
            )


main(snakemake)  # noqa: F821  (given by the workflow)
