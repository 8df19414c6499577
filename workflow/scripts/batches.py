"""Measure the agreement of clusters with MeSH or labels per mini-batch, in one epoch of a run."""

from pathlib import Path

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2papers.configuration import MISSING
from mc2papers.uai2016.batches import agreement_by_batch

with job(snakemake.log[0], snakemake.threads):
    folder, fit = Path(snakemake.input.corpus), snakemake.params.fit
    missing = fit.get(MISSING, 0.0) if fit["contexts"] else 1.0
    corpus = Corpus.load(folder / "train")
    rows = agreement_by_batch(
        corpus,
        "mesh" if "mesh" in corpus.contexts else None,
        fit,
        seeds=range(snakemake.params.n_seeds),
        missing=missing,
        threads=snakemake.threads,
    )
    source = storage.read_json(folder / "source.json")
    about = {
        "dataset": source["title"],
        "context_available_percent": round(100 * (1 - missing), 6),
        "source": source["source"],
    }
    with storage.replacing(snakemake.output[0]) as stream:
        rows.assign(**about).to_csv(stream, index=False)
