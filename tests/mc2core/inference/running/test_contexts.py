"""Contexts of a fit: those that it does not use, and the unit of numbers, the same from every entry point."""

import argparse
import inspect
import runpy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers.commands import mc2
from helpers.fits import fastex, gibbs, svi
from helpers.workflow_calls import ROOT

import mc2core
from mc2core import Corpus, Posterior
from mc2core.app import fit_command
from mc2core.compute.threads import n_cores
from mc2core.families import BetaBernoulli, DirichletCategorical, GammaPoisson
from mc2core.inference import SVI, FastEx, Gibbs
from mc2core.inference.running.files import fit_corpus
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.sklearn import MC2Clusterer

COUNTS = np.array([[2, 1, 0], [1, 2, 0], [0, 1, 3], [0, 0, 4]])
CORPUS = Corpus(COUNTS, contexts={"year": [1990.0, 1991.0, np.nan, 2005.0], "tag": COUNTS[:, :2]})


def said(caplog):
    return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]


def test_contexts_that_are_not_used_are_said_once(caplog, tmp_path):
    fit(CORPUS, *fastex(n_clusters=2), iterations=1)
    assert said(caplog) == ["contexts of the corpus that this fit does not use: tag, year"]
    caplog.clear()
    fit_corpus(CORPUS, tmp_path, engine="fastex", settings={"n_clusters": 2}, iterations=1)
    assert said(caplog) == ["contexts of the corpus that this fit does not use: tag, year"]


def test_a_fit_is_of_its_corpus_whatever_other_contexts_that_has():
    """Else clusters of the fit's own documents would be predicted, as those of new ones are."""
    posterior = fit(CORPUS, *fastex(n_clusters=2), iterations=1).posterior
    assert posterior.was_fitted_on(CORPUS)
    assert posterior.was_fitted_on(CORPUS.with_contexts({}))
    used = fit(CORPUS, *svi(contexts={"tag": DirichletCategorical()}), iterations=1).posterior
    assert used.was_fitted_on(CORPUS)
    assert not used.was_fitted_on(CORPUS.with_contexts({"tag": COUNTS[:, 1:]}))


WORDS = [f"word{number}" for number in range(12)]
OWN_UNITS = {"year": "normal_gamma", "day": "normal_gamma", "place": "gauss_wishart", "offset": "diagonal_normal_gamma"}
OWN_UNITS_SETTINGS = {name: {"family": family} for name, family in OWN_UNITS.items()}


def in_own_units(n_documents=24):
    """Two groups that words and contexts tell apart: years, dates, vectors, and names, some of them missing."""
    rng = np.random.default_rng(4)
    group = np.arange(n_documents) % 2
    counts = rng.poisson(np.where((np.arange(12) < 6) == group[:, None], 1.5, 0.1))
    year = np.where(rng.random(n_documents) < 0.2, np.nan, 1990.0 + 15 * group + rng.integers(0, 3, n_documents))
    day = pd.Timestamp("2003-01-01") + pd.to_timedelta(700 * group + rng.integers(0, 20, n_documents), unit="D")
    place = np.array([[5e3, -40.0], [6e3, -45.0]])[group] + rng.normal(0, [90.0, 2.0], (n_documents, 2))
    names = np.array(["ada", "bob"], dtype=object)[group]
    texts = [" ".join(np.repeat(WORDS, row)) for row in counts]
    contexts = {"year": year, "day": day, "place": place, "offset": place - 100.0, "author": names}
    return Corpus.from_texts(texts, contexts, vocabulary=WORDS, tokenise=str.split)


def sampled(posterior):
    """All arrays of its samples, and its units."""
    packed = {name: one for name, one in posterior.arrays().items() if name[0].isdigit()}
    assert packed
    return packed, posterior.units


def same_bits(one, other):
    (packed, units), (again, other_units) = sampled(one), sampled(other)
    assert units == other_units
    assert packed.keys() == again.keys()
    for name, array in packed.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)


def by_command(corpus, folder, *options):
    corpus.save(folder / "corpus")
    mc2(["fit", folder / "corpus", *options, "--out", folder / "fit"])
    return Posterior.load(folder / "fit")


def by_workflow(corpus, folder, **asked):
    corpus.save(folder / "corpora/letters/train")
    run = {
        "dataset": "letters",
        "fit": asked,
        "seeds": [3],
        "estimators": [],
        "n_snapshots": 0,
        "follows_labels": False,
    }
    job = SimpleNamespace(
        log=[folder / "log"],
        threads=1,
        output=[folder / "fits/run/3/posterior.npz"],
        params=SimpleNamespace(runs={"run": run}, checkpoint_every=50),
    )
    runpy.run_path(str(ROOT / "workflow/scripts/fits.py"), {"snakemake": job})
    return Posterior.load(folder / "fits/run/3")


@pytest.mark.slow
def test_every_entry_point_fits_one_model_in_any_unit(tmp_path):
    """The same corpus, settings and seed give the same bits in Python, in the shell and in a job of the workflow."""
    corpus, contexts = in_own_units(), OWN_UNITS_SETTINGS | {"author": None}
    standard = corpus
    for name in OWN_UNITS:
        standard = standard.standardised(name)
    model, engine = MC2(contexts=contexts), Gibbs(start_topics=4)
    by_function = mc2core.fit(corpus, model, engine, iterations=6, seed=3, progress=False)
    assert by_function.posterior.units == standard.units
    assert by_function.corpus is corpus
    given = [part for name, one in OWN_UNITS.items() for part in ("--context", f"{name}:{one}")]
    given += ["--context", "author", "--set", "start_topics=4", "--iterations", "6", "--seed", "3"]
    asked = {"contexts": contexts, "settings": {"start_topics": 4}, "iterations": 6, "model": "mc2", "engine": "gibbs"}
    asked["chains"] = engine.default_chains  # jobs run one if none are asked for
    for number, one in enumerate((corpus, standard)):
        of_command = by_command(one, tmp_path / f"command{number}", *given)
        same_bits(by_function.posterior, of_command)
        same_bits(by_function.posterior, by_workflow(one, tmp_path / f"job{number}", **asked))
        assert by_function.posterior.was_fitted_on(one)
        assert of_command.was_fitted_on(one)


def test_the_estimator_and_all_others_fit_one_model_of_words(tmp_path):
    counts = in_own_units().content
    corpus = Corpus(counts, WORDS)
    by_function = mc2core.fit(corpus, iterations=4, seed=3, progress=False).posterior
    same_bits(by_function, MC2Clusterer(4, random_state=3, vocabulary=WORDS).fit(counts).posterior_)
    same_bits(by_function, by_command(corpus, tmp_path, "--iterations", "4", "--seed", "3"))
    asked = {"contexts": {}, "settings": {}, "iterations": 4, "chains": 2, "model": None, "engine": None}
    same_bits(by_function, by_workflow(corpus, tmp_path / "job", **asked))


def test_results_are_in_the_original_unit():
    corpus = in_own_units()
    done = mc2core.fit(corpus, *gibbs(kernel="collapsed", contexts=OWN_UNITS_SETTINGS), iterations=10, progress=False)
    posterior, cluster = done.posterior, done.posterior.representative.cluster
    assert np.abs(posterior.context_mean("year") - 1998).max() < 12
    for k in np.flatnonzero(np.bincount(cluster) > 5):
        for name, room in (("year", 2.0), ("place", [300.0, 5.0])):
            observed = np.nanmean(corpus.contexts[name][cluster == k], axis=0)
            assert (np.abs(posterior.context_mean(name)[k] - observed) < room).all()
    predicted = posterior.predict_context(corpus, "year", use_context=False)
    assert ((predicted.mean > 1985) & (predicted.mean < 2010)).all()
    assert done.documents()["context_year"].equals(pd.Series(corpus.contexts["year"], name="context_year"))


def test_new_documents_get_the_units_of_the_fit():
    """They are few and alike, so that units of their own would be others."""
    corpus = in_own_units()
    old, new = corpus.subset(np.arange(16)), corpus.subset(np.arange(16, 24, 2))
    posterior = fit(
        old, *gibbs(kernel="collapsed", contexts=OWN_UNITS_SETTINGS), iterations=6, progress=False
    ).posterior
    like = new
    for name in posterior.units:
        like = like.standardised(name, like=posterior)
    np.testing.assert_array_equal(posterior.predict_proba(new), posterior.predict_proba(like))
    own = new.standardised("year")
    np.testing.assert_allclose(posterior.predict_proba(new), posterior.predict_proba(own), rtol=1e-9)


@pytest.mark.parametrize("engine", ["svi", "gibbs"])
def test_an_update_goes_on_in_the_units_of_the_fit(tmp_path, engine):
    corpus = in_own_units()
    old, new = corpus.subset(np.arange(16)), corpus.subset(np.arange(16, 24))
    options = ["--context", "year", "--context", "place", "--engine", engine, "--iterations", "2"]
    before = by_command(old, tmp_path, *options)
    (corpus if engine == "gibbs" else new).save(tmp_path / "new")
    mc2(f"update {tmp_path}/fit {tmp_path}/new --out {tmp_path}/next")
    after = Posterior.load(tmp_path / "next")
    assert before.units == after.units == old.standardised("year").units | old.standardised("place").units
    assert np.abs(after.context_mean("year") - 1998).max() < 12
    if engine == "svi":
        np.testing.assert_allclose(before.reservoir.contexts["year"], old.standardised("year").contexts["year"])
        mean, sd = after.units["year"]
        np.testing.assert_allclose(after.reservoir.contexts["year"], (corpus.contexts["year"] - mean) / sd)


def test_what_cannot_be_standardised_is_refused_by_its_name():
    corpus = Corpus(COUNTS, contexts={"year": [1e300, -1e300, 1e300, 0.0]})
    with pytest.raises(ValueError, match="context 'year' has values too large to standardise: give it in another unit"):
        fit(corpus, *gibbs(contexts=["year"]), iterations=1)


def test_contexts_of_other_families_stay_as_they_are():
    corpus = Corpus(COUNTS, contexts={"visits": [3.0, 0.0, np.nan, 7.0], "is_long": [0.0, 1.0, 1.0, 0.0]})
    contexts = {"visits": GammaPoisson(), "is_long": BetaBernoulli()}
    assert fit(corpus, *gibbs(contexts=contexts), iterations=1, progress=False).posterior.units == {}


def test_all_entry_points_have_the_same_defaults():
    """Of each argument that several have, by its name."""
    argument, options = argparse.ArgumentParser(), {}
    fit_command.add_options(argument)
    for one in argument._actions:
        options[one.dest] = one.default
    signatures = {
        "function": inspect.signature(mc2core.fit).parameters,
        "file": inspect.signature(fit_corpus).parameters,
        "estimator": inspect.signature(MC2Clusterer).parameters,
        **{kind.__name__: inspect.signature(kind).parameters for kind in (Gibbs, SVI, FastEx)},
    }
    given = {
        who: {name: one.default for name, one in parameters.items() if one.default is not inspect.Parameter.empty}
        for who, parameters in signatures.items()
    } | {"command": options}
    given["estimator"]["seed"] = given["estimator"]["random_state"]
    assert given["command"].pop("threads") == n_cores()
    shared = ("iterations", "burn_in", "thin", "chains", "threads", "seed", "checkpoint_every", "model", "engine")
    values = {name: {who: one[name] for who, one in given.items() if name in one} for name in shared}
    for name, by_whom in values.items():
        assert len(by_whom) > 1, name
        assert len(set(by_whom.values())) == 1, (name, by_whom)
