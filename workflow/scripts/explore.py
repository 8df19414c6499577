"""Write the tables and the HTML report of a fit."""

from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2core.explore.describe import describe
from mc2core.posterior import Posterior

with job(snakemake.log[0]):
    corpus = Corpus.load(f"{snakemake.input.corpus}/train")
    posterior, title = Posterior.load(snakemake.input.posterior), snakemake.params.title
    describe(posterior, corpus, snakemake.output[0], title, threads=snakemake.threads)
