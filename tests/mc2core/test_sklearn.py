"""MC2Clusterer under scikit-learn's own checks, in a pipeline, and against :func:`mc2core.fit`."""

import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.fits import FIXED
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import mc2core
from mc2core.inference import SVI, FastEx, Gibbs, Stream
from mc2core.models import HDP, MC2, Mixture
from mc2core.sklearn import MC2Clusterer


class Rounding(MC2Clusterer):
    """The checks' real numbers as counts; all else is MC2Clusterer."""

    def _counts(self, X, reset):
        X = super()._counts(X, reset)
        if sp.issparse(X):
            X = X.copy()
            X.data = np.rint(4 * X.data)
            return X
        return np.rint(4 * np.asarray(X, dtype=np.float64))


#: checks that do not apply, and why
NOT_FOR_COUNTS = {
    "check_clustering": "three blobs in two dimensions are no documents of three kinds: a document's length says "
    "nothing about its topics"
}


@parametrize_with_checks(
    [Rounding(iterations=2, engine=SVI(max_topics=3))], expected_failed_checks=lambda estimator: NOT_FOR_COUNTS
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [Rounding(iterations=2, engine=Gibbs(start_topics=2))], expected_failed_checks=lambda estimator: NOT_FOR_COUNTS
)
@pytest.mark.usefixtures("short_starts")
def test_checks_of_scikit_learn_with_gibbs(estimator, check):
    check(estimator)


TEXTS = ["lake ferry sail", "ferry sail harbour", "lake harbour ferry"] * 4 + ["bread oven", "oven flour bread"] * 6


def test_in_a_pipeline_it_finds_the_groups():
    steps = make_pipeline(CountVectorizer(), MC2Clusterer(iterations=40, engine=Gibbs(start_topics=5)))
    found = steps.fit_predict(TEXTS)
    assert mc2core.clustering.adjusted_rand_index([0] * 12 + [1] * 12, found) > 0.5
    probability = steps.transform(["a lake with a ferry", "flour"])
    assert probability.shape == (2, steps[-1].n_clusters_)
    assert probability.sum(axis=1) == pytest.approx(1)
    assert steps.predict(TEXTS).tolist() == steps.transform(TEXTS).argmax(axis=1).tolist()


def test_labels_are_those_of_the_cut_that_is_named():
    counts, settings = CountVectorizer().fit_transform(TEXTS), {"iterations": 6, "engine": Gibbs(start_topics=3)}
    for cut in ("broad", "fine", "all", 2):
        one = MC2Clusterer(cut=cut, **settings).fit(counts)
        kept = one.posterior_.hierarchy
        assert np.array_equal(one.labels_, kept.cut(kept.size_of(cut)))
        assert one.n_clusters_ == one.transform(counts).shape[1] == kept.size_of(cut)
    with pytest.raises(ValueError, match="cut is 'brood'; allowed: recommended, broad, fine, all"):
        MC2Clusterer(cut="brood", **settings).fit(counts)


@pytest.mark.parametrize("more", [{}, {"chains": 1}])
def test_it_is_the_fit_of_the_package(more):
    counts = CountVectorizer().fit_transform(TEXTS)
    one = MC2Clusterer(iterations=6, engine=Gibbs(start_topics=3), random_state=5, **more).fit(counts)
    corpus = mc2core.Corpus(counts)
    other = mc2core.fit(corpus, MC2(), Gibbs(start_topics=3), iterations=6, seed=5, progress=False, **more).posterior
    assert len(other.samples) == 3 * more.get("chains", 2)
    kept = other.find_hierarchy(corpus)
    assert np.array_equal(one.labels_, kept.cut(kept.recommended))
    assert one.n_clusters_ == kept.recommended
    assert ((one.probabilities_ >= 0) & (one.probabilities_ <= 1)).all()
    assert np.array_equal(one.components_, other.word_given_topic)
    settings = [f"{name}={value}" for name, value in more.items()]
    settings += ["engine=Gibbs(start_topics=3)", "iterations=6", "random_state=5"]
    assert repr(clone(one)) == repr(one)
    assert " ".join(repr(one).split()) == f"MC2Clusterer({', '.join(settings)})"


@pytest.mark.parametrize(
    ("engine", "name"), [(Gibbs(start_topics=3), "mc2"), (SVI(), "mc2"), (FastEx(proposal="exact"), "mixture")]
)
def test_the_number_of_clusters_may_be_told(engine, name):
    counts = CountVectorizer().fit_transform(TEXTS)
    one = MC2Clusterer(iterations=10, n_clusters=2, engine=engine).fit(counts)
    about = one.posterior_.provenance["model"]
    assert (about["name"], about["n_clusters"]) == (name, 2)
    assert one.n_clusters_ <= 2
    assert clone(one).get_params()["n_clusters"] == 2
    with pytest.raises(ValueError, match=r"^n_clusters is 2 but a model is given; set it in the model instead$"):
        MC2Clusterer(n_clusters=2, model=MC2()).fit(counts)


@pytest.mark.parametrize(
    ("given", "model", "engine"),
    [
        ({"model": Mixture(n_clusters=2)}, "mixture", "fastex"),
        ({"engine": FastEx(proposal="exact")}, "mixture", "fastex"),
        ({"engine": SVI(max_clusters=2, max_topics=2)}, "mc2", "svi"),
        ({}, "mc2", "gibbs"),
    ],
)
def test_model_or_engine_alone_is_followed_by_the_other(given, model, engine):
    one = MC2Clusterer(iterations=2, **given).fit(CountVectorizer().fit_transform(TEXTS))
    assert (one.posterior_.provenance["model"]["name"], one.posterior_.provenance["engine"]["name"]) == (model, engine)


@pytest.mark.parametrize("document_level", [False, True])
def test_partial_fit_goes_on_as_a_stream_of_the_package(tmp_path, document_level):
    counter = CountVectorizer()
    counts = counter.fit_transform(TEXTS)
    new = counter.transform(["lake sail", "oven bread bread", "flour oven"])
    model, engine = MC2(document_level=document_level), SVI(max_clusters=3, max_topics=3, batch_size=4)
    settings = {"iterations": 3, "model": model, "engine": engine, "random_state": 5, "total_samples": 100}
    one = MC2Clusterer(**settings).partial_fit(counts)
    assert np.array_equal(one.labels_, MC2Clusterer(**settings).fit(counts).labels_)
    one.posterior_.vocabulary = counter.get_feature_names_out().tolist()
    joblib.dump(one, tmp_path / "one")
    stream = Stream(mc2core.fit(mc2core.Corpus(counts), model, engine, iterations=3, seed=5), total_samples=100)
    for _ in range(2):
        stream.partial_fit(mc2core.Corpus(new))
        assert one.partial_fit(new) is one
    again = joblib.load(tmp_path / "one").partial_fit(new).partial_fit(sp.csr_array(new))
    for each in (one, again):
        assert np.array_equal(each.components_, stream.posterior.word_given_topic)
        assert np.array_equal(each.transform(counts), stream.posterior.predict_proba(mc2core.Corpus(counts)))
        assert each.labels_.tolist() == each.predict(new).tolist()
        assert each.probabilities_.tolist() == each.transform(new).max(axis=1).tolist()
        assert each.posterior_.vocabulary == counter.get_feature_names_out().tolist()
        assert each.n_clusters_ == each.transform(new).shape[1]
    assert one.posterior_.provenance["stream"]["documents"] == 6
    assert one.fit(counts).partial_fit(new).posterior_.provenance["stream"]["documents"] == 3  # a fit begins anew


def test_partial_fit_is_there_where_the_engine_goes_on():
    assert hasattr(MC2Clusterer(engine=SVI()), "partial_fit")
    for engine in (None, Gibbs(), FastEx(), SVI(batch_size=None), SVI(n_shards=2)):
        assert not hasattr(MC2Clusterer(engine=engine), "partial_fit")
        with pytest.raises(ValueError, match=r"^total_samples is 9, which needs an engine with partial_fit: SVI\(\)$"):
            MC2Clusterer(engine=engine, total_samples=9).fit([[1]])


def test_what_is_no_count_is_refused():
    for wrong, message in (([[0.5]], "counts are whole numbers"), ([[-1]], "Negative values")):
        with pytest.raises(ValueError, match=message):
            MC2Clusterer().fit(wrong)
    for given, message in (
        ({"model": "mc2"}, r"model is 'mc2'; a model is needed, such as mc2core.models.MC2\(\)"),
        ({"engine": "gibbs"}, r"engine is 'gibbs'; an engine is needed, such as mc2core.inference.Gibbs\(\)"),
        ({"model": HDP(), "engine": SVI()}, "SVI cannot fit hdp; it fits mc2"),
        ({"model": MC2(contexts=["year"])}, "the corpus has no context 'year'; it has: none"),
    ):
        with pytest.raises(ValueError, match=message):
            MC2Clusterer(**given).fit([[1]])


def in_a_process(*lines):
    """Standard error and return code of a Python of its own."""
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    return done.stderr, done.returncode


@pytest.mark.slow
def test_the_first_transform_of_a_process_says_nothing():
    said, code = in_a_process(
        "import warnings; warnings.simplefilter('error')",
        "from sklearn.feature_extraction.text import CountVectorizer",
        "from mc2core.inference import Gibbs",
        "from mc2core.sklearn import MC2Clusterer",
        "counts = CountVectorizer().fit_transform(['lake ferry sail', 'bread oven', 'oven flour bread'])",
        "MC2Clusterer(iterations=2, engine=Gibbs(start_topics=2)).fit(5 * counts).transform(counts)",
    )
    assert (said, code) == ("", 0)


def test_without_scikit_learn_the_import_says_what_to_install():
    said, code = in_a_process("import sys; sys.modules['sklearn'] = None", "import mc2core.sklearn")
    assert code == 1
    assert said.splitlines()[-1] == (
        "mc2core.base.extras.MissingPackage: mc2core.sklearn needs the package scikit-learn, which is not installed: "
        "pip install 'mc2core[sklearn]'"
    )
    assert said.count("Traceback") == 1
    assert "exception" not in said


def test_topics_have_the_words_that_are_known(tmp_path):
    counter = CountVectorizer()
    counts = counter.fit_transform(TEXTS)
    words = counter.get_feature_names_out()
    settings = {"iterations": 3, "engine": Gibbs(start_topics=2)}
    frame = pd.DataFrame.sparse.from_spmatrix(counts, columns=words)
    unnamed = MC2Clusterer(**settings).fit(counts)
    assert unnamed.posterior_.vocabulary == [f"x{word}" for word in range(7)]
    for one, counted in (
        (MC2Clusterer(vocabulary=words, **settings).fit(counts), counts),
        (MC2Clusterer(vocabulary=list(words), **settings).fit(counts.toarray()), counts),
        (MC2Clusterer(**settings).fit(frame), frame),
    ):
        assert one.posterior_.vocabulary == words.tolist()
        assert np.array_equal(one.components_, unnamed.components_)
        assert np.array_equal(one.transform(counted), unnamed.transform(counts))
    # of a pipeline the words are known once it is fitted
    steps = make_pipeline(CountVectorizer(min_df=5), MC2Clusterer(**settings)).fit(TEXTS)
    steps[-1].posterior_.vocabulary = steps[:-1].get_feature_names_out().tolist()
    assert {word for topic in steps[-1].posterior_.top_words(9) for word in topic} <= set(words)
    joblib.dump(steps, tmp_path / "steps")
    assert np.array_equal(joblib.load(tmp_path / "steps").transform(TEXTS), steps.transform(TEXTS))
    with pytest.raises(ValueError, match=r"vocabulary has 2 names; needed: 7"):
        MC2Clusterer(vocabulary=["a", "b"], **settings).fit(counts)
    with pytest.raises(ValueError, match="vocabulary and the columns of X are not the same words"):
        MC2Clusterer(vocabulary=words, **settings).fit(frame[frame.columns[::-1]])


@pytest.mark.parametrize("model", [MC2(document_level=False), None])
def test_the_score_is_the_held_out_log_likelihood_of_a_word(model):
    """Two groups of documents, each with five words of its own: ln 5 nats a word for who knows the group, not ln 10."""
    rng = np.random.default_rng(0)
    train, test = (rng.poisson(np.repeat(np.eye(2), [20, 20], axis=0).repeat(5, axis=1) * 3) for _ in range(2))
    one = MC2Clusterer(iterations=10, model=model, engine=Gibbs(start_topics=3)).fit(train)
    score = one.score(sp.csr_matrix(test))
    assert -np.log(10) < score < -np.log(5)
    estimator = "marginal" if model else "left_to_right"
    documents = one.posterior_.log_likelihood(mc2core.Corpus(test, one.posterior_.vocabulary), estimator)
    assert score == pytest.approx(documents.sum() / test.sum())
    assert score == one.score(test, np.zeros(40)) == one.set_params(n_jobs=2).score(test)
    # without a word nothing is said of words, and of clusters what is known before any word is seen
    blank = test[:3] * 0
    assert np.isnan(one.score(blank))
    among_others = one.transform(np.concatenate([blank, test]))[:3]
    assert np.allclose(one.transform(blank), among_others)
    assert np.allclose(one.transform(blank), one.posterior_.cluster_weights / one.posterior_.cluster_weights.sum())
    assert (one.predict(blank) == one.posterior_.cluster_weights.argmax()).all()
    with pytest.raises(ValueError, match="the corpus is empty: no document has a word"):
        MC2Clusterer().fit(blank)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        one.predict(test[:0])


def test_settings_are_chosen_by_their_held_out_score():
    """One sweep from one topic cannot tell the two groups apart; thirty from several can."""
    steps = make_pipeline(CountVectorizer(), MC2Clusterer(model=MC2(document_level=False, **FIXED)))
    grid = {"mc2clusterer__iterations": [1, 30], "mc2clusterer__engine": [Gibbs(start_topics=n) for n in (1, 5)]}
    found = GridSearchCV(steps, grid, cv=KFold(2, shuffle=True, random_state=0), error_score="raise").fit(TEXTS)
    assert found.best_params_["mc2clusterer__iterations"] == 30
    assert found.best_score_ == pytest.approx(found.score(TEXTS), abs=0.3)
    assert found.predict(TEXTS).shape == (24,)
    engine = found.best_params_["mc2clusterer__engine"]
    best = clone(steps).set_params(mc2clusterer__iterations=30, mc2clusterer__engine=engine)
    again = cross_val_score(best, TEXTS, cv=KFold(2, shuffle=True, random_state=0), error_score="raise")
    assert again.mean() == pytest.approx(found.best_score_)
