"""Fit a corpus with words only, with each of its contexts, and with the contexts of random documents."""

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2papers.labelled.contexts_help_fits import fits_with_contexts

with job(snakemake.log[0], snakemake.threads):
    params = snakemake.params
    corpus = Corpus.load(f"{snakemake.input.corpus}/train")
    given = {"seeds": params.seeds, "tokens": params.tokens, "threads": snakemake.threads}
    rows = fits_with_contexts(corpus, params.runs, **given)
    rows.insert(0, "dataset", snakemake.wildcards.dataset)
    with storage.replacing(snakemake.output[0]) as stream:
        rows.to_csv(stream, index=False)
