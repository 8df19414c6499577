"""Fit letters data of one size again and again, with and without context."""

from mc2core.base import storage
from mc2core.base.logs import job
from mc2papers.icml2014.sizes_fits import letters_of_size


def main(snakemake):
    with job(snakemake.log[0], snakemake.threads):
        figure = snakemake.params.figure
        axis, _, size = snakemake.wildcards.cell.rpartition("-")
        point = {"n_documents": figure["fixed_n_documents"], "n_tokens": figure["fixed_n_tokens"], axis: int(size)}
        rows = letters_of_size(
            **point,
            noise=figure["noise"],
            repeats=figure["repeats"],
            iterations=figure["iterations"],
            **{name: snakemake.params.fit[name] for name in ("model", "engine", "contexts", "settings")},
            threads=snakemake.threads,
        )
        with storage.replacing(snakemake.output[0]) as stream:
            rows.assign(axis=axis).to_csv(stream, index=False)


main(snakemake)  # noqa: F821  (given by the workflow)
