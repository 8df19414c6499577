"""The files from which targets are made: their paths by kind, and a reader of corpora."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mc2papers.targets import Files, registry

if TYPE_CHECKING:
    from mc2core.corpus import Corpus
    from mc2papers.configuration import Configuration

#: path by kind; {run}, {seed} and {dataset} are filled in for all runs, fits and datasets of a target
KINDS = {
    "batches": "results/batches/{run}.csv",  # agreement with classes per mini-batch
    "contexts help": "results/contexts_help/{dataset}.csv",  # fits with and without contexts
    "corpora": "results/corpora/{dataset}",  # folder of a corpus
    "curves": "results/curves/{dataset}.csv",  # perplexity over time
    "epochs": "results/epochs/{run}.csv",  # seconds per epoch on threads and on Spark
    "first models": "results/fits/{run}/0/posterior.npz",  # only the first seed
    "models": "results/fits/{run}/{seed}/posterior.npz",
    "scores": "results/scores/{run}/{seed}.json",
    "sizes": "results/sizes/icml2014.csv",  # the fits of ICML14 figure 7
    "speed": "results/speed/{run}.csv",  # seconds by number of threads
    "times": "results/times/nips2012.csv",  # microseconds per document
    "traces": "results/fits/{run}/{seed}/trace.tsv",  # with the distance from the labels
}


def files_of(kind: str, configuration: Configuration, target: str) -> list[str]:
    """Return the input files of one kind for a target. Raises ValueError if the target has no run."""
    file = KINDS[kind]
    if "{" not in file:
        return [file]
    runs = configuration.runs_of(target)
    if "{dataset}" in file:
        datasets = {configuration.runs[run]["dataset"] for run in runs}
        if registry()[target].is_real:
            datasets &= {*registry()[target].among(configuration.chosen, configuration)}
        return [file.format(dataset=dataset) for dataset in sorted(datasets)]
    if "{seed}" in file:
        return [file.format(run=run, seed=seed) for run in runs for seed in configuration.seeds_of(run)]
    return [file.format(run=run) for run in runs]


def read_corpus(files: Files) -> tuple[Corpus, dict[str, Any]]:
    """Return the train part and the content of source.json of the only corpus of a target."""
    from mc2core.base import storage
    from mc2core.corpus import Corpus

    (folder,) = files["corpora"]
    return Corpus.load(f"{folder}/train"), storage.read_json(f"{folder}/source.json")
