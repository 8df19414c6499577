"""Read or simulate one dataset, split it, and write its folder."""

from mc2core.base.logs import job
from mc2papers.datasets.catalogue import known_settings, prepare

with job(snakemake.log[0]):
    dataset, corpus = snakemake.wildcards.dataset, snakemake.params.corpus
    # other keys of the corpus are only for the rules that fetch and parse its files
    known = known_settings(dataset)
    prepare(
        dataset,
        snakemake.output[0],
        source=corpus["source"],
        seed=corpus.get("seed", 0),
        test_size=corpus.get("test_size", 0),
        settings={name: value for name, value in corpus.items() if name in known},
        files={role: list(files) for role, files in snakemake.input.items()},
        paper=snakemake.params.paper,
    )
