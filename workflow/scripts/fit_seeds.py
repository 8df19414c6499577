"""Fit one run of the sheet with every seed, looking at each fit on its way if asked to; go on from checkpoints."""

from mc2papers.handing_over import hand_over

hand_over()  # before anything is loaded that takes its time

import logging

from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2core.inference.running.files import fit_corpus
from mc2core.inference.running.summary import sentence
from mc2papers.uai2016.curves import snapshot_times


def main(snakemake):
    with job(snakemake.log[0], snakemake.threads):
        corpus, fit = Corpus.load(f"{snakemake.input.corpus}/train"), snakemake.params.fit
        n_snapshots = snakemake.params.get("n_snapshots")
        for i, seed in enumerate(snakemake.params.seeds):
            done = fit_corpus(
                corpus,
                **fit,
                seed=seed,
                **{name: files[i] for name, files in snakemake.output.items()},
                snapshot_times=snapshot_times(fit["iterations"], n_snapshots) if n_snapshots else (),
                checkpoint=snakemake.params.checkpoint.format(seed=seed),
                checkpoint_every=snakemake.params.checkpoint_every,
                threads=snakemake.threads,
                follow_labels=snakemake.params.get("follow_labels", False),
            )
            logging.info("%s", sentence(done["found"]))


main(snakemake)  # noqa: F821  (given by the workflow)
