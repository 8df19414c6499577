"""Score the fits of one run: a file for each seed, with all that tables say of the fit."""

from mc2papers.handing_over import hand_over

hand_over()  # before anything is loaded that takes its time

from pathlib import Path

from mc2core.base import storage
from mc2core.base.logs import job
from mc2core.corpus import Corpus
from mc2core.posterior import Posterior
from mc2core.posterior.scores import evaluate
from mc2papers.baselines.assignments import Assignments, evaluate_assignments

OF_THE_FIT = ("seed", "iterations", "seconds", "cpu_seconds", "compile_seconds", "threads")


def main(snakemake):
    with job(snakemake.log[0], snakemake.threads):
        folder = Path(snakemake.input.corpus)
        about = storage.read_json(folder / "source.json")
        train = Corpus.load(folder / "train")
        test = Corpus.load(folder / "test") if about["test_documents"] else None
        files = zip(snakemake.input.fits, snakemake.input.provenance, snakemake.output, strict=True)
        for file, provenance, output in files:
            fit = storage.read_json(provenance)
            kept = {name: fit[name] for name in OF_THE_FIT}
            kept |= {"model": fit.get("model", {}).get("name"), "engine": fit["engine"]["name"]}
            kept |= {"converged": fit.get("converged", {}), "missing": fit.get("missing", 0.0)}
            kept["found"] = fit.get("found", {})
            if file.endswith(".tsv"):
                scores = evaluate_assignments(Assignments.load(file), train, test)
            else:
                scores = evaluate(Posterior.load(file), train, test, snakemake.params.estimators)
            named = {"run": snakemake.wildcards.run, "method": snakemake.params.method}
            storage.write_json(output, about | kept | named | {"contexts": snakemake.params.contexts} | scores)


main(snakemake)  # noqa: F821  (given by the workflow)
