"""Draw the letters found, and judge whether they were."""

from pathlib import Path

from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2core.experiments.icml2014 import letters
from mc2core.experiments.report import style
from mc2core.experiments.report.claims import claim, write_claims
from mc2core.model import Model
from mc2core.sources.simulated.truth import Truth


def main(snakemake):
    with job(snakemake.log[0]):
        folder, models = Path(snakemake.input.corpus), [Model.load(path) for path in snakemake.input.models]
        truth = Truth.load(folder / "truth.npz")
        figure, drawn = letters.draw(Corpus.load(folder / "train"), truth, {"MC2": models[0]}, len(models))
        style.write_figure(figure, drawn, Path(snakemake.output[0]).with_suffix(""))
        rows = [
            *letters.judge(truth, models, snakemake.params.sweeps),
            ("LDA and HDP mix up M and N, I and T", None, "no fit of LDA and HDP"),
        ]
        write_claims(snakemake.output.claims, [claim("icml2014_figure2", "letters", *row) for row in rows])


main(snakemake)  # noqa: F821  (given by the workflow)
