"""The sentences on how a report was made: what they say of contexts, runs, numbers and names."""

import dataclasses

import numpy as np
import pytest
from helpers import fits
from helpers.explored_fits import corpus, gibbs

from mc2core.explore import limits, tables
from mc2core.explore.description import Description
from mc2core.inference.running.loop import fit


@pytest.fixture(scope="module")
def description():
    made = corpus()
    return Description.from_posterior(gibbs(made), made)


@pytest.fixture(scope="module")
def made(description):
    return tables.tables_of(description)


def two_runs(posterior, recommended, agreement):
    kept = dataclasses.replace(
        posterior.hierarchy, recommended=recommended, agreement=np.full(len(posterior.hierarchy.agreement), agreement)
    )
    provenance = posterior.provenance | {"chains": [1, 1]}
    return dataclasses.replace(posterior, samples=posterior.samples * 2, hierarchy=kept, provenance=provenance)


def test_contexts_and_unsure_documents_are_named(description, made):
    said = " ".join(limits.sentences(description, made))
    unsure = (description.in_recommended.max(axis=1) < 0.5).sum()
    assert "looked for groups among 60 documents, by their words and their author and year." in said
    assert "Documents with similar values of author and year are more likely to be in the same cluster" in said
    assert f" {unsure} of 60 documents could belong to several clusters" in said
    assert "The program ran once." in said
    assert said.endswith(limits.LAST)


def test_documents_without_words_are_counted(description, made, monkeypatch):
    assert "without words" not in " ".join(limits.sentences(description, made))
    lengths = description.corpus.document_lengths * (np.arange(60) > 1)
    monkeypatch.setattr(type(description.corpus), "document_lengths", property(lambda _: lengths))
    said = " ".join(limits.sentences(description, made))
    assert "In 2 documents without words, contexts and chance decide the cluster." in said


def test_runs_are_reported_with_their_agreement(description):
    again = Description.from_posterior(two_runs(description.posterior, 2, 0.712), description.corpus)
    said = " ".join(limits.sentences(again, tables.tables_of(again)))
    assert "The number of clusters, 2, is a recommendation; other numbers are possible." in said
    assert "The program ran 2 times from different random starts." in said
    assert "is 0.71, where 1 is complete agreement" in said


def test_a_set_number_of_clusters_is_not_the_number_in_use(description, made):
    size = description.recommended
    for chosen, more in ((size, ""), (12, f" The program reports {size} of them; the others have no documents or")):
        provenance = description.posterior.provenance | {"model": {"n_clusters": chosen}}
        posterior = dataclasses.replace(description.posterior, provenance=provenance)
        said = " ".join(limits.sentences(dataclasses.replace(description, posterior=posterior), made))
        assert f"The number of clusters, {chosen}, was set by the user.{more}" in said


def test_without_groups_nothing_is_said_of_clusters(description):
    again = Description.from_posterior(two_runs(description.posterior, 1, 0.1), description.corpus)
    said = " ".join(limits.sentences(again, tables.tables_of(again)))
    assert "The program found no groups that are clear enough to report." in said
    assert "cluster" not in said


def test_a_model_without_clusters_looks_for_topics_alone():
    plain = corpus().with_contexts({})
    hdp = fit(plain, *fits.gibbs(model="hdp", start_topics=4), iterations=2, seed=0, progress=False)
    again = Description.from_posterior(hdp.posterior, plain)
    said = " ".join(limits.sentences(again, tables.tables_of(again)))
    assert "looked for topics in 60 documents by their words." in said
    assert "cluster" not in said


def test_names_that_a_person_gave_are_mentioned(description, made):
    named = description.named({"cluster": {1: "Lakes"}})
    assert "A person gave some of the names." in " ".join(limits.sentences(named, made))
    assert "A name is three frequent words" in " ".join(limits.sentences(description, made))
