"""``like=``: new documents from Python in the words and context columns of a model or a corpus."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.fits import gibbs

from mc2core import Corpus, Posterior
from mc2core.corpus.readers.reading import read_own
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit

FRAME = pd.DataFrame(
    {
        "body": ["ferry harbour ferry", "harbour sail ferry", "bread oven bread", "oven flour bread ferry"],
        "Year": [1990, 1991, 1992, 1993],
        "who": [["ann", "eve; x"], ["ann"], ["bob"], ["bob", "cid"]],
        "title": ["A", "B", "C", "D"],
    }
)
NEW = pd.DataFrame(
    {
        "body": ["zeppelin ferry ferry zeppelin kite", "bread"],
        "Year": [1995, None],
        "who": [["eve; x", "dan"], ["dan", "dan", "ann"]],
        "title": ["N", "O"],
    }
)
#: of NEW in the words and columns of FRAME: 1990 to 1993 have the mean 1991.5 and the variance 1.25
WORDS = ["bread", "ferry", "flour", "harbour", "oven", "sail"]
CONTENT = [[0, 2, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
WHO = [[0, 0, 0, 1], [1, 0, 0, 0]]
YEAR = [(1995 - 1991.5) / 1.25**0.5, np.nan]
LOST = ["2 words: unknown to", "3 tokens: of a word unknown to", "1 value of who: unknown to", "3 counts of who: of a"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A standardised corpus of FRAME, and a model fitted on it, as they are and saved and loaded."""
    folder = tmp_path_factory.mktemp("like")
    settings = {"contexts": {"year": "Year", "who": "who"}, "keep": ["title"]}
    corpus = Corpus.from_dataframe(FRAME, "body", **settings).standardised("year")
    engine = gibbs(contexts={"who": DirichletCategorical(0.1), "year": NormalGamma()}, start_topics=3)
    model = fit(corpus, *engine, iterations=3, seed=0, progress=False).posterior
    corpus.save(folder / "corpus")
    model.save(folder / "posterior.npz")
    loaded = {"saved corpus": Corpus.load(folder / "corpus"), "saved model": Posterior.load(folder / "posterior.npz")}
    return {"corpus": corpus, "model": model, "folder": folder} | loaded


@pytest.fixture(params=["corpus", "model", "saved corpus", "saved model"])
def like(request, models):
    return models[request.param]


def check(corpus):
    assert corpus.vocabulary == WORDS
    assert corpus.content.toarray().tolist() == CONTENT
    assert corpus.context_names == {"who": ["ann", "bob", "cid", "eve; x"]}
    assert corpus.contexts["who"].toarray().tolist() == WHO
    np.testing.assert_allclose(corpus.contexts["year"], YEAR)
    assert corpus.units["year"] == pytest.approx((1991.5, 1.25**0.5))


def test_a_frame_of_the_same_columns(like, caplog):
    corpus = Corpus.from_dataframe(NEW, like=like)
    check(corpus)
    assert corpus.documents.to_dict("list") == {"title": ["N", "O"]}
    (said,) = [one.message for one in caplog.records if one.levelname == "WARNING"]
    assert all(one in said for one in LOST)
    caplog.clear()
    again = Corpus.from_dataframe(FRAME, like=like)
    assert caplog.text == ""
    assert again.content.toarray().sum(axis=1).tolist() == [3, 3, 3, 4]


def test_a_frame_whose_columns_are_called_otherwise(like, caplog):
    other = NEW.rename(columns={"body": 0, "Year": "when", "who": "by=all: of them"}).drop(columns="title")
    corpus = Corpus.from_dataframe(other, 0, contexts={"year": "when", "who": "by=all: of them"}, like=like)
    check(corpus)
    assert "1 column: 'title', not among those given" in caplog.text
    dates = other.assign(when=pd.to_datetime(["1995-01-01", None]))
    check(Corpus.from_dataframe(dates, 0, contexts={"who": "by=all: of them", "year": "when"}, like=like))
    cut = other.assign(words=other[0].str.split())
    check(Corpus.from_dataframe(cut, bag="words", contexts={"year": "when", "who": "by=all: of them"}, like=like))


def test_a_frame_without_the_column_of_the_words(like):
    other = NEW.rename(columns={"body": "abstract"})
    message = r"frame has no column 'body', .*name another with --text COLUMN \(text= in Python; columns: 'abstract, "
    with pytest.raises(ValueError, match=message):
        Corpus.from_dataframe(other, like=like)
    check(Corpus.from_dataframe(other, "abstract", like=like))


def test_texts(like, caplog):
    names = [("eve; x", "dan"), ["dan", "dan", "ann"]]
    check(Corpus.from_texts(NEW["body"], {"who": names, "year": [1995, None]}, like=like))
    assert all(one in caplog.text for one in LOST)
    # what nobody gave is missing; where all of it is missing, it keeps its kind
    corpus = Corpus.from_texts(["ferry"], {"who": [None]}, like=like)
    assert corpus.missing("who").all()
    assert corpus.missing("year").all()
    assert "1 context: year, not given: missing in every document" in caplog.text
    # counts that are a matrix already are in the columns
    table = pd.DataFrame({"id": ["p", "q"]})
    made = Corpus.from_texts(NEW["body"], {"year": [1995, None], "who": sp.csr_matrix(WHO)}, documents=table, like=like)
    check(made)
    assert made.documents["id"].tolist() == ["p", "q"]


def test_a_model_predicts_and_scores_them(models):
    model = models["saved model"]
    corpus = Corpus.from_dataframe(NEW, like=model)
    assert model.predict_proba(corpus).sum(axis=1) == pytest.approx(1)
    bare = Corpus(
        CONTENT, WORDS, {"who": np.array(WHO), "year": YEAR}, context_names={"who": corpus.context_names["who"]}
    )
    bare.units = corpus.units
    assert np.array_equal(model.log_likelihood(corpus, "context"), model.log_likelihood(bare, "context"))


def test_a_file_and_a_frame_are_read_alike(models, tmp_path, output_of):
    """The columns of a model that was made from either are those of both."""
    rows = json.loads(NEW.to_json(orient="records"))
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["import", str(tmp_path / "new.jsonl"), "--like", str(models["folder"] / "posterior.npz")]
    assert "- 3 tokens: of a word unknown to the model" in output_of([*command, "--out", tmp_path / "new"])
    check(Corpus.load(tmp_path / "new"))
    lists = pd.DataFrame(
        {"t": ["lake; sea"], "n": ["ann;bob"], "d": ["02.07.2019"], "x": ["red lake"], "c": ["a:2; b"]}
    )
    lists.to_csv(tmp_path / "a.csv", index=False)
    contexts = ["n:bag", "d:date", "x:text", "c:counts"]
    settings = {"text": "t", "contexts": contexts, "date_format": "%d.%m.%Y", "max_ngram": 2, "word_counts": "presence"}
    imported, _ = read_own(tmp_path / "a.csv", settings)
    assert imported.vocabulary == ["lake", "lake_sea", "sea"]
    assert Corpus.from_dataframe(lists, like=imported).digest == imported.digest
    given = {"n": [["ann", "bob"]], "d": [datetime.date(2019, 7, 2)], "x": ["red lake"], "c": [{"a": 2, "b": 1}]}
    assert Corpus.from_texts(lists["t"], given, like=imported).digest == imported.digest


def test_words_made_by_a_function_are_made_by_it_again(tmp_path):
    def cut(text):
        return text.split("|")

    like = Corpus.from_texts(["a b|c", "c|d"], tokenise=cut)
    like.save(tmp_path / "like")
    like = Corpus.load(tmp_path / "like")
    assert Corpus.from_texts(["c|a b|e"], tokenise=cut, like=like).content.toarray().tolist() == [[1, 1, 0]]
    with pytest.raises(ValueError, match=r"^the earlier words were made by a Python function; give it again"):
        Corpus.from_texts(["c|a b"], like=like)
    (tmp_path / "new.csv").write_text("t\nc;a b\n")
    with pytest.raises(ValueError, match="were made by a Python function"):
        read_own(tmp_path / "new.csv", {"text": "t"}, like)
    assert read_own(tmp_path / "new.csv", {"bag": "t"}, like)[0].content.toarray().tolist() == [[1, 1, 0]]


def test_how_words_were_made_is_followed():
    like = Corpus.from_texts(["Der See, die See", "A lake"], stop_words=["der"], min_letters=1, word_counts="presence")
    new = Corpus.from_texts(["der See See a"], like=like)
    assert new.vocabulary == ["a", "die", "lake", "see"]
    assert new.content.toarray().tolist() == [[1, 0, 0, 1]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"like": {}}, "like is dict; a Corpus or a Posterior is needed"),
        ({"texts": ["lake"]}, "no word of the new documents is among the 6 words of"),
        ({"contexts": {"x": [1]}}, "context 'x' is not in the model"),
        ({"contexts": {"year": [["ann"]]}}, "a finite number"),
        ({"contexts": {"who": np.ones((1, 3), int)}}, r"contexts\['who'\] has 3 columns, but the model has 4 there"),
        ({"vocabulary": ["ferry"]}, "'vocabulary' cannot be given"),
        ({"min_letters": 1}, "'min_letters' is 1, but the model was made with 2"),
        ({"stop_words": None}, "'stop_words' is 'none', but the model was made with 'english'"),
        ({"tokenise": str.split}, "'tokeniser' is 'function', but the model was made with 'unicode'"),
        ({"frame": NEW, "contexts": ["who", "Year"]}, "context 'Year' is not in the model, which has: who, year"),
        ({"frame": NEW, "max_df": 0.5}, "'max_df' cannot be given"),
        ({"frame": NEW[["title"]]}, "frame has no column 'body'"),
        ({"frame": NEW, "contexts": {"year": "year"}}, "did you mean 'Year'"),
    ],
)
def test_what_contradicts_is_said(models, settings, message):
    make, words = (Corpus.from_dataframe, {}) if "frame" in settings else (Corpus.from_texts, {"texts": ["ferry"]})
    with pytest.raises(ValueError, match=message):
        make(**words | {"like": models["model"]} | settings)


@pytest.mark.parametrize("texts", [[""], ["", ""], ["the of"]])
def test_blank_documents_alone_are_read(texts):
    """The number of rows was asked of the builder after it had started again: "content has no documents"."""
    like = Corpus.from_texts(["ferry lake", "lake ice"])
    corpus = Corpus.from_texts(texts, like=like)
    assert (corpus.n_documents, corpus.n_tokens, corpus.vocabulary) == (len(texts), 0, like.vocabulary)
