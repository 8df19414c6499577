"""Posterior: round trip through its file, probabilities, and what it says of clusters and topics."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.fits import at_strength
from helpers.small_posteriors import WORDS, make_corpus, make_model, word_given_cluster
from scipy.special import softmax

from mc2core import Corpus
from mc2core.corpus.matching import in_units
from mc2core.explore.description import Description
from mc2core.explore.tables import tables_of
from mc2core.inference.running.summary import found, sentence
from mc2core.posterior import Posterior, Sample, SparseRows, perplexity, scores


def test_sparse_rows_return_every_bit_above_the_least():
    rng = np.random.default_rng(3)
    dense = 0.1 + rng.poisson(0.02, (50, 4000))
    dense[:, 7] = rng.normal(size=50)  # a column without a common value, negative and zero entries among it
    dense[3, 7] = 0.0
    rows = SparseRows.from_dense(dense)
    np.testing.assert_array_equal(rows.dense(), dense)
    np.testing.assert_array_equal(rows.dense(slice(5, 9)), dense[:, 5:9])
    assert rows.above.nnz == np.count_nonzero(dense != dense.min(axis=0)) < 0.03 * dense.size
    one = SparseRows.from_dense(dense[:1])
    assert one.above.nnz == 0
    np.testing.assert_array_equal(one.dense(), dense[:1])


@pytest.mark.parametrize("dense", [False, True])
def test_save_and_load_round_trip(dense, tmp_path):
    model = make_model(dense)
    model.save(tmp_path / "posterior.npz")
    found = Posterior.load(tmp_path / "posterior.npz")
    for name in ("families", "dimensions", "vocabulary", "context_names", "units", "provenance"):
        assert getattr(found, name) == getattr(model, name), name
    assert len(found.samples) == 2
    for one, other in zip(found.samples, model.samples, strict=True):
        for name in [*Sample.__dataclass_fields__.keys() - {"contexts"}, "natural"]:
            left, right = getattr(one, name), getattr(other, name)
            assert sp.issparse(left) == sp.issparse(right)
            left, right = (part.toarray() if sp.issparse(part) else np.asarray(part) for part in (left, right))
            assert left.dtype == right.dtype, name
            np.testing.assert_array_equal(left, right, err_msg=name)
    corpus = make_corpus()
    for estimator in perplexity.ESTIMATORS:
        np.testing.assert_array_equal(found.log_likelihood(corpus, estimator), model.log_likelihood(corpus, estimator))


UPDATE = {"file": "a.csv", "documents": 1, "tokens": 9, "log_evidence": -1.0, "in_small": 0, "left_out_tokens": 0}
UPDATE |= {"clusters_born": 0, "clusters_gone": 0, "topics_born": 0, "topics_gone": 0}
STREAM = {"fitted": {"tokens": 9, "log_evidence": None}, "updates": [UPDATE]}


@pytest.mark.parametrize(
    "about",
    [
        *(
            [],
            None,
            "x",
            {"model": "mc2"},
            {"engine": {}},
            {"engine": {"name": 3}},
            {"seed": "0"},
            {"iterations": None},
        ),
        *({"chains": [1]}, {"chains": [3, -1]}, {"chains": 2}, {"corpus": 1}, {"thin": [1]}, {"stream": []}),
        *({"stream": one} for one in ({"updates": [UPDATE]}, STREAM | {"fitted": {}}, STREAM | {"updates": [1]})),
        *({"stream": STREAM | {"updates": [UPDATE | one]}} for one in ({"tokens": "9"}, {"file": 1})),
    ],
)
def test_a_forged_provenance_is_refused(tmp_path, about):
    model = make_model(n_samples=2)
    dataclasses.replace(model, provenance={"chains": [1, 1], "stream": STREAM}).save(tmp_path / "good.npz")
    assert Posterior.load(tmp_path / "good.npz").provenance["stream"] == STREAM
    dataclasses.replace(model, provenance=about).save(tmp_path / "forged.npz")
    with pytest.raises(ValueError, match=r"forged\.npz is not a saved posterior: "):
        Posterior.load(tmp_path / "forged.npz")


def test_a_failed_save_leaves_the_old_model(tmp_path):
    model = make_model()
    model.save(tmp_path / "posterior.npz")
    before = (tmp_path / "posterior.npz").read_bytes()
    model.provenance["unwritable"] = object()
    with pytest.raises(TypeError):
        model.save(tmp_path / "posterior.npz")
    assert (tmp_path / "posterior.npz").read_bytes() == before


def test_probabilities_sum_to_one_and_the_representative_speaks():
    model = make_model()
    sample = model.representative
    assert sample is model.samples[1]
    np.testing.assert_allclose(model.word_given_topic.sum(axis=1), 1)
    expected = (np.array([[*model.representative.topic_words.toarray()[0]]]) + 0.01)[0]
    np.testing.assert_allclose(model.word_given_topic[0], expected / expected.sum())
    assert (model.n_words, sample.n_clusters, sample.n_topics) == (4, 2, 3)


def of_its_representative():
    """A posterior of one sample."""
    return replace(make_model(), samples=[make_model().representative])


@pytest.mark.parametrize("strength", [1.0, 0.25, 0.0])
def test_predict_is_bayes_rule(strength):
    model, corpus = of_its_representative(), make_corpus()
    words = np.log(model.cluster_weights) + corpus.content @ np.log(word_given_cluster(model.representative)).T
    np.testing.assert_allclose(model.predict_proba(corpus, use_context=False), softmax(words, axis=1))
    np.testing.assert_allclose(model.predict_proba(corpus, use_context=False)[1], model.cluster_weights)
    whole = model.stacked(corpus)
    model.families = at_strength(model.families, strength)
    context = np.zeros((3, 2))
    for family, part in whole.segments():
        for j in (0, 2):
            row = strength * whole.statistics[[j]].toarray()[0, part]
            natural = model.representative.natural[:, part]
            context[j] += family.log_normaliser(natural + row) - family.log_normaliser(natural)
    np.testing.assert_allclose(model.predict_proba(corpus), softmax(words + context, axis=1), atol=1e-12)
    assert (np.abs(context).max() > 0.01) == (strength > 0.0)


def test_predictions_are_means_over_samples_of_all_chains(monkeypatch):
    corpus, model = make_corpus(), make_model()
    first, second = model.samples
    parts = [np.array([0, 1, 1, 0, 1, 0]), np.array([1, 1, 0, 0, 1, 0]), np.array([0, 1, 1, 1, 1, 0])]
    samples = [
        replace(one, cluster=part.astype(np.int32)) for one, part in zip((first, second, first), parts, strict=True)
    ]
    model = replace(model, samples=samples, provenance={"chains": [1, 2]})
    expected = np.zeros((corpus.n_documents, 2))
    for sample, part in zip(samples, parts, strict=True):
        alone = replace(model, samples=[sample], provenance={}).predict_proba(corpus, use_context=False)
        into = [[(model.cluster[part == one] == other).mean() for other in (0, 1)] for one in (0, 1)]
        expected += alone @ np.array(into) / 3
    np.testing.assert_allclose(model.predict_proba(corpus, use_context=False), expected)
    assert np.abs(expected - alone).max() > 0.01
    monkeypatch.setattr("mc2core.posterior.posterior.N_PREDICTING", 2)
    assert [one is model.representative for one in replace(model).predicting_samples] == [True, False]
    stuck = replace(model, provenance={"chains": [1, 2], "stuck": [0]})
    assert {id(one) for one in stuck.predicting_samples} == {id(one) for one in samples[1:]}


def test_context_parameters_and_means_in_their_own_unit():
    model = make_model()
    assert model.context_parameters("pages").shape == (2, 2)
    np.testing.assert_allclose(model.context_mean("author"), [[2.5 / 3, 0.5 / 3], [0.5 / 2, 1.5 / 2]])
    np.testing.assert_allclose(model.context_mean("pages"), [8 / 1.1, 4 / 2.1])
    np.testing.assert_allclose(model.context_mean("year"), [2000 + 5 * 1.5 / 3, 2000 + 5 * -3 / 4])


def test_top_words_come_likeliest_first():
    model = make_model()
    assert model.top_words(1)[0] == ["birch"]  # the representative's topic 0 has 9 tokens of word 1
    for n in (3, 99):
        for row, words in zip(model.representative.topic_words.toarray(), model.top_words(n), strict=True):
            met = [v for v in sorted(range(4), key=lambda v: (-row[v], v)) if row[v] > 0]
            assert words == [WORDS[v] for v in met[:n]]


def test_sparse_shares_score_as_dense_ones(tmp_path):
    """Thousands of clusters with a topic each (FastEx) keep their shares sparse; nothing read from them changes."""
    dense, corpus = make_model(), make_corpus()
    sparse = make_model()
    sparse.samples = [
        dataclasses.replace(sample, topic_given_cluster=sp.csr_matrix(sample.topic_given_cluster))
        for sample in sparse.samples
    ]
    sparse.save(tmp_path / "posterior.npz")
    read = Posterior.load(tmp_path / "posterior.npz")
    assert sp.issparse(read.representative.topic_given_cluster)
    for model in (sparse, read):
        np.testing.assert_array_equal(model.topic_given_cluster, dense.topic_given_cluster)
        np.testing.assert_allclose(model.predict_proba(corpus), dense.predict_proba(corpus), rtol=1e-12)
        np.testing.assert_allclose(
            word_given_cluster(model.representative), word_given_cluster(dense.representative), rtol=1e-12
        )
        for estimator in ("marginal", "context", "icml14", "importance"):
            expected = dense.log_likelihood(corpus, estimator)
            np.testing.assert_allclose(model.log_likelihood(corpus, estimator), expected, rtol=1e-10)


def test_top_words_of_sparse_counts_are_those_of_dense_ones():
    """Words that do not occur are left out; ties come in the order of the vocabulary."""
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 3, (6, 30)) * (rng.random((6, 30)) < 0.2)
    sample = make_model().representative
    topics = {"topic_given_cluster": np.full((2, 6), 1 / 6), "topic_weights": np.full(6, 0.1)}
    found = []
    for table in (counts, sp.csr_matrix(counts)):
        one = dataclasses.replace(sample, topic_words=table, **topics)
        found.append(Posterior([one], {}, {}, [str(word) for word in range(30)]).top_words(12))
    assert found[0] == found[1]
    expected = [str(word) for word in np.argsort(-counts[0], kind="stable") if counts[0, word] > 0]
    assert found[0][0] == expected[:12]


def test_agreement_is_told_with_the_clusters_it_was_scored_on():
    """A sample with three clusters counts in the mean, not beside the agreement of the two of the consensus."""
    model = make_model(n_samples=1)
    last, three = model.representative, np.array([0, 1, 1])
    first = dataclasses.replace(
        last,
        cluster_weights=np.array([0.25, 0.5, 0.25]),
        topic_given_cluster=last.topic_given_cluster[three],
        new_topic_weight=last.new_topic_weight[three],
        contexts=SparseRows.from_dense(last.natural[three]),
        cluster=np.array([0, 1, 2], dtype=np.int32),
    )
    model = dataclasses.replace(model, samples=[first, last])
    train = make_corpus()
    train.labels = np.array([0, 1, 1])
    found = scores.evaluate(model, train, None)
    assert (found["clusters"], found["scored_clusters"], found["ari"]) == (2.5, 2, 1.0)
    assert scores.solutions_of(found)[0]["clusters"] == 2


def with_clusters(corpus, *clusterings):
    """A posterior of samples with these clusters that was fitted on the corpus."""
    model = make_model(n_samples=1)
    samples = [
        dataclasses.replace(model.samples[0], cluster=np.array(one, dtype=np.int32), log_joint=float(number))
        for number, one in enumerate(clusterings)
    ]
    model = dataclasses.replace(model, samples=samples, provenance={"corpus": corpus.digest})
    model.units.clear()
    return model


def test_documents_have_the_consensus_or_the_likeliest_cluster():
    fitted = make_corpus()
    fitted = fitted.subset(np.array([0, 1, 2, 0, 1, 2]))
    model = with_clusters(fitted, [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 1, 1])
    assert model.was_fitted_on(fitted)
    assert model.representative.log_joint == 2  # of the two that are equal the later one
    assert model.cluster.tolist() == [1, 1, 1, 0, 0, 0]
    expected = [(2 + 1 + 2 + 0) / 8, (2 + 1 + 2 + 1) / 8, (2 + 0 + 2 + 1) / 8, 1, 1, 1]
    np.testing.assert_allclose(model.certainty, expected)
    cluster, probability = model.assign(fitted)
    assert cluster.tolist() == model.cluster.tolist()
    np.testing.assert_allclose(probability[np.arange(6), cluster], expected)
    assert probability[2, 0] == pytest.approx((0 + 1 + 0 + 1) / 4)  # together with all three in two of four samples
    joined, share = model.assign(fitted, cut=1)
    assert joined.tolist() == [0] * 6
    assert share.shape == (6, 1)
    new = fitted.subset(np.arange(3))
    assert not model.was_fitted_on(new)
    for corpus, use_context in ((new, True), (fitted, False)):
        cluster, probability = model.assign(corpus, use_context)
        np.testing.assert_array_equal(probability, model.predict_proba(corpus, use_context))
        np.testing.assert_array_equal(cluster, probability.argmax(axis=1))
    joined, probability = model.assign(new, cut=1)
    np.testing.assert_allclose(probability, 1.0)


def test_one_sample_cannot_tell_how_sure_it_is():
    fitted = make_corpus()
    model = with_clusters(fitted, [0, 1, 1])
    assert np.isnan(model.certainty).all()
    np.testing.assert_array_equal(model.assign(fitted)[1], model.predict_proba(fitted))
    hdp = with_clusters(fitted, [0, 1, 2], [0, 1, 2])
    of_documents = {"cluster_weights": np.full(3, 1 / 3), "new_cluster_weight": 1.0}
    hdp.samples = [dataclasses.replace(sample, **of_documents) for sample in hdp.samples]
    assert (hdp.representative.log_joint, hdp.cluster.tolist()) == (1, [0, 1, 2])
    assert np.isnan(hdp.certainty).all()


def test_intervals_are_of_clusters_and_topics_over_samples():
    model = make_model()
    few = dataclasses.replace(model.samples[0], topic_weights=np.array([0.5]))
    model = dataclasses.replace(model, samples=[few, *model.samples * 20])
    assert (model.interval("clusters"), model.interval("topics")) == ((2, 2), (3, 3))
    model = dataclasses.replace(model, samples=[few, *model.samples[1:3]])
    assert model.interval("topics") == (1, 3)
    labels = np.repeat([0, 1, 2, 3], [60, 35, 4, 1])
    model = dataclasses.replace(model, samples=[dataclasses.replace(few, cluster=labels)] * 2)
    assert model.interval("main clusters") == (2, 2)  # 95 of 100 documents
    labels[0] = 3  # 94, and then 98 of 100
    assert model.interval("main clusters") == (3, 3)
    with pytest.raises(ValueError, match="allowed: clusters, topics"):
        model.number("main clusters")
    with pytest.raises(ValueError, match="did you mean 'topics'"):
        model.interval("topic")


def test_a_cluster_the_consensus_leaves_empty_is_not_counted():
    """One number for the command, the provenance and the report: that of the clusters which the tables list."""
    labels = [[0, 0, 0, 1, 1, 1, 2], [0, 0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1, 0]]
    sample = make_model().samples[0]
    rows = [0, 1, 1]
    wide = replace(
        sample,
        cluster_weights=np.array([0.25, 0.5, 0.25]),
        topic_given_cluster=sample.topic_given_cluster[rows],
        new_topic_weight=sample.new_topic_weight[rows],
        contexts=SparseRows.from_dense(sample.contexts.dense()[rows]),
    )
    model = make_model()
    model.samples = [replace(wide, cluster=np.array(one, np.int32)) for one in labels]
    assert model.representative is model.samples[0]
    assert model.representative.n_clusters == 3
    assert sorted(set(model.cluster.tolist())) == [0, 1]
    assert model.n_clusters == model.number("clusters") == 2
    assert repr(model).startswith("Posterior(2 clusters, 3 topics")
    assert ">2 (2 to 3 hold 95 % of the documents in 90 % of the samples)</td>" in model._repr_html_()
    trace = [{"clusters": 3, "topics": 3}] * 3
    about = found(model, [trace])
    assert (about["clusters"], about["topics"]) == (2, 3)
    assert sentence(about).startswith("found 2 clusters (2 to 3 hold 95 % of the documents in 90 % of the samples)")
    contexts = {"author": np.eye(7, 2, dtype=int), "pages": np.arange(7.0), "year": 2000.0 + np.arange(7)}
    corpus = Corpus(np.eye(7, 4, dtype=int) + 1, WORDS, contexts, context_names=model.context_names)
    model.provenance["corpus"] = in_units(corpus, model.families, model.units).digest
    described = tables_of(Description.from_posterior(model, corpus))
    assert (described["cut_clusters"]["cut"] == model.representative.n_clusters).sum() == 2  # all that the fit found
    assert dict(described["summary"].to_numpy().tolist())["clusters"] == "2"
