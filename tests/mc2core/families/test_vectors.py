"""Vectors as contexts, from a corpus to what is predicted of them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.commands import mc2
from helpers.fits import gibbs, svi

from mc2core import Corpus, Posterior
from mc2core.app.cli import main
from mc2core.corpus.matching import in_units
from mc2core.corpus.readers.reading import read_own
from mc2core.corpus.subsets import without_contexts
from mc2core.explore.describe import describe
from mc2core.families import DiagonalNormalGamma, NormalGamma
from mc2core.inference.running.loop import fit
from mc2core.models import MC2
from mc2core.posterior.clustering import adjusted_rand_index

LENGTH = 6
CENTRES = 40.0 + 9.0 * np.array([[1, 0, 1, 0, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 0, 1, 0, 1]], dtype=float)
TRUTH = np.repeat([0, 1, 2], 20)


def make_corpus(**more):
    """Words that say nothing, and vectors far from 0 that say all; document 3 has none, 5 lacks two numbers."""
    rng = np.random.default_rng(3)
    vectors = CENTRES[TRUTH] + rng.normal(size=(len(TRUTH), LENGTH))
    vectors[3], vectors[5, :2] = np.nan, np.nan
    content = rng.poisson(1.0, (len(TRUTH), 8)) + 1
    words = [f"word{number}" for number in range(8)]
    return Corpus(content, words, contexts={"place": vectors}, labels=TRUTH, **more)


def contexts():
    return {"place": DiagonalNormalGamma()}


ENGINES = {
    "collapsed": lambda: gibbs(kernel="collapsed", contexts=contexts(), start_topics=3),
    "interleaved": lambda: gibbs(kernel="interleaved", contexts=contexts(), start_topics=3),
    "blocked": lambda: gibbs(kernel="blocked", contexts=contexts(), start_topics=3),
    "document level": lambda: gibbs(document_level=True, contexts=contexts(), start_topics=3),
    "svi": lambda: svi(contexts=contexts(), max_clusters=8, max_topics=4, batch_size=20),
    "svi document level": lambda: svi(document_level=True, contexts=contexts(), max_clusters=8, max_topics=4),
}


class TestCorpus:
    def test_floats_are_vectors_and_whole_numbers_are_counts(self):
        content = np.ones((2, 1), int)
        table = np.array([[1, 0], [2, 3]])
        corpus = Corpus(content, contexts={"a": table, "b": table.astype(float), "c": sp.csr_matrix(table * 1.0)})
        assert corpus.context_kinds == {"a": "counts", "b": "vector", "c": "counts"}
        assert "b (vectors)" in repr(corpus)

    def test_missing_is_a_row_of_nan(self):
        corpus = make_corpus()
        assert np.flatnonzero(corpus.missing("place")).tolist() == [3]
        assert np.flatnonzero(corpus.subset([5, 3]).missing("place")).tolist() == [1]
        assert without_contexts(corpus, 1.0, 0).missing("place").all()
        half = without_contexts(corpus, 0.5, 0)
        kept = ~half.missing("place")
        assert np.array_equal(half.contexts["place"][kept], corpus.contexts["place"][kept], equal_nan=True)

    def test_each_coordinate_is_standardised_and_keeps_its_unit(self):
        plain = make_corpus()
        corpus = plain.standardised("place")
        assert np.nanmean(corpus.contexts["place"], axis=0) == pytest.approx(0.0, abs=1e-12)
        assert np.nanstd(corpus.contexts["place"], axis=0) == pytest.approx(1.0)
        assert corpus.units["place"] == tuple(
            pytest.approx(part(plain.contexts["place"], axis=0)) for part in (np.nanmean, np.nanstd)
        )
        back = in_units(corpus, ["place"], {})
        np.testing.assert_allclose(back.contexts["place"], plain.contexts["place"])
        few = plain.subset([5, 0])
        assert np.array_equal(
            few.standardised("place", like=corpus).contexts["place"], corpus.contexts["place"][[5, 0]], equal_nan=True
        )
        assert in_units(few, ["place"], corpus.units).units == corpus.units

    @pytest.mark.parametrize("length", [5, [len(TRUTH), 6], None, -6, True])
    def test_a_length_that_is_not_that_of_the_file_is_refused(self, tmp_path, length):
        corpus = make_corpus()
        corpus.save(tmp_path / "corpus")
        path = tmp_path / "corpus" / "corpus.json"
        meta = json.loads(path.read_text())
        meta["contexts"]["place"] = length
        path.write_text(json.dumps(meta))
        with pytest.raises(ValueError, match=r"place|shape"):
            Corpus.load(tmp_path / "corpus")

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.full((2, 3), np.inf), "context 'x': document 0 is infinite"),
            (np.zeros((3, 3)), r"context 'x' has shape \(3, 3\), but the corpus has 2 documents"),
            (np.zeros((2, 0)), "context 'x' has vectors without coordinates"),
            (np.zeros((2, 3, 1)), r"context 'x' has shape \(2, 3, 1\)"),
        ],
    )
    def test_bad_values_are_named(self, values, message):
        with pytest.raises(ValueError, match=message):
            Corpus(np.ones((2, 1), int), contexts={"x": values})

    @pytest.mark.parametrize("unit", [((1.0,), (1.0,)), ((0.0,) * 6, (1.0,) * 5), ((0.0,) * 6, (0.0,) * 6)])
    def test_a_unit_of_another_length_is_refused(self, unit):
        with pytest.raises(ValueError, match=r"units\['place'\] must be"):
            make_corpus(units={"place": unit})

    def test_texts_have_vectors_beside_them_and_follow_a_model(self, caplog):
        texts, place = ["graph tree", "tree root", "graph"], np.array([[1.0, 2.0], [3.0, 5.0], [5.0, 2.0]])
        corpus = Corpus.from_texts(texts, {"place": place}).standardised("place")
        followed = Corpus.from_texts(["tree"], {"place": np.array([[3.0, 3.0]])}, like=corpus)
        assert followed.contexts["place"][0] == pytest.approx([0.0, 0.0])
        without = Corpus.from_texts(["tree"], like=corpus)
        assert without.contexts["place"].shape == (1, 2)
        assert without.missing("place").all()
        with pytest.raises(ValueError, match="vectors with 3 numbers, but 2 in the corpus"):
            Corpus.from_texts(["tree"], {"place": np.ones((1, 3))}, like=corpus)
        with pytest.raises(ValueError, match="in Python a dense matrix of floats"):
            Corpus.from_texts(["tree"], {"place": ["here"]}, like=corpus)


@pytest.mark.parametrize(
    "engine", [name if name == "collapsed" else pytest.param(name, marks=pytest.mark.slow) for name in ENGINES]
)
def test_every_engine_finds_clusters_that_only_the_vectors_tell(engine, tmp_path):
    """Fitted on what was saved, loaded and standardised; the posterior as it is saved."""
    make_corpus().standardised("place").save(tmp_path / "corpus")
    corpus = Corpus.load(tmp_path / "corpus")
    found = fit(corpus, *ENGINES[engine](), iterations=20, progress=False).posterior
    known = ~corpus.missing("place")
    assert adjusted_rand_index(TRUTH[known], found.cluster[known]) > 0.95
    found.save(tmp_path / "posterior.npz")
    loaded = Posterior.load(tmp_path / "posterior.npz")
    assert loaded.families == contexts()
    assert loaded.units == corpus.units
    assert loaded.context_kinds == {"place": "vector"}
    # in the unit of the file, standardised or not
    assert np.array_equal(loaded.predict(make_corpus()), loaded.predict(corpus))
    means = loaded.context_mean("place")[np.bincount(loaded.representative.cluster).argsort()[-3:]]
    for centre in CENTRES:
        assert np.abs(means - centre).max(axis=1).min() < 1.5


@pytest.fixture(scope="module")
def fitted():
    corpus = make_corpus().standardised("place")
    return fit(corpus, *ENGINES["collapsed"](), iterations=10, progress=False).posterior


def test_coordinates_are_predicted_each_as_a_number_of_its_own(fitted):
    """Against means over samples and clusters, written out."""
    corpus = make_corpus()
    found = fitted.predict_context(corpus, "place")
    shares = found.shares.toarray()
    centre, sd = (np.array(part) for part in fitted.units["place"])
    kappa_mu, kappa = found.natural[:, 0::4], found.natural[:, 1::4]
    assert found.mean == pytest.approx(shares @ (kappa_mu / kappa) * sd + centre)
    one = found.coordinate(4)
    assert one.mean == pytest.approx(found.mean[:, 4])
    assert isinstance(one.family, NormalGamma)
    low, high = one.interval(0.9).T
    assert ((low < one.mean) & (one.mean < high)).all()
    grid = np.linspace(-400, 500, 60_001)
    assert (one.density(grid).sum(axis=1) * (grid[1] - grid[0])) == pytest.approx(1.0, abs=1e-3)
    assert found.table().columns.tolist() == ["document", "0", "1", "2", "3", "4", "5"]
    with pytest.raises(ValueError, match="number is 6; coordinates are numbered from 0 to 5"):
        found.coordinate(6)


def test_vectors_of_another_length_are_refused(fitted):
    other = make_corpus().with_contexts({"place": np.zeros((len(TRUTH), 5))})
    with pytest.raises(ValueError, match="'place' has vectors with 5 numbers, but 6 in the model"):
        fitted.predict_proba(other)


def test_the_family_is_that_of_the_kind_and_strength_a_power():
    corpus = make_corpus().standardised("place")
    assert MC2(contexts=["place"]).for_corpus(corpus).contexts == {"place": DiagonalNormalGamma()}
    with pytest.raises(ValueError, match="context 'place': NormalGamma needs one number for each document"):
        fit(corpus, *gibbs(contexts={"place": NormalGamma()}), iterations=1, progress=False)


def write_texts(folder, dtype=float):
    """docs.csv and place.npy, four documents."""
    (folder / "docs.csv").write_text("text\ngraph tree\ntree root\ngraph\nroot\n")
    vectors = np.array([[1, 2, 3], [2, 2, 4], [3, 9, 5], [4, 1, 6]], dtype=dtype)
    np.save(folder / "place.npy", vectors)
    return vectors


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_file_of_vectors_is_imported_and_followed(tmp_path, dtype):
    """In the order of the documents, whatever the type of the file; later documents bring a file of their own."""
    vectors = write_texts(tmp_path, dtype)
    given = {"text": "text", "contexts": [f"place={tmp_path}/place.npy:vector"]}
    corpus, _ = read_own(tmp_path / "docs.csv", given)
    assert corpus.context_kinds == {"place": "vector"}
    assert np.array_equal(corpus.contexts["place"], vectors)
    seen = corpus.standardised("place")
    again, dropped = read_own(tmp_path / "docs.csv", {"contexts": given["contexts"]}, seen)
    assert np.array_equal(again.contexts["place"], seen.contexts["place"])
    assert again.units == seen.units
    assert not dropped
    without, dropped = read_own(tmp_path / "docs.csv", {}, seen)
    assert without.missing("place").all()
    assert without.contexts["place"].shape == (4, 3)
    assert [str(one) for one in dropped] == ["1 context: place, not given: missing in every document"]


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ("place=place.npz:vector", r"'place=place.npz:vector' is a vector: it must have the form NAME=FILE.npy:vector"),
        ("place=nowhere.npy:vector", "nowhere.npy is missing"),
        ("place=short.npy:vector", r"'place': \S*short.npy holds \(3, 2\) float64; a matrix .* with 4 rows, one for"),
        ("place=flat.npy:vector", r"'place': \S*flat.npy holds \(4,\) float64; a matrix of numbers with 4 rows"),
        ("place=names.npy:vector", r"names.npy holds \(4, 1\) <U1; a matrix of numbers"),
        ("place=infinite.npy:vector", "context 'place': document 0 is infinite"),
        ("2nd=place.npy:vector", "context name '2nd' must be a plain identifier"),
    ],
)
def test_files_that_are_no_vectors_of_the_documents_are_refused(tmp_path, monkeypatch, context, message):
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path)
    np.save("short.npy", np.zeros((3, 2)))
    np.save("flat.npy", np.zeros(4))
    np.save("names.npy", np.full((4, 1), "a"))
    np.save("infinite.npy", np.full((4, 2), np.inf))
    with pytest.raises(ValueError, match=message):
        read_own(Path("docs.csv"), {"text": "text", "contexts": [context]})
    twice = {"text": "text", "contexts": ["place=place.npy:vector", "place=text:bag"]}
    with pytest.raises(ValueError, match="context 'place' is given twice"):
        read_own(Path("docs.csv"), twice)


def test_the_case_of_endings_does_not_matter(tmp_path):
    vectors = write_texts(tmp_path)
    for name in ("docs.csv", "place.npy"):
        (tmp_path / name).rename(tmp_path / name.upper())
    given = {"text": "text", "contexts": [f"place={tmp_path}/PLACE.NPY:vector"]}
    corpus, _ = read_own(tmp_path / "DOCS.CSV", given)
    assert np.array_equal(corpus.contexts["place"], vectors)


def test_new_documents_without_vectors_are_told_of_the_option(tmp_path, capsys, output_of):
    write_texts(tmp_path)
    command = ["import", str(tmp_path / "docs.csv"), "--out"]
    vectors = ["--text", "text", "--context", f"place={tmp_path}/place.npy:vector"]
    assert "| place: numbers per document | 3 |" in output_of([*command, tmp_path / "old", *vectors])
    mc2([*command, tmp_path / "new", "--like", tmp_path / "old"])
    assert "is missing in every document; give its file with --context place=FILE.npy:vector" in capsys.readouterr().err


def test_commands_import_fit_describe_and_predict(tmp_path, capsys):
    """The fit standardises; the page and its tables leave vectors out, and say so."""
    plain = make_corpus()
    np.save(tmp_path / "place.npy", plain.contexts["place"])
    texts = [" ".join(np.repeat(plain.vocabulary, row.toarray()[0])) for row in plain.content]
    pd.DataFrame({"text": texts}).to_csv(tmp_path / "docs.csv", index=False)
    vectors = f"place={tmp_path}/place.npy:vector"
    main(["import", str(tmp_path / "docs.csv"), "--text", "text", "--context", vectors, "--out", f"{tmp_path}/corpus"])
    command = ["fit", str(tmp_path / "corpus"), "--context", "place:diagonal_normal_gamma,strength=0.5"]
    main([*command, "--iterations", "4", "--out", str(tmp_path / "fit")])
    posterior = Posterior.load(tmp_path / "fit" / "posterior.npz")
    assert posterior.families == {"place": DiagonalNormalGamma(strength=0.5)}
    assert np.shape(posterior.units["place"]) == (2, LENGTH)
    describe(posterior, Corpus.load(tmp_path / "corpus"), tmp_path / "page")
    summary = pd.read_csv(tmp_path / "page" / "summary.csv").set_index("name")["value"]
    assert summary["contexts of vectors, which have no table"] == "place"
    assert "context_place" not in pd.read_csv(tmp_path / "page" / "documents.csv").columns
    assert (tmp_path / "page" / "index.html").is_file()
    capsys.readouterr()
    main(["contexts", str(tmp_path / "fit" / "posterior.npz"), str(tmp_path / "corpus"), "place"])
    assert capsys.readouterr().out.splitlines()[0] == "document,0,1,2,3,4,5"
