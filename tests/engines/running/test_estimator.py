"""MC2Clusterer under scikit-learn's own checks, in a pipeline, and against :func:`mc2core.fit`."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import mc2core
from mc2core.engines import Gibbs
from mc2core.sklearn import MC2Clusterer


class Rounding(MC2Clusterer):
    """The checks' real numbers as counts; all else is MC2Clusterer."""

    @staticmethod
    def _whole(X):
        if sp.issparse(X):
            X = X.copy()
            X.data = np.rint(4 * X.data)
            return X
        return np.rint(4 * np.asarray(X, dtype=np.float64))


#: checks that do not apply, and why
NOT_FOR_COUNTS = {
    "check_clustering": "three blobs in two dimensions are no documents of three kinds: a document's length says "
    "nothing about its topics",
}


@parametrize_with_checks(
    [Rounding(iterations=2, settings={"start_topics": 2})], expected_failed_checks=lambda estimator: NOT_FOR_COUNTS
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


TEXTS = ["lake ferry sail", "ferry sail harbour", "lake harbour ferry"] * 4 + ["bread oven", "oven flour bread"] * 6


def test_in_a_pipeline_it_finds_the_groups():
    steps = make_pipeline(CountVectorizer(), MC2Clusterer(iterations=40, settings={"start_topics": 5}))
    found = steps.fit_predict(TEXTS)
    assert mc2core.clustering.adjusted_rand_index([0] * 12 + [1] * 12, found) > 0.5
    probability = steps.transform(["a lake with a ferry", "flour"])
    assert probability.shape == (2, steps[-1].n_clusters_)
    assert probability.sum(axis=1) == pytest.approx(1)
    assert steps.predict(TEXTS).tolist() == steps.transform(TEXTS).argmax(axis=1).tolist()


def test_it_is_the_fit_of_the_package():
    counts = CountVectorizer().fit_transform(TEXTS)
    one = MC2Clusterer(iterations=6, settings={"start_topics": 3}, random_state=5).fit(counts)
    engine = Gibbs(start_topics=3, document_concentration="learn")
    other = mc2core.fit(mc2core.Corpus(counts), engine, iterations=6, seed=5, progress=False).model
    assert np.array_equal(one.labels_, other.last.cluster)
    assert np.array_equal(one.components_, other.word_given_topic)
    assert clone(one).get_params() == one.get_params()


def test_nothing_is_logged_where_columns_have_no_names(caplog):
    counts = CountVectorizer().fit_transform(TEXTS)
    one = MC2Clusterer(iterations=2, settings={"start_topics": 2}).fit(counts)
    one.transform(counts)
    assert caplog.text == ""
    assert one.model_.top_words(1)[0][0] in {f"w{i}" for i in range(counts.shape[1])}


def test_what_is_no_count_is_refused():
    for wrong, message in (([[0.5]], "counts are whole numbers"), ([[-1]], "Negative values")):
        with pytest.raises(ValueError, match=message):
            MC2Clusterer().fit(wrong)
    with pytest.raises(ValueError, match=r"a setting of engine 'gibbs' is 'start_topic'.*did you mean 'start_topics'"):
        MC2Clusterer(settings={"start_topic": 2}).fit([[1]])
