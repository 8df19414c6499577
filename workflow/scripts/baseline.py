"""Fit a method that the papers compare with, once for each seed."""

from mc2papers.handing_over import hand_over

hand_over()  # before anything is loaded that takes its time

from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2papers.baselines.files import fit_baseline


def main(snakemake):
    with job(snakemake.log[0]):
        fit, output = snakemake.params.fit, snakemake.output
        train = Corpus.load(f"{snakemake.input.corpus}/train")
        models = snakemake.input.get("models") or [None] * len(snakemake.params.seeds)
        for seed, model, file, provenance in zip(
            snakemake.params.seeds, models, output.fits, output.provenance, strict=True
        ):
            fit_baseline(
                train,
                engine=fit["engine"],
                settings=fit["settings"],
                contexts=sorted(fit["contexts"]),
                seed=seed,
                output=file,
                provenance=provenance,
                model=model,
            )


main(snakemake)  # noqa: F821  (given by the workflow)
