"""Fits and scores of several runs in one job: what is left by one that is killed, and what is together."""

import shutil

import numpy as np
import pytest

from mc2core import Posterior
from mc2core.base import storage
from mc2core.inference import FastEx
from mc2core.inference.running import files
from mc2papers.configuration import Configuration
from mc2papers.datasets.catalogue import prepare
from mc2papers.fits import fit_runs

TABLE = {
    "small": ["icml2014_table1"],
    "other-target": ["icml2014_table2"],
    "same": ["icml2014_table1"],
    "kmeans": ["icml2014_table1"],
    "large": ["icml2014_table1"],
}


def configuration_of():
    """A configuration of five runs, the last of which is on a large corpus."""
    corpora = {"letters": {"source": "simulated"}, "nips": {"source": "simulated", "scale": 1.0}}
    length = {"contexts": {}, "iterations": 5, "burn_in": None, "thin": 1}
    engine = {"engine": "fastex", "model": "mixture", "settings": {"n_clusters": 4, "proposal": "exact"}} | length
    baseline = {"engine": "kmeans", "settings": {"n_clusters": 3}, "contexts": {}, "of": None}
    runs = {
        run: {
            "dataset": "nips" if run == "large" else "letters",
            "targets": targets,
            "method": run,
            "fit": baseline if run == "kmeans" else engine,
        }
        for run, targets in TABLE.items()
    }
    kinds = {"icml2014_table1": ["scores"], "icml2014_table2": ["traces"]}
    config = {"seeds": 2, "corpora": corpora, "estimators": ["marginal"], "curves": {"n_snapshots": 3}}
    return Configuration(config, ["letters", "nips"], runs, kinds)


def test_short_fits_to_one_corpus_for_one_target_are_one_job():
    configuration = configuration_of()
    assert configuration.groups() == [["small", "same", "kmeans"], ["other-target"]]
    assert configuration.is_scored_at_once("kmeans")
    assert not configuration.is_scored_at_once("other-target")  # no target of it needs scores
    assert not configuration.is_scored_at_once("large")


@pytest.mark.parametrize(
    ("dataset", "source", "is_short"),
    [("wikipedia", "real excerpt", True), ("stateunion", "real", True), ("ohsumed", "real", False)],
)
def test_fits_to_small_real_corpora_are_short(dataset, source, is_short):
    configuration = configuration_of()
    configuration.runs["large"]["dataset"] = dataset
    configuration.config["corpora"][dataset] = {"source": source}
    assert configuration.is_short("large") == is_short


def test_a_baseline_that_clusters_by_models_comes_after_them():
    configuration = configuration_of()
    configuration.runs["kmeans"]["fit"] = configuration.runs["kmeans"]["fit"] | {"of": "small"}
    assert configuration.groups() == [["small", "same"], ["other-target"], ["kmeans"]]


@pytest.fixture
def results(tmp_path):
    prepare("letters", tmp_path / "corpora/letters", source="simulated", settings={"n_documents": 30, "n_tokens": 20})
    return tmp_path


def test_a_killed_job_resumes_after_its_finished_fits(results, monkeypatch):
    configuration = configuration_of()
    runs = configuration.fits_of(["small", "same", "kmeans"])
    fit_runs(results, runs, checkpoint_every=2)
    made = [results.parent / path for run in runs for path in configuration.files_of(run, configuration.seeds_of(run))]
    made = [results / path.relative_to(results.parent / "results") for path in made]
    assert all(path.is_file() for path in made)
    assert not list((results / "checkpoints").iterdir())
    scores = storage.read_json(results / "scores/kmeans/1.json")
    assert (scores["run"], scores["method"], scores["seed"]) == ("kmeans", "kmeans", 1)
    whole = {path: Posterior.load(path) for path in made if path.name == "posterior.npz"}
    assert len(whole) == 4

    def fails_at_the_third(*given, run=files.fit, done=[], **named):  # noqa: B006  (counts the calls)
        done.append(1)
        if len(done) == 3:
            raise KeyboardInterrupt
        return run(*given, **named)

    shutil.rmtree(results / "fits")
    with monkeypatch.context() as patched:
        patched.setattr(files, "fit", fails_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            fit_runs(results, runs, checkpoint_every=2)
    assert len(list((results / "checkpoints").iterdir())) == 2
    for path in made:  # as Snakemake removes what an unfinished job has left
        path.unlink(missing_ok=True)

    steps = []
    step = FastEx.step
    monkeypatch.setattr(FastEx, "step", lambda *given: steps.append(given[3:]) or step(*given))
    fit_runs(results, runs, checkpoint_every=2)
    assert len(steps) == 10  # of the two fits that were not finished
    for path, posterior in whole.items():
        again = Posterior.load(path)
        for one, other in zip(posterior.samples, again.samples, strict=True):
            assert np.array_equal(one.cluster, other.cluster)
            assert np.array_equal(one.cluster_weights, other.cluster_weights)
    assert not list((results / "checkpoints").iterdir())
