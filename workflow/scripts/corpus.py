"""Read or draw one dataset, split it, and write its folder."""

from mc2core.datasets import prepare
from mc2core.logs import job


def main(snakemake):
    with job(snakemake.log[0]):
        settings = dict(snakemake.params.corpus)
        settings.pop("file", None)
        prepare(
            snakemake.wildcards.dataset,
            snakemake.output[0],
            source=settings.pop("source"),
            seed=settings.pop("seed"),
            test_fraction=settings.pop("test_fraction", 0),
            settings=settings,
            files=list(snakemake.input),
            paper="workflow/paper/datasets.csv",
        )


main(snakemake)  # noqa: F821  (given by the workflow)
