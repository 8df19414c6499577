"""A model meets only corpora of its own words, context columns and units: what else it would score is meaningless."""

import logging

import numpy as np
import pytest
from helpers.fits import gibbs

from mc2core import Corpus, Posterior
from mc2core.corpus import matching
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.posterior.scores import evaluate
from mc2papers.icml2014 import cluster

WORDS, AUTHORS = ["ash", "birch", "cedar", "date"], ["ann", "bob"]
FITTED = np.random.default_rng(0).poisson(2.0, (12, 4)) + np.eye(4, dtype=int)[np.arange(12) % 4]
YEARS = np.arange(12) + 1990.0


def corpus(words=WORDS, authors=AUTHORS, counts=FITTED, years=YEARS):
    who = np.eye(2, 2 if authors is None else len(authors), dtype=int)[np.arange(len(counts)) % 2]
    names = None if authors is None else {"author": authors}
    return Corpus(counts, words, {"author": who, "year": years}, context_names=names)


@pytest.fixture(scope="module")
def model():
    return fitted(corpus())


def fitted(one):
    engine = gibbs(contexts={"author": DirichletCategorical(0.1), "year": NormalGamma()}, start_topics=3)
    return fit(one.standardised("year"), *engine, iterations=4, seed=0, progress=False).posterior


@pytest.fixture
def warned(caplog):
    matching._warn.cache_clear()
    caplog.set_level(logging.WARNING, "mc2core")
    return lambda: [record.getMessage() for record in caplog.records]


USES = {
    "predict": lambda model, one: model.predict_proba(one),
    "assign": lambda model, one: model.assign(one),
    "log_likelihood": lambda model, one: model.log_likelihood(one),
    "perplexity": lambda model, one: model.perplexity(one, "context"),
    "evaluate, test": lambda model, one: evaluate(model, corpus(), one, ["context"]),
}
WHOLE = {
    "evaluate, train": lambda model, one: evaluate(model, one, None),
    "figure": lambda model, one: cluster.describe(one, model),
}


@pytest.mark.parametrize("use", USES | WHOLE)
def test_other_words_are_refused_with_the_first_that_differ(model, use):
    run = (USES | WHOLE)[use]
    run(model, corpus())
    other = corpus(["ash", "date", "cedar", "birch"])
    with pytest.raises(
        ValueError,
        match=r"the corpus has other words than the model was fitted on: word 1 is 'birch' "
        "in the model and 'date' in the corpus, word 3 is 'date' in the model and 'birch' in",
    ):
        run(model, other)
    more = corpus([*WORDS, "elm"], counts=np.pad(FITTED, ((0, 0), (0, 1))))
    with pytest.raises(
        ValueError,
        match=r"has 5 words, but the model was fitted on 4: word 4 is none in the model "
        r"and 'elm' in the corpus; mc2 import --like and, in Python, Corpus.from_dataframe\(like=model\) read",
    ):
        run(model, more)


@pytest.mark.parametrize("use", ["predict", "perplexity", "evaluate, test"])
def test_other_columns_of_a_context_are_refused(model, use):
    with pytest.raises(
        ValueError,
        match=r"^context 'author' has other columns than the model was fitted on: column 0 "
        "is 'ann' in the model and 'bob' in the corpus, column 1 is",
    ):
        USES[use](model, corpus(authors=["bob", "ann"]))
    with pytest.raises(ValueError, match=r"^context 'author' has 3 columns, but the model was fitted on 2: column 2"):
        USES[use](model, corpus(authors=[*AUTHORS, "cid"]))


def test_scores_of_words_alone_do_not_ask_for_contexts(model):
    other = corpus(authors=["bob", "ann"])
    assert model.perplexity(other) == model.perplexity(corpus())
    assert (model.predict_proba(other, use_context=False) == model.predict_proba(corpus(), use_context=False)).all()


@pytest.mark.parametrize("names", [None, ["w0", "w1", "w2", "w3"]])
def test_without_names_sizes_are_compared_with_one_warning(model, warned, names):
    expected = model.perplexity(corpus())
    assert warned() == []
    assert model.perplexity(corpus(names)) == model.perplexity(corpus(names)) == expected
    assert warned() == [
        "the corpus and the model were compared by the number of words (4) only, because words have no names in the "
        "corpus"
    ]
    with pytest.raises(ValueError, match=r"the corpus has 5 words, but the model was fitted on 4$"):
        model.perplexity(corpus(None, counts=np.pad(FITTED, ((0, 0), (0, 1)))))
    model.predict_proba(corpus(authors=None))
    assert len(warned()) == 2
    assert "context 'author' and the model were compared by the number of columns (2) only, because" in warned()[1]


def test_a_model_without_names_is_the_other_side(warned, tmp_path):
    nameless = fitted(corpus(None, None))
    assert nameless.vocabulary == ["w0", "w1", "w2", "w3"]
    nameless.save(tmp_path / "posterior.npz")
    nameless = Posterior.load(tmp_path / "posterior.npz")
    nameless.predict_proba(corpus())
    nameless.predict_proba(corpus(None, None, counts=np.roll(FITTED, 1, axis=0)))
    assert [text.split("names in ")[1] for text in warned()] == ["the model"] * 2 + ["either"] * 2


def test_nothing_is_said_of_the_same_names_or_documents(warned):
    """Names may be those that stand for none, and the documents of the fit need no names to be known."""
    placeholders = ["w0", "w1", "w2", "w3"]
    named = fitted(corpus(placeholders))
    named.predict_proba(corpus(placeholders, counts=np.roll(FITTED, 1, axis=0)))
    nameless = fitted(corpus(None, None))
    nameless.predict_proba(corpus(None, None))
    assert warned() == []


def test_the_commands_refuse_too(model, tmp_path, refused):
    model.save(tmp_path / "posterior.npz")
    corpus(["ash", "date", "cedar", "birch"]).save(tmp_path / "other")
    for command in ("evaluate", "clusters"):
        error = "word 1 is 'birch' in the model and 'date' in the corpus"
        refused(f"{command} {tmp_path}/posterior.npz {tmp_path}/other", error)
    corpus(authors=["bob", "ann"]).save(tmp_path / "other")
    error = "column 0 is 'ann' in the model and 'bob' in the corpus"
    refused(f"clusters {tmp_path}/posterior.npz {tmp_path}/other", error)


def test_a_figure_of_other_documents_is_refused(model):
    with pytest.raises(ValueError, match=r"the corpus has 3 documents, but the model was fitted on 12"):
        cluster.describe(corpus().subset([0, 1, 2]), model)


def test_numbers_are_brought_to_the_unit_of_the_model(model):
    """By hand: mean 1995.5, sd sqrt(143 / 12); a corpus in its own unit, or in another, is the same corpus."""
    standard = Corpus(
        FITTED, WORDS, corpus().contexts | {"year": (YEARS - 1995.5) / np.sqrt(143 / 12)},
        context_names={"author": AUTHORS}, units={"year": (1995.5, np.sqrt(143 / 12))},
    )  # fmt: skip
    expected = model.predict_proba(standard)
    assert np.abs(expected - model.predict_proba(standard, use_context=False)).max() > 0.01
    np.testing.assert_allclose(model.predict_proba(corpus()), expected, rtol=1e-9)
    own = corpus().subset(np.arange(6)).standardised("year")
    np.testing.assert_allclose(model.predict_proba(own), expected[:6], rtol=1e-9)
    plain = fit(
        corpus(), *gibbs(contexts={"year": NormalGamma(mu0=1995)}), iterations=2, seed=0, progress=False
    ).posterior
    np.testing.assert_allclose(plain.predict_proba(own), plain.predict_proba(corpus())[:6], rtol=1e-9)


def test_what_is_in_the_unit_already_keeps_its_bits():
    standard = corpus().standardised("year")
    assert matching.in_units(standard, ["year", "author"], standard.units) is standard
    moved = matching.in_units(corpus(), ["year"], standard.units)
    assert moved.units == standard.units
    assert (moved.contexts["year"] == standard.contexts["year"]).all()
    back = matching.in_units(standard, ["year"], {})
    np.testing.assert_allclose(back.contexts["year"], YEARS, rtol=1e-14)
    assert back.units == {}
