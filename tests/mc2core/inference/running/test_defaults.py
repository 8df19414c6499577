"""A fit that is told nothing: one model, engine and length for the command, the function and the estimator."""

import re

import numpy as np
import pytest
from helpers.commands import mc2
from helpers.fits import fastex, gibbs, svi

import mc2core
from mc2core import Corpus
from mc2core.app.cli import main
from mc2core.base import storage
from mc2core.inference import SVI, FastEx, Gibbs
from mc2core.inference.registry import default_names, specify
from mc2core.models import HDP, MC2, NPTOT, Mixture, Model
from mc2core.sklearn import MC2Clusterer

COUNTS = np.random.default_rng(0).poisson(0.5, (12, 8)) + np.eye(12, 8, dtype=int)
#: written out: what the README promises of a fit that is told nothing
MODEL = {
    "name": "mc2", "document_level": True, "document_concentration": "learn", "burstiness": None, "n_clusters": None,
    "contexts": {}, "content": None, "group_concentration": "learn", "table_concentration": "learn",
    "topic_concentration": "learn",
    "concentration_priors": {"group": [1.0, 1.0], "table": [1.0, 1.0], "topic": [1.0, 1.0]},
    "topic_word_prior": 0.01,
}  # fmt: skip
ENGINE = {"name": "gibbs", "kernel": "interleaved", "start_topics": None, "start_clusters": None}


def test_function_command_and_estimator_share_their_defaults(tmp_path):
    by_function = mc2core.fit(Corpus(COUNTS), progress=False)
    by_estimator = MC2Clusterer().fit(COUNTS).posterior_
    Corpus(COUNTS).save(tmp_path / "corpus")
    mc2(f"fit {tmp_path}/corpus --out {tmp_path}/fit")
    by_command = storage.read_json(tmp_path / "fit/provenance.json")
    for about in (by_function.provenance, by_estimator.provenance, by_command):
        assert (about["model"], about["engine"], about["iterations"]) == (MODEL, ENGINE, 60)
        assert about["chains"] == [30, 30]
    assert np.array_equal(by_function.posterior.word_given_topic, by_estimator.word_given_topic)


@pytest.mark.parametrize(
    ("engine", "iterations"), [(gibbs(kernel="collapsed"), 60), (svi(), 10), (fastex(n_clusters=2), 60)]
)
def test_every_engine_has_a_length(engine, iterations, capsys):
    found = mc2core.fit(Corpus(COUNTS), *engine, progress=False)
    assert found.trace["chain"].unique().tolist() == ([1] if found.provenance["engine"]["name"] == "svi" else [1, 2])
    assert (found.trace.groupby("chain")["iteration"].max() == iterations).all()
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "sweeps (gibbs, fastex; default 60) or epochs (svi; default 10)" in told


@pytest.mark.parametrize(
    ("settings", "document_level"),
    [
        ({}, True),
        ({"start_topics": 3}, True),
        ({"document_concentration": 2.0}, True),
        ({"document_level": False}, False),
        ({"document_level": False, "kernel": "blocked"}, False),
    ],
)
def test_the_default_model_has_a_document_level_unless_refused(settings, document_level):
    model, engine = specify(None, None, settings)
    assert (type(model), type(engine), model.document_level) == (MC2, Gibbs, document_level)


def test_one_of_the_two_is_followed_by_the_other():
    """The first engine that fits the model that is named; the first model of the engine that is named."""
    assert default_names(None, None) == ("mc2", "gibbs")
    engines = {model: default_names(model, None)[1] for model in ("mc2", "hdp", "nptot", "mixture")}
    assert engines == {"mc2": "gibbs", "hdp": "gibbs", "nptot": "gibbs", "mixture": "fastex"}
    models = {engine: default_names(None, engine)[0] for engine in ("gibbs", "svi", "fastex")}
    assert models == {"gibbs": "mc2", "svi": "mc2", "fastex": "mixture"}


@pytest.mark.parametrize(
    ("given", "model", "engine"),
    [
        ({"model": Mixture(n_clusters=2)}, "mixture", "fastex"),
        ({"model": HDP()}, "hdp", "gibbs"),
        ({"engine": SVI(max_clusters=2, max_topics=2)}, "mc2", "svi"),
        ({"engine": FastEx(proposal="exact")}, "mixture", "fastex"),
    ],
)
def test_fit_takes_one_of_the_two_alone(given, model, engine):
    about = mc2core.fit(Corpus(COUNTS), **given, iterations=2, progress=False).provenance
    assert (about["model"]["name"], about["engine"]["name"]) == (model, engine)
    assert about["model"].get("document_level", False) is (model == "mc2")


@pytest.mark.parametrize(
    ("model", "engine", "message"),
    [
        ("mc2", None, "model is 'mc2'; a model is needed, such as mc2core.models.MC2()"),
        (MC2, None, "a model is needed, such as mc2core.models.MC2()"),
        (Gibbs(), None, "model is Gibbs(); a model is needed, such as mc2core.models.MC2()"),
        (MC2(), "gibbs", "engine is 'gibbs'; an engine is needed, such as mc2core.inference.Gibbs()"),
        (None, MC2(), "engine is MC2(); an engine is needed, such as mc2core.inference.Gibbs()"),
        (NPTOT(contexts=["year"]), Gibbs(kernel="collapsed"), "the corpus has no context 'year'; it has: none"),
    ],
)
def test_what_is_no_model_or_no_engine_is_refused(model, engine, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        mc2core.fit(Corpus(COUNTS), model, engine, progress=False)


def test_own_engines_and_models_choose_their_counterpart():
    """Neither is known by name."""

    class OwnEngine(Gibbs):
        name = "own engine"
        models = (HDP, MC2)

    class OwnModel(HDP):
        name = "own model"

    by_engine = mc2core.fit(Corpus(COUNTS), engine=OwnEngine(start_topics=2), iterations=2, progress=False).provenance
    assert (by_engine["model"]["name"], by_engine["engine"]["name"]) == ("hdp", "own engine")
    by_model = mc2core.fit(Corpus(COUNTS), OwnModel(), iterations=2, progress=False).provenance
    assert (by_model["model"]["name"], by_model["engine"]["name"]) == ("own model", "gibbs")


def test_a_model_that_no_engine_fits_needs_one():
    class Unknown(Model):
        name = "unknown"

    with pytest.raises(ValueError, match=r"^no engine of mc2core fits Unknown; give an engine of your own$"):
        mc2core.fit(Corpus(COUNTS), Unknown(), progress=False)


def test_a_mixture_has_the_same_priors_however_it_is_fitted(tmp_path):
    """Both are 0.1, those of GSDMM (docs/notes/starts.md)."""
    priors = {"topic_word_prior": 0.1, "weight_prior": 0.1}
    made = [Mixture().settings()]
    for proposal in ("auto", "exact", "hash", "neighbours"):
        made.append(specify("mixture", "fastex", {"proposal": proposal})[0].settings())
    made.append(MC2Clusterer(model=Mixture(n_clusters=2)).fit(COUNTS).posterior_.provenance["model"])
    Corpus(COUNTS).save(tmp_path / "corpus")
    mc2(f"fit {tmp_path}/corpus --model mixture --out {tmp_path}/fit")
    made.append(storage.read_json(tmp_path / "fit/provenance.json")["model"])
    assert all({name: one[name] for name in priors} == priors for one in made)
