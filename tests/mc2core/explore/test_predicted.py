"""Contexts as clusters predict them, against mixtures of the samples' clusters written out."""

import dataclasses

import numpy as np
import pytest
from helpers.explored_fits import corpus
from helpers.fits import gibbs
from scipy import optimize, stats

from mc2core.explore.description import Description
from mc2core.explore.html_report import _pack_predictions
from mc2core.explore.predicted import N_NAMES, predictions
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit


@pytest.fixture(scope="module")
def description():
    made = corpus()
    contexts = {"year": NormalGamma(), "author": DirichletCategorical(0.1)}
    engine = gibbs(contexts=contexts, start_topics=5, start_clusters=6)
    return Description.from_posterior(fit(made, *engine, iterations=3, seed=1, burn_in=1).posterior, made)


def clusters_of(description, document):
    return [int(sample.cluster[document]) for sample in description.posterior.samples]


def natural_of(description, name, document):
    """(S, D): of the cluster that the document has in each sample."""
    alone = [dataclasses.replace(description.posterior, samples=[one]) for one in description.posterior.samples]
    clusters = clusters_of(description, document)
    return np.array([one.context_parameters(name)[k] for one, k in zip(alone, clusters, strict=True)])


def test_names_are_those_of_the_clusters_over_samples(description):
    rows = np.array([0, 7, 31, 59])
    found = predictions(description, rows)["author"]
    assert len(description.posterior.samples) == 2
    for place, document in enumerate(rows):
        natural = natural_of(description, "author", document)
        expected = (natural / natural.sum(axis=1, keepdims=True)).mean(axis=0)
        best = np.argsort(-expected, kind="stable")[:N_NAMES]
        which = found["of"][place]
        assert found["columns"][which].tolist() == best.tolist()
        np.testing.assert_allclose(found["probability"][which], expected[best])


def test_numbers_are_those_of_the_mixture_of_clusters(description):
    rows = np.array([2, 18, 40])
    found, posterior = predictions(description, rows)["year"], description.posterior
    centre, unit = posterior.units["year"]
    for place, document in enumerate(rows):
        first, kappa, a, second = natural_of(description, "year", document).T
        mu, b = first / kappa, second - first**2 / kappa / 2
        mixed = stats.t(2 * a, mu, np.sqrt(b * (kappa + 1) / (a * kappa)))
        which = found["of"][place]
        assert found["mean"][which] == pytest.approx(mu.mean() * unit + centre)
        for bound, share in (("low", 0.05), ("high", 0.95)):
            at = optimize.brentq(lambda x, of=mixed, p=share: of.cdf(x).mean() - p, -50, 50)
            assert found[bound][which] == pytest.approx(at * unit + centre, abs=1e-4)


def test_documents_with_the_same_clusters_share_a_prediction(description):
    rows = np.arange(60)
    found = predictions(description, rows)["year"]
    sets = {tuple(clusters_of(description, document)) for document in rows}
    assert len(found["mean"]) == len(sets) < 60
    of_each = [{found["of"][j] for j in rows if tuple(clusters_of(description, j)) == one} for one in sets]
    assert all(len(one) == 1 for one in of_each)


def test_of_new_documents_by_the_probabilities_of_their_clusters(description):
    new = corpus().subset(np.arange(5, 15))
    about = Description.from_posterior(description.posterior, new)
    found = predictions(about, np.arange(10))["author"]
    natural = about.posterior.context_parameters("author")
    expected = about.probability @ (natural / natural.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found["probability"][found["of"], 0], expected.max(axis=1))


def test_without_contexts_nothing_is_predicted():
    made = corpus().with_contexts({})
    assert predictions(Description.from_posterior(fit(made, iterations=1, seed=1).posterior, made), np.arange(3)) == {}


def test_the_page_has_the_names_it_needs_once(description):
    told = _pack_predictions(description, np.array([0, 1, 2]))
    names = told["author"]["names"]
    assert len(set(names)) == len(names) <= 7
    assert all(0 <= one < len(names) for row in told["author"]["likeliest"] for one in row)
    assert set(told["year"]) == {"of", "mean", "low", "high"}
