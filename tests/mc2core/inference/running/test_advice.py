"""What is said where a fit may be less certain than it looks."""

import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.small_posteriors import make_model

import mc2core
from mc2core import Corpus
from mc2core.corpus.embeddings import KEY, Projection
from mc2core.inference.running.files import fit_corpus
from mc2core.inference.running.summary import advice, stuck_chains
from mc2core.sklearn import MC2Clusterer


def rows(clusters, joint):
    return [{"clusters": clusters, "log_joint": joint + wave} for wave in (0.0, 1.0, -1.0, 0.5, -0.5, 1.0)]


@pytest.mark.parametrize(
    ("chains", "stuck"),
    [
        ([(6, -500.0), (123, -100.0)], [0]),
        ([(123, -100.0), (6, -500.0), (110, -101.0)], [1]),
        ([(6, -100.0), (123, -500.0)], []),  # fewer clusters, but they explain more
        ([(6, -101.0), (123, -100.0)], []),  # as good
        ([(60, -500.0), (123, -100.0)], []),  # lower, but not far from the number
        ([(6, -500.0)], []),
    ],
)
def test_a_chain_of_few_clusters_and_a_far_lower_joint_is_stuck(chains, stuck):
    assert stuck_chains([rows(*chain) for chain in chains]) == stuck


def two_chains(one, other, **about):
    """A posterior of 40 documents whose two chains have these clusters, two samples each."""
    posterior = make_model()
    sample = posterior.samples[0]
    samples = [replace(sample, cluster=np.asarray(each, np.int32)) for each in (one, one, other, other)]
    return replace(posterior, samples=samples, provenance={"chains": [2, 2], **about})


def words(posterior, length):
    """40 documents of the posterior's words, so many each."""
    counts = np.zeros((40, posterior.n_words), int)
    counts[:, 0] = length
    return Corpus(counts, posterior.vocabulary)


def test_the_clusters_are_those_of_chains_that_are_not_stuck():
    halves, alike = np.arange(40) % 2, np.zeros(40)
    free, stuck = two_chains(alike, halves), two_chains(alike, halves, stuck=[0])
    assert len(np.unique(stuck.cluster)) == 2
    assert np.array_equal(stuck.cluster, halves)
    assert stuck.interval("clusters") == free.interval("clusters")  # what it found still counts in intervals
    (said,) = advice(stuck, words(stuck, 20))
    assert said.startswith("chain 1 is stuck at 1 cluster, though another chain explains the documents far better")


def test_chains_that_differ_are_told_of():
    halves, other = np.arange(40) % 2, np.arange(40) // 20
    assert advice(two_chains(halves, halves), words(make_model(), 20)) == []
    (said,) = advice(two_chains(halves, other), words(make_model(), 20))
    assert said.startswith(
        "different starts found 2 and 2 clusters, and they agree only in part (adjusted Rand index -0.0"
    )
    agreed = SimpleNamespace(agreement=np.array([1.0, 0.8]), recommended=2)
    assert advice(replace(two_chains(halves, other), hierarchy=agreed), words(make_model(), 20)) == []
    agreed.recommended = 1  # no groups are claimed
    assert advice(replace(two_chains(halves, other), hierarchy=agreed), words(make_model(), 20)) == []


@pytest.mark.slow
def test_python_shell_and_scikit_learn_warn_alike(tmp_path, caplog):
    rng = np.random.default_rng(2)
    words, shares = rng.dirichlet(np.full(30, 0.2), 6), rng.dirichlet(np.full(6, 0.5), 60)  # no groups of documents
    corpus = Corpus(np.array([rng.multinomial(20, own @ words) for own in shares]))
    caplog.set_level(logging.WARNING)
    in_python = mc2core.fit(corpus, iterations=6, seed=1).provenance["inferred"]
    in_shell = fit_corpus(corpus, tmp_path, iterations=6, seed=1, chains=None, keep_all=True)["inferred"]
    assert in_python == in_shell
    assert in_python["chains"]["recommended"] == in_python["recommended"]
    (warning,) = in_python["warnings"]
    assert f"the recommended {in_python['recommended']} of each agree only in part" in warning
    MC2Clusterer(iterations=6, random_state=1).fit(corpus.content)
    assert [record.getMessage() for record in caplog.records].count(warning) == 2


def test_short_texts_and_markup_are_told_of():
    alike = two_chains(np.arange(40) % 2, np.arange(40) % 2)
    (short,) = advice(alike, words(alike, 7))
    assert short.startswith("texts of 7 words show little of their topics")
    mixture = replace(alike, provenance=alike.provenance | {"model": {"name": "mixture"}})
    assert advice(mixture, words(mixture, 7)) == []
    vectors = Projection.from_vectors(np.random.default_rng(0).normal(size=(40, 3))).stored()
    embedded = replace(alike, imported={KEY: vectors}, families={"embedding": None})
    assert advice(embedded, words(embedded, 7)) == []
    assert len(advice(replace(embedded, families={}), words(embedded, 7))) == 1  # imported, but not in the model
    several = [*alike.vocabulary[:-3], "nbsp", "href", "span"]
    marked = replace(alike, vocabulary=several)
    (markup,) = advice(marked, Corpus(np.full((40, len(several)), 5), several))
    assert markup.startswith("markup in the texts (words such as href, nbsp, span)")
