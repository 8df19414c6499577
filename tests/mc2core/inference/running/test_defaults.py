"""A fit that is told nothing: one engine, model and length for the command, the function and the estimator."""

import re

import numpy as np
import pytest
from helpers.fits import fastex, gibbs, svi

import mc2core
from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.base import storage
from mc2core.inference.registry import make_engine, with_default_model
from mc2core.sklearn import MC2Clusterer

COUNTS = np.random.default_rng(0).poisson(0.5, (12, 8)) + np.eye(12, 8, dtype=int)
OWN = gibbs(document_level=True).settings()


def test_function_command_and_estimator_share_their_defaults(tmp_path):
    by_function = mc2core.fit(Corpus(COUNTS), progress=False)
    by_estimator = MC2Clusterer().fit(COUNTS).posterior_
    Corpus(COUNTS).save(tmp_path / "corpus")
    assert main(["fit", str(tmp_path / "corpus"), "--out", str(tmp_path / "fit")]) == 0
    by_command = storage.read_json(tmp_path / "fit/provenance.json")
    for about in (by_function.provenance, by_estimator.provenance, by_command):
        assert (about["engine"], about["settings"], about["iterations"]) == ("gibbs", OWN, 60)
    assert len(by_function.posterior.samples) == 30
    assert np.array_equal(by_function.posterior.word_given_topic, by_estimator.word_given_topic)


@pytest.mark.parametrize(
    ("engine", "iterations"), [(gibbs(kernel="collapsed"), 60), (svi(), 10), (fastex(n_clusters=2), 60)]
)
def test_every_engine_has_a_length(engine, iterations, capsys):
    assert len(mc2core.fit(Corpus(COUNTS), *engine, progress=False).trace) == iterations
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "sweeps (gibbs, fastex; default 60) or epochs (svi; default 10)" in told


@pytest.mark.parametrize(
    ("name", "settings", "omega"),
    [
        ("gibbs", {}, "learn"),
        ("gibbs", {"start_topics": 3}, "learn"),
        ("gibbs", {"document_concentration": "inf"}, "inf"),
        ("gibbs", {"kernel": "blocked"}, "inf"),
        ("gibbs", {"one_cluster_per_document": True}, "inf"),
        ("gibbs", {"one_cluster_per_document": False}, "learn"),
        ("svi", {}, "inf"),
    ],
)
def test_the_default_model_gives_way_to_one_that_is_asked_for(name, settings, omega):
    made = make_engine(name, with_default_model(name, settings), {})
    assert made.settings()["document_concentration"] == omega
    assert "document_concentration" not in with_default_model("fastex", {"n_clusters": 3})
