"""Time the fits of one run of the sheet on one core and on several."""

from pathlib import Path

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2papers.uai2016.curves import seconds_by_threads
from mc2papers.uai2016.methods import method_of


def main(snakemake):
    with job(snakemake.log[0], snakemake.threads):
        folder, one = Path(snakemake.input.corpus), snakemake.params.fit
        about = storage.read_json(folder / "source.json")
        rows = seconds_by_threads(
            Corpus.load(folder / "train"),
            **{name: one[name] for name in ("model", "engine", "contexts", "settings", "iterations")},
            threads=sorted({1, snakemake.threads}),
            seeds=range(snakemake.params.n_seeds),
        ).assign(
            dataset=about["title"],
            source=about["source"],
            method=method_of(one["engine"], one["settings"]),
            documents=about["train_documents"],
            iterations=one["iterations"],
        )
        with storage.replacing(snakemake.output[0]) as stream:
            rows.to_csv(stream, index=False)


main(snakemake)  # noqa: F821  (given by the workflow)
