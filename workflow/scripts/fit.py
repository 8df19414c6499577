"""Fit one run of the sheet with one seed; go on from its checkpoint if it was killed."""

from mc2papers.handing_over import hand_over

hand_over()  # before anything is loaded that takes its time

import logging

from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2core.inference.running.files import fit_corpus
from mc2core.inference.running.summary import sentence


def main(snakemake):
    with job(snakemake.log[0], snakemake.threads):
        done = fit_corpus(
            Corpus.load(f"{snakemake.input.corpus}/train"),
            **snakemake.params.fit,
            seed=int(snakemake.wildcards.seed),
            posterior=snakemake.output.posterior,
            trace=snakemake.output.trace,
            provenance=snakemake.output.provenance,
            checkpoint=snakemake.params.checkpoint,
            checkpoint_every=snakemake.params.checkpoint_every,
            threads=snakemake.threads,
        )
        logging.info("%s", sentence(done["found"]))


main(snakemake)  # noqa: F821  (given by the workflow)
